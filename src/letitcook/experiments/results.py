"""Results: the run folders of a sweep as two tidy tables, one row a run and one row an evaluation."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from letitcook.core.decisions import Decisions
from letitcook.errors import FileFormatError
from letitcook.experiments.jobs import Exact, exact
from letitcook.experiments.suites import Row, Run
from letitcook.experiments.sweep import finished, read_suite_manifest, run_folder
from letitcook.storage import folders
from letitcook.storage.plain_json import parse_json
from letitcook.storage.setting_values import converted
from letitcook.tasks import TASKS, task_named
from letitcook.training.run import Learned, Point, from_files, run_manifest

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
ROW = ("task", "mode", "method", "lambda", "variant")
"""Columns that say which row a run belongs to: everything but the seed, in the order of `Row`."""
OPTIMA = "optima.json"
VARIES = "varies"
"""In place of a setting that differs between the rows of a task."""


@dataclass(frozen=True)
class Made:
    """What results were made with."""

    command: str = ""
    """What carries out the same sweep elsewhere; empty where it is not known."""
    versions: tuple[str, ...] = ()
    """Software and machine of the runs, a line for each combination that occurs."""
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Settings of the learner by task; those that differ between the rows of a task are `VARIES`."""


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
    made: Made = field(default_factory=Made)


def read_results(out: Path) -> Results:
    """Read what is finished of a sweep."""
    suite = read_suite_manifest(out)
    done = [run for run in suite.runs if finished(out, run)]
    records, points = [], []
    versions: dict[str, None] = {}
    settings: dict[str, dict[str, Any]] = {}
    for run in done:
        content, folder = folders.read_folder(run_folder(out, run)), run_folder(out, run)
        try:
            learned, manifest = from_files(content, folder), run_manifest(content, folder)
            record, curve = _record(run, learned), _curve(run, learned.curve)
            versions[software_of(manifest["provenance"])] = None
            _note_settings(settings.setdefault(run.row.task, {}), manifest["run"]["settings"])
        except (FileFormatError, KeyError, TypeError, AttributeError) as error:
            said = str(error) if isinstance(error, FileFormatError) else f"{folder} is damaged ({error!r})"
            raise FileFormatError(f"{said}; start the sweep again, it mends that run") from error
        records.append(record)
        points.append(curve)
    runs = pl.DataFrame(records, schema=RUNS)
    curves = pl.concat(points) if points else pl.DataFrame(schema=CURVES)
    made = Made(str(folders.read_manifest(out, "suite").get("command", "")), tuple(versions), settings)
    return Results(out, suite.name, runs, curves, optima(out, [run.row for run in done]), made)


def _identity(run: Run) -> dict[str, Any]:
    row = run.row
    return dict(zip(IDENTITY, (run.id, row.task, row.method, row.lam, row.mode, row.variant, run.seed), strict=True))


def _record(run: Run, done: Learned) -> dict[str, Any]:
    fresh = done.fresh
    trained = {"steps": done.steps, "decisions": done.decisions_taken}
    best = {"best_step": fresh.step, "best_decision": fresh.decision}
    times = _times(done.info.decisions, done.time)
    record = {**_identity(run), "preset": run.preset, **trained, **fresh._asdict(), **best, **times}
    del record["step"], record["decision"]
    return record


def _curve(run: Run, points: Sequence[Point]) -> pl.DataFrame:
    constant = [pl.lit(value, dtype=CURVES[name]).alias(name) for name, value in _identity(run).items()]
    curve = pl.DataFrame(points, schema=list(Point._fields), orient="row").with_columns(constant)
    return curve.select([pl.col(name).cast(kind) for name, kind in CURVES.items()])


def software_of(provenance: dict[str, Any]) -> str:
    """Return what a run was made with, in a line."""
    commit = provenance.get("commit")
    packages = [f"{name} {version}" for name, version in provenance["packages"].items()]
    ours = f"letitcook {provenance['version']}{f' at commit {commit}' if commit else ''}"
    return ", ".join([ours, f"Python {provenance['python']}", *packages, provenance["machine"]])


def _note_settings(held: dict[str, Any], settings: dict[str, Any]) -> None:
    """Take in the settings of one more row of a task; where two differ, that is said."""
    for name, value in settings.items():
        held[name] = value if held.get(name, value) == value else VARIES


def _times(decisions: Decisions, time: Sequence[float]) -> dict[str, float]:
    """Sum up the steps in each decision by what they are: acting, the wait action, waits of each duration."""
    names = ["time_wait_1" if n == decisions.wait else "time_acting" for n in range(len(decisions.actions))]
    names += [f"time_wait_{duration}" for duration in decisions.durations]
    times = dict.fromkeys(names, 0.0)
    for name, steps in zip(names, time, strict=False):  # vanilla has no waits
        times[name] += steps
    return times


def optima(out: Path, rows: Iterable[Row]) -> dict[Row, Exact]:
    """Return the exact optima of the rows whose task is finite; they are kept in the folder once computed."""
    wanted = list(dict.fromkeys(row for row in rows if task_named(row.task).finite))
    path = out / OPTIMA
    try:
        data = parse_json(path.read_bytes(), path).items()
        known = {name: Exact(converted(a, float), converted(b, float | None)) for name, (a, b) in data}
    except (OSError, ValueError, TypeError, AttributeError):
        known = {}
    found = {row: known.get(row.id) or exact(row) for row in wanted}
    if len({row.id for row in wanted} - set(known)):
        text = json.dumps({**known, **{row.id: best for row, best in found.items()}}, indent=1)
        folders.write_file(path, text.encode())
    return found


MADE = "made.json"


def read_tables(folder: Path, suite: str) -> Results:
    """Read the tables that `write_tables` wrote, where the runs themselves are not kept."""
    try:
        runs, curves = (pl.read_parquet(folder / f"{name}.parquet") for name in ("runs", "curves"))
        kept = json.loads((folder / MADE).read_text(encoding="utf-8"))
        made = Made(kept["command"], tuple(kept["versions"]), kept["settings"])
        runs, curves = runs.select(*RUNS), curves.select(*CURVES)
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise FileFormatError(f"{folder} does not hold tables of results ({error!r})") from error
    rows = [Row(*key) for key in runs.select(ROW).unique(maintain_order=True).iter_rows()]
    return Results(folder, suite, runs, curves, optima(folder, rows), made)


def joined(older: Results, newer: Results) -> Results:
    """Return the results of two sweeps of one suite in the newer one's folder; of runs that are in both, the newer."""

    def union(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        return pl.concat([old.join(newer.runs.select("id"), on="id", how="anti"), new])

    settings = {task: dict(held) for task, held in older.made.settings.items()}
    for task, held in newer.made.settings.items():
        _note_settings(settings.setdefault(task, {}), held)
    versions = tuple(dict.fromkeys((*older.made.versions, *newer.made.versions)))
    made = Made(newer.made.command, versions, settings)
    runs, curves = union(older.runs, newer.runs), union(older.curves, newer.curves)
    return Results(newer.folder, newer.suite, runs, curves, {**older.optima, **newer.optima}, made)


def write_tables(results: Results) -> list[Path]:
    """Write `runs` and `curves` into the sweep's folder, as Parquet and as CSV, and what they were made with."""
    folders.write_file(results.folder / MADE, json.dumps(asdict(results.made), indent=1).encode())
    written = [results.folder / MADE]
    for name, frame in (("runs", results.runs), ("curves", results.curves)):
        for suffix, write in (("csv", frame.write_csv), ("parquet", frame.write_parquet)):
            buffer = io.BytesIO()
            write(buffer)
            path = results.folder / f"{name}.{suffix}"
            folders.write_file(path, buffer.getvalue())
            written.append(path)
    return written
