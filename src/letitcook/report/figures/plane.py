"""The plane of length and queries: every λ, the lexicographic result, the paper's values, and the exact front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from letitcook.envs import task_named
from letitcook.experiments.results import Results
from letitcook.experiments.suites import Row, paper_rows
from letitcook.experiments.work import world_of
from letitcook.finite.front import front_tables
from letitcook.report.figures.frames import as_published
from letitcook.report.figures.style import BLACK, GREY, VERMILLION, grid, in_order, legend, scaled

Colour = tuple[float, ...] | str
Colours = Mapping[float | None, Colour]


def plane(results: Results, mode: str) -> Figure | None:
    """Draw length against queries for each task of a mode."""
    runs = as_published(results.runs, mode).filter(pl.col("method") != "vanilla")
    tasks = in_order(runs["task"])
    if not tasks:
        return None
    lams = sorted(set(runs["lambda"].drop_nulls()))
    colours = _colours(lams)
    columns = 2 if len(tasks) == 4 else 3
    figure, panels = grid(tasks, height=2.3, columns=columns)
    for n, (task, axes) in enumerate(panels.items()):
        if task_named(task).finite:
            _front(axes, task, mode)
        of_task = runs.filter(pl.col("task") == task).sort("lambda", "seed")
        for (lam,), seeds in of_task.group_by("lambda", maintain_order=True):
            row = Row(task, mode, "scalar" if lam is not None else "lexicographic", lam)
            _result(axes, row, seeds, colours[lam])
        axes.grid(axis="x")
        axes.set_xlim(0.0, 1.08 * axes.dataLim.x1)
        scaled(axes)
        if n % columns == 0:
            axes.set_ylabel("length (steps)")
        if n + columns >= len(panels):
            axes.set_xlabel("queries")
        if task_named(task).return_per_step > 0.0:
            axes.text(
                0.96, 0.04, "longer is better", transform=axes.transAxes, ha="right", fontsize=6.5, color="#555555"
            )
    if len(lams) > 1:
        _bar_of_lambdas(figure, list(panels.values()), lams, colours)
    legend(figure, _keys(lams, any(task_named(task).finite for task in tasks)), columns=5)
    return figure


def _result(axes: Axes, row: Row, seeds: pl.DataFrame, colour: Colour) -> None:
    """Draw each seed, their mean, and what the paper has for the row, joined to it."""
    marker, size, above = ("*", 8.5, 10) if row.lam is None else ("o", 4.5, 0)
    length, queries = (seeds[name].to_numpy() for name in ("length", "queries"))
    axes.plot(queries, length, ".", color=colour, markersize=2.0, alpha=0.6, zorder=2)
    paper = paper_rows().get(row)
    if paper is not None:
        pair = [queries.mean(), paper.queries], [length.mean(), paper.length]
        axes.plot(*pair, color=GREY, linewidth=0.5, zorder=2)
        hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 0.9}
        axes.plot(paper.queries, paper.length, marker, markersize=size, zorder=3 + above, clip_on=False, **hollow)
    full: dict[str, Any] = {"color": colour, "markeredgecolor": "white", "markeredgewidth": 0.4}
    axes.plot(queries.mean(), length.mean(), marker, markersize=size, zorder=4 + above, clip_on=False, **full)


def _front(axes: Axes, task: str, mode: str) -> None:
    points = np.array(front_tables(*world_of(task, mode)))
    axes.plot(points[:, 1], points[:, 0], color=BLACK, linewidth=0.8, drawstyle="steps-pre", zorder=1)
    axes.plot(points[:, 1], points[:, 0], "s", color=BLACK, markersize=2.0, zorder=1)


def _colours(lams: Sequence[float]) -> dict[float | None, Colour]:
    shades = matplotlib.colormaps["viridis"](np.linspace(0.92, 0.0, max(len(lams), 2)))
    return {None: VERMILLION, **{lam: tuple(shade) for lam, shade in zip(lams, shades, strict=False)}}


def _bar_of_lambdas(figure: Figure, panels: list[Axes], lams: Sequence[float], colours: Colours) -> None:
    shades = ScalarMappable(
        BoundaryNorm(np.arange(len(lams) + 1) - 0.5, len(lams)), ListedColormap([colours[lam] for lam in lams])
    )
    bar = figure.colorbar(shades, ax=panels, location="bottom", aspect=50, pad=0.02, shrink=0.8)
    bar.set_ticks(list(range(len(lams))), labels=[f"{lam:g}" for lam in lams])
    bar.set_label("λ of the scalarised results")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.minorticks_off()


def _keys(lams: Sequence[float], finite: bool) -> list[Artist]:
    scalarised = f"scalarised, λ = {lams[0]:g}" if len(lams) == 1 else "scalarised"
    keys: list[Artist] = [
        Line2D([], [], marker="*", color=VERMILLION, linestyle="", markersize=8, label="lexicographic"),
        Line2D([], [], marker="o", color=GREY, linestyle="", markersize=5, label=scalarised),
        Line2D([], [], marker="o", color=GREY, linestyle="", markersize=5, markerfacecolor="none", label="the paper's"),
        Line2D([], [], marker=".", color=GREY, linestyle="", markersize=2.5, label="one seed"),
    ]
    if finite:
        keys.append(Line2D([], [], marker="s", color=BLACK, markersize=2, linewidth=0.8, label="exact front"))
    return keys
