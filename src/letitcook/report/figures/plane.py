"""The plane of length and queries: every λ, the lexicographic result, the paper's values, and the exact front."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from letitcook.experiments.jobs import exact_front
from letitcook.experiments.results import Results
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.report.figures.frames import as_published
from letitcook.report.figures.labels import Place, place_labels
from letitcook.report.figures.style import BLACK, GREY, VERMILLION, in_order, legend, note, scaled
from letitcook.tasks import task_named

Colour = tuple[float, ...] | str
Colours = Mapping[float | None, Colour]
CLOSE = 1.15
"""Lengths that are nearer to the lexicographic one than this factor are enlarged."""
PANEL_WIDTH, PANEL_HEIGHT = 1.32, 1.6
LEFT, BETWEEN, RIGHT, ABOVE, BELOW, FOOT = 0.54, 0.42, 0.12, 0.26, 0.36, 0.85
"""Sizes in inches: a panel; left of, between and right of panels; above and below each; what is below all of them."""
WIDER = 1.5
"""Factor for the panels of a single task."""


class Result(NamedTuple):
    """A row's seeds and means, with what the paper has for it."""

    row: Row
    queries: NDArray[np.float64]
    length: NDArray[np.float64]
    paper: PaperRow | None

    @property
    def mean(self) -> Place:
        """Queries and length."""
        return float(self.queries.mean()), float(self.length.mean())

    @property
    def means(self) -> list[Place]:
        """Ours and the paper's."""
        return [self.mean] if self.paper is None else [self.mean, (self.paper.queries, self.paper.length)]


def plane(results: Results, mode: str) -> Figure | None:
    """Draw length against queries for each task of a mode, all of it and the surroundings of the best, enlarged."""
    runs = as_published(results.runs, mode).filter(pl.col("method") != "vanilla")
    tasks = in_order(runs["task"])
    if not tasks:
        return None
    lams = sorted(set(runs["lambda"].drop_nulls()))
    colours = _colours(lams)
    figure, panels = _panels(tasks)
    for task, (whole, close) in panels.items():
        found = list(_results(runs, task, mode))
        front = np.array(exact_front(task, mode))
        for axes in (whole, close):
            _front(axes, front)
            for result in found:
                _draw(axes, result, colours[result.row.lam])
        _limits(whole, task)
        _enlarge(close, whole, found)
        _label(close, found, close)
        _label(whole, found, close)
    if len(lams) > 1:
        _bar_of_lambdas(figure, lams, colours)
    legend(figure, _keys(lams, any(task_named(task).finite for task in tasks)), columns=6)
    return figure


def _panels(tasks: Sequence[str]) -> tuple[Figure, dict[str, tuple[Axes, Axes]]]:
    """Return a figure with two panels for each task; their places are fixed, so that labels can be placed in them."""
    pairs = min(2, len(tasks))
    wide = PANEL_WIDTH if pairs > 1 else WIDER * PANEL_WIDTH
    width = LEFT + 2 * pairs * wide + (2 * pairs - 1) * BETWEEN + RIGHT
    pitch = ABOVE + PANEL_HEIGHT + BELOW
    height = -(-len(tasks) // pairs) * pitch + FOOT
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    panels = {}
    for n, task in enumerate(tasks):
        line, pair = divmod(n, pairs)
        bottom = height - line * pitch - ABOVE - PANEL_HEIGHT
        lefts = [LEFT + (2 * pair + k) * (wide + BETWEEN) for k in range(2)]
        size = wide / width, PANEL_HEIGHT / height
        whole, close = (figure.add_axes((left / width, bottom / height, *size)) for left in lefts)
        whole.set_title(task_named(task).title)
        close.set_title("enlarged", fontsize=7)
        if pair == 0:
            whole.set_ylabel("length (steps)")
        for axes in (whole, close):
            axes.set_xlabel("queries", labelpad=1.0)
            axes.grid(axis="x")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panels[task] = whole, close
    return figure, panels


def _results(runs: pl.DataFrame, task: str, mode: str) -> Iterator[Result]:
    """Yield the rows of a task, the lexicographic one first, then by λ."""
    of_task = runs.filter(pl.col("task") == task).sort("lambda", "seed", nulls_last=False)
    for (lam,), seeds in of_task.group_by("lambda", maintain_order=True):
        row = Row(task, mode, "lexicographic" if lam is None else "scalar", lam)
        yield Result(row, seeds["queries"].to_numpy(), seeds["length"].to_numpy(), paper_rows().get(row))


def _draw(axes: Axes, result: Result, colour: Colour) -> None:
    """Draw each seed, their mean, and what the paper has for the row, joined to it."""
    marker, size, above = ("*", 8.5, 10) if result.row.lam is None else ("o", 4.5, 0)
    axes.plot(result.queries, result.length, ".", color=colour, markersize=2.0, alpha=0.6, zorder=2)
    if result.paper is not None:
        axes.plot(*zip(*result.means, strict=True), color=GREY, linewidth=0.5, zorder=2)
        hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 0.9}
        axes.plot(*result.means[1], marker, markersize=size, zorder=3 + above, **hollow)
    full: dict[str, Any] = {"color": colour, "markeredgecolor": "white", "markeredgewidth": 0.4}
    axes.plot(*result.mean, marker, markersize=size, zorder=4 + above, **full)


def _front(axes: Axes, points: NDArray[np.int64]) -> None:
    """Draw pairs of length and queries as stairs, if there are any."""
    if len(points):
        axes.plot(points[:, 1], points[:, 0], color=BLACK, linewidth=0.8, drawstyle="steps-pre", zorder=1)
        axes.plot(points[:, 1], points[:, 0], "s", color=BLACK, markersize=2.0, zorder=1)


def _limits(whole: Axes, task: str) -> None:
    """Show everything, queries from 0 on."""
    whole.set_xlim(-0.03 * whole.dataLim.x1, 1.08 * whole.dataLim.x1)
    scaled(whole)
    whole.autoscale_view()  # now, not when it is drawn: labels are placed before
    if task_named(task).return_per_step > 0.0:
        note(whole, "longer is better")


def close_to_best(results: Sequence[Result]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges of queries and lengths to enlarge: all means that are about as long as the lexicographic one.

    Where there is no lexicographic result, the first one takes its place.

    >>> row, points = Row("pong", "wrap", "lexicographic"), [(20.0, 100.0), (28.0, 104.0), (2.0, 999.0)]
    >>> close_to_best([Result(row, np.array([queries]), np.array([length]), None) for queries, length in points])
    ((19.0, 29.0), (99.5, 104.5))
    """
    best = results[0].length.mean()
    near = [mean for result in results for mean in result.means if best / CLOSE < mean[1] < best * CLOSE]
    queries, length = zip(*near, strict=True)
    return _widened(queries, least=2.0), _widened(length, least=0.01 * best)


def _widened(values: Sequence[float], least: float) -> tuple[float, float]:
    """Return the range of values with a margin, `least` wide at least before."""
    middle, half = (min(values) + max(values)) / 2, max(max(values) - min(values), least) / 2
    return middle - 1.25 * half, middle + 1.25 * half


def _enlarge(close: Axes, whole: Axes, results: Sequence[Result]) -> None:
    """Show the surroundings of the best result, and mark in the other panel where they are."""
    (left, right), (low, high) = close_to_best(results)
    close.set_xlim(left, right)
    close.set_ylim(low, high)
    frame: dict[str, Any] = {"fill": False, "edgecolor": GREY, "linewidth": 0.5, "zorder": 0.5}
    whole.add_patch(Rectangle((left, low), right - left, high - low, **frame))


def _label(axes: Axes, results: Sequence[Result], close: Axes) -> None:
    """Write λ at the means: in the panel `close` at those in its view, in the other one at the rest."""
    (left, right), (low, high) = close.get_xlim(), close.get_ylim()
    numbers = [(result.row.lam, result.mean) for result in results if result.row.lam is not None]
    points = [
        (lam, (queries, length))
        for lam, (queries, length) in numbers
        if (left <= queries <= right and low <= length <= high) == (axes is close)
    ]
    place_labels(axes, points, [lam for lam, _ in numbers], [mean for result in results for mean in result.means])


def _colours(lams: Sequence[float]) -> dict[float | None, Colour]:
    shades = matplotlib.colormaps["viridis"](np.linspace(0.92, 0.0, max(len(lams), 2)))
    return {None: VERMILLION, **{lam: tuple(shade) for lam, shade in zip(lams, shades, strict=False)}}


def _bar_of_lambdas(figure: Figure, lams: Sequence[float], colours: Colours) -> None:
    shades = ScalarMappable(
        BoundaryNorm(np.arange(len(lams) + 1) - 0.5, len(lams)), ListedColormap([colours[lam] for lam in lams])
    )
    height = figure.get_figheight()
    place = figure.add_axes((0.1, (FOOT - 0.15) / height, 0.8, 0.09 / height))
    bar = figure.colorbar(shades, cax=place, orientation="horizontal")
    bar.set_ticks(list(range(len(lams))), labels=[f"{lam:g}" for lam in lams])
    bar.set_label("λ of the scalarised results", labelpad=1.0)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.minorticks_off()


def _keys(lams: Sequence[float], finite: bool) -> list[Artist]:
    scalarised = f"scalarised, λ = {lams[0]:g}" if len(lams) == 1 else "scalarised, with λ"
    keys: list[Artist] = [
        Line2D([], [], marker="*", color=VERMILLION, linestyle="", markersize=8, label="lexicographic"),
        Line2D([], [], marker="o", color=GREY, linestyle="", markersize=5, label=scalarised),
        Line2D([], [], marker="o", color=GREY, linestyle="", markersize=5, markerfacecolor="none", label="the paper's"),
        Line2D([], [], marker=".", color=GREY, linestyle="", markersize=2.5, label="one seed"),
    ]
    if finite:
        keys.append(Line2D([], [], marker="s", color=BLACK, markersize=2, linewidth=0.8, label="exact front"))
    return keys
