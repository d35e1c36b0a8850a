"""Controllers that people write by hand, as base policies on tasks outside the paper: the suite `zoo` wraps them.

letitcook wrap --env Pendulum-v1 --policy letitcook.tasks.controllers:swing --wait hold --durations 2,4,8 --steps 0

LunarLander needs `pip install 'gymnasium[box2d]'`, InvertedPendulum and Reacher `pip install 'gymnasium[mujoco]'`.
docs/wrap.md says what waiting saves around each.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def lander(state: Any) -> int:
    """LunarLander-v3: the heuristic that comes with Gymnasium."""
    x, y, vx, vy, angle, spin, left, right = (float(number) for number in state)
    lean = float(np.clip(0.5 * x + vx, -0.4, 0.4))
    turn = 0.5 * (lean - angle) - spin
    rise = 0.5 * (0.55 * abs(x) - y) - 0.5 * vy
    if left or right:
        turn, rise = 0.0, -0.5 * vy
    if rise > abs(turn) and rise > 0.05:
        return 2
    return 3 if turn < -0.05 else 1 if turn > 0.05 else 0


def balance(state: Any) -> Any:
    """InvertedPendulum-v5: a linear controller of cart and pole."""
    force = state[0] + 12.0 * state[1] + 1.5 * state[2] + 3.0 * state[3]
    return np.clip([force], -3.0, 3.0).astype(np.float32)


def reach(state: Any) -> Any:
    """Reacher-v5: the transposed Jacobian of the arm times the way to the target, and a brake."""
    cos1, cos2, sin1, sin2, _, _, spin1, spin2, dx, dy = (float(number) for number in state)
    cos12, sin12 = cos1 * cos2 - sin1 * sin2, sin1 * cos2 + cos1 * sin2
    upper, lower = (-0.1 * sin1, 0.1 * cos1), (-0.11 * sin12, 0.11 * cos12)
    way = (-dx, -dy)
    torque1 = 30.0 * ((upper[0] + lower[0]) * way[0] + (upper[1] + lower[1]) * way[1]) - 0.03 * spin1
    torque2 = 30.0 * (lower[0] * way[0] + lower[1] * way[1]) - 0.03 * spin2
    return np.clip([torque1, torque2], -1.0, 1.0).astype(np.float32)


def swing(state: Any) -> Any:
    """Pendulum-v1: pump energy until the pendulum is nearly up, then balance it."""
    cos, sin, spin = (float(number) for number in state)
    if cos > 0.9:
        torque = -10.0 * np.arctan2(sin, cos) - 2.0 * spin
    else:
        energy = spin**2 / 6.0 + 5.0 * (cos - 1.0)
        torque = -2.0 * energy * spin if abs(spin) > 1e-3 else 2.0
    return np.clip([torque], -2.0, 2.0).astype(np.float32)


def push(state: Any) -> Any:
    """MountainCarContinuous-v0: full power in the direction of travel."""
    return np.array([1.0 if state[1] >= 0.0 else -1.0], dtype=np.float32)


def pump(state: Any) -> int:
    """Acrobot-v1: a torque in the direction in which the lower link swings pumps energy into the arm."""
    return 2 if state[5] > 0.0 else 0


def pole(state: Any) -> int:
    """CartPole-v1: push to the side to which the pole leans and falls, and the cart away from the edges."""
    return int(0.05 * state[0] + 0.2 * state[1] + state[2] + 0.5 * state[3] > 0.0)


def no_force(cartpole: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """CartPole-v1 has no action that waits: let one step of the unwrapped environment pass without a push."""
    force, cartpole.force_mag = cartpole.force_mag, 0.0
    try:
        step: tuple[Any, float, bool, bool, dict[str, Any]] = cartpole.step(0)
        return step
    finally:
        cartpole.force_mag = force
