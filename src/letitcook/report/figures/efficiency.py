"""Sample efficiency: how soon a wrapper is as good as it gets, and how soon a policy from scratch."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from letitcook.experiments.results import Results
from letitcook.experiments.suites import Row
from letitcook.report.figures.curves import LABELS, MOST_POINTS, band_line, line_key, time_labels
from letitcook.report.figures.frames import Curve, as_published, curve, joined, unit_of
from letitcook.report.figures.rooms import room
from letitcook.report.figures.style import (
    COLUMNS,
    MODE_COLOURS,
    MODE_NAMES,
    WIDTH,
    count_axis,
    in_order,
    legend,
    scaled,
    short_count,
)
from letitcook.tasks import task_named

MEASURES = ("length", "queries")
TOLERANCE = 0.02
"""How far from its final level, in parts of it, a curve may be that has settled."""
Modes = dict[tuple[str, str], Curve]
"""Curves of a task by mode and measure."""


def efficiency(results: Results) -> Figure | None:
    """Draw the lexicographic learning curves of each task from scratch and wrapped, and where they settle."""
    drawn = _curves(results)
    if not drawn:
        return None
    columns, blocks = min(COLUMNS, len(drawn)), -(-len(drawn) // COLUMNS)
    figure = Figure(figsize=(min(WIDTH, 0.5 * WIDTH * columns), 2.9 * blocks + 0.3))
    lower = {}
    for n, (task, curves) in enumerate(drawn.items()):
        block, column = divmod(n, COLUMNS)
        above = None
        for line, measure in enumerate(MEASURES):
            place = (2 * block + line) * columns + column + 1
            axes = figure.add_subplot(2 * blocks, columns, place, sharex=above)
            _panel(axes, {mode: curves[mode, measure] for mode in MODE_NAMES}, log=True)
            if column == 0:
                axes.set_ylabel(LABELS[measure])
            if above is None:
                axes.set_title(task_named(task).title, pad=13)
                axes.tick_params(axis="x", labelbottom=False)
            above = axes
        lower[task] = axes
    time_labels(lower, {task: unit_of(as_published(results.runs), task) for task in drawn})
    legend(figure, [line_key(MODE_COLOURS[mode], name) for mode, name in MODE_NAMES.items()])
    return figure


def pong(results: Results) -> Figure | None:
    """Draw Pong's field, and its lexicographic learning curves from scratch and wrapped."""
    curves = _curves(results).get("pong")
    if curves is None:
        return None
    figure = Figure(figsize=(WIDTH, 2.2))
    room(figure.add_subplot(1, 3, 1), "pong")
    unit = unit_of(as_published(results.runs), "pong")
    for n, measure in enumerate(MEASURES):
        axes = figure.add_subplot(1, 3, n + 2)
        axes.set_title(f"Pong, {measure}", pad=13)
        _panel(axes, {mode: curves[mode, measure] for mode in MODE_NAMES})
        axes.set_ylabel(LABELS[measure])
        axes.set_xlabel(f"training {unit}s")
    legend(figure, [line_key(MODE_COLOURS[mode], name) for mode, name in MODE_NAMES.items()])
    return figure


def settling_times(results: Results) -> pl.DataFrame:
    """Return the timesteps until the lexicographic method settles, one line a task and measure.

    The columns are `task`, `measure`, `unit` (of the timesteps), `scratch` and `wrap`; null where a curve does not
    settle. Tasks that have not both modes are left out.

    >>> from pathlib import Path
    >>> from letitcook.experiments.results import CURVES, RUNS
    >>> nothing = Results(Path("out"), "none", pl.DataFrame(schema=RUNS), pl.DataFrame(schema=CURVES), optima={})
    >>> settling_times(nothing).columns
    ['task', 'measure', 'unit', 'scratch', 'wrap']
    """
    lines = [
        (
            task,
            measure,
            unit_of(as_published(results.runs), task),
            *(settled(curves[mode, measure]) for mode in MODE_NAMES),
        )
        for task, curves in _curves(results).items()
        for measure in MEASURES
    ]
    kinds = dict.fromkeys(("task", "measure", "unit"), pl.String) | dict.fromkeys(MODE_NAMES, pl.Float64)
    return pl.DataFrame(lines, schema=kinds, orient="row")


def settled(seeds: Curve) -> float | None:
    """Return the timesteps from which on the mean over seeds stays near its final level; None if it never does.

    The final level is the mean of the last tenth of the evaluations; near is within 2% of it.

    >>> settled(Curve(np.array([10.0, 20.0, 30.0, 40.0]), np.array([[200.0, 101.0, 103.0, 100.0]])))
    40.0
    """
    mean = seeds.mean
    level = mean[len(mean) * 9 // 10 :].mean()
    (away,) = np.nonzero(np.abs(mean - level) > TOLERANCE * abs(level))
    first = int(away[-1]) + 1 if len(away) else 0
    return float(seeds.times[first]) if first < len(mean) else None


def _curves(results: Results) -> dict[str, Modes]:
    """Return the lexicographic curves of every task that has them in both modes."""
    runs, all_curves = as_published(results.runs), as_published(results.curves)
    lexicographic = all_curves.filter(pl.col("method") == "lexicographic")
    found = {}
    for task in in_order(lexicographic["task"].unique()):
        unit = unit_of(runs, task)
        curves: Modes = {}
        for mode, measure in product(MODE_NAMES, MEASURES):
            seeds = curve(lexicographic, Row(task, mode, "lexicographic"), measure, unit)
            if seeds is not None:
                curves[mode, measure] = seeds
        if len(curves) == len(MODE_NAMES) * len(MEASURES):
            found[task] = curves
    return found


def _panel(axes: Axes, modes: dict[str, Curve], log: bool = False) -> None:
    """Draw the curves of each mode with their intervals, and mark and write when they settle."""
    above: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom", "fontsize": 6.5}
    axes.text(0.0, 1.02, "settled after", color="#555555", **above)
    for (mode, seeds), place in zip(modes.items(), (0.7, 1.0), strict=True):
        colour, end = MODE_COLOURS[mode], settled(seeds)
        times, mean, *band = joined([seeds.times, seeds.mean, *seeds.interval], MOST_POINTS, log)
        band_line(axes, times, mean, np.stack(band), colour)
        if end is not None:
            axes.axvline(end, color=colour, linewidth=0.8, linestyle=(0, (1, 1.5)))
        axes.text(place, 1.02, "–" if end is None else short_count(end), color=colour, ha="right", **above)
    scaled(axes)
    count_axis(axes, log)
