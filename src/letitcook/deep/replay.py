"""Replay of durative transitions: a ring of decisions carried out, each from its first state to its last.

A row is what `Transition` says: the observation where the decision was taken, the decision, the rewards
`(task, waiting)` of the whole wait, `γ^elapsed`, the observation after it, and how the episode stood there.
Intra-option learning adds rows: a wait of `w` steps passes through `w + 1` states, and any shorter wait between two of
them is an experience as good as if it had been chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Transition
from letitcook.core.jit import compiled, random_below
from letitcook.core.struct import Struct

POSITION, FILLED = 0, 1
"""Places in `Replay.cursor`."""
NONE = -1
"""Stands for a row that there is not."""


class Replay(Struct):
    """The ring: column arrays of one length, and a cursor."""

    observation: NDArray[np.float32]
    decision: NDArray[np.int64]
    reward: NDArray[np.float32]
    """`(task, waiting)`, the task part discounted inside the wait."""
    discount: NDArray[np.float32]
    """`γ^elapsed`."""
    next_observation: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    z: NDArray[np.float32]
    """log10 λ of the episode; NaN in a row that no episode ran as it is, as those of intra-option learning."""
    explored: NDArray[np.bool_]
    """Whether the decision was a random one."""
    following: NDArray[np.int64]
    """Row of the next decision in the same episode; `NONE` if there is none yet."""
    cursor: NDArray[np.int64]
    """Where the next row goes, and how many rows are filled."""


class Batch(Struct):
    """Rows drawn from the ring."""

    observation: NDArray[np.float32]
    decision: NDArray[np.int64]
    reward: NDArray[np.float32]
    discount: NDArray[np.float32]
    """What the next value is worth: 0 where there is none."""
    past: NDArray[np.float32]
    """Share of an endless stream of rewards that falls into the decision, `1 - γ^elapsed`; all of it at the end."""
    next_observation: NDArray[np.float32]
    z: NDArray[np.float32]
    """log10 λ of the episode, or NaN."""


def new_replay(rows: int, observation_size: int) -> Replay:
    """Make an empty ring.

    >>> ring = new_replay(rows=3, observation_size=2)
    >>> for i in range(4):
    ...     x = np.full(2, i, dtype=np.float32)
    ...     _ = remember(ring, Transition(x, i, np.array([-1.0, -1.0]), 1, 1.0, x, False, False))
    >>> ring.decision.tolist(), ring.cursor.tolist()
    ([3, 1, 2], [1, 3])
    """
    return Replay(
        observation=np.zeros((rows, observation_size), dtype=np.float32),
        decision=np.zeros(rows, dtype=np.int64),
        reward=np.zeros((rows, 2), dtype=np.float32),
        discount=np.zeros(rows, dtype=np.float32),
        next_observation=np.zeros((rows, observation_size), dtype=np.float32),
        terminated=np.zeros(rows, dtype=np.bool_),
        truncated=np.zeros(rows, dtype=np.bool_),
        z=np.zeros(rows, dtype=np.float32),
        explored=np.zeros(rows, dtype=np.bool_),
        following=np.full(rows, NONE),
        cursor=np.zeros(2, dtype=np.int64),
    )


def new_batch(rows: int, observation_size: int) -> Batch:
    """Make arrays for `rows` drawn rows."""
    return Batch(
        observation=np.zeros((rows, observation_size), dtype=np.float32),
        decision=np.zeros(rows, dtype=np.int64),
        reward=np.zeros((rows, 2), dtype=np.float32),
        discount=np.zeros(rows, dtype=np.float32),
        past=np.zeros(rows, dtype=np.float32),
        next_observation=np.zeros((rows, observation_size), dtype=np.float32),
        z=np.zeros(rows, dtype=np.float32),
    )


@compiled
def remember(replay: Replay, transition: Transition) -> int:
    """Write one transition over the oldest; returns its row."""
    i = replay.cursor[POSITION]
    for j in range(len(transition.observation)):
        replay.observation[i, j] = transition.observation[j]
        replay.next_observation[i, j] = transition.next_observation[j]
    replay.decision[i] = transition.decision
    replay.reward[i, 0] = transition.reward[0]
    replay.reward[i, 1] = transition.reward[1]
    replay.discount[i] = transition.discount
    replay.terminated[i] = transition.terminated
    replay.truncated[i] = transition.truncated
    replay.following[i] = NONE
    replay.z[i] = np.nan
    rows = len(replay.decision)
    replay.cursor[POSITION] = (i + 1) % rows
    replay.cursor[FILLED] = min(replay.cursor[FILLED] + 1, rows)
    return int(i)


@compiled
def link(replay: Replay, row: int, before: int, z: float, explored: bool) -> None:
    """Say of a row which one was before it in its episode (or `NONE`), and how its decision came about."""
    replay.z[row] = z
    replay.explored[row] = explored
    if before != NONE:
        replay.following[before] = row


@compiled
def remember_intra_option(
    replay: Replay,
    path: NDArray[np.float32],
    rewards: NDArray[np.float64],
    elapsed: int,
    planned: int,
    terminated: bool,
    truncated: bool,
    gamma: float,
    waits: NDArray[np.int64],
    durations: NDArray[np.int64],
    rng: NDArray[np.uint64],
    wait_cost: float = 1.0,
) -> None:
    """Draw a shorter wait from inside one of `planned` steps, of which `elapsed` were run, and remember it.

    `path` holds the `elapsed + 1` observations, `rewards` those of the steps, `waits` the decisions that wait and
    `durations` the steps that each decision requests; a wait costs `wait_cost`. Which shorter waits count depends on
    the plan, not on how it went: to count those that reach past the episode's end only when it came, or only when it
    did not, would favour one outcome of a random world over the others.
    """
    first = random_below(rng, planned)
    decision = waits[random_below(rng, len(waits))]
    last = first + durations[decision]
    if last > planned or first >= elapsed:
        return
    last = min(last, elapsed)
    total, discount = 0.0, 1.0
    for t in range(first, last):
        total += discount * rewards[t]
        discount *= gamma
    at_end = last == elapsed
    ends, truncates = at_end and terminated, at_end and truncated
    reward = np.array([total, -wait_cost])
    remember(replay, Transition(path[first], decision, reward, last - first, discount, path[last], ends, truncates))


@compiled
def draw(
    replay: Replay, batch: Batch, rows: int, n_step: int, bootstrap_on_truncation: bool, rng: NDArray[np.uint64]
) -> None:
    """Draw `rows` transitions uniformly, with replacement, into `batch`.

    Each comes with up to `n_step - 1` decisions that followed it, as long as these were greedy: the rewards of all of
    them, and the observation at the end.
    """
    size = batch.observation.shape[1]
    for i in range(rows):
        at = random_below(rng, replay.cursor[FILLED])
        for j in range(size):
            batch.observation[i, j] = replay.observation[at, j]
        batch.decision[i] = replay.decision[at]
        batch.z[i] = replay.z[at]
        task, waiting, discount = replay.reward[at, 0], replay.reward[at, 1], replay.discount[at]
        for _ in range(n_step - 1):
            after = replay.following[at]
            if after == NONE or replay.explored[after]:
                break
            task += discount * replay.reward[after, 0]
            waiting += discount * replay.reward[after, 1]
            discount *= replay.discount[after]
            at = after
        for j in range(size):
            batch.next_observation[i, j] = replay.next_observation[at, j]
        batch.reward[i, 0] = task
        batch.reward[i, 1] = waiting
        ends = replay.terminated[at] or (replay.truncated[at] and not bootstrap_on_truncation)
        batch.discount[i] = np.float32(0.0) if ends else discount
        batch.past[i] = np.float32(1.0) if replay.terminated[at] else np.float32(1.0) - discount
