"""How the learner learns: batches from the replay, targets, gradient steps.

With `K` objectives in order of importance and one network for each, a transition of decision `u` gives the targets::

    y_k = r_k + γ^elapsed · T_k(s', u*_k)      u*_k = Lex-Argmax over objectives 0..k of the target networks T at s'

and `y_k = r_k` where the episode has ended. `r_k` is the objective's weighting of `(task, waiting)`. For one objective
this is DQN (Mnih et al. 2015); for two it is lexicographic DQN (Skalse et al. 2022).

Beyond the paper, where networks are conditioned on a trade-off λ, every objective follows the decision with the
greatest `T_0 + λ T_1`. Of several task networks the lowest counts in the targets (Fujimoto et al. 2018), from scratch
the more so the further the training has come: at the beginning it would keep a learner from trying what it does not
know. A part of each batch is imagined where the passive world is known (`passive.py`); where it is not, targets look
further ahead.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from letitcook.deep.adaptation import ALIVE, TASK, WAITING, typical_reward
from letitcook.deep.inputs import write_input
from letitcook.deep.learner import GRADIENT_STEPS, STEPS, Learner, choose
from letitcook.deep.network import adam, forward, gradient
from letitcook.deep.passive import imagine, is_trusted, learn_steps
from letitcook.deep.replay import draw
from letitcook.deep.trade_off import draw_trade_off
from letitcook.kernels import compiled, compiled_fast
from letitcook.lexicographic import lex_argmax_kernel


@compiled
def learn(learner: Learner, steps: int) -> None:
    """Take gradient steps on batches from the replay."""
    rules, networks, room = learner.rules, learner.networks, learner.room
    size = rules.batch_size
    done = 0
    while done < steps:
        t = learner.counters[GRADIENT_STEPS]
        block = min(room.y.shape[1] // size, steps - done, rules.target_interval - t % rules.target_interval)
        known = rules.imagined > 0 and is_trusted(learner.passive)
        ahead = 1 if known else rules.ahead
        draw(learner.replay, room.batch, block * size, ahead, rules.bootstrap_on_truncation, learner.rng)
        done_share = min(1.0, learner.counters[STEPS] / rules.learning_rate_steps)
        rate = rules.learning_rate * (1.0 - done_share * (1.0 - rules.learning_rate_end))
        if rules.imagined > 0:
            typical = typical_reward(learner.measures)
            learn_steps(learner.passive, learner.steps, learner.inputs, typical, block, rate, room.passive, learner.rng)
            for i in range(block if known else 0):
                imagine(
                    learner.passive,
                    learner.inputs,
                    typical,
                    room.batch,
                    i * size,
                    rules.imagined,
                    learner.waits,
                    learner.durations,
                    rules.gamma,
                    room.passive,
                    learner.rng,
                )
        write_inputs(learner, block * size, ahead > 1)
        targets(learner, block * size, rules.caution + (1.0 - rules.caution) * done_share)
        for k in range(len(learner.weights)):
            for i in range(block):
                rows = slice(i * size, (i + 1) * size)
                gradient(
                    networks.parameters[k],
                    learner.sizes,
                    room.x[rows],
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
                    rate,
                    t + i + 1,
                )
        done += block
        learner.counters[GRADIENT_STEPS] += block
        if rules.average:
            over = min(rules.average, learner.counters[GRADIENT_STEPS])
            follow(networks.average, networks.parameters, np.float32(block / over))
        if learner.counters[GRADIENT_STEPS] % rules.target_interval == 0:
            follow(networks.target, networks.parameters, np.float32(rules.polyak))


@compiled
def write_inputs(learner: Learner, rows: int, as_lived: bool) -> None:
    """Write what the networks see of the first `rows` rows of the batch.

    Each has the trade-off of its episode if it was drawn `as_lived`, with decisions that followed it; else any.
    """
    room = learner.room
    for i in range(rows):
        write_input(learner.inputs, room.batch.observation[i], room.x[i])
        write_input(learner.inputs, room.batch.next_observation[i], room.next_x[i])
        if learner.rules.conditioned:
            z = float(room.batch.z[i])
            if not as_lived or math.isnan(z):
                z = draw_trade_off(learner.trade_offs, learner.rng)
            room.x[i, -1] = room.next_x[i, -1] = z
            room.lam[i] = 10.0**z


@compiled
def targets(learner: Learner, rows: int, caution: float) -> None:
    """Write the targets `y` of the first `rows` rows of the batch; with `caution` 1 the lowest task network counts."""
    rules, networks, room = learner.rules, learner.networks, learner.room
    next_x, worth = room.next_x[:rows], learner.measures.worth
    N, n = len(learner.weights), learner.sizes[-1]
    K = N - rules.task_networks + 1
    for k in range(N):
        forward(networks.target[k], learner.sizes, next_x, room.scratch, room.q[k, :rows])
        if rules.double_q:
            forward(networks.parameters[k], learner.sizes, next_x, room.scratch, room.q_choosing[k, :rows])
    choosing = room.q_choosing if rules.double_q else room.q
    row = room.scratch.q
    for i in range(rows):
        for k in range(N):
            for u in range(n):
                row[k, u] = choosing[k, i, u]
        followed = choose(row, rules, room.lam[i], learner.bounds[0, 1])
        if N > K:
            room.q[0, i, followed] = cautious(room.q, i, followed, K, caution)
        task = worth[TASK] * (room.batch.reward[i, 0] - worth[ALIVE] * room.batch.past[i])
        waiting = worth[WAITING] * room.batch.reward[i, 1]
        for k in range(N):
            if k == K - 1 or rules.follow or rules.conditioned:
                best = followed
            else:
                best = row[0].argmax() if k == 0 else lex_argmax_kernel(row[: k + 1], rules.slack)
            y = learner.weights[k, 0] * task + learner.weights[k, 1] * waiting
            y += room.batch.discount[i] * room.q[k if k < K else 0, i, best]
            room.y[k, i] = min(max(y, learner.bounds[k, 0]), learner.bounds[k, 1])


@compiled
def cautious(q: NDArray[np.float32], row: int, decision: int, K: int, caution: float) -> float:
    """Return the task value of a decision: between the mean of the task networks, at no caution, and the lowest."""
    lowest = total = float(q[0, row, decision])
    for k in range(K, len(q)):
        lowest = min(lowest, q[k, row, decision])
        total += q[k, row, decision]
    return caution * lowest + (1.0 - caution) * total / (len(q) - K + 1)


@compiled_fast
def follow(target: NDArray[np.float32], parameters: NDArray[np.float32], polyak: np.float32) -> None:
    """Move the target networks, or the average, towards the networks."""
    for k in range(target.shape[0]):
        for i in range(target.shape[1]):
            if polyak == 1:
                target[k, i] = parameters[k, i]
            else:
                target[k, i] += polyak * (parameters[k, i] - target[k, i])
