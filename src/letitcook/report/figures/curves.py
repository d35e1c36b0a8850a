"""Learning curves: length, queries and scalarised return while training goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from letitcook.core.decisions import Unit
from letitcook.experiments.results import Results
from letitcook.experiments.suites import Row
from letitcook.report.figures.frames import Curve, as_published, compared_rows, curve, joined, unit_of
from letitcook.report.figures.style import BLACK, COLUMNS, METHOD_COLOURS, count_axis, grid, in_order, legend, note

LABELS = {"length": "length (steps)", "queries": "queries", "scalar": r"return $J_0 + \lambda J_1$"}
OPTIMUM = "exact optimum (lexicographic)"
MOST_POINTS = 100
"""Points that a curve has at most in a narrow panel; each is then the mean of several evaluations."""
NAMES = {"vanilla": "vanilla", "lexicographic": "lexicographic", "scalar": "best scalarised"}


def learning_curves(results: Results, measure: str, mode: str) -> Figure | None:
    """Draw the learning curves of one measure for each task of a mode: means over seeds, bands of one sd.

    The scalarised return is shown for the best scalarised method alone, queries for all but vanilla. A wrapper learns
    most in the beginning, so that its timesteps are on a logarithmic axis.
    """
    log = mode == "wrap"
    drawn = _curves(results, measure, mode)
    if not drawn:
        return None
    figure, panels = grid(list(drawn), height=1.75)
    for task, axes in panels.items():
        for row, seeds in drawn[task].items():
            times, mean, sd = joined([seeds.times, seeds.mean, seeds.sd], MOST_POINTS, log)
            band_line(axes, times, mean, np.stack([mean - sd, mean + sd]), METHOD_COLOURS[row.method])
            if row.lam is not None:
                note(axes, f"λ = {row.lam:g}")
            _optimum(axes, results, row, measure)
        count_axis(axes, log)
    for axes in list(panels.values())[::COLUMNS]:
        axes.set_ylabel(LABELS[measure])
    time_labels(panels, {task: unit_of(as_published(results.runs), task) for task in drawn})
    methods = dict.fromkeys(row.method for rows in drawn.values() for row in rows)
    legend(figure, [*(line_key(METHOD_COLOURS[m], NAMES[m]) for m in methods), *_optimum_key(panels.values())])
    return figure


def _curves(results: Results, measure: str, mode: str) -> dict[str, dict[Row, Curve]]:
    """Return what is drawn for each task."""
    runs, curves = as_published(results.runs, mode), as_published(results.curves, mode)
    drawn = {}
    for task in in_order(runs["task"]):
        rows = [row for row in compared_rows(runs, task, mode).values() if _belongs(row.method, measure)]
        found = {row: curve(curves, row, measure, unit_of(runs, task)) for row in rows}
        drawn[task] = {row: seeds for row, seeds in found.items() if seeds is not None}
    return {task: rows for task, rows in drawn.items() if rows}


def _belongs(method: str, measure: str) -> bool:
    return {"length": True, "queries": method != "vanilla", "scalar": method == "scalar"}[measure]


def band_line(
    axes: Axes, times: NDArray[np.float64], mean: NDArray[np.float64], band: NDArray[np.float64], colour: str
) -> None:
    """Draw a curve with a band `(2, m)` around it.

    >>> axes = Figure().add_subplot()
    >>> band_line(axes, np.array([1.0, 2.0]), np.array([5.0, 6.0]), np.array([[4.0, 5.0], [6.0, 7.0]]), "black")
    >>> len(axes.lines), len(axes.collections)
    (1, 1)
    """
    axes.fill_between(times, *band, color=colour, alpha=0.2, linewidth=0.0)
    marker = "." if len(times) < 5 else ""  # a single point would not be seen
    axes.plot(times, mean, color=colour, linewidth=1.1, marker=marker)


def time_labels(panels: Mapping[str, Axes], units: Mapping[str, Unit]) -> None:
    """Say below the lowest panels what training is counted in, below every panel where they differ.

    >>> panels = {task: Figure().add_subplot() for task in ("cook", "pong")}
    >>> time_labels(panels, {"cook": "step", "pong": "decision"})
    >>> [axes.get_xlabel() for axes in panels.values()]
    ['training steps', 'training decisions']
    """
    same = len(set(units.values())) == 1
    for n, (task, axes) in enumerate(panels.items()):
        if n + COLUMNS >= len(panels) or not same:
            axes.set_xlabel(f"training {units[task]}s")


def line_key(colour: str, name: str) -> Artist:
    """Return a line for a legend.

    >>> line_key("black", "wrapped").get_label()
    'wrapped'
    """
    return Line2D([], [], color=colour, label=name)


def _optimum(axes: Axes, results: Results, row: Row, measure: str) -> None:
    """Mark the exact optimum of the lexicographic row where there is one."""
    exact = results.optima.get(row)
    if row.method == "lexicographic" and exact is not None and exact.queries is not None:
        value = exact.length if measure == "length" else exact.queries
        axes.axhline(value, color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)), label=OPTIMUM)


def _optimum_key(panels: Iterable[Axes]) -> list[Artist]:
    for axes in panels:
        for line in axes.lines:
            if line.get_label() == OPTIMUM:
                return [line]
    return []
