"""Sweeps: carry out the runs of a suite on all cores, each in a folder of its own that appears whole or not at all."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from letitcook import files
from letitcook.errors import FileFormatError, OutputError, SettingError
from letitcook.experiments.suites import Row, Run
from letitcook.finite.plan import plan_tables
from letitcook.finite.tables import Tables, enumerate_env
from letitcook.train import decisions_of, learn_tables, load, objective_of
from letitcook.waiting import horizon_of
from letitcook.wmdp import Decisions
from letitcook.wrapping import make

Job = TypeVar("Job")
Answer = TypeVar("Answer")
THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    run: Run
    length: float
    queries: float
    best_step: int
    steps: int
    seconds: float


@dataclass(frozen=True)
class Exact:
    """The exact optimum of a row; queries are None where the objective does not care for them (λ = 0)."""

    length: float
    queries: float | None


@cache
def world_of(task: str, mode: str) -> tuple[Tables, Decisions, int]:
    """Return a task's tables, decisions and horizon."""
    env = make(task, mode=mode)
    horizon = horizon_of(env)
    assert horizon is not None
    return enumerate_env(env), env.decisions, horizon


def carry_out(run: Run, folder: Path | None = None) -> Result:
    """Train one run, and keep it in `folder` if one is given."""
    row = run.row
    tables, decisions, horizon = world_of(row.task, row.mode)
    learned = learn_tables(tables, decisions, horizon, row.method, row.lam, run.steps, run.seed, run.preset)
    learned.about.update(task=row.task, mode=row.mode)
    if folder is not None:
        learned.save(folder)
    best = learned.best
    return Result(run, best.length, best.queries, best.step, learned.steps, learned.seconds)


def exact(row: Row) -> Exact:
    """Return the exact optimum of a row.

    >>> exact(Row("cook", "scratch", "scalar", 5.0))
    Exact(length=37.0, queries=23.0)
    """
    tables, decisions, horizon = world_of(row.task, row.mode)
    best = plan_tables(tables, decisions_of(row.method, decisions), horizon, objective_of(row.method, row.lam))
    return Exact(best.length, None if row.lam == 0.0 else best.queries)


def folder_of(out: Path, run: Run) -> Path:
    """Return where a run is kept."""
    return out / "runs" / run.id


def open_output(out: Path, name: str, runs: Sequence[Run]) -> list[Result]:
    """Make `out` ready for a suite, and return the results it already holds from an earlier start of the same one."""
    suite: dict[str, Any] = {"suite": name, "runs": [{"id": run.id, **asdict(run)} for run in runs]}
    if not (out / files.MANIFEST).is_file():
        files.check_output(out)
        files.write_folder(out, lambda folder: files.write_manifest(folder, "suite", suite))
        return []
    held = files.read_manifest(out, "suite")
    if held["suite"] != suite["suite"] or held["runs"] != suite["runs"]:
        raise OutputError(f"{out} already holds another suite or other settings; choose another folder with --out")
    files.check_writable(out, out)
    return [result for run in runs if (result := _finished(folder_of(out, run), run)) is not None]


def _finished(folder: Path, run: Run) -> Result | None:
    """Return the result of a finished run; a damaged one is removed, so that it is run again."""
    if not folder.is_dir():
        return None
    try:
        learned = load(folder)
    except FileFormatError:
        for path in folder.iterdir():
            path.unlink()
        return None
    best = learned.best
    return Result(run, best.length, best.queries, best.step, learned.steps, learned.seconds)


def sweep(runs: Sequence[Run], out: Path, workers: int) -> Iterator[Result]:
    """Carry out runs side by side, and yield each result as it comes."""
    yield from side_by_side(_carry_out_in, [(run, folder_of(out, run)) for run in runs], workers)


def exact_rows(rows: Sequence[Row], workers: int) -> dict[Row, Exact]:
    """Return the exact optima of rows."""
    return dict(side_by_side(_exact_of, rows, workers))


def check_workers(workers: int) -> int:
    """Return the number of processes, or say what is wrong with it."""
    if workers < 1:
        raise SettingError(f"workers = {workers} is not allowed; give at least 1")
    return workers


def side_by_side(function: Callable[[Job], Answer], jobs: Sequence[Job], workers: int) -> Iterator[Answer]:
    """Call a function for each job, in processes of one thread each, and yield the answers as they come."""
    check_workers(workers)
    if workers == 1 or len(jobs) <= 1:
        yield from map(function, jobs)
        return
    for name in THREAD_SETTINGS:
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context) as pool:
        futures: list[Future[Answer]] = [pool.submit(function, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _carry_out_in(job: tuple[Run, Path]) -> Result:
    return carry_out(*job)


def _exact_of(row: Row) -> tuple[Row, Exact]:
    return row, exact(row)
