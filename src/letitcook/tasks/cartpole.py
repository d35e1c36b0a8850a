"""CartPole: keep a pole upright on a cart, now with a third action that leaves the cart alone.

Rules. Gymnasium's CartPole (Barto, Sutton and Anderson 1983): the same equations, step of 20 ms, limits and start
distribution. Actions: `left` and `right` push the cart with 10 N; `wait` applies no force. An episode ends when the
cart is more than 2.4 from the middle or the pole leans by more than 12 degrees; it is truncated after 200 steps.
Reward: +1 a step, so the task return is the length.

Observation: cart position, cart velocity, pole angle (radians), angular velocity, as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.core.jit import compiled, random_float
from letitcook.tasks.simulated_env import Canvas, Dynamics, Observation, Random, SimulatedEnv, State
from letitcook.tasks.task import Task

LEFT, RIGHT, WAIT = 0, 1, 2

GRAVITY = 9.8
POLE_MASS = 0.1
TOTAL_MASS = 1.1
HALF_LENGTH = 0.5
POLE_MOMENT = POLE_MASS * HALF_LENGTH
FORCE = 10.0
SECONDS = 0.02
POSITION_LIMIT = 2.4
ANGLE_LIMIT = 12 * 2 * math.pi / 360
SIZE = 4


@compiled
def reset(state: State, rng: Random) -> None:
    """Start near upright: all four uniform in ±0.05."""
    for i in range(SIZE):
        state[i] = -0.05 + 0.1 * random_float(rng)


@compiled
def step(state: State, action: int, rng: Random) -> tuple[float, bool]:
    """Push or wait for 20 ms (Euler's method, as Gymnasium does)."""
    force = 0.0
    if action == LEFT:
        force = -FORCE
    elif action == RIGHT:
        force = FORCE
    cos, sin = math.cos(state[2]), math.sin(state[2])
    push = (force + POLE_MOMENT * (state[3] * state[3]) * sin) / TOTAL_MASS
    angular = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cos * cos) / TOTAL_MASS))
    linear = push - POLE_MOMENT * angular * cos / TOTAL_MASS
    state[0] += SECONDS * state[1]
    state[1] += SECONDS * linear
    state[2] += SECONDS * state[3]
    state[3] += SECONDS * angular
    return 1.0, abs(state[0]) > POSITION_LIMIT or abs(state[2]) > ANGLE_LIMIT


@compiled
def observe(state: State, out: Observation) -> None:
    """Show the state as it is."""
    for i in range(SIZE):
        out[i] = state[i]


def draw(state: State) -> Any:
    """Draw cart, pole and track, 600 x 300."""
    canvas = Canvas(4.8, 2.4, scale=125, background="#f7f7f5")
    x, ground = state[0] + 2.4, 1.9
    canvas.box(0, ground, 4.8, ground + 0.02, "#9a9a94")
    canvas.box(x - 0.28, ground - 0.28, x + 0.28, ground, "#2b3a4a", radius=0.05)
    tip = x + 1.2 * math.sin(state[2]), ground - 0.24 - 1.2 * math.cos(state[2])
    canvas.line([(x, ground - 0.24), tip], width=0.08, colour="#d9793b")
    canvas.disc(*tip, radius=0.04, colour="#d9793b")
    canvas.disc(x, ground - 0.24, radius=0.06, colour="#f7f7f5")
    return canvas.pixels()


class CartPoleEnv(SimulatedEnv):
    """CartPole with a wait action."""

    action_names = ("left", "right", "wait")

    def __init__(self, render_mode: str | None = None) -> None:
        high = np.array([2 * POSITION_LIMIT, np.inf, 2 * ANGLE_LIMIT, np.inf], dtype=np.float32)
        space = spaces.Box(-high, high, dtype=np.float32)
        super().__init__(Dynamics(SIZE, reset, step, observe), space, draw, render_mode)


TASK = Task(
    name="cartpole",
    env_id="letitcook/CartPole-v0",
    entry_point="letitcook.tasks.cartpole:CartPoleEnv",
    summary="Keep a pole upright on a cart.",
    actions=CartPoleEnv.action_names,
    wait=WAIT,
    durations=tuple(range(2, 21, 2)),
    horizon=200,
    finite=False,
    return_per_step=1.0,
)
