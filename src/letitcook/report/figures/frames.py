"""What the figures take out of the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from letitcook.core.decisions import Unit
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.report.statistics import best_lambda
from letitcook.tasks import task_named

RESAMPLES = 2_000
"""Draws of seeds for the interval of a curve."""


def as_published(frame: pl.DataFrame, mode: str | None = None) -> pl.DataFrame:
    """Return the runs with the paper's settings, those of one mode if it is given."""
    kept = frame.filter(pl.col("variant") == "")
    return kept if mode is None else kept.filter(pl.col("mode") == mode)


def of_row(frame: pl.DataFrame, row: Row) -> pl.DataFrame:
    """Return the runs, or evaluations, of a row."""
    same = [pl.col("task") == row.task, pl.col("mode") == row.mode, pl.col("method") == row.method]
    same += [pl.col("variant") == row.variant, pl.col("lambda").eq_missing(pl.lit(row.lam, dtype=pl.Float64))]
    return frame.filter(*same)


def best_scalar(runs: pl.DataFrame, task: str, mode: str) -> Row | None:
    """Return the best scalarised row of our runs by the paper's rule, of any λ where none of its sweep was run."""
    chosen = as_published(runs, mode).filter(pl.col("task") == task, pl.col("method") == "scalar")
    means = chosen.group_by("lambda").agg(pl.col("task_return").mean(), -pl.col("queries").mean())
    return _best(task, mode, {lam: (value, waiting) for lam, value, waiting in means.rows()})


def best_scalar_of_paper(task: str, mode: str) -> PaperRow | None:
    """Return the best scalarised row of the paper, by its own rule.

    >>> best_scalar_of_paper("cook-longer", "scratch").row.lam
    0.1
    """
    sign = task_named(task).return_per_step
    rows = {row: p for row, p in paper_rows().items() if (row.task, row.mode, row.method) == (task, mode, "scalar")}
    best = _best(task, mode, {row.lam or 0.0: (sign * p.length, -p.queries) for row, p in rows.items()})
    return None if best is None else rows[best]


def _best(task: str, mode: str, returns: Mapping[float, tuple[float, float]]) -> Row | None:
    swept = best_lambda(returns)
    lam = best_lambda(returns, among=None) if swept is None else swept
    return None if lam is None else Row(task, mode, "scalar", lam)


def compared_rows(runs: pl.DataFrame, task: str, mode: str) -> dict[str, Row]:
    """Return the rows that stand side by side, by method: vanilla, lexicographic, best scalarised."""
    rows: Iterable[Row | None] = (
        Row(task, mode, "vanilla"),
        Row(task, mode, "lexicographic"),
        best_scalar(runs, task, mode),
    )
    return {row.method: row for row in rows if row is not None and of_row(runs, row).height > 0}


def unit_of(runs: pl.DataFrame, task: str) -> Unit:
    """Return what the timesteps of a task's runs count.

    Decisions for the paper's networks, primitive steps for tables and for other presets.

    >>> unit_of(pl.DataFrame({"task": ["cook", "pong"], "preset": ["paper", "paper"]}), "pong")
    'decision'
    """
    presets = set(runs.filter(pl.col("task") == task)["preset"])
    return "decision" if presets == {"paper"} and not task_named(task).finite else "step"


@dataclass(frozen=True)
class Curve:
    """The learning curves of a row's seeds, evaluation by evaluation.

    >>> seeds = Curve(np.array([10.0, 20.0]), np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> seeds.mean.tolist(), seeds.sd.round(3).tolist(), seeds.interval.tolist()
    ([2.0, 5.0], [1.414, 0.0], [[1.0, 5.0], [3.0, 5.0]])
    """

    times: NDArray[np.float64]
    """Timesteps `(m,)` before each evaluation, means over seeds."""
    values: NDArray[np.float64]
    """A number for each seed and evaluation, `(seeds, m)`."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """Means over seeds, `(m,)`."""
        mean: NDArray[np.float64] = self.values.mean(axis=0)
        return mean

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviations over seeds, `(m,)`; 0 of a single one."""
        return self.values.std(axis=0, ddof=1) if len(self.values) > 1 else np.zeros(len(self.times))

    @property
    def interval(self) -> NDArray[np.float64]:
        """Low and high end of the 95% bootstrap interval of the mean over seeds, `(2, m)`."""
        ends = np.stack([self.mean, self.mean])
        differ = np.ptp(self.values, axis=0) > 0.0  # where all seeds agree there is nothing to draw
        n = len(self.values)
        drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
        weights = (drawn[:, :, None] == np.arange(n)).sum(axis=1) / n
        ends[:, differ] = np.percentile(weights @ self.values[:, differ], [2.5, 97.5], axis=0)
        return ends


def curve(curves: pl.DataFrame, row: Row, measure: str, unit: Unit = "step") -> Curve | None:
    """Return the learning curves of a row, None if there are none.

    The n-th evaluations of all seeds belong together, though a wait that was under way may have put one off by some
    steps; those that not every seed has are left out. `measure` is a column, or "scalar" for the scalarised return.
    """
    points = of_row(curves, row).sort("seed", "step")
    if points.height == 0:
        return None
    if measure == "scalar":
        points = points.with_columns(scalar=pl.col("task_return") - (row.lam or 0.0) * pl.col("queries"))
    seeds = points.partition_by("seed")
    shortest = min(seed.height for seed in seeds)
    times, values = (np.stack([seed[name][:shortest].to_numpy() for seed in seeds]) for name in (unit, measure))
    return Curve(times.mean(axis=0), values)


def joined(columns: Sequence[ArrayLike], most: int, log: bool = False) -> NDArray[np.float64]:
    """Return columns of the same length as columns of at most `most` numbers: means of as many neighbours as it takes.

    On a logarithmic axis the early points stand wide apart and are kept, and more and more of the later ones joined.
    Where a group begins is computed with whole numbers, so that it is the same on every machine.

    >>> joined([[1.0, 3.0, 5.0, 5.0, 9.0]], most=3).tolist()
    [[2.0, 5.0, 9.0]]
    >>> joined([[1.0, 3.0, 5.0, 5.0, 9.0, 9.0, 9.0]], most=3, log=True).tolist()
    [[1.0, 4.0, 8.0]]
    """
    values = np.array(columns, dtype=np.float64)
    m = values.shape[1]
    if m <= most:
        return values
    starts = _growing(m, most) if log else np.arange(0, m, -(-m // most))
    sizes = np.diff(np.append(starts, m))
    means: NDArray[np.float64] = np.add.reduceat(values, starts, axis=1) / sizes
    return means


def _growing(m: int, most: int) -> NDArray[np.int64]:
    """Return where groups of `m` points begin whose sizes grow with their places, as slowly as `most` of them allow."""
    for slowness in range(most, 0, -1):
        starts = [0]
        while (following := starts[-1] + max(1, (starts[-1] + 1) // slowness)) < m:
            starts.append(following)
        if len(starts) <= most:
            break
    return np.array(starts)
