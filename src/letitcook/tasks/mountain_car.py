"""MountainCar: a weak engine has to swing up out of a valley.

Rules. Gymnasium's MountainCar-v0 (Moore 1990), unchanged: actions push left, do not push, push right; "do not push" is
the wait action. An episode ends at position 0.5; it is truncated after 200 steps. Reward: -1 a step.

Observation: position and velocity, as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.core.jit import compiled, random_float
from letitcook.tasks.simulated_env import Canvas, Dynamics, Observation, Random, SimulatedEnv, State
from letitcook.tasks.task import Task

LEFT, WAIT, RIGHT = 0, 1, 2

LEFT_END, RIGHT_END, GOAL = -1.2, 0.6, 0.5
TOP_SPEED = 0.07
FORCE = 0.001
GRAVITY = 0.0025
SIZE = 2


@compiled
def reset(state: State, rng: Random) -> None:
    """Start at rest near the bottom of the valley, uniform in [-0.6, -0.4)."""
    state[0] = -0.6 + 0.2 * random_float(rng)
    state[1] = 0.0


@compiled
def step(state: State, action: int, rng: Random) -> tuple[float, bool]:
    """Push left, not at all, or right."""
    velocity = state[1] + ((action - WAIT) * FORCE + math.cos(3 * state[0]) * (-GRAVITY))
    velocity = min(max(velocity, -TOP_SPEED), TOP_SPEED)
    position = min(max(state[0] + velocity, LEFT_END), RIGHT_END)
    if position == LEFT_END and velocity < 0:
        velocity = 0.0
    state[0], state[1] = position, velocity
    return -1.0, position >= GOAL and velocity >= 0.0


@compiled
def observe(state: State, out: Observation) -> None:
    """Show the state as it is."""
    out[0], out[1] = state[0], state[1]


def height(position: float) -> float:
    """Return the height of the road."""
    return 0.45 * math.sin(3 * position) + 0.55


def draw(state: State) -> Any:
    """Draw the valley, the flag and the car, 600 x 400."""
    canvas = Canvas(1.8, 1.2, scale=1000 / 3, background="#eaf1f6")
    road = [(x / 100, 1.18 - height(x / 100 + LEFT_END)) for x in range(181)]
    canvas.area([(0, 1.2), *road, (1.8, 1.2)], "#8aa47a")
    canvas.line(road, width=0.012, colour="#5c7050")
    flag, top = GOAL - LEFT_END, 1.18 - height(GOAL)
    canvas.line([(flag, top), (flag, top - 0.16)], width=0.008, colour="#444444")
    canvas.area([(flag, top - 0.16), (flag + 0.08, top - 0.135), (flag, top - 0.11)], "#d9573b")
    slope = math.atan(1.35 * math.cos(3 * state[0]))
    x, y = state[0] - LEFT_END, 1.18 - height(state[0])
    along, up = (math.cos(slope), -math.sin(slope)), (-math.sin(slope), -math.cos(slope))

    def at(forward: float, above: float) -> tuple[float, float]:
        return x + forward * along[0] + above * up[0], y + forward * along[1] + above * up[1]

    canvas.area([at(-0.07, 0.03), at(0.07, 0.03), at(0.06, 0.075), at(-0.06, 0.075)], "#2b3a4a")
    for wheel in (-0.04, 0.04):
        canvas.disc(*at(wheel, 0.022), radius=0.022, colour="#1b1b1b")
    return canvas.pixels()


class MountainCarEnv(SimulatedEnv):
    """Gymnasium's MountainCar."""

    action_names = ("left", "wait", "right")

    def __init__(self, render_mode: str | None = None) -> None:
        low = np.array([LEFT_END, -TOP_SPEED], dtype=np.float32)
        high = np.array([RIGHT_END, TOP_SPEED], dtype=np.float32)
        space = spaces.Box(low, high, dtype=np.float32)
        super().__init__(Dynamics(SIZE, reset, step, observe), space, draw, render_mode)


TASK = Task(
    name="mountain-car",
    env_id="letitcook/MountainCar-v0",
    entry_point="letitcook.tasks.mountain_car:MountainCarEnv",
    summary="Swing a weak car up out of a valley.",
    actions=MountainCarEnv.action_names,
    wait=WAIT,
    durations=tuple(range(2, 21, 2)),
    horizon=200,
    finite=False,
)
