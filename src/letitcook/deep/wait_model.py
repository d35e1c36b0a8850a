"""The wait model: one step of waiting, learned beside the values and rolled out into waits of any length.

While an agent waits, the environment goes on without it. So a model of a single step, applied again and again, predicts
every wait from every state: the rewards, where it ends, and whether the episode ends in it. The learner learns from
such rollouts as from real waits (Dyna; Sutton 1991), but only while the model is right about steps that it has not
learned from yet: where waiting has random outcomes, a model of their mean would mislead.

The network takes an observation on the common scale of `normalisation.py` and gives the change in it (each number in
units of its typical change), the step's reward (in units of a typical one), and whether the episode ends (0 or 1).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from letitcook.core.jit import compiled, random_below
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct
from letitcook.deep.network import (
    Scratch,
    forward_pointer,
    forward_row,
    gradient_of_all_pointer,
    initial_parameters,
    new_scratch,
)
from letitcook.deep.normalisation import REACH, Inputs, write_scaled
from letitcook.deep.replay import FILLED, Batch, Replay

HIDDEN = (64, 64)
ENOUGH = 50
"""Steps that must have been seen before the model learns."""
TRIALS = 500
"""New steps over which its errors are averaged; before that many it is not trusted."""
TRUSTED = 0.1
"""Greatest error, as a share of a typical change, with which it may be used."""
PATIENCE = 10_000
"""New steps after which a model that is not trusted takes one gradient step in place of several."""
SEEN, TRIED, UPDATES = range(3)
"""Places in `WaitModel.counters`."""


class WaitModel(Struct):
    """The model; the arrays change in place."""

    sizes: NDArray[np.int64]
    parameters: NDArray[np.float32]
    first_moment: NDArray[np.float32]
    second_moment: NDArray[np.float32]
    squares: NDArray[np.float64]
    """Mean square of the change in each number of an observation, on its own scale."""
    errors: NDArray[np.float64]
    """Mean square of the errors on new steps: in each change, and in the reward."""
    counters: NDArray[np.int64]


class WaitModelWorkspace(Struct):
    """Arrays to work in; holds nothing from one call to the next."""

    forward: Pointer
    gradient: Pointer
    scratch: Scratch
    x: NDArray[np.float32]
    y: NDArray[np.float32]
    out: NDArray[np.float32]
    units: NDArray[np.float64]
    """What one unit of each output is worth: of the changes on the common scale, and of the reward."""
    row: NDArray[np.int64]
    """Row of the batch that each rollout belongs to."""
    left: NDArray[np.int64]
    """Steps that it still has."""


def new_wait_model(observation_size: int, seed: int) -> WaitModel:
    """Make a model that knows nothing yet."""
    sizes = (observation_size, *HIDDEN, observation_size + 2)
    parameters = initial_parameters(sizes, 1, np.random.default_rng([seed, 3]))[0]
    return WaitModel(
        sizes=np.array(sizes, dtype=np.int64),
        parameters=parameters,
        first_moment=np.zeros_like(parameters),
        second_moment=np.zeros_like(parameters),
        squares=np.zeros(observation_size),
        errors=np.zeros(observation_size + 1),
        counters=np.zeros(3, dtype=np.int64),
    )


def new_wait_model_workspace(wait_model: WaitModel, rows: int) -> WaitModelWorkspace:
    """Make arrays for batches of `rows` rows."""
    inputs, outputs = int(wait_model.sizes[0]), int(wait_model.sizes[-1])
    scratch = new_scratch(wait_model.sizes.tolist(), 1, rows)
    return WaitModelWorkspace(
        forward=forward_pointer(scratch),
        gradient=gradient_of_all_pointer(scratch),
        scratch=scratch,
        x=np.zeros((rows, inputs), dtype=np.float32),
        y=np.zeros((rows, outputs), dtype=np.float32),
        out=np.zeros((rows, outputs), dtype=np.float32),
        units=np.ones(inputs + 1),
        row=np.zeros(rows, dtype=np.int64),
        left=np.zeros(rows, dtype=np.int64),
    )


@compiled
def measure_units(wait_model: WaitModel, inputs: Inputs, typical_reward: float, units: NDArray[np.float64]) -> None:
    """Write what one unit of each output is worth."""
    for j in range(len(wait_model.squares)):
        change = math.sqrt(wait_model.squares[j]) * inputs.scale[j]
        units[j] = change if change > 0.0 else 1.0
    units[-1] = typical_reward


@compiled
def write_step(
    steps: Replay,
    row: int,
    inputs: Inputs,
    units: NDArray[np.float64],
    x: NDArray[np.float32],
    y: NDArray[np.float32],
) -> None:
    """Write what the model sees of a step, and what it should say."""
    size = len(x)
    write_scaled(inputs, steps.observation[row], x)
    for j in range(size):
        y[j] = (steps.next_observation[row, j] - steps.observation[row, j]) * inputs.scale[j] / units[j]
    y[size] = steps.reward[row, 0] / units[size]
    y[size + 1] = 1.0 if steps.terminated[row] else 0.0


@compiled
def assess_step(
    wait_model: WaitModel,
    steps: Replay,
    row: int,
    inputs: Inputs,
    typical_reward: float,
    workspace: WaitModelWorkspace,
) -> None:
    """Hold what the model says of a new step against how it went, before it learns from it."""
    counters, size = wait_model.counters, len(wait_model.squares)
    counters[SEEN] += 1
    for j in range(size):
        change = float(steps.next_observation[row, j]) - steps.observation[row, j]
        wait_model.squares[j] += (change**2 - wait_model.squares[j]) / counters[SEEN]
    if counters[UPDATES] == 0:
        return
    measure_units(wait_model, inputs, typical_reward, workspace.units)
    write_step(steps, row, inputs, workspace.units, workspace.x[0], workspace.y[0])
    forward_row(wait_model.parameters, wait_model.sizes, workspace.x[0], workspace.scratch.row, workspace.scratch.q[0])
    counters[TRIED] += 1
    for j in range(size + 1):
        error = workspace.scratch.q[0, j] - workspace.y[0, j]
        wait_model.errors[j] += (error**2 - wait_model.errors[j]) / min(counters[TRIED], TRIALS)


@compiled
def is_trusted(wait_model: WaitModel) -> bool:
    """Return whether the model is right about new steps."""
    trusted = wait_model.counters[TRIED] >= TRIALS
    for error in wait_model.errors:
        trusted = trusted and error <= TRUSTED**2
    return bool(trusted)


@compiled
def fit_wait_model(
    wait_model: WaitModel,
    steps: Replay,
    inputs: Inputs,
    typical_reward: float,
    updates: int,
    rate: float,
    workspace: WaitModelWorkspace,
    rng: NDArray[np.uint64],
) -> None:
    """Take gradient steps on batches of steps that were run; few, if that has not helped for long."""
    if steps.cursor[FILLED] < ENOUGH:
        return
    if wait_model.counters[TRIED] >= PATIENCE and not is_trusted(wait_model):
        updates = 1
    measure_units(wait_model, inputs, typical_reward, workspace.units)
    for _ in range(updates):
        for i in range(len(workspace.x)):
            write_step(
                steps, random_below(rng, steps.cursor[FILLED]), inputs, workspace.units, workspace.x[i], workspace.y[i]
            )
        parameters, scratch = wait_model.parameters, workspace.scratch
        call(workspace.gradient, (parameters, wait_model.sizes, workspace.x, workspace.y, workspace.out, scratch))
        wait_model.counters[UPDATES] += 1
        first, second = wait_model.first_moment, wait_model.second_moment
        call(scratch.adam, (parameters, scratch.gradient, first, second, rate, wait_model.counters[UPDATES]))


@compiled
def roll_out(
    wait_model: WaitModel,
    inputs: Inputs,
    typical_reward: float,
    batch: Batch,
    first: int,
    rows: int,
    waits: NDArray[np.int64],
    durations: NDArray[np.int64],
    gamma: float,
    workspace: WaitModelWorkspace,
    rng: NDArray[np.uint64],
    wait_cost: float = 1.0,
) -> None:
    """Turn `rows` rows of a batch, from the `first` on, into waits of random length from the same observations.

    A wait costs `wait_cost` in the second objective.
    """
    size, running, workspace_x = len(wait_model.squares), rows, workspace.x
    measure_units(wait_model, inputs, typical_reward, workspace.units)
    for c in range(rows):
        i = first + c
        batch.decision[i] = waits[random_below(rng, len(waits))]
        batch.reward[i, 0], batch.reward[i, 1], batch.discount[i] = 0.0, -wait_cost, 1.0
        workspace.row[c], workspace.left[c] = i, durations[batch.decision[i]]
        write_scaled(inputs, batch.observation[i], workspace_x[c])
    while running > 0:
        x, out = workspace_x[:running], workspace.out[:running]
        call(workspace.forward, (wait_model.parameters, wait_model.sizes, x, workspace.scratch, out))
        for c in range(running - 1, -1, -1):
            i, step = workspace.row[c], workspace.out[c]
            batch.reward[i, 0] += batch.discount[i] * step[size] * workspace.units[size]
            batch.discount[i] *= gamma
            workspace.left[c] -= 1
            for j in range(size):  # never further than twice the range that was seen
                moved = workspace_x[c, j] + step[j] * workspace.units[j]
                workspace_x[c, j] = min(max(moved, -2.0 * REACH), 2.0 * REACH)
            ended = step[size + 1] > 0.5
            if not ended and workspace.left[c] > 0:
                continue
            for j in range(size):
                batch.next_observation[i, j] = workspace_x[c, j] / inputs.scale[j] + inputs.mean[j]
            batch.past[i] = 1.0 if ended else 1.0 - batch.discount[i]
            if ended:
                batch.discount[i] = 0.0
            running -= 1  # the last one moves here
            workspace.row[c], workspace.left[c] = workspace.row[running], workspace.left[running]
            for j in range(size):
                workspace_x[c, j] = workspace_x[running, j]
