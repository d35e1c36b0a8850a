"""Suites: rows of runs, as plain data.

A run is a task, a mode, a method, λ, a seed, a number of steps, a preset and what is changed in it, with a readable id
such as `cook/scalar-0.1/wrap/seed3`. The suite "paper" holds every row that the paper reports, "discrete" those of its
four finite tasks, "continuous" those of the other three, and "smoke" a little of everything with very few steps.
"limit" and "ablation" go beyond the paper: what preset `best` reaches, and what each of its parts is worth.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from letitcook.core.decisions import Timesteps, Unit
from letitcook.core.presets import PresetContext
from letitcook.errors import SettingError, UnknownNameError
from letitcook.storage import folders
from letitcook.tasks import TASKS, Task, task_named
from letitcook.training.spec import METHODS, Kind, RunSpec, default_length, objective_of

VARIANT = re.compile(r"[\w=+,-][\w.=+,-]*|")
"""Names of variants: they are part of a folder's name, and must not lead out of it."""
LONGEST_VARIANT = 150
"""Characters of a variant's name: a folder's name has at most 255 bytes."""
Changes = tuple[tuple[str, Any], ...]
"""Settings that take the place of a preset's, as (name, value)."""

FIRST_SEED = 10
"""First seed of the paper's rows; those before it were used to decide what the paper leaves open."""
BASE_SEEDS = {"pong": 10, "cartpole": 10, "mountain-car": 16}
"""Seeds of the vanilla policies that the paper's rows wrap, one for all seeds of a task; see docs/fidelity.md."""
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
    "no-conditioning": {"log_lambda_range": None, "task_networks": 1, "wait_margin": 0.0},
    "no-normalisation": {"normalise": False, "model_rollouts": 0.0, "wait_margin": 0.0},
    "no-second-network": {"task_networks": 1},
    "no-wait-margin": {"wait_margin": 0.0},
    "no-wait-model": {"model_rollouts": 0.0},
    "no-n-step": {"n_step": 1},
    "no-fourier-features": {"fourier_features": 0},
    "no-action-repeat": {"max_action_repeat": 0},
    "no-averaging": {"ema_steps": 0},
    "no-decay": {"learning_rate_end": 1.0},
}
"""What each variant of the suite `ablation` changes in preset `best`."""
SMOKE_STEPS = {True: 20_000, False: 2_500}
"""Decisions of a smoke run, for finite tasks and for the others."""


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
    changes: Changes = ()
    unit: Unit = "step"
    """What `steps` counts: primitive steps or decisions."""

    def __post_init__(self) -> None:
        task_named(self.row.task)
        if not VARIANT.fullmatch(self.row.variant) or len(self.row.variant) > LONGEST_VARIANT:
            raise SettingError(
                f"variant = {self.row.variant[:80]!r} cannot be part of a folder's name; use letters, digits and -_.=+,"
            )
        if self.seed < 0 or self.steps < 1:
            raise SettingError(f"seed = {self.seed}, {self.unit}s = {self.steps} is not allowed; give 0, 1 or more")
        objective_of(self.row.method, self.row.lam)
        if self.row.mode not in ("scratch", "wrap"):
            raise UnknownNameError("mode", self.row.mode, ("scratch", "wrap"))
        if self.row.mode == "wrap" and self.row.method == "vanilla":
            raise SettingError(
                "vanilla has no waits, so around a base policy it is the base policy itself; use scratch"
            )

    @property
    def length(self) -> Timesteps:
        """How long it trains."""
        return Timesteps(self.steps, self.unit)

    @property
    def id(self) -> str:
        """Readable name; also the run's folder."""
        return f"{self.row.id}/seed{self.seed}"

    def settings(self) -> dict[str, Any]:
        """Return every setting of the learner, as plain data.

        >>> Run(Row("cook", "scratch", "vanilla"), seed=0, steps=10, changes=(("alpha", 0.5),)).settings()["alpha"]
        0.5
        """
        row, has_base = self.row, self.row.mode == "wrap"
        context = PresetContext(row.method, row.task, has_base, timesteps=self.steps)
        return dict(folders.as_plain(asdict(self.spec.settings_for(kind_of(row.task), context))))

    @property
    def spec(self) -> RunSpec:
        """What is to be trained."""
        return RunSpec(self.row.method, self.row.lam, self.seed, self.preset, dict(self.changes), self.length)


@dataclass(frozen=True)
class PaperRow:
    """What the paper reports for a row: means and standard deviations over its seeds."""

    row: Row
    length: float
    length_sd: float
    queries: float
    queries_sd: float
    seeds: int
    """Seeds that the paper says it ran."""

    @property
    def n(self) -> int:
        """Seeds that fit what is printed: means of whole numbers of steps are multiples of 1/n.

        >>> paper_rows()[Row("coffee", "scratch", "scalar", 1.0)].n
        8
        """
        return SEEDS_THAT_FIT.get(self.row, self.seeds)


SEEDS_THAT_FIT = {Row("coffee", "scratch", "scalar", 1.0): 8, Row("coffee", "scratch", "scalar", 5.0): 7}
"""Rows whose printed means and standard deviations cannot be those of ten episodes with whole numbers of steps."""


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


def length_of(task: str, preset: str = "paper") -> Timesteps:
    """Return how long a run of a task is if nothing is said.

    >>> str(length_of("cook")), str(length_of("pong")), str(length_of("pong", "best"))
    ('10,000,000 steps', '1,000,000 decisions', '200,000 steps')
    """
    return default_length(kind_of(task), preset)


def kind_of(task: str) -> Kind:
    """Return whether a task is learned with tables or with networks."""
    return "table" if task_named(task).finite else "network"


def run_of(row: Row, seed: int, preset: str, length: Timesteps | None = None, changes: Changes = ()) -> Run:
    """Return a run, as long as is usual for its task and preset if nothing is said."""
    timesteps = length or length_of(row.task, preset)
    return Run(row, seed, timesteps.count, preset, changes, timesteps.unit)


def base_of(run: Run) -> Run | None:
    """Return the vanilla run whose policy is wrapped, where the task has no handwritten one.

    With preset `paper` it is the same for every seed, with others each seed has its own.

    >>> base_of(Run(Row("cartpole", "wrap", "scalar", 0.1), seed=3, steps=1_000, preset="best")).id
    'cartpole/vanilla/scratch/seed3'
    """
    if run.row.mode != "wrap" or task_named(run.row.task).base_policy is not None:
        return None
    row = Row(run.row.task, "scratch", "vanilla", variant=run.row.variant)
    if run.preset == "paper":
        return replace(run, row=row, seed=BASE_SEEDS[row.task])
    return replace(run, row=row, steps=min(run.steps, BASE_STEPS))


def _paper(finite: tuple[bool, ...]) -> list[Run]:
    return [
        run_of(paper.row, seed, "paper")
        for paper in paper_rows().values()
        if TASKS[paper.row.task].finite in finite
        for seed in range(FIRST_SEED, FIRST_SEED + paper.seeds)
    ]


def paper_tasks() -> list[Task]:
    """Return the tasks of the paper.

    >>> len(paper_tasks())
    7
    """
    return [TASKS[name] for name in dict.fromkeys(row.task for row in paper_rows())]


def _smoke() -> list[Run]:
    runs = []
    for task in paper_tasks():
        for mode in ("scratch", "wrap"):
            methods = [("lexicographic", None), ("scalar", 0.1)] + ([("vanilla", None)] if mode == "scratch" else [])
            steps = SMOKE_STEPS[task.finite]
            runs += [Run(Row(task.name, mode, method, lam), 0, steps, unit="decision") for method, lam in methods]
    return runs


def _limit() -> list[Run]:
    """Return preset `best` on the tasks with networks, from scratch and around its own vanilla policies."""
    names = [task.name for task in paper_tasks() if not task.finite]
    rows = [Row(name, mode, "lexicographic") for name in names for mode in ("scratch", "wrap")]
    steps = {row: LIMIT_STEPS_OF.get((row.task, row.mode), LIMIT_STEPS) for row in rows}
    return [Run(row, seed, steps[row], preset="best") for row in rows for seed in LIMIT_SEEDS]


def _ablation() -> list[Run]:
    """Return preset `best` from scratch as it is, and with each of its parts left out."""
    names = [task.name for task in paper_tasks() if not task.finite]
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

    def only(
        self, seeds: int | None = None, length: Timesteps | None = None, rows: Sequence[str] | None = None
    ) -> Suite:
        """Return the suite with at most `seeds` seeds a row and runs of this length, if they are given.

        `rows` chooses among the rows: methods, tasks, or patterns of row ids such as `pong/*/wrap`.

        >>> sorted({run.row.id for run in suite("continuous").only(rows=["vanilla"]).runs})
        ['cartpole/vanilla/scratch', 'mountain-car/vanilla/scratch', 'pong/vanilla/scratch']
        """
        if seeds is not None and seeds < 1:
            raise SettingError(f"seeds = {seeds} is not allowed; give at least 1")
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
        if length is not None:
            runs = [replace(run, steps=length.count, unit=length.unit) for run in runs]
        return Suite(self.name, tuple(runs))


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
