"""One look for every figure: type, lines, colours, and the grid of a panel for each task.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; ordered things are shades of one
map (viridis). Figures are made without pyplot, so that nothing global is touched and nothing has to be closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from letitcook.tasks import TASKS, task_named

BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION = "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00"
GREY, PALE = "#8C8C8C", "#D9DEE4"
METHOD_COLOURS = {"vanilla": GREY, "lexicographic": BLUE, "scalar": VERMILLION}
MODE_COLOURS = {"scratch": BLUE, "wrap": VERMILLION}
MODE_NAMES = {"scratch": "from scratch", "wrap": "wrapped around a base policy"}
WIDTH = 7.2
"""Inches across a page."""
COLUMNS = 4
FITS = 0.92
"""Part of a figure's width that a legend may take; letters are a little wider in some resolutions than in others."""
WIDE, NARROW = 5.0, 1.1
"""The highest number over the lowest: above the one an axis is logarithmic, below the other it is widened."""
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so that figures are the same everywhere
    "font.size": 7.5,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.2,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "letitcook",
}


def style(placed: bool = False) -> AbstractContextManager[None]:
    """Return the context in which figures are made and saved; a user's own settings have no part in it.

    Where everything is `placed` already there is no layout engine: with one, saving draws everything twice.

    >>> with style():
    ...     matplotlib.rcParams["svg.hashsalt"]
    'letitcook'
    """
    context: AbstractContextManager[None] = matplotlib.style.context(
        ["default", STYLE, {"figure.constrained_layout.use": not placed}]
    )
    return context


def in_order(tasks: Iterable[str]) -> list[str]:
    """Return tasks in the order of `TASKS`, each once.

    >>> in_order(["pong", "cook", "pong"])
    ['cook', 'pong']
    """
    given = set(tasks)
    return [task for task in TASKS if task in given]


def grid(tasks: Sequence[str], height: float, columns: int = COLUMNS) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a titled panel for each task, `height` inches a row."""
    columns = min(columns, len(tasks))
    rows = -(-len(tasks) // columns)
    figure = Figure(figsize=(min(WIDTH, 0.5 * WIDTH * columns), height * rows))
    panels = {}
    for n, task in enumerate(tasks):
        panels[task] = figure.add_subplot(rows, columns, n + 1)
        panels[task].set_title(task_named(task).title)
    return figure, panels


def legend(figure: Figure, handles: Sequence[Artist | Container], columns: int = 4, size: float = 7.5) -> None:
    """Put a legend below the panels, in as many columns as the figure has room for, `columns` at most."""
    look: dict[str, Any] = {"loc": "outside lower center", "fontsize": size, "columnspacing": 1.4}
    for ncols in range(min(columns, len(handles)), 0, -1):
        made = figure.legend(handles=list(handles), ncols=ncols, **look)
        if ncols == 1 or made.get_window_extent().width < FITS * figure.bbox.width:
            break
        made.remove()


def scaled(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers, if its data are wide; do not make much of narrow ones."""
    lowest, highest = axes.dataLim.y0, axes.dataLim.y1
    axes.margins(y=0.08)
    if highest > WIDE * lowest:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0), numticks=12))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    elif highest < NARROW * lowest:
        middle = (lowest + highest) / 2.0
        axes.set_ylim(middle * (2.0 - NARROW), middle * NARROW)


def note(axes: Axes, text: str) -> None:
    """Write a small grey remark above a panel, at its right."""
    axes.set_title(text, loc="right", fontsize=6, color="#555555")


def count_axis(axes: Axes, log: bool = False) -> None:
    """Write the timesteps of training as 2M or 500k, and few of them."""
    if log and axes.dataLim.x1 > 1.1 * axes.dataLim.x0:  # a single evaluation has no width to lay a logarithm out on
        axes.set_xscale("log")
        wide = axes.dataLim.x1 > 20.0 * axes.dataLim.x0
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=12))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short_count(x)))


def short_count(number: float) -> str:
    """Return a count in few letters, with three digits at most.

    >>> short_count(0), short_count(250_000), short_count(2_500_000), short_count(1_313_333), short_count(999_999)
    ('0', '250k', '2.5M', '1.31M', '1M')
    """
    rounded = float(f"{number:.3g}")
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(rounded) >= size:
            return f"{rounded / size:g}{letter}"
    return f"{rounded:g}"


def short_number(number: float) -> str:
    """Return a mean in few digits.

    >>> short_number(33.0), short_number(36.429), short_number(199.986), short_number(0.02)
    ('33', '36.4', '200', '<0.1')
    """
    return "<0.1" if 0.0 < number < 0.05 else f"{number:.1f}".removesuffix(".0")
