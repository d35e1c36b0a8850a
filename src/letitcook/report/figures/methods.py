"""Vanilla, lexicographic and the best scalarised method side by side, with the paper's values beside them."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from letitcook.experiments.results import Results
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.report.figures.frames import as_published, best_scalar_of_paper, compared_rows, of_row
from letitcook.report.figures.style import BLUE, COLUMNS, ORANGE, PALE, grid, in_order, legend, short_number
from letitcook.report.statistics import Estimate, estimate

NAMES = {"vanilla": "vanilla", "lexicographic": "lexico-\ngraphic", "scalar": "best\nscalarised"}
BESIDE = 0.44
"""How far right of the middle of its bar the paper's value stands."""


def methods(results: Results, mode: str) -> Figure | None:
    """Draw length and queries of the methods that are compared, for each task of a mode."""
    runs = as_published(results.runs, mode)
    rows = {task: compared_rows(runs, task, mode) for task in in_order(runs["task"])}
    if not rows:
        return None
    figure, panels = grid(list(rows), height=2.2)
    handles: list[Patch | ErrorbarContainer] = [
        Patch(facecolor=PALE, label="length"),
        Patch(facecolor=BLUE, label="queries"),
    ]
    for n, (task, axes) in enumerate(panels.items()):
        highest = 0.0
        for x, row in enumerate(rows[task].values()):
            of = of_row(runs, row)
            length, queries = (estimate(of[name].to_numpy()) for name in ("length", "queries"))
            _bars(axes, x, length, queries)
            paper = paper_of(row)
            drawn = _markers(axes, x + BESIDE, paper) if paper else []
            if len(handles) == 2:
                handles += drawn
            highest = max(highest, length.mean + length.sd, paper.length + paper.length_sd if paper else 0.0)
            _number(axes, x, length.mean + length.sd, length, "black")
            _number(axes, x, 0.0, queries, "white")
        axes.set_xticks(range(len(rows[task])), [_tick(row) for row in rows[task].values()])
        axes.set_xlim(-0.5, len(rows[task]) - 0.25)
        axes.set_ylim(0.0, 1.13 * highest)
        axes.tick_params(axis="x", length=0)
        if n % COLUMNS == 0:
            axes.set_ylabel("steps, queries")
    legend(figure, handles)
    return figure


def paper_of(row: Row) -> PaperRow | None:
    """Return the paper's row that stands beside ours: for the best scalarised one the paper's best, whatever its λ."""
    return best_scalar_of_paper(row.task, row.mode) if row.method == "scalar" else paper_rows().get(row)


def _tick(row: Row) -> str:
    if row.lam is None:
        return NAMES[row.method]
    paper = paper_of(row)
    note = "" if paper is None or paper.row.lam == row.lam else f"\n(paper {paper.row.lam:g})"
    return f"{NAMES[row.method]}\nλ = {row.lam:g}{note}"


def _bars(axes: Axes, x: float, length: Estimate, queries: Estimate) -> None:
    for value, colour, place in ((length, PALE, -0.12), (queries, BLUE, 0.12)):
        axes.bar(x, value.mean, 0.62, color=colour)
        if value.sd > 0.0:
            axes.errorbar(x + place, value.mean, value.sd, color="black", elinewidth=0.8, capsize=1.5, capthick=0.8)


def _number(axes: Axes, x: float, y: float, value: Estimate, ink: str) -> None:
    """Write a mean just above a point."""
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
    axes.annotate(short_number(value.mean), (x, y), (0, 2), color=ink, fontsize=6.5, **place)


def _markers(axes: Axes, x: float, paper: PaperRow) -> list[ErrorbarContainer]:
    look: dict[str, Any] = {"markersize": 3.6, "markerfacecolor": "white", "markeredgewidth": 1.0, "elinewidth": 0.8}
    points = (("D", paper.length, paper.length_sd, "length"), ("o", paper.queries, paper.queries_sd, "queries"))
    return [
        axes.errorbar(x, mean, sd, fmt=marker, color=ORANGE, label=f"paper, {name}", clip_on=False, **look)
        for marker, mean, sd, name in points
    ]
