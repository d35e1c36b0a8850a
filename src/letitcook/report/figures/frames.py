"""What the figures take out of the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from letitcook.envs import task_named
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.report.statistics import best_lambda


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


def curve(
    curves: pl.DataFrame, row: Row, measure: str, most: int, log: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the steps `(m,)` and the values `(seeds, m)` of a row's learning curves in at most `most` points.

    The n-th evaluations of all seeds belong together, though a wait that was under way may have put one off by some
    steps; those that not every seed has are left out. `measure` is a column, or "scalar" for the scalarised return;
    `log` is for a logarithmic axis of steps. None if there are no curves.
    """
    points = of_row(curves, row).sort("seed", "step")
    if points.height == 0:
        return None
    if measure == "scalar":
        points = points.with_columns(scalar=pl.col("task_return") - (row.lam or 0.0) * pl.col("queries"))
    seeds = points.partition_by("seed")
    shortest = min(seed.height for seed in seeds)
    steps, values = (np.stack([seed[name][:shortest].to_numpy() for seed in seeds]) for name in ("step", measure))
    return thinned(steps.mean(axis=0), values, most, log)


def thinned(
    steps: NDArray[np.float64], values: NDArray[np.float64], most: int, log: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return at most `most` points of curves `(seeds, m)`: means of as many neighbours as it takes.

    On a logarithmic axis the early points stand wide apart and are kept, and more and more of the later ones joined.

    >>> thinned(np.arange(5.0), np.array([[1.0, 3.0, 5.0, 5.0, 9.0]]), most=3)
    (array([0.5, 2.5, 4. ]), array([[2., 5., 9.]]))
    >>> thinned(np.arange(7.0), np.array([[1.0, 3.0, 5.0, 5.0, 9.0, 9.0, 9.0]]), most=3, log=True)
    (array([0. , 1.5, 4.5]), array([[1., 4., 8.]]))
    """
    m = len(steps)
    if m <= most:
        return steps, values
    starts = np.unique(np.geomspace(1, m + 1, most + 1)[:-1].astype(int)) - 1 if log else np.arange(0, m, -(-m // most))
    sizes = np.diff(np.append(starts, m))
    return np.add.reduceat(steps, starts) / sizes, np.add.reduceat(values, starts, axis=1) / sizes
