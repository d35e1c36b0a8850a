"""One run, from its description to its files: the piece of work that every engine carries out in the same way."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from letitcook.core.decisions import Decisions
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import SettingError
from letitcook.experiments.suites import Row, Run
from letitcook.finite.front import FrontPoint, front_tables
from letitcook.finite.plan import plan_tables
from letitcook.finite.tables import Tables, enumerate_env
from letitcook.tasks import make, task_named
from letitcook.training.learn import prepare, prepare_tables
from letitcook.training.loop import Training
from letitcook.training.run import from_files
from letitcook.training.spec import decisions_of, objective_of
from letitcook.wrappers.waiting import horizon_of

Files = Mapping[str, bytes]
PROGRESS_SECONDS = 0.2
"""Least time between two messages of progress."""


class Started(NamedTuple):
    """A run is ready to begin, or to go on from its checkpoint."""

    steps: int
    """Timesteps so far, in the unit of the run's length."""


class Progress(NamedTuple):
    """A run is under way."""

    steps: int
    length: float
    queries: float


class Checkpoint(NamedTuple):
    """All that it takes to go on with the run from here, to the same bits."""

    steps: int
    files: Files


class Finished(NamedTuple):
    """The run is done."""

    steps: int
    files: Files


class Failed(NamedTuple):
    """The run raised an error."""

    reason: str
    log: str


class Lost(NamedTuple):
    """The process or the machine that had the run is gone; it can be tried again."""

    reason: str


Message = Started | Progress | Checkpoint | Finished | Failed | Lost


@dataclass(frozen=True)
class Job:
    """A run with what it needs from elsewhere: the files of its base policy, and of its last checkpoint."""

    run: Run
    base: Files | None = None
    checkpoint: Files | None = None
    checkpoint_seconds: float = 60.0


def carry_out(job: Job) -> Iterator[Message]:
    """Train a run, and tell how it goes; the last message is `Finished`.

    >>> run = Run(Row("cook", "wrap", "lexicographic"), seed=0, steps=20_000)
    >>> [type(message).__name__ for message in carry_out(Job(run))][-1]
    'Finished'
    """
    run = job.run
    base = None if job.base is None else _network(job.base, run)
    training = training_of(run, base)
    if job.checkpoint is not None:
        training.resume(from_files(job.checkpoint, Path(run.id)))
    yield Started(training.passed())
    told = kept = time.monotonic()
    for point in training.run():
        now = time.monotonic()
        if now - told >= PROGRESS_SECONDS:
            told = now
            yield Progress(training.passed(), point.length, point.queries)
        if now - kept >= job.checkpoint_seconds and not training.ended:
            kept = now
            yield Checkpoint(training.passed(), training.stopped().files())
    learned = training.result()
    yield Finished(training.passed(), learned.files())


def _network(base: Files, run: Run) -> NetworkPolicy:
    policy = from_files(base, Path(run.id)).policy
    if not isinstance(policy, NetworkPolicy):
        raise SettingError(f"the base policy of {run.id} is not a network; give a vanilla run of {run.row.task}")
    return policy


@cache
def world_of(task: str, mode: str) -> tuple[Tables, Decisions, int]:
    """Return a task's tables, decisions and horizon."""
    env = make(task, mode=mode)
    horizon = horizon_of(env)
    assert horizon is not None
    return enumerate_env(env), env.decisions, horizon


def training_of(run: Run, base: NetworkPolicy | None = None) -> Training:
    """Make a run ready, around the network `base` if it wraps one."""
    row = run.row
    if task_named(row.task).finite:  # its tables are made once for all runs
        return prepare_tables(*world_of(row.task, row.mode), run.spec, row.task)
    return prepare(make(row.task, row.mode, base=base), run.spec)


def warm_up(runs: Sequence[Run]) -> None:
    """Compile what the runs need, so that several processes do not do it at once."""
    finite = [run for run in runs if task_named(run.row.task).finite]
    for run in {run.row.method: run for run in finite}.values():  # one number of objectives, one compilation
        _run_through(replace(run, steps=1))
    if len(finite) < len(runs):
        _run_through(Run(Row("cartpole", "scratch", "vanilla"), seed=0, steps=1_100))


def _run_through(run: Run) -> None:
    for _ in carry_out(Job(run)):
        pass


class Exact(NamedTuple):
    """The exact optimum of a row; queries are None where the objective does not care for them (λ = 0)."""

    length: float
    queries: float | None


@cache
def exact(row: Row) -> Exact:
    """Return the exact optimum of a row.

    >>> exact(Row("cook", "scratch", "scalar", 5.0))
    Exact(length=37.0, queries=23.0)
    """
    tables, decisions, horizon = world_of(row.task, row.mode)
    best = plan_tables(tables, decisions_of(row.method, decisions), horizon, objective_of(row.method, row.lam))
    return Exact(best.length, None if row.lam == 0.0 else best.queries)


@cache
def exact_front(task: str, mode: str) -> tuple[FrontPoint, ...]:
    """Return the exact Pareto front of a task, shortest first; empty if the task is not finite.

    >>> [tuple(point) for point in exact_front("cook", "scratch")]
    [(33, 25), (37, 23), (200, 14)]
    """
    return tuple(front_tables(*world_of(task, mode))) if task_named(task).finite else ()
