"""What happens while waiting: a model of one passive step, learned beside the values.

While an agent waits, the world goes on without it. So a model of a single step, applied again and again, tells of every
wait from every state: the rewards, where it ends, and whether the episode ends in it. The learner imagines such waits
and learns from them as if they had been lived. It does so only while the model is right about steps that it has
not learned from yet: where the passive world is random, a model of its mean would tell tales.

The network takes an observation on the common scale of `adaptation.py` and gives the change in it (each number in
units of its typical change), the step's reward (in units of a typical one), and whether the episode ends (0 or 1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.deep.adaptation import REACH
from letitcook.deep.inputs import Inputs, write_scaled
from letitcook.deep.network import (
    Scratch,
    adam,
    forward,
    forward_row,
    gradient_of_all,
    initial_parameters,
    new_scratch,
)
from letitcook.deep.replay import FILLED, Batch, Replay
from letitcook.kernels import compiled, random_below

HIDDEN = (64, 64)
ENOUGH = 50
"""Steps that must have been seen before the model learns."""
TRIALS = 500
"""New steps over which its errors are averaged; before that many it is not trusted."""
TRUSTED = 0.1
"""Greatest error, as a share of a typical change, with which it may be asked."""
PATIENCE = 10_000
"""New steps after which a model that is not trusted takes one gradient step in place of several."""
SEEN, TRIED, UPDATES = range(3)
"""Places in `Passive.counters`."""


class Passive(NamedTuple):
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


class PassiveRoom(NamedTuple):
    """Room to work in; holds nothing from one call to the next."""

    scratch: Scratch
    x: NDArray[np.float32]
    y: NDArray[np.float32]
    out: NDArray[np.float32]
    units: NDArray[np.float64]
    """What one unit of each output is worth: of the changes on the common scale, and of the reward."""
    row: NDArray[np.int64]
    """Row of the batch that each imagined wait belongs to."""
    left: NDArray[np.int64]
    """Steps that it still has."""


def new_passive(observation_size: int, seed: int) -> Passive:
    """Make a model that knows nothing yet."""
    sizes = (observation_size, *HIDDEN, observation_size + 2)
    parameters = initial_parameters(sizes, 1, np.random.default_rng([seed, 3]))[0]
    return Passive(
        sizes=np.array(sizes, dtype=np.int64),
        parameters=parameters,
        first_moment=np.zeros_like(parameters),
        second_moment=np.zeros_like(parameters),
        squares=np.zeros(observation_size),
        errors=np.zeros(observation_size + 1),
        counters=np.zeros(3, dtype=np.int64),
    )


def new_passive_room(passive: Passive, rows: int) -> PassiveRoom:
    """Make room for batches of `rows` rows."""
    inputs, outputs = int(passive.sizes[0]), int(passive.sizes[-1])
    return PassiveRoom(
        scratch=new_scratch(passive.sizes.tolist(), 1, rows),
        x=np.zeros((rows, inputs), dtype=np.float32),
        y=np.zeros((rows, outputs), dtype=np.float32),
        out=np.zeros((rows, outputs), dtype=np.float32),
        units=np.ones(inputs + 1),
        row=np.zeros(rows, dtype=np.int64),
        left=np.zeros(rows, dtype=np.int64),
    )


@compiled
def measure_units(passive: Passive, inputs: Inputs, typical_reward: float, units: NDArray[np.float64]) -> None:
    """Write what one unit of each output is worth."""
    for j in range(len(passive.squares)):
        change = math.sqrt(passive.squares[j]) * inputs.scale[j]
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
def try_step(
    passive: Passive,
    steps: Replay,
    row: int,
    inputs: Inputs,
    typical_reward: float,
    room: PassiveRoom,
) -> None:
    """Hold what the model says of a new step against how it went, before it learns from it."""
    counters, size = passive.counters, len(passive.squares)
    counters[SEEN] += 1
    for j in range(size):
        change = float(steps.next_observation[row, j]) - steps.observation[row, j]
        passive.squares[j] += (change**2 - passive.squares[j]) / counters[SEEN]
    if counters[UPDATES] == 0:
        return
    measure_units(passive, inputs, typical_reward, room.units)
    write_step(steps, row, inputs, room.units, room.x[0], room.y[0])
    forward_row(passive.parameters, passive.sizes, room.x[0], room.scratch.row, room.scratch.q[0])
    counters[TRIED] += 1
    for j in range(size + 1):
        error = room.scratch.q[0, j] - room.y[0, j]
        passive.errors[j] += (error**2 - passive.errors[j]) / min(counters[TRIED], TRIALS)


@compiled
def is_trusted(passive: Passive) -> bool:
    """Say whether the model is right about new steps."""
    return bool(passive.counters[TRIED] >= TRIALS and passive.errors.max() <= TRUSTED**2)


@compiled
def learn_steps(
    passive: Passive,
    steps: Replay,
    inputs: Inputs,
    typical_reward: float,
    updates: int,
    rate: float,
    room: PassiveRoom,
    rng: NDArray[np.uint64],
) -> None:
    """Take gradient steps on batches of steps that were lived; few, if that has not helped for long."""
    if steps.cursor[FILLED] < ENOUGH:
        return
    if passive.counters[TRIED] >= PATIENCE and not is_trusted(passive):
        updates = 1
    measure_units(passive, inputs, typical_reward, room.units)
    for _ in range(updates):
        for i in range(len(room.x)):
            write_step(steps, random_below(rng, steps.cursor[FILLED]), inputs, room.units, room.x[i], room.y[i])
        gradient_of_all(passive.parameters, passive.sizes, room.x, room.y, room.out, room.scratch)
        passive.counters[UPDATES] += 1
        adam(
            passive.parameters,
            room.scratch.gradient,
            passive.first_moment,
            passive.second_moment,
            rate,
            passive.counters[UPDATES],
        )


@compiled
def imagine(
    passive: Passive,
    inputs: Inputs,
    typical_reward: float,
    batch: Batch,
    first: int,
    rows: int,
    waits: NDArray[np.int64],
    durations: NDArray[np.int64],
    gamma: float,
    room: PassiveRoom,
    rng: NDArray[np.uint64],
) -> None:
    """Turn `rows` rows of a batch, from the `first` on, into waits of random length from the same observations."""
    size, running, room_x = len(passive.squares), rows, room.x
    measure_units(passive, inputs, typical_reward, room.units)
    for c in range(rows):
        i = first + c
        batch.decision[i] = waits[random_below(rng, len(waits))]
        batch.reward[i, 0], batch.reward[i, 1], batch.discount[i] = 0.0, -1.0, 1.0
        room.row[c], room.left[c] = i, durations[batch.decision[i]]
        write_scaled(inputs, batch.observation[i], room_x[c])
    while running > 0:
        forward(passive.parameters, passive.sizes, room_x[:running], room.scratch, room.out[:running])
        for c in range(running - 1, -1, -1):
            i, out = room.row[c], room.out[c]
            batch.reward[i, 0] += batch.discount[i] * out[size] * room.units[size]
            batch.discount[i] *= gamma
            room.left[c] -= 1
            for j in range(size):  # never further than twice the range that was seen
                room_x[c, j] = min(max(room_x[c, j] + out[j] * room.units[j], -2.0 * REACH), 2.0 * REACH)
            ended = out[size + 1] > 0.5
            if not ended and room.left[c] > 0:
                continue
            for j in range(size):
                batch.next_observation[i, j] = room_x[c, j] / inputs.scale[j] + inputs.mean[j]
            batch.past[i] = 1.0 if ended else 1.0 - batch.discount[i]
            if ended:
                batch.discount[i] = 0.0
            running -= 1  # the last one moves here
            room.row[c], room.left[c] = room.row[running], room.left[running]
            for j in range(size):
                room_x[c, j] = room_x[running, j]
