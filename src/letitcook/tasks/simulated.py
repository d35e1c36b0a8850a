"""The simulated tasks for compiled loops: their kernels, and the size of what they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from letitcook.tasks import cartpole, mountain_car, pong

STATE_SIZE = 9
"""A state array of this length holds the state of any task."""


class Simulation(NamedTuple):
    """The kernels of a task; see `Dynamics`."""

    observation_size: int
    reset: Callable[..., Any]
    step: Callable[..., Any]
    observe: Callable[..., Any]


SIMULATED: dict[str, Simulation] = {
    cartpole.TASK.name: Simulation(4, cartpole.reset, cartpole.step, cartpole.observe),
    mountain_car.TASK.name: Simulation(2, mountain_car.reset, mountain_car.step, mountain_car.observe),
    pong.TASK.name: Simulation(8, pong.reset, pong.step, pong.observe),
}
"""The tasks that a compiled loop can run, by name."""
