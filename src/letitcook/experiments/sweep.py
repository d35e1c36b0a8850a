"""Sweeps: carry out the runs of a suite on all cores, each in a folder of its own that appears whole or not at all."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym

from letitcook import files
from letitcook.deep.policy import NetworkPolicy
from letitcook.envs import task_named
from letitcook.errors import FileFormatError, OutputError, SettingError
from letitcook.experiments.suites import Row, Run, base_of
from letitcook.finite.plan import plan_tables
from letitcook.finite.tables import Tables, enumerate_env
from letitcook.runs import Learned, load
from letitcook.train import Training, begin, begin_tables, decisions_of, objective_of
from letitcook.waiting import WaitingEnv, horizon_of
from letitcook.wmdp import Decisions
from letitcook.wrapping import make, wrap

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


def env_of(
    name: str, mode: str, base: NetworkPolicy | None = None, durations: Sequence[int] | None = None
) -> WaitingEnv:
    """Return a task's waiting environment, around the network `base` if there is one."""
    if base is None:
        return make(name, mode, durations)
    task = task_named(name)
    return wrap(gym.make(task.env_id), base, task.wait, task.durations if durations is None else durations)


def training_of(run: Run, base: NetworkPolicy | None = None, durations: Sequence[int] | None = None) -> Training:
    """Make a run ready, around the network `base` if it wraps one; `durations` replaces the task's own."""
    row = run.row
    if task_named(row.task).finite and durations is None:  # its tables are made once for all runs
        training = begin_tables(*world_of(row.task, row.mode), row.method, row.lam, run.seed, run.preset)
        training.about.update(task=row.task, mode=row.mode)
        return training
    return begin(env_of(row.task, row.mode, base, durations), row.method, row.lam, run.seed, run.preset)


def warm_up(runs: Sequence[Run]) -> None:
    """Compile what the runs need, so that several processes do not do it at once."""
    finite = [run for run in runs if task_named(run.row.task).finite]
    for run in {run.row.method: run for run in finite}.values():  # one number of objectives, one compilation
        exact(run.row)
        carry_out(replace(run, steps=1))
    if len(finite) < len(runs):
        carry_out(Run(Row("cartpole", "scratch", "vanilla"), seed=0, steps=1_100))


def carry_out(run: Run, folder: Path | None = None, base_folder: Path | None = None) -> Result:
    """Train one run, and keep it in `folder` if one is given."""
    base = None if base_folder is None else load(base_folder).policy
    training = training_of(run, base)  # type: ignore[arg-type]
    for _ in training.run(run.steps):
        pass
    learned = training.result()
    if folder is not None:
        learned.save(folder)
    return _result(run, learned)


def _result(run: Run, learned: Learned) -> Result:
    return Result(run, learned.length, learned.queries, learned.best.step, learned.steps, learned.seconds)


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
    return _result(run, learned)


def sweep(runs: Sequence[Run], out: Path, workers: int) -> Iterator[Result]:
    """Carry out runs side by side, base policies first, and yield each result as it comes."""
    bases = dict.fromkeys(base for run in runs if (base := base_of(run)) is not None)
    first = [base for base in bases if _finished(folder_of(out, base), base) is None]
    for part in (first, [run for run in runs if run not in first]):
        jobs = [(run, folder_of(out, run), _base_folder(out, run)) for run in part]
        for result in side_by_side(_carry_out_in, jobs, workers):
            if result.run in runs:
                yield result


def _base_folder(out: Path, run: Run) -> Path | None:
    base = base_of(run)
    return None if base is None else folder_of(out, base)


def kept_base(run: Run) -> Path:
    """Return the folder of the base policy of a run, trained at the first call and kept in the user's cache."""
    base = base_of(run)
    assert base is not None
    home = os.environ.get("LETITCOOK_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "letitcook"
    folder = Path(home).expanduser() / "bases" / f"{base.id}-{base.steps}-{base.preset}"
    if _finished(folder, base) is None:
        carry_out(base, folder)
    return folder


def exact_rows(rows: Sequence[Row], workers: int) -> dict[Row, Exact]:
    """Return the exact optima of the rows whose task is finite."""
    return dict(side_by_side(_exact_of, [row for row in rows if task_named(row.task).finite], workers))


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


def _carry_out_in(job: tuple[Run, Path, Path | None]) -> Result:
    return carry_out(*job)


def _exact_of(row: Row) -> tuple[Row, Exact]:
    return row, exact(row)
