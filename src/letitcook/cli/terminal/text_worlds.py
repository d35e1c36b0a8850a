"""The tasks' worlds as text, for terminals: the states of a trace, drawn with characters."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from letitcook.report.traces import scene
from letitcook.tasks import coffee, job, kitchen, kitchen_drawing, mountain_car
from letitcook.tasks.cartpole import POSITION_LIMIT

EIGHTHS = " ▁▂▃▄▅▆▇█"


def text_world(task: str, state: dict[str, Any], width: int) -> str:
    """Return the world as text of at most `width` columns; `state` is one of a trace's.

    >>> print(text_world("cook", {"x": 2, "y": 1, "facing": 1, "held": 0, "onions": 2, "left": 0, "delivered": 0}, 80))
    X X X X X
    X · v · X   holding: nothing
    O · P · S   pot: filling, 2 of 3 onions
    X · · · X   delivered: 0 of 1
    X D X X X   O onions  P pot  D dishes  S serving  X counter
    """
    about = _scene(task)
    numbers = {name: value for name, value in state.items() if name != "action"}
    if about["kind"] == "cook":
        drawn = kitchen_drawing.text(kitchen.State(**numbers), about["soups"], about["hidden"])
    elif about["kind"] == "job":
        drawn = job.job_text(job.State(**numbers), about["hidden"])
    elif about["kind"] == "coffee":
        drawn = coffee.room_text(coffee.State(**numbers), hidden=about["hidden"])
    else:
        drawings = {"pong": _pong, "cartpole": _cartpole, "mountain-car": _mountain_car}
        drawn = drawings[about["kind"]](about, numbers, max(20, min(width, 61)))
    return "\n".join(line[:width].rstrip() for line in drawn.split("\n"))


_scene = cache(scene)


def _joined(rows: list[list[str]]) -> str:
    return "\n".join("".join(row) for row in rows)


def _pong(about: dict[str, Any], state: dict[str, float], width: int) -> str:
    """Draw the field, two of its rows in one; the agent is on the left."""
    high, across = round(about["height"] / 2), width / (about["width"] + 2)
    rows = [[" "] * width for _ in range(high)]
    for row in range(0, high, 2):
        rows[row][width // 2] = "·"
    for name, column in (("agent", 0), ("opponent", width - 1)):
        for row in range(high):
            if abs(2 * row + 1 - state[name]) <= about["half_paddle"]:
                rows[row][column] = "█"
    column = min(max(int((state["x"] + 1) * across), 1), width - 2)
    rows[min(max(int(state["y"] / 2), 0), high - 1)][column] = "●"
    return _joined([["─"] * width, *rows, ["─"] * width])


def _cartpole(about: dict[str, Any], state: dict[str, float], width: int) -> str:
    """Draw the pole on its cart; a character is twice as high as wide."""
    pole = 7
    rows = [[" "] * width for _ in range(pole + 1)]
    cart = (state["x"] / POSITION_LIMIT + 1) * (width - 1) / 2
    lean = 2 * math.tan(state["theta"])
    sign = "|" if abs(lean) < 0.1 else "/" if lean > 0 else "\\"
    for above in range(1, pole + 1):
        column = round(cart + lean * above)
        if 0 <= column < width:
            rows[pole - above][column] = sign
    for column in range(round(cart) - 2, round(cart) + 3):
        if 0 <= column < width:
            rows[pole][column] = "█"
    return _joined([*rows, ["─"] * width])


def _mountain_car(about: dict[str, Any], state: dict[str, float], width: int) -> str:
    """Draw the road, the flag at the goal and the car."""
    high, left, right = 10, about["left_end"], about["right_end"]
    step = (right - left) / (width - 1)
    road = [round(8 * high * 0.8 * mountain_car.height(left + step * column)) for column in range(width)]
    rows = [[EIGHTHS[min(max(top - 8 * (high - 1 - row), 0), 8)] for top in road] for row in range(high)]

    def above(column: int, by: int, sign: str) -> None:
        if 0 <= column < width:
            rows[max(0, high - 1 - math.ceil(road[column] / 8) - by)][column] = sign

    flag = round((about["goal"] - left) / step)
    above(flag, 0, "|")
    above(flag, 1, "|")
    rows[max(0, high - 2 - math.ceil(road[flag] / 8))][min(flag + 1, width - 1)] = ">"
    above(round((state["x"] - left) / step), 0, "●")
    return _joined(rows)
