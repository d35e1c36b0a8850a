"""Suites: rows of runs, as plain data.

A run is a task, a mode, a method, λ, a seed, a number of steps, a preset and what is changed in it, with a readable id
such as `cook/scalar-0.1/wrap/seed3`. The suite "paper" holds every row that the paper reports, "discrete" those of its
four finite tasks, "continuous" those of the other three, and "smoke" a little of everything with very few steps.
"limit" and "ablation" go beyond the paper: what preset `best` reaches, and what each of its parts is worth.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from letitcook import files
from letitcook.envs import TASKS, task_named
from letitcook.errors import SettingError, UnknownNameError
from letitcook.train import BEST_STEPS, DEEP_STEPS, FINITE_STEPS, METHODS, objective_of, preset_settings

BASE_STEPS = 60_000
"""Primitive steps of a vanilla policy with preset `best` that is to be wrapped."""
LIMIT_STEPS = 120_000
"""Primitive steps of a run of the suite `limit`, so that all of it takes less than forty minutes on two cores."""
LIMIT_STEPS_OF = {("cartpole", "wrap"): 170_000}
"""Where they are others: what takes longest to learn has more of them."""
LIMIT_SEEDS = range(40, 50)
"""Seeds of the suite `limit`; others were used while the preset was made."""
ABLATION_STEPS = 30_000
"""Primitive steps of a run of the suite `ablation`: few, for there are many runs."""
LEFT_OUT: dict[str, dict[str, Any]] = {
    "": {},
    "no-trade-offs": {"trade_offs": None, "task_networks": 1, "hesitation": 0.0},
    "no-scales": {"adapt": False, "imagined": 0.0, "hesitation": 0.0},
    "no-second-network": {"task_networks": 1},
    "no-hesitation": {"hesitation": 0.0},
    "no-imagination": {"imagined": 0.0},
    "no-looking-ahead": {"ahead": 1},
    "no-waves": {"waves": 0},
    "no-repeats": {"longest_repeat": 0},
    "no-average": {"average": 0},
    "no-decay": {"learning_rate_end": 1.0},
}
"""What each variant of the suite `ablation` changes in preset `best`."""
SMOKE_STEPS = {True: 20_000, False: 2_500}
"""Primitive steps of a smoke run, for finite tasks and for the others."""


@dataclass(frozen=True, order=True)
class Row:
    """One row of a table of results: everything but the seed."""

    task: str
    mode: str
    method: str
    lam: float | None = None
    variant: str = ""
    """Name of what is changed in the settings; empty for the preset as it is."""

    @property
    def id(self) -> str:
        """Readable name, `task/method/mode`.

        >>> Row("cook", "wrap", "scalar", 0.1).id, Row("pong", "scratch", "vanilla", variant="gamma=0.99").id
        ('cook/scalar-0.1/wrap', 'pong/vanilla+gamma=0.99/scratch')
        """
        method = self.method if self.lam is None else f"{self.method}-{self.lam:g}"
        return f"{self.task}/{method}{'+' if self.variant else ''}{self.variant}/{self.mode}"


@dataclass(frozen=True)
class Run:
    """One training run, complete: the same data give the same result to the bit."""

    row: Row
    seed: int
    steps: int
    preset: str = "paper"
    changes: tuple[tuple[str, Any], ...] = ()
    """Settings that take the place of the preset's, as (name, value)."""

    def __post_init__(self) -> None:
        task_named(self.row.task)
        objective_of(self.row.method, self.row.lam)
        if self.row.mode not in ("scratch", "wrap"):
            raise UnknownNameError("mode", self.row.mode, ("scratch", "wrap"))
        if self.row.mode == "wrap" and self.row.method == "vanilla":
            raise SettingError(
                "vanilla has no waits, so around a base policy it is the base policy itself; use scratch"
            )

    @property
    def id(self) -> str:
        """Readable name; also the run's folder."""
        return f"{self.row.id}/seed{self.seed}"

    def settings(self) -> dict[str, Any]:
        """Return every setting of the learner, as plain data.

        >>> Run(Row("cook", "scratch", "vanilla"), seed=0, steps=10, changes=(("alpha", 0.5),)).settings()["alpha"]
        0.5
        """
        kind = "table" if task_named(self.row.task).finite else "network"
        row, changes = self.row, dict(self.changes)
        made = preset_settings(kind, self.preset, row.task, row.method, changes, steps=self.steps, mode=row.mode)
        return dict(files.as_plain(asdict(made)))


@dataclass(frozen=True)
class PaperRow:
    """What the paper reports for a row: means and standard deviations over its seeds."""

    row: Row
    length: float
    length_sd: float
    queries: float
    queries_sd: float
    seeds: int


@cache
def paper_rows() -> dict[Row, PaperRow]:
    """Return the paper's results, in its order.

    >>> len(paper_rows()), paper_rows()[Row("cook", "scratch", "lexicographic")].queries
    (166, 25.0)
    """
    text = resources.files("letitcook.experiments").joinpath("paper_results.csv").read_text(encoding="utf-8")
    rows = {}
    for line in csv.DictReader(text.splitlines()):
        row = Row(line["task"], line["mode"], line["method"], float(line["lambda"]) if line["lambda"] else None)
        rows[row] = PaperRow(
            row=row,
            length=float(line["length_mean"]),
            length_sd=float(line["length_sd"]),
            queries=float(line["queries_mean"]),
            queries_sd=float(line["queries_sd"]),
            seeds=int(line["seeds"]),
        )
    return rows


def default_steps(task: str, preset: str = "paper") -> int:
    """Return the primitive steps of a run: the paper's, or those of preset `best` with networks.

    >>> default_steps("cook"), default_steps("pong"), default_steps("pong", "best")
    (10000000, 1000000, 200000)
    """
    if task_named(task).finite:
        return FINITE_STEPS
    return BEST_STEPS if preset == "best" else DEEP_STEPS


def base_of(run: Run) -> Run | None:
    """Return the vanilla run whose policy is wrapped, where the task has no handwritten one.

    >>> base_of(Run(Row("cartpole", "wrap", "scalar", 0.1), seed=3, steps=1_000)).id
    'cartpole/vanilla/scratch/seed3'
    """
    if run.row.mode != "wrap" or task_named(run.row.task).base_policy is not None:
        return None
    steps = min(run.steps, BASE_STEPS) if run.preset == "best" else run.steps
    return replace(run, row=Row(run.row.task, "scratch", "vanilla", variant=run.row.variant), steps=steps)


def _paper(finite: tuple[bool, ...]) -> list[Run]:
    return [
        Run(paper.row, seed, default_steps(paper.row.task))
        for paper in paper_rows().values()
        if TASKS[paper.row.task].finite in finite
        for seed in range(paper.seeds)
    ]


def _smoke() -> list[Run]:
    runs = []
    for task in TASKS.values():
        for mode in ("scratch", "wrap"):
            methods = [("lexicographic", None), ("scalar", 0.1)] + ([("vanilla", None)] if mode == "scratch" else [])
            steps = SMOKE_STEPS[task.finite]
            runs += [Run(Row(task.name, mode, method, lam), seed=0, steps=steps) for method, lam in methods]
    return runs


def _limit() -> list[Run]:
    """Return preset `best` on the tasks with networks, from scratch and around its own vanilla policies."""
    names = [task.name for task in TASKS.values() if not task.finite]
    rows = [Row(name, mode, "lexicographic") for name in names for mode in ("scratch", "wrap")]
    steps = {row: LIMIT_STEPS_OF.get((row.task, row.mode), LIMIT_STEPS) for row in rows}
    return [Run(row, seed, steps[row], preset="best") for row in rows for seed in LIMIT_SEEDS]


def _ablation() -> list[Run]:
    """Return preset `best` from scratch as it is, and with each of its parts left out."""
    names = [task.name for task in TASKS.values() if not task.finite]
    rows = [(Row(name, "scratch", "lexicographic", variant=out), LEFT_OUT[out]) for out in LEFT_OUT for name in names]
    return [
        Run(row, seed, ABLATION_STEPS, "best", tuple(changes.items()))
        for row, changes in rows
        for seed in LIMIT_SEEDS[:5]
    ]


SUITES: dict[str, Callable[[], list[Run]]] = {
    "smoke": _smoke,
    "discrete": lambda: _paper((True,)),
    "continuous": lambda: _paper((False,)),
    "paper": lambda: _paper((True, False)),
    "limit": _limit,
    "ablation": _ablation,
}


@dataclass(frozen=True)
class Suite:
    """A name, and rows of runs."""

    name: str
    runs: tuple[Run, ...]

    @property
    def bases(self) -> tuple[Run, ...]:
        """The vanilla runs that are wrapped, whether they are rows of the suite or not."""
        return tuple(dict.fromkeys(base for run in self.runs if (base := base_of(run)) is not None))

    @property
    def all_runs(self) -> tuple[Run, ...]:
        """Everything that a sweep carries out: the base policies, and the rows."""
        return tuple(dict.fromkeys((*self.bases, *self.runs)))

    def only(self, seeds: int | None = None, steps: int | None = None, rows: Sequence[str] | None = None) -> Suite:
        """Return the suite with at most `seeds` seeds a row and `steps` primitive steps a run, if they are given.

        `rows` chooses among the rows: methods, tasks, or patterns of row ids such as `pong/*/wrap`.

        >>> sorted({run.row.id for run in suite("continuous").only(rows=["vanilla"]).runs})
        ['cartpole/vanilla/scratch', 'mountain-car/vanilla/scratch', 'pong/vanilla/scratch']
        """
        if seeds is not None and seeds < 1:
            raise SettingError(f"seeds = {seeds} is not allowed; give at least 1")
        if steps is not None and steps < 1:
            raise SettingError(f"steps = {steps} is not allowed; give at least 1 primitive step")
        held: Counter[Row] = Counter()
        runs = []
        for run in self.runs:
            held[run.row] += 1
            if seeds is None or held[run.row] <= seeds:
                runs.append(run)
        for pattern in rows or ():
            if not any(_chosen(run.row, pattern) for run in runs):
                raise SettingError(
                    f"no row of the suite {self.name!r} is {pattern!r}; give methods ({', '.join(METHODS)}), tasks, "
                    "or patterns of row ids such as 'cook/scalar-0.1/wrap' or 'pong/*'"
                )
        if rows is not None:
            runs = [run for run in runs if any(_chosen(run.row, pattern) for pattern in rows)]
        return Suite(self.name, tuple(run if steps is None else replace(run, steps=steps) for run in runs))


def suite(name: str) -> Suite:
    """Return a suite by its name.

    >>> runs = suite("discrete").runs
    >>> len(runs), len({run.row for run in runs}), len({run.row for run in suite("paper").runs})
    (675, 86, 166)
    """
    if name not in SUITES:
        raise UnknownNameError("suite", name, SUITES)
    return Suite(name, tuple(SUITES[name]()))


def _chosen(row: Row, pattern: str) -> bool:
    return pattern in (row.method, row.task) or fnmatchcase(row.id, pattern)
