"""The simulated tasks by number, for compiled loops.

A kernel that takes functions as arguments cannot be cached on disk, so a compiled loop names its task by a number and
these kernels pass the call on.
"""

from __future__ import annotations

from letitcook.core.jit import compiled
from letitcook.tasks import cartpole, mountain_car, pong
from letitcook.tasks.simulated_env import Observation, Random, State

NUMBER_OF: dict[str, int] = {task.name: i for i, task in enumerate((cartpole.TASK, mountain_car.TASK, pong.TASK))}
"""The number of each task, by its name."""
OBSERVATION_SIZE = (4, 2, 8)
"""Length of the observation, by number."""
STATE_SIZE = 9
"""A state array of this length holds the state of any task."""


@compiled
def reset(task: int, state: State, rng: Random) -> None:
    """Write a first state."""
    if task == 0:
        cartpole.reset(state, rng)
    elif task == 1:
        mountain_car.reset(state, rng)
    else:
        pong.reset(state, rng)


@compiled
def step(task: int, state: State, action: int, rng: Random) -> tuple[float, bool]:
    """Move the state on by one primitive action; returns the reward and whether the episode has ended."""
    if task == 0:
        return cartpole.step(state, action, rng)
    if task == 1:
        return mountain_car.step(state, action, rng)
    return pong.step(state, action, rng)


@compiled
def observe(task: int, state: State, out: Observation) -> None:
    """Write what is seen of the state."""
    if task == 0:
        cartpole.observe(state, out)
    elif task == 1:
        mountain_car.observe(state, out)
    else:
        pong.observe(state, out)
