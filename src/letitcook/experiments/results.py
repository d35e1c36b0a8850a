"""Results: the run folders of a sweep as two tidy tables, one row a run and one row an evaluation."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from letitcook.errors import FileFormatError
from letitcook.experiments.jobs import Exact, exact
from letitcook.experiments.suites import Row, Run
from letitcook.experiments.sweep import finished, read_suite_manifest, run_folder
from letitcook.storage import folders
from letitcook.tasks import TASKS, task_named
from letitcook.training.run import Point, curve_of, run_manifest

TIMES = (
    "time_acting",
    "time_wait_1",
    *(f"time_wait_{d}" for d in sorted({d for t in TASKS.values() for d in t.durations})),
)
"""Mean steps of an episode in actions, in the one-step wait action, and in waits of each duration."""
IDENTITY = {
    "id": pl.String,
    "task": pl.String,
    "method": pl.String,
    "lambda": pl.Float64,
    "mode": pl.String,
    "variant": pl.String,
    "seed": pl.Int64,
}
RUNS = {
    **IDENTITY,
    "preset": pl.String,
    "steps": pl.Int64,
    "decisions": pl.Int64,
    "length": pl.Float64,
    "queries": pl.Float64,
    "task_return": pl.Float64,
    "base_queries": pl.Float64,
    "best_step": pl.Int64,
    "best_decision": pl.Int64,
    **dict.fromkeys(TIMES, pl.Float64),
}
"""Columns of the table of runs. Nothing in it depends on when or how fast a run was made."""
CURVES = {
    **IDENTITY,
    "step": pl.Int64,
    "decision": pl.Int64,
    "length": pl.Float64,
    "queries": pl.Float64,
    "task_return": pl.Float64,
    "base_queries": pl.Float64,
}
"""Columns of the table of learning curves."""
OPTIMA = "optima.json"


@dataclass(frozen=True)
class Results:
    """What a sweep came to."""

    folder: Path
    suite: str
    runs: pl.DataFrame
    """One row a finished run, in the suite's order."""
    curves: pl.DataFrame
    """One row an evaluation."""
    optima: dict[Row, Exact]
    """The exact optimum of every row of a finite task."""


def read_results(out: Path) -> Results:
    """Read what is finished of a sweep."""
    suite = read_suite_manifest(out)
    done = [run for run in suite.runs if finished(out, run)]
    records, points = [], []
    for run in done:
        content = folders.read_folder(run_folder(out, run))
        record, curve = _record(run, content, run_folder(out, run))
        records.append(record)
        points.append(curve)
    runs = pl.DataFrame(records, schema=RUNS)
    curves = pl.concat(points) if points else pl.DataFrame(schema=CURVES)
    return Results(out, suite.name, runs, curves, optima(out, [run.row for run in done]))


def _record(run: Run, content: dict[str, bytes], folder: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    manifest = run_manifest(content, folder)
    points = curve_of(content, folder)
    try:
        fresh = Point(**manifest["fresh"])
        times = _times(manifest["run"]["decisions"], manifest["time"])
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{folder} is damaged ({error!r}); start the sweep again, it mends that run") from error
    row = run.row
    identity = dict(
        zip(IDENTITY, (run.id, row.task, row.method, row.lam, row.mode, row.variant, run.seed), strict=True)
    )
    trained = {"steps": manifest["steps"], "decisions": manifest["decisions_taken"]}
    best = {"best_step": fresh.step, "best_decision": fresh.decision}
    record = {**identity, "preset": run.preset, **trained, **fresh._asdict(), **best, **times}
    del record["step"], record["decision"]
    constant = [pl.lit(value, dtype=CURVES[name]).alias(name) for name, value in identity.items()]
    curve = pl.DataFrame(points, schema=list(Point._fields), orient="row").with_columns(constant)
    return record, curve.select([pl.col(name).cast(kind) for name, kind in CURVES.items()])


def _times(decisions: dict[str, Any], time: Sequence[float]) -> dict[str, float]:
    """Sum up the steps in each decision by what they are: acting, the wait action, waits of each duration."""
    names = ["time_wait_1" if n == decisions["wait"] else "time_acting" for n in range(len(decisions["actions"]))]
    names += [f"time_wait_{duration}" for duration in decisions["durations"]]
    times = dict.fromkeys(names, 0.0)
    for name, steps in zip(names, time, strict=False):  # vanilla has no waits
        times[name] += steps
    return times


def optima(out: Path, rows: Iterable[Row]) -> dict[Row, Exact]:
    """Return the exact optima of the rows whose task is finite; they are kept in the folder once computed."""
    wanted = list(dict.fromkeys(row for row in rows if task_named(row.task).finite))
    path = out / OPTIMA
    try:
        known = {name: Exact(*pair) for name, pair in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        known = {}
    found = {row: known.get(row.id) or exact(row) for row in wanted}
    if len({row.id for row in wanted} - set(known)):
        text = json.dumps({**known, **{row.id: best for row, best in found.items()}}, indent=1)
        folders.write_file(path, text.encode())
    return found


def write_tables(results: Results) -> list[Path]:
    """Write `runs` and `curves` into the sweep's folder, as Parquet and as CSV."""
    written = []
    for name, frame in (("runs", results.runs), ("curves", results.curves)):
        for suffix, write in (("csv", frame.write_csv), ("parquet", frame.write_parquet)):
            buffer = io.BytesIO()
            write(buffer)
            path = results.folder / f"{name}.{suffix}"
            folders.write_file(path, buffer.getvalue())
            written.append(path)
    return written
