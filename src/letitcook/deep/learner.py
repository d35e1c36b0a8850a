"""The learner in machine code: decide, remember, learn. Both ways of driving it call these same kernels.

With `K` objectives in order of importance and one network for each, a transition of decision `u` gives the targets::

    y_k = r_k + γ^elapsed · T_k(s', u*_k)      u*_k = Lex-Argmax over objectives 0..k of the target networks T at s'

and `y_k = r_k` where the episode has ended. `r_k` is the objective's weighting of `(task, waiting)`. For one objective
this is DQN (Mnih et al. 2015); for two it is lexicographic DQN (Skalse et al. 2022).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.deep.network import (
    Scratch,
    adam,
    best_decision,
    forward,
    gradient,
    initial_parameters,
    new_scratch,
    parameter_count,
)
from letitcook.deep.replay import Batch, Replay, draw, new_batch, new_replay, remember
from letitcook.deep.settings import LDQNSettings
from letitcook.kernels import compiled, compiled_fast, random_below, random_float, seeded
from letitcook.lexicographic import lex_argmax_kernel
from letitcook.wmdp import Decisions

STEPS, DECISIONS, GRADIENT_STEPS, NEXT_UPDATE, EPISODE_STEP = range(5)
"""Places in `Learner.counters`; an episode step of -1 means that an episode has to begin."""
ROWS_AT_ONCE = 320
"""Targets of several gradient steps are computed together, up to about this many rows, while they do not change."""


class Rules(NamedTuple):
    """The settings as the kernels take them."""

    gamma: float
    learning_rate: float
    batch_size: int
    learning_starts: int
    update_interval: int
    gradient_steps: int
    target_interval: int
    polyak: float
    epsilon_start: float
    epsilon_end: float
    epsilon_steps: int
    slack: float
    follow: bool
    huber: bool
    double_q: bool
    bootstrap_on_truncation: bool
    sub_waits: int


class Networks(NamedTuple):
    """One row for each objective, `(K, parameters)`."""

    parameters: NDArray[np.float32]
    target: NDArray[np.float32]
    first_moment: NDArray[np.float32]
    second_moment: NDArray[np.float32]


class Room(NamedTuple):
    """Room to work in; holds nothing from one call to the next."""

    scratch: Scratch
    batch: Batch
    q: NDArray[np.float32]
    """Target networks' values of the next observations, `(K, rows, n)`."""
    q_choosing: NDArray[np.float32]
    """The networks' own, for double Q; else empty."""
    y: NDArray[np.float32]
    """Targets, `(K, rows)`."""


class Learner(NamedTuple):
    """All that a learner is; the arrays change in place."""

    rules: Rules
    sizes: NDArray[np.int64]
    networks: Networks
    replay: Replay
    weights: NDArray[np.float64]
    """The objective, `(K, 2)`."""
    bounds: NDArray[np.float64]
    """Lowest and highest target of each objective, `(K, 2)`."""
    durations: NDArray[np.int64]
    """Steps that each decision asks for."""
    waits: NDArray[np.int64]
    """The decisions that wait."""
    counters: NDArray[np.int64]
    rng: NDArray[np.uint64]
    room: Room


def new_learner(
    observation_size: int, decisions: Decisions, weights: NDArray[np.float64], settings: LDQNSettings, seed: int
) -> Learner:
    """Make a learner that knows nothing yet."""
    K, n = len(weights), decisions.n
    sizes = (observation_size, *settings.hidden, n)
    parameters = initial_parameters(sizes, K, np.random.default_rng([seed, 1]))
    at_once = 1 if settings.double_q else max(1, ROWS_AT_ONCE // settings.batch_size)
    rows = settings.batch_size * min(at_once, settings.gradient_steps, settings.target_interval)
    counters = np.zeros(5, dtype=np.int64)
    counters[NEXT_UPDATE], counters[EPISODE_STEP] = max(settings.learning_starts, 1), -1
    bounds = np.array([[-np.inf, np.inf]] * K)
    if settings.clip_targets is not None:
        bounds = weights @ np.array(settings.clip_targets)  # weights are never negative
    return Learner(
        rules=Rules(
            gamma=float(settings.gamma),
            learning_rate=float(settings.learning_rate),
            batch_size=int(settings.batch_size),
            learning_starts=int(settings.learning_starts),
            update_interval=int(settings.update_interval),
            gradient_steps=int(settings.gradient_steps),
            target_interval=int(settings.target_interval),
            polyak=float(settings.polyak),
            epsilon_start=float(settings.epsilon_start),
            epsilon_end=float(settings.epsilon_end),
            epsilon_steps=int(settings.epsilon_steps),
            slack=float(settings.slack),
            follow=settings.bootstrap == "lexicographic",
            huber=settings.loss == "huber",
            double_q=bool(settings.double_q),
            bootstrap_on_truncation=bool(settings.bootstrap_on_truncation),
            sub_waits=int(settings.sub_waits),
        ),
        sizes=np.array(sizes, dtype=np.int64),
        networks=Networks(
            parameters=parameters,
            target=parameters.copy(),
            first_moment=np.zeros((K, parameter_count(sizes)), dtype=np.float32),
            second_moment=np.zeros((K, parameter_count(sizes)), dtype=np.float32),
        ),
        replay=new_replay(settings.buffer_size, observation_size),
        weights=np.ascontiguousarray(weights),
        bounds=bounds,
        durations=decisions.durations_of,
        waits=np.array([decisions.wait, *range(len(decisions.actions), n)], dtype=np.int64),
        counters=counters,
        rng=seeded(seed),
        room=Room(
            scratch=new_scratch(sizes, K, rows),
            batch=new_batch(rows, observation_size),
            q=np.zeros((K, rows, n), dtype=np.float32),
            q_choosing=np.zeros((K, rows if settings.double_q else 0, n), dtype=np.float32),
            y=np.zeros((K, rows), dtype=np.float32),
        ),
    )


@compiled
def decide(learner: Learner, observation: NDArray[np.float32]) -> int:
    """Return a random decision with chance ε, else the greedy one."""
    rules = learner.rules
    done = min(1.0, learner.counters[STEPS] / rules.epsilon_steps)
    epsilon = rules.epsilon_start + done * (rules.epsilon_end - rules.epsilon_start)
    if random_float(learner.rng) < epsilon:
        return random_below(learner.rng, learner.sizes[-1])
    return greedy(learner, observation)


@compiled
def greedy(learner: Learner, observation: NDArray[np.float32]) -> int:
    """Return the lexicographically best decision."""
    scratch = learner.room.scratch
    return best_decision(
        learner.networks.parameters, learner.sizes, observation, learner.rules.slack, scratch.row, scratch.q
    )


@compiled
def take_in(
    learner: Learner,
    observation: NDArray[np.float32],
    decision: int,
    task_reward: float,
    waiting_reward: float,
    elapsed: int,
    discount: float,
    next_observation: NDArray[np.float32],
    terminated: bool,
    truncated: bool,
) -> int:
    """Remember a decision that was carried out and count it; returns how many gradient steps are due by now."""
    remember(
        learner.replay,
        observation,
        decision,
        task_reward,
        waiting_reward,
        discount,
        next_observation,
        terminated,
        truncated,
    )
    learner.counters[STEPS] += elapsed
    learner.counters[DECISIONS] += 1
    due = 0
    while learner.counters[STEPS] >= learner.counters[NEXT_UPDATE]:
        learner.counters[NEXT_UPDATE] += learner.rules.update_interval
        due += learner.rules.gradient_steps
    return due


@compiled
def learn(learner: Learner, steps: int) -> None:
    """Take gradient steps on batches from the replay."""
    rules, networks, room = learner.rules, learner.networks, learner.room
    size = rules.batch_size
    done = 0
    while done < steps:
        t = learner.counters[GRADIENT_STEPS]
        block = min(room.y.shape[1] // size, steps - done, rules.target_interval - t % rules.target_interval)
        draw(learner.replay, room.batch, block * size, rules.bootstrap_on_truncation, learner.rng)
        targets(learner, block * size)
        for k in range(len(learner.weights)):
            for i in range(block):
                rows = slice(i * size, (i + 1) * size)
                gradient(
                    networks.parameters[k],
                    learner.sizes,
                    room.batch.observation[rows],
                    room.batch.decision[rows],
                    room.y[k, rows],
                    rules.huber,
                    room.scratch,
                )
                adam(
                    networks.parameters[k],
                    room.scratch.gradient,
                    networks.first_moment[k],
                    networks.second_moment[k],
                    rules.learning_rate,
                    t + i + 1,
                )
        done += block
        learner.counters[GRADIENT_STEPS] += block
        if learner.counters[GRADIENT_STEPS] % rules.target_interval == 0:
            follow(networks.target, networks.parameters, np.float32(rules.polyak))


@compiled
def targets(learner: Learner, rows: int) -> None:
    """Write the targets `y` of the first `rows` rows of the batch."""
    rules, networks, room = learner.rules, learner.networks, learner.room
    next_observation = room.batch.next_observation[:rows]
    K, n = len(learner.weights), learner.sizes[-1]
    for k in range(K):
        forward(networks.target[k], learner.sizes, next_observation, room.scratch, room.q[k, :rows])
        if rules.double_q:
            forward(networks.parameters[k], learner.sizes, next_observation, room.scratch, room.q_choosing[k, :rows])
    choosing = room.q_choosing if rules.double_q else room.q
    row = room.scratch.q
    for i in range(rows):
        for k in range(K):
            for u in range(n):
                row[k, u] = choosing[k, i, u]
        followed = lex_argmax_kernel(row, rules.slack) if K > 1 else row[0].argmax()
        for k in range(K):
            if k == K - 1 or rules.follow:
                best = followed
            else:
                best = row[0].argmax() if k == 0 else lex_argmax_kernel(row[: k + 1], rules.slack)
            task, waiting = room.batch.reward[i, 0], room.batch.reward[i, 1]
            y = learner.weights[k, 0] * task + learner.weights[k, 1] * waiting
            y += room.batch.discount[i] * room.q[k, i, best]
            room.y[k, i] = min(max(y, learner.bounds[k, 0]), learner.bounds[k, 1])


@compiled_fast
def follow(target: NDArray[np.float32], parameters: NDArray[np.float32], polyak: np.float32) -> None:
    """Move the target networks towards the networks."""
    for k in range(target.shape[0]):
        for i in range(target.shape[1]):
            if polyak == 1:
                target[k, i] = parameters[k, i]
            else:
                target[k, i] += polyak * (parameters[k, i] - target[k, i])
