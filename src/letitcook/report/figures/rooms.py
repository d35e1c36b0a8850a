"""Pictures of the tasks' worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from letitcook.experiments.results import Results
from letitcook.report.figures.frames import as_published
from letitcook.report.figures.style import WIDTH, in_order
from letitcook.report.traces import exact_policy, interleaved_trace, scene
from letitcook.tasks import cartpole, coffee, kitchen, kitchen_drawing, mountain_car, pong, task_named

Picture = NDArray[np.uint8]
HIGHEST = 2.1
"""Inches that a row of pictures has at most."""
IN_A_ROW = 3
CELL = 48
"""Pixels of a cell of the coffee room."""
LIGHT_GREEN = "#4FD99A"
APART = 0.12
"""How far the ways there and back are from the middle of the cells, in cells."""
WAITING = kitchen.State(3, 2, facing=3, held=kitchen.DISH, onions=3, left=6, delivered=0)
"""The cook stands at the pot with a dish."""
RALLY = {pong.AGENT: 11.0, pong.OPPONENT: 16.0, pong.X: 13.0, pong.Y: 8.0, pong.LAST_X: 14.0, pong.LAST_Y: 8.6}
"""A moment of a rally: paddles and ball."""


def rooms(results: Results) -> Figure | None:
    """Draw the worlds of the tasks that were run; the kitchens look the same and are drawn once."""
    tasks = in_order(as_published(results.runs)["task"])
    kitchens = [task for task in tasks if scene(task)["kind"] == "cook"]
    titles = {task: task_named(task).title for task in tasks if task not in kitchens[1:]}
    if not titles:
        return None
    if kitchens:
        titles[kitchens[0]] = ", ".join(task_named(task).title for task in kitchens)
    rows = [list(titles)[n : n + IN_A_ROW] for n in range(0, len(titles), IN_A_ROW)]
    shapes = [[_width(task) for task in row] for row in rows]
    widest = max(sum(shape) for shape in shapes)
    high = min(HIGHEST, WIDTH / widest)
    figure = Figure(figsize=(high * widest, (high + 0.3) * len(rows)))
    places = figure.add_gridspec(len(rows), 1)
    for n, (row, shape) in enumerate(zip(rows, shapes, strict=True)):
        inside = places[n].subgridspec(1, len(row), width_ratios=shape)
        for k, task in enumerate(row):
            room(figure.add_subplot(inside[k]), task)
            figure.axes[-1].set_title(titles[task])
    return figure


def room(axes: Axes, task: str) -> None:
    """Draw the world of a task, the coffee room with the way of the errand that fits into a wait."""
    show(axes, picture(task))
    axes.set_title(task_named(task).title)
    if task == "coffee":
        x, y = _errand_way().T
        axes.plot(x, y, color=LIGHT_GREEN, linewidth=1.4, linestyle=(0, (2.5, 1.2)))
        axes.text(x.max() + 0.3 * CELL, y.mean(), "wait 15:\nfetch sugar", color=LIGHT_GREEN, fontsize=7, va="center")


def show(axes: Axes, pixels: Picture, alpha: float = 1.0) -> None:
    """Show pixels with nothing around them.

    >>> axes = Figure().add_subplot()
    >>> show(axes, np.zeros((4, 6, 3), dtype=np.uint8))
    >>> len(axes.images), axes.axison
    (1, False)
    """
    axes.imshow(pixels, alpha=alpha)
    axes.set_axis_off()


@cache
def picture(task: str) -> Picture:
    """Return a moment of a task in pixels, `(height, width, 3)`.

    >>> picture("pong").shape
    (360, 504, 3)
    """
    return PICTURES[scene(task)["kind"]]()


def draw_kitchen(state: kitchen.State) -> Picture:
    """Return the kitchen of Cook in pixels, without the line of text below it.

    >>> draw_kitchen(WAITING).shape
    (400, 400, 3)
    """
    about = scene("cook")
    pixels = kitchen_drawing.picture(state, about["cook_time"], about["soups"])
    return pixels[: kitchen_drawing.TILE * len(kitchen.LAYOUT)]


def _width(task: str) -> float:
    """Return the width of a picture whose height is 1."""
    height, width, _ = picture(task).shape
    return float(width / height)


@cache
def _errand() -> list[Mapping[str, Any]]:
    """Return the states of the coffee room from the beginning to the end of the wait with an errand in it."""
    episode = interleaved_trace("coffee", exact_policy("coffee", "wrap"))
    wait = next(query for query in episode.queries if query.work)
    return list(episode.states[wait.time : wait.time + wait.steps + 1])


def _errand_way() -> NDArray[np.float64]:
    """Return the way of the errand as points `(n, 2)` in pixels, the way back beside the way there."""
    cells = np.array([(state["x"], state["y"]) for state in _errand()], dtype=np.float64)
    back = np.arange(len(cells)) > np.abs(cells - cells[0]).sum(axis=1).argmax()
    return CELL * (cells + 0.5 + APART * np.where(back, 1.0, -1.0)[:, None])


def _coffee_room() -> Picture:
    env = coffee.CoffeeEnv(render_mode="rgb_array")
    env.set_state(coffee.State(*(_errand()[0][name] for name in coffee.State._fields)))
    return np.asarray(env.render(), dtype=np.uint8)


def _pong_field() -> Picture:
    state = np.zeros(pong.SIZE)
    for place, value in RALLY.items():
        state[place] = value
    return np.asarray(pong.draw(state), dtype=np.uint8)


PICTURES: dict[str, Callable[[], Picture]] = {
    "cook": lambda: draw_kitchen(WAITING),
    "coffee": _coffee_room,
    "pong": _pong_field,
    "cartpole": lambda: np.asarray(cartpole.draw(np.array([0.3, 0.0, 0.09, 0.0])), dtype=np.uint8),
    "mountain-car": lambda: np.asarray(mountain_car.draw(np.array([-0.7, 0.0])), dtype=np.uint8),
}
"""A moment of each kind of task."""
