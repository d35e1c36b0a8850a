"""Where the time goes: the share of an episode spent acting, and in waits of each duration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from letitcook.experiments.results import Results
from letitcook.report.figures.frames import as_published
from letitcook.report.figures.style import MODE_NAMES, PALE, WIDTH, in_order, legend, short_number
from letitcook.tasks import task_named

SMALLEST = 0.06
"""Share below which a part of a bar is too low for its number, which then stands beside it."""
LINE = 0.058
"""Height of a line of text, as a share."""
BAR = 0.46
"""Width of a bar; 1 is from one task to the next."""
NARROWEST = 3.9
"""Inches that the titles need."""
ROOMY = 4
"""Tasks up to which there is an array for words."""


def wait_durations(results: Results) -> Figure | None:
    """Draw how the best lexicographic policy of each task spends its steps, from scratch and wrapped."""
    best = {mode: best_runs(results.runs, mode) for mode in MODE_NAMES}
    modes = [mode for mode, runs in best.items() if runs]
    if not modes:
        return None
    tasks = in_order(task for mode in modes for task in best[mode])
    figure = Figure(figsize=(min(WIDTH, max(NARROWEST, 0.8 + 1.5 * len(tasks))), 2.7 * len(modes)))
    for n, mode in enumerate(modes):
        axes = figure.add_subplot(len(modes), 1, n + 1)
        axes.set_title(f"Lexicographic, {MODE_NAMES[mode]}", pad=14)
        for x, task in enumerate(tasks):
            if task in best[mode]:
                _bar(axes, x, best[mode][task], words=len(tasks) <= ROOMY)
        axes.set_xticks(range(len(tasks)), [task_named(task).title for task in tasks], fontsize=7.5)
        axes.set_xlim(-0.5, len(tasks) - 0.2)
        axes.set_ylim(0.0, 1.0)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_ylabel("share of the steps")
        axes.tick_params(axis="x", length=0)
    used = sorted({duration for mode in modes for spent in best[mode].values() for duration in spent})
    keys = [Patch(facecolor=_colour(duration)[0], label=_name(duration)) for duration in used]
    legend(figure, keys, columns=len(keys), size=6.5)
    return figure


def best_runs(runs: pl.DataFrame, mode: str) -> dict[str, dict[int, float]]:
    """Return, for each task, the steps that its best lexicographic run spends in each duration; 0 is acting.

    The best of the seeds is the one with the highest task return, then the fewest queries, as in the paper.
    """
    columns = {0: "time_acting"} | {
        int(name.removeprefix("time_wait_")): name for name in runs.columns if name.startswith("time_wait_")
    }
    kept = as_published(runs, mode).filter(pl.col("method") == "lexicographic", pl.col("time_acting").is_not_null())
    ordered = kept.sort(["task_return", "queries", "seed"], descending=[True, False, False])
    best = {}
    for record in ordered.unique("task", keep="first", maintain_order=True).iter_rows(named=True):
        spent = {duration: record[name] for duration, name in sorted(columns.items())}
        best[record["task"]] = {duration: steps for duration, steps in spent.items() if steps}
    return best


def spread(wanted: Sequence[float], gap: float, highest: float) -> list[float]:
    """Return places in the same order, each `gap` above the one before at least, near the wanted ones.

    >>> spread([0.25, 0.3, 0.75], gap=0.25, highest=1.0), spread([0.75, 1.0, 1.0], gap=0.25, highest=1.0)
    ([0.25, 0.5, 0.75], [0.5, 0.75, 1.0])
    """
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + gap) if places else place)
    for n in range(len(places) - 1, -1, -1):
        places[n] = min(places[n], places[n + 1] - gap if n + 1 < len(places) else highest)
    return places


def _bar(axes: Axes, x: float, spent: dict[int, float], words: bool) -> None:
    """Draw a bar with a number for each of its parts, those of low parts beside it."""
    total, bottom = sum(spent.values()), 0.0
    text: dict[str, Any] = {"va": "center", "fontsize": 6.2 if words else 5.6}
    beside: dict[float, str] = {}
    for duration, steps in spent.items():
        share, (colour, ink) = steps / total, _colour(duration)
        axes.bar(x, share, BAR, bottom=bottom, color=colour, edgecolor="white", linewidth=0.5 if share > 0.01 else 0.0)
        label = _label(duration, steps, words)
        if share >= SMALLEST:
            axes.text(x, bottom + share / 2, label, ha="center", color=ink, **text)
        else:
            beside[bottom + share / 2] = label
        bottom += share
    edge = x + BAR / 2
    for (middle, label), place in zip(beside.items(), spread(list(beside), LINE, 1.0 - LINE / 2), strict=True):
        axes.plot([edge, edge + 0.04, edge + 0.06], [middle, place, place], color="#555555", linewidth=0.5)
        axes.text(edge + 0.07, place, label, ha="left", **text)
    label = f"{short_number(total)} steps"
    axes.annotate(label, (x, 1.0), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=7)


def _label(duration: int, steps: float, words: bool) -> str:
    """Return the number of a part of a bar with what it stands for, in words or as short as can be."""
    if words:
        return f"{_name(duration)}: {short_number(steps)}"
    return f"{duration}: {short_number(steps)}" if duration else short_number(steps)


def _name(duration: int) -> str:
    return "acting" if duration == 0 else f"wait {duration}"


def _colour(duration: int) -> tuple[str, str]:
    """Return the colour of a part of the bar and of the text on it: the longer the wait, the darker."""
    if duration == 0:
        return PALE, "black"
    shade = 0.98 - 0.86 * math.log2(duration) / 7.0  # from the wait action to a wait of 128
    return to_hex(matplotlib.colormaps["viridis"](max(shade, 0.0))), "black" if shade > 0.6 else "white"
