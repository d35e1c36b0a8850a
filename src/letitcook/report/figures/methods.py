"""Vanilla, lexicographic and the best scalarised method side by side, with the paper's values beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from letitcook.experiments.results import Results
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.report.figures.frames import as_published, best_scalar_of_paper, compared_rows, of_row
from letitcook.report.figures.style import BLUE, COLUMNS, GREY, ORANGE, PALE, grid, in_order, legend, note, short_number

NAMES = {"vanilla": "vanilla", "lexicographic": "lexico-\ngraphic", "scalar": "best\nscalarised"}
BESIDE = 0.44
"""How far right of the middle of its bar the paper's value stands."""
LOW = 0.12
"""Part of a panel's height below which a bar is too low for its number, which then stands above it."""


class Scale(NamedTuple):
    """What heights are divided by: the length of vanilla from scratch, or 1."""

    ours: float
    paper: float


class Height(NamedTuple):
    """A mean over seeds and its standard deviation."""

    mean: float
    sd: float

    @property
    def top(self) -> float:
        """The upper end of its error bar."""
        return self.mean + self.sd


def methods(results: Results, mode: str) -> Figure | None:
    """Draw length and queries of the methods that are compared, for each task of a mode, relative to vanilla's."""
    runs = as_published(results.runs)
    of_mode = as_published(results.runs, mode)
    rows = {task: list(compared_rows(of_mode, task, mode).values()) for task in in_order(of_mode["task"])}
    if not rows:
        return None
    figure, panels = grid(list(rows), height=2.2)
    keys: list[Patch | ErrorbarContainer] = [
        Patch(facecolor=PALE, label="length"),
        Patch(facecolor=BLUE, label="queries"),
    ]
    for n, (task, axes) in enumerate(panels.items()):
        scale = scale_of(runs, task)
        markers = _panel(axes, of_mode, rows[task], scale or Scale(1.0, 1.0))
        keys += markers if len(keys) == 2 else []
        if scale is None:
            note(axes, "in steps: no vanilla runs")
        else:
            axes.axhline(1.0, color=GREY, linewidth=0.7, linestyle=(0, (2, 2)), zorder=0.5)
        if n % COLUMNS == 0:
            axes.set_ylabel("steps, queries" if scale is None else "relative to vanilla's length")
    legend(figure, keys)
    return figure


def scale_of(runs: pl.DataFrame, task: str) -> Scale | None:
    """Return the lengths of vanilla from scratch, ours and the paper's; None if it was not run.

    >>> runs = pl.DataFrame({"task": ["cook"], "mode": ["scratch"], "method": ["vanilla"], "lambda": [None],
    ...                      "variant": [""], "length": [35.0]})
    >>> scale_of(runs, "cook"), scale_of(runs, "pong")
    (Scale(ours=35.0, paper=33.0), None)
    """
    row = Row(task, "scratch", "vanilla")
    ours, paper = of_row(runs, row)["length"].to_numpy(), paper_rows().get(row)
    return Scale(float(ours.mean()), paper.length) if len(ours) and paper is not None else None


def paper_of(row: Row) -> PaperRow | None:
    """Return the paper's row that stands beside ours: for the best scalarised one the paper's best, whatever its λ."""
    return best_scalar_of_paper(row.task, row.mode) if row.method == "scalar" else paper_rows().get(row)


def _panel(axes: Axes, runs: pl.DataFrame, rows: list[Row], scale: Scale) -> list[ErrorbarContainer]:
    """Draw the bars of a task, numbers on them in steps and queries; return the paper's markers of one of them."""
    bars = [_heights(of_row(runs, row)) for row in rows]
    papers = [paper_of(row) for row in rows]
    tops = [length.top / scale.ours for length, _ in bars]
    tops += [(paper.length + paper.length_sd) / scale.paper for paper in papers if paper is not None]
    markers: list[ErrorbarContainer] = []
    for x, ((length, queries), paper) in enumerate(zip(bars, papers, strict=True)):
        _bars(axes, x, length, queries, scale.ours)
        _number(axes, x, length.top / scale.ours, length, "black")
        low = queries.mean / scale.ours < LOW * max(tops)
        _number(axes, x, queries.top / scale.ours if low else 0.0, queries, "black" if low else "white")
        if paper is not None:
            markers = _markers(axes, x + BESIDE, paper, scale.paper)
    axes.set_xticks(range(len(rows)), [_tick(row) for row in rows])
    axes.set_xlim(-0.5, len(rows) - 0.25)
    axes.set_ylim(0.0, 1.13 * max(tops))
    axes.tick_params(axis="x", length=0, labelsize=5.8)
    return markers


def _heights(runs: pl.DataFrame) -> tuple[Height, Height]:
    """Return length and queries."""
    length, queries = (runs[name].to_numpy() for name in ("length", "queries"))
    sds = [float(values.std(ddof=1)) if len(values) > 1 else 0.0 for values in (length, queries)]
    return Height(float(length.mean()), sds[0]), Height(float(queries.mean()), sds[1])


def _tick(row: Row) -> str:
    if row.lam is None:
        return NAMES[row.method]
    paper = paper_of(row)
    other = "" if paper is None or paper.row.lam == row.lam else f"\n(paper {paper.row.lam:g})"
    return f"{NAMES[row.method]}\nλ = {row.lam:g}{other}"


def _bars(axes: Axes, x: float, length: Height, queries: Height, unit: float) -> None:
    for value, colour, place in ((length, PALE, -0.12), (queries, BLUE, 0.12)):
        axes.bar(x, value.mean / unit, 0.62, color=colour)
        if value.sd > 0.0:
            look: dict[str, Any] = {"color": "black", "elinewidth": 0.8, "capsize": 1.5, "capthick": 0.8}
            axes.errorbar(x + place, value.mean / unit, value.sd / unit, **look)


def _number(axes: Axes, x: float, y: float, value: Height, ink: str) -> None:
    """Write a mean just above a point."""
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
    axes.annotate(short_number(value.mean), (x, y), (0, 2), color=ink, fontsize=6.5, **place)


def _markers(axes: Axes, x: float, paper: PaperRow, unit: float) -> list[ErrorbarContainer]:
    look: dict[str, Any] = {"markersize": 3.6, "markerfacecolor": "white", "markeredgewidth": 1.0, "elinewidth": 0.8}
    points = (("D", paper.length, paper.length_sd, "length"), ("o", paper.queries, paper.queries_sd, "queries"))
    return [
        axes.errorbar(
            x, mean / unit, sd / unit, fmt=marker, color=ORANGE, label=f"paper, {name}", clip_on=False, **look
        )
        for marker, mean, sd, name in points
    ]
