"""An episode of Cook: the cook commits to a wait while the soup cooks, and takes the soup when it is over."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from letitcook.experiments.results import Results
from letitcook.report.figures.frames import as_published
from letitcook.report.figures.rooms import draw_kitchen, show
from letitcook.report.figures.style import BLUE, GREY, ORANGE, WIDTH
from letitcook.report.traces import Query, Trace, exact_policy, trace
from letitcook.tasks import kitchen

UNSEEN = 0.35
"""How strong a picture is that nobody looks at."""


def episode(results: Results) -> Figure | None:
    """Draw the end of an exactly optimal episode of Cook, from its last wait on, over the whole of it."""
    if "cook" not in as_published(results.runs)["task"]:
        return None
    played = trace("cook", "scratch", exact_policy("cook", "scratch"))
    queries = from_last_wait(played)
    times = shown_times(queries)
    figure = Figure(figsize=(WIDTH, 2.1))
    places = figure.add_gridspec(3, len(times), height_ratios=(1.0, 0.2, 0.2))
    asked = {query.time for query in queries} | {played.length}
    for n, time in enumerate(times):
        axes = figure.add_subplot(places[0, n])
        state = kitchen.State(*(played.states[time][name] for name in kitchen.State._fields))
        show(axes, draw_kitchen(state), 1.0 if time in asked else UNSEEN)
        axes.set_title(f"step {time}" if time in asked else f"step {time}: unseen", fontsize=7)
    _decisions(figure.add_subplot(places[1, :]), queries, times)
    _timeline(figure.add_subplot(places[2, :]), played, times[0])
    return figure


def from_last_wait(played: Trace) -> list[Query]:
    """Return the decisions of an episode from its last wait of several steps on.

    >>> [query.label for query in from_last_wait(trace("cook", "scratch", exact_policy("cook", "scratch")))]
    ['wait 5', 'interact', 'east', 'interact']
    """
    last = max(n for n, query in enumerate(played.queries) if query.wait and query.steps > 1)
    return played.queries[last:]


def shown_times(queries: list[Query]) -> list[int]:
    """Return the steps at which a picture is shown: one inside the first wait, and at every decision and the end.

    >>> shown_times([Query(25, "wait 5", 5, True), Query(30, "interact", 1, False)])
    [25, 27, 30, 31]
    """
    begin, steps = queries[0].time, queries[0].steps
    return [begin, begin + steps // 2, *(query.time + query.steps for query in queries)]


def _decisions(axes: Axes, queries: list[Query], times: list[int]) -> None:
    """Write each decision below the pictures, on a bar from the one before it to the one after it."""
    for query in queries:
        left, right = (times.index(time) + 0.5 for time in (query.time, query.time + query.steps))
        axes.add_patch(_bar(query, left + 0.02, right - left - 0.04))
        axes.text((left + right) / 2, 0.5, query.label, ha="center", va="center", fontsize=7, color=_ink(query))
    axes.set_xlim(0.0, len(times))
    axes.set_ylim(0.0, 1.0)
    axes.set_axis_off()


def _timeline(axes: Axes, played: Trace, shown_from: int) -> None:
    """Draw the whole episode, a cell for each decision, and mark what the pictures show of it."""
    for query in played.queries:
        axes.add_patch(_bar(query, query.time + 0.06, query.steps - 0.12))
    axes.plot([shown_from, played.length], [1.25, 1.25], color=GREY, linewidth=1.2, clip_on=False)
    axes.set_xlim(0.0, played.length)
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_xticks([0, *(query.time for query in played.queries if query.wait), played.length])
    axes.set_xlabel(f"the whole episode: {played.length} steps, {len(played.queries)} decisions (orange: waits)")


def _bar(query: Query, left: float, width: float) -> Rectangle:
    return Rectangle((left, 0.0), width, 1.0, facecolor=ORANGE if query.wait else BLUE, edgecolor="none")


def _ink(query: Query) -> str:
    return "black" if query.wait else "white"
