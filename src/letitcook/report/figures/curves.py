"""Learning curves: length, queries and scalarised return while training goes on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from letitcook.experiments.results import Results
from letitcook.experiments.suites import Row
from letitcook.report.figures.frames import as_published, compared_rows, curve
from letitcook.report.figures.style import (
    BLACK,
    COLUMNS,
    METHOD_COLOURS,
    MODE_COLOURS,
    MODE_NAMES,
    WIDTH,
    count_axis,
    grid,
    in_order,
    legend,
    note,
    scaled,
)
from letitcook.report.statistics import bootstrap_interval

LABELS = {"length": "length (steps)", "queries": "queries", "scalar": r"return $J_0 + \lambda J_1$"}
OPTIMUM = "exact optimum (lexicographic)"
MOST_POINTS = 50
"""Points that a curve has at most in a narrow panel; each is then the mean of several evaluations."""
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
NAMES = {"vanilla": "vanilla", "lexicographic": "lexicographic", "scalar": "best scalarised"}


def learning_curves(results: Results, measure: str, mode: str) -> Figure | None:
    """Draw the learning curves of one measure for each task of a mode: means over seeds, bands of one sd.

    The scalarised return is shown for the best scalarised method alone, queries for all but vanilla. A wrapper learns
    most in the beginning, so that its steps are on a logarithmic axis.
    """
    log = mode == "wrap"
    runs, curves = as_published(results.runs, mode), as_published(results.curves, mode)
    drawn: dict[str, dict[Row, Curve]] = {}
    for task in in_order(runs["task"]):
        rows = [row for row in compared_rows(runs, task, mode).values() if _belongs(row.method, measure)]
        found = {row: curve(curves, row, measure, MOST_POINTS, log) for row in rows}
        if any(points is not None for points in found.values()):
            drawn[task] = {row: points for row, points in found.items() if points is not None}
    if not drawn:
        return None
    figure, panels = grid(list(drawn), height=1.75)
    for n, (task, axes) in enumerate(panels.items()):
        for row, (steps, values) in drawn[task].items():
            _line(axes, steps, values, _spread(values), METHOD_COLOURS[row.method])
            if row.lam is not None:
                note(axes, f"λ = {row.lam:g}")
            _optimum(axes, results, row, measure)
        count_axis(axes, log)
        if n % COLUMNS == 0:
            axes.set_ylabel(LABELS[measure])
        if n + COLUMNS >= len(panels):
            axes.set_xlabel("training steps")
    methods = dict.fromkeys(row.method for rows in drawn.values() for row in rows)
    legend(figure, [*(_key(METHOD_COLOURS[m], NAMES[m]) for m in methods), *_optimum_key(panels.values())])
    return figure


def pong(results: Results) -> Figure | None:
    """Draw Pong's lexicographic learning curves from scratch and wrapped, with bands of the 95% interval."""
    rows = [Row("pong", mode, "lexicographic") for mode in MODE_NAMES]
    figure = Figure(figsize=(0.75 * WIDTH, 2.2))
    for n, measure in enumerate(("length", "queries")):
        axes = figure.add_subplot(1, 2, n + 1)
        for row in rows:
            points = curve(results.curves, row, measure, 2 * MOST_POINTS)
            if points is None:
                return None
            _line(axes, *points, bootstrap_interval(points[1], resamples=2_000), MODE_COLOURS[row.mode])
        axes.set_title(f"Pong, {measure}")
        axes.set_ylabel(LABELS[measure])
        axes.set_xlabel("training steps")
        scaled(axes)
        count_axis(axes)
    legend(figure, [_key(MODE_COLOURS[row.mode], MODE_NAMES[row.mode]) for row in rows])
    return figure


def _belongs(method: str, measure: str) -> bool:
    return {"length": True, "queries": method != "vanilla", "scalar": method == "scalar"}[measure]


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return mean - sd and mean + sd `(2, m)` over seeds `(seeds, m)`, no further than any seed went."""
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else 0.0
    band: NDArray[np.float64] = np.clip([mean - sd, mean + sd], values.min(axis=0), values.max(axis=0))
    return band


def _line(
    axes: Axes, steps: NDArray[np.float64], values: NDArray[np.float64], band: NDArray[np.float64], colour: str
) -> None:
    axes.fill_between(steps, *band, color=colour, alpha=0.2, linewidth=0.0)
    marker = "." if len(steps) < 5 else ""  # a single point would not be seen
    axes.plot(steps, values.mean(axis=0), color=colour, linewidth=1.1, marker=marker)


def _optimum(axes: Axes, results: Results, row: Row, measure: str) -> None:
    """Mark the exact optimum of the lexicographic row where there is one."""
    exact = results.optima.get(row)
    if row.method == "lexicographic" and exact is not None and exact.queries is not None:
        value = exact.length if measure == "length" else exact.queries
        axes.axhline(value, color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)), label=OPTIMUM)


def _key(colour: str, name: str) -> Artist:
    return Line2D([], [], color=colour, label=name)


def _optimum_key(panels: Iterable[Axes]) -> list[Artist]:
    for axes in panels:
        for line in axes.lines:
            if line.get_label() == OPTIMUM:
                return [line]
    return []
