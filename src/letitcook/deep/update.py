"""How the learner learns: batches from the replay, targets, gradient steps.

With `K` objectives in order of importance and one network for each, a transition of decision `u` gives the targets::

    y_k = r_k + γ^elapsed · T_k(s', u*_k)      u*_k = Lex-Argmax over objectives 0..k of the target networks T at s'

and `y_k = r_k` where the episode has ended. `r_k` is the objective's weighting of `(task, waiting)`. For one objective
this is DQN (Mnih et al. 2015); for two it is lexicographic DQN (Skalse et al. 2022). `lexicographic_targets` is this
rule.

Beyond the paper, networks conditioned on λ follow the decision with the greatest `T_0 + λ T_1` for every objective
(`conditioned_targets`). Of several task networks the lowest counts in the targets (clipped double Q; Fujimoto et al.
2018), with a weight that grows with the training: at the beginning it would keep a learner from trying what it does not
know. Part of each batch comes from rollouts of the wait model where that is right (`wait_model.py`); where it is not,
targets are n-step returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from letitcook.core.jit import compiled, compiled_fast, inlined
from letitcook.core.objective import lex_argmax_kernel
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct
from letitcook.deep.normalisation import SURVIVAL, TASK, WAITING, typical_reward, write_input
from letitcook.deep.replay import draw
from letitcook.deep.state import (
    GRADIENT_STEPS,
    NEXT_UPDATE,
    Learner,
    average_task_values,
    best_for_lambda,
    learning_rate,
    timestep,
)
from letitcook.deep.wait_model import fit_wait_model, is_trusted, roll_out


class Methods(Struct):
    """What the kernels call by address: what the settings do not need is not compiled."""

    targets: Pointer
    use_wait_model: Pointer


def learn(learner: Learner, steps: int) -> None:
    """Take the gradient steps that are due."""
    learn_kernel(learner)(learner, steps, methods(learner))


def targets(learner: Learner, rows: int) -> None:
    """Write the targets `y` of the first `rows` rows of the batch."""
    kernel = conditioned_targets if learner.rules.conditioned else lexicographic_targets
    kernel(learner, rows)


def learn_kernel(learner: Learner) -> Callable[[Learner, int, Methods], None]:
    """Return the kernel that takes gradient steps, as the settings want it."""
    in_rounds = learner.rules.reuse_batch or learner.rules.target_rule != 0
    return learn_in_rounds if in_rounds else learn_on_many_batches


def learn_pointer(learner: Learner) -> Pointer:
    """Return it for kernels."""
    return Pointer(learn_kernel(learner), typeof(learner), types.int64, typeof(methods(learner)))


def methods(learner: Learner) -> Methods:
    """Return what the settings need."""
    return _methods(typeof(learner), learner.rules.conditioned, learner.rules.model_rows > 0)


@cache
def _methods(kind: types.Type, conditioned: bool, model: bool) -> Methods:
    return Methods(
        targets=Pointer(conditioned_targets if conditioned else lexicographic_targets, kind, types.int64),
        use_wait_model=Pointer.where(model, use_wait_model, types.none, kind, types.int64, types.float64),
    )


@compiled
def learn_in_rounds(learner: Learner, steps: int, methods: Methods) -> None:
    """Take the rounds of gradient steps that are due, with one batch for a round or one for each gradient step.

    The target networks follow as `target_rule` says: at the end of a round in which a multiple of their interval has
    passed, as in Stable-Baselines3; or after every gradient step of a round at a multiple, as in skrl 1.
    """
    rules, networks, batch, size = learner.rules, learner.networks, learner.workspace.batch, learner.rules.batch_size
    rounds = steps // rules.gradient_steps
    for i in range(rounds):
        now = learner.counters[NEXT_UPDATE] - (rounds - i) * rules.update_interval
        rate = learning_rate(rules, learner.counters)
        after_each = rules.target_rule == 1 and now % rules.target_interval == 0
        # Where the targets stay as they are, those of several gradient steps are computed together.
        fixed = rules.target_rule != 0 and not after_each and not rules.double_q
        done = 0
        while done < rules.gradient_steps:
            block, rows, apart = 1, size, 0
            if fixed and rules.reuse_batch:
                block = rules.gradient_steps
            elif fixed:
                block = min(learner.workspace.y.shape[1] // size, rules.gradient_steps - done)
                rows, apart = block * size, size
            if done == 0 or not rules.reuse_batch:
                draw(learner.replay, batch, rows, rules.n_step, rules.bootstrap_on_truncation, learner.rng)
                write_inputs(learner, rows, rules.n_step > 1)
            call(methods.targets, (learner, rows))
            take_gradient_steps(learner, block, apart, rate)
            if after_each:
                polyak_update(networks.target, networks.parameters, np.float32(rules.polyak))
            done += block
        before = now - rules.update_interval
        if rules.target_rule == 2 and now // rules.target_interval > before // rules.target_interval:
            polyak_update(networks.target, networks.parameters, np.float32(rules.polyak))


@compiled
def learn_on_many_batches(learner: Learner, steps: int, methods: Methods) -> None:
    """Take gradient steps, each on a batch of its own; targets of several are computed together."""
    rules, batch, size = learner.rules, learner.workspace.batch, learner.rules.batch_size
    done = 0
    while done < steps:
        until_target = rules.target_interval - learner.counters[GRADIENT_STEPS] % rules.target_interval
        block = min(learner.workspace.y.shape[1] // size, steps - done, until_target)
        model = rules.model_rows > 0 and is_trusted(learner.wait_model)
        n_step = 1 if model else rules.n_step
        draw(learner.replay, batch, block * size, n_step, rules.bootstrap_on_truncation, learner.rng)
        rate = learning_rate(rules, learner.counters)
        if rules.model_rows > 0:
            call(methods.use_wait_model, (learner, block, rate))
        write_inputs(learner, block * size, n_step > 1)
        call(methods.targets, (learner, block * size))
        take_gradient_steps(learner, block, size, rate)
        done += block


@compiled
def take_gradient_steps(learner: Learner, steps: int, apart: int, rate: float) -> None:
    """Take gradient steps of every network, each on the rows of the batch that begin `apart` behind the last one's."""
    networks, workspace, size = learner.networks, learner.workspace, learner.rules.batch_size
    t = learner.counters[GRADIENT_STEPS]
    for k in range(len(learner.weights)):
        for i in range(steps):
            rows = slice(i * apart, i * apart + size)
            x, taken, y = workspace.x[rows], workspace.batch.decision[rows], workspace.y[k, rows]
            huber, scratch = learner.rules.loss == 1, workspace.scratch
            call(workspace.gradient, (networks.parameters[k], learner.sizes, x, taken, y, huber, scratch))
            first, second = networks.first_moment[k], networks.second_moment[k]
            call(scratch.adam, (networks.parameters[k], scratch.gradient, first, second, rate, t + i + 1))
    count_gradient_steps(learner, steps)


@compiled
def use_wait_model(learner: Learner, block: int, rate: float) -> None:
    """Fit the wait model, and let part of each batch come from its rollouts if it was trusted before."""
    trusted = is_trusted(learner.wait_model)
    rules, workspace, typical = learner.rules, learner.workspace, typical_reward(learner.statistics)
    fit_wait_model(
        learner.wait_model,
        learner.wait_steps,
        learner.inputs,
        typical,
        block,
        rate,
        workspace.wait_model,
        learner.rng,
    )
    for i in range(block if trusted else 0):
        roll_out(
            learner.wait_model,
            learner.inputs,
            typical,
            workspace.batch,
            i * rules.batch_size,
            rules.model_rows,
            learner.waits,
            learner.durations,
            rules.gamma,
            workspace.wait_model,
            learner.rng,
            rules.wait_cost,
        )


@inlined
def count_gradient_steps(learner: Learner, n: int) -> None:
    """Count `n` gradient steps; the average and, where they count gradient steps, the target networks follow."""
    rules, networks = learner.rules, learner.networks
    learner.counters[GRADIENT_STEPS] += n
    if rules.ema_steps:
        over = min(rules.ema_steps, learner.counters[GRADIENT_STEPS])
        polyak_update(networks.averaged, networks.parameters, np.float32(n / over))
    if rules.target_rule == 0 and learner.counters[GRADIENT_STEPS] % rules.target_interval == 0:
        polyak_update(networks.target, networks.parameters, np.float32(rules.polyak))


@compiled
def write_inputs(learner: Learner, rows: int, as_executed: bool) -> None:
    """Write what the networks see of the first `rows` rows of the batch.

    Each has the λ of its episode if it was drawn `as_executed`, with the decisions that followed it; else any.
    """
    workspace = learner.workspace
    for i in range(rows):
        write_input(learner.inputs, workspace.batch.observation[i], workspace.x[i])
        write_input(learner.inputs, workspace.batch.next_observation[i], workspace.next_x[i])
        if learner.rules.conditioned:
            z = float(workspace.batch.z[i])
            if not as_executed or math.isnan(z):
                z = call(workspace.beyond.draw_log_lambda, (learner.lambdas, learner.rng))
            workspace.x[i, -1] = workspace.next_x[i, -1] = z
            workspace.lam[i] = 10.0**z


# --- targets ---


@compiled
def lexicographic_targets(learner: Learner, rows: int) -> None:
    """Write `y_k = r_k + γ^elapsed T_k(s', u*_k)` of each row, where `u*_k` is Lex-Argmax over objectives 0..k.

    With `bootstrap="lexicographic"` every objective follows `u*_K`, the decision that the policy takes.
    """
    next_values(learner, rows)
    rules, row, q = learner.rules, learner.workspace.scratch.q, learner.workspace.q
    choosing = learner.workspace.q_choosing if rules.double_q else q
    for i in range(rows):
        copy_values(choosing, i, row)
        taken = lex_argmax_kernel(row, rules.slack)
        for k in range(len(row)):
            best = taken if rules.bootstrap == 1 or k == len(row) - 1 else lex_argmax_kernel(row[: k + 1], rules.slack)
            write_target(learner, k, i, q[k, i, best])


@compiled
def conditioned_targets(learner: Learner, rows: int) -> None:
    """Write the targets of each row with its λ: all objectives follow the decision with the greatest `T_0 + λ T_1`."""
    next_values(learner, rows)
    rules, row, q = learner.rules, learner.workspace.scratch.q, learner.workspace.q
    choosing = learner.workspace.q_choosing if rules.double_q else q
    N = len(row)
    K = N - rules.task_networks + 1
    for i in range(rows):
        copy_values(choosing, i, row)
        average_task_values(row, rules.task_networks)
        best = best_for_lambda(row, rules, learner.workspace.lam[i], learner.bounds[0, 1])
        if N > K:
            q[0, i, best] = clipped_value(q, i, best, K, min_weight_now(learner))
        for k in range(N):
            write_target(learner, k, i, q[k if k < K else 0, i, best])


@compiled
def next_values(learner: Learner, rows: int) -> None:
    """Write the target networks' values of the next observations, and for double Q the networks' own."""
    networks, workspace = learner.networks, learner.workspace
    next_x = workspace.next_x[:rows]
    for k in range(len(learner.weights)):
        q = workspace.q[k, :rows]
        call(workspace.forward, (networks.target[k], learner.sizes, next_x, workspace.scratch, q))
        if learner.rules.double_q:
            q = workspace.q_choosing[k, :rows]
            call(workspace.forward, (networks.parameters[k], learner.sizes, next_x, workspace.scratch, q))


@inlined
def copy_values(q: NDArray[np.float32], i: int, row: NDArray[np.float64]) -> None:
    """Copy the values of one row of a batch, `(N, n)`."""
    for k in range(row.shape[0]):
        for u in range(row.shape[1]):
            row[k, u] = q[k, i, u]


@inlined
def write_target(learner: Learner, k: int, i: int, next_value: float) -> None:
    """Write the target of network `k` for row `i`, within its bounds."""
    batch, scale = learner.workspace.batch, learner.statistics.reward_scale
    task = scale[TASK] * (batch.reward[i, 0] - scale[SURVIVAL] * batch.past[i])
    waiting = scale[WAITING] * batch.reward[i, 1]
    y = learner.weights[k, 0] * task + learner.weights[k, 1] * waiting
    y += batch.discount[i] * next_value
    learner.workspace.y[k, i] = min(max(y, learner.bounds[k, 0]), learner.bounds[k, 1])


@inlined
def min_weight_now(learner: Learner) -> float:
    """Return the weight of the lowest of several task networks in targets: it grows from `min_weight` to 1."""
    rules = learner.rules
    done = min(1.0, timestep(rules, learner.counters) / rules.learning_rate_steps)
    return rules.min_weight + (1.0 - rules.min_weight) * done


@inlined
def clipped_value(q: NDArray[np.float32], row: int, decision: int, K: int, min_weight: float) -> float:
    """Return the task value of a decision: between the mean of the task networks, at weight 0, and the lowest, at 1."""
    lowest = total = float(q[0, row, decision])
    for k in range(K, len(q)):
        lowest = min(lowest, q[k, row, decision])
        total += q[k, row, decision]
    return min_weight * lowest + (1.0 - min_weight) * total / (len(q) - K + 1)


@compiled_fast
def polyak_update(target: NDArray[np.float32], parameters: NDArray[np.float32], polyak: np.float32) -> None:
    """Move the target networks, or the average, towards the networks."""
    for k in range(target.shape[0]):
        for i in range(target.shape[1]):
            if polyak == 1:
                target[k, i] = parameters[k, i]
            else:
                target[k, i] += polyak * (parameters[k, i] - target[k, i])
