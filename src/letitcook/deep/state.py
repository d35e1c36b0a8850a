"""The learner in machine code: what it consists of, how it decides, what it remembers. `update.py` is how it learns.

All drivers call these kernels. There are `K` objectives in order of importance and a network for each; the first, the
task, can have more than one: their mean then decides. Beyond the paper, the networks can be conditioned on λ
(`conditioning.py`): one run then learns the policies of all λ in a range.
"""

from __future__ import annotations

import math

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, Transition
from letitcook.core.jit import compiled, kernel_settings, random_below, random_float, seeded
from letitcook.core.objective import lex_argmax_kernel
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct
from letitcook.deep.conditioning import LambdaBins, draw_log_lambda, new_lambda_bins, note_episode
from letitcook.deep.network import (
    Scratch,
    forward_pointer,
    forward_row,
    gradient_pointer,
    initial_parameters,
    new_scratch,
    parameter_count,
)
from letitcook.deep.normalisation import (
    Inputs,
    Statistics,
    input_size,
    new_statistics,
    normalise_observations,
    plain_inputs,
    record,
    set_reward_scale,
    set_target_bounds,
    typical_reward,
    write_input,
)
from letitcook.deep.replay import NONE, Batch, Replay, link, new_batch, new_replay, remember
from letitcook.deep.settings import CHOICES, LDQNSettings
from letitcook.deep.wait_model import (
    WaitModel,
    WaitModelWorkspace,
    assess_step,
    new_wait_model,
    new_wait_model_workspace,
)
from letitcook.errors import SettingError

STEPS, DECISIONS, GRADIENT_STEPS, NEXT_UPDATE, EPISODE_STEP = range(5)
"""Places in `Learner.counters`; an episode step of -1 means that an episode has to begin."""
Z, REPEATED, LEFT, RETURN, BEFORE, EXPLORING = range(6)
"""Places in a row of `Learner.episodes`: log10 λ of the episode under way, the decision that exploration repeats, how
often it still does, the task return so far, the replay's row of the last decision, whether the next is a random one."""
LEXICOGRAPHIC = -1.0
"""Stands in place of a λ where there is none."""
ROWS_AT_ONCE = 320
"""Targets of several gradient steps are computed together, up to about this many rows, while they do not change."""


class Rules(Struct):
    """The settings as the kernels take them: the names are those of `LDQNSettings`, a choice is its place in `CHOICES`.

    `acting`, `conditioned`, `model_rows` and `wait_cost` follow from the others.
    """

    gamma: float
    learning_rate: float
    batch_size: int
    timestep: int
    learning_starts: int
    update_interval: int
    gradient_steps: int
    reuse_batch: bool
    target_rule: int
    target_interval: int
    polyak: float
    epsilon_start: float
    epsilon_end: float
    epsilon_decay: int
    epsilon_steps: int
    slack: float
    bootstrap: int
    loss: int
    double_q: bool
    bootstrap_on_truncation: bool
    intra_option: int
    normalise: bool
    max_action_repeat: int
    task_networks: int
    min_weight: float
    wait_margin: float
    n_step: int
    ema_steps: int
    learning_rate_end: float
    learning_rate_steps: int
    acting: int
    """Decisions before those that have to be better by the wait margin."""
    conditioned: bool
    """Whether the networks are conditioned on λ."""
    model_rows: int
    """Rows of each batch that come from rollouts of the wait model."""
    wait_cost: float
    """What a wait costs in the second objective."""


class Networks(Struct):
    """One row for each objective, and then one for each further network of the first: `(N, parameters)`."""

    parameters: NDArray[np.float32]
    target: NDArray[np.float32]
    first_moment: NDArray[np.float32]
    second_moment: NDArray[np.float32]
    averaged: NDArray[np.float32]
    """Exponential moving average of the networks; empty if they are not averaged."""


class Beyond(Struct):
    """What goes beyond the paper, called by address: it is compiled where the settings want it."""

    draw_log_lambda: Pointer
    note_episode: Pointer
    record_statistics: Pointer


class Workspace(Struct):
    """Arrays to work in, which hold nothing from one call to the next, and kernels that are called by address."""

    forward: Pointer
    gradient: Pointer
    beyond: Beyond
    scratch: Scratch
    batch: Batch
    q: NDArray[np.float32]
    """Target networks' values of the next observations, `(N, rows, n)`."""
    q_choosing: NDArray[np.float32]
    """The networks' own, for double Q; else empty."""
    y: NDArray[np.float32]
    """Targets, `(N, rows)`."""
    x: NDArray[np.float32]
    """Inputs of the observations, `(rows, inputs)`."""
    next_x: NDArray[np.float32]
    lam: NDArray[np.float64]
    """λ of each row, or `LEXICOGRAPHIC`."""
    row_x: NDArray[np.float32]
    """The input of one observation."""
    wait_model: WaitModelWorkspace


class Learner(Struct):
    """All that a learner consists of; the arrays change in place."""

    rules: Rules
    sizes: NDArray[np.int64]
    networks: Networks
    replay: Replay
    wait_steps: Replay
    """Single steps of waits, which the wait model learns from."""
    wait_model: WaitModel
    inputs: Inputs
    statistics: Statistics
    lambdas: LambdaBins
    episodes: NDArray[np.float64]
    """The state of each episode under way, `(episodes, 6)`."""
    weights: NDArray[np.float64]
    """What each network learns, as weights of `(task, waiting)`: `(N, 2)`."""
    bounds: NDArray[np.float64]
    """Lowest and highest target of each network, `(N, 2)`."""
    durations: NDArray[np.int64]
    """Steps that each decision requests."""
    waits: NDArray[np.int64]
    """The decisions that wait."""
    acts: NDArray[np.int64]
    """The decisions that do not."""
    counters: NDArray[np.int64]
    rng: NDArray[np.uint64]
    workspace: Workspace


def new_learner(
    observation_size: int,
    decisions: Decisions,
    weights: NDArray[np.float64],
    settings: LDQNSettings,
    seed: int,
    at_once: int = 1,
) -> Learner:
    """Make a learner that knows nothing yet, for that many episodes at once."""
    conditioned = settings.log_lambda_range is not None
    if conditioned and len(weights) != 2:
        raise SettingError("log_lambda_range goes with the lexicographic method, which has two objectives")
    weights = np.concatenate([weights, *[weights[:1]] * (settings.task_networks - 1)])
    inputs = plain_inputs(observation_size, settings.fourier_features, seed)
    sizes = (input_size(inputs) + conditioned, *settings.hidden, decisions.n)
    wait_model = new_wait_model(observation_size, seed)
    rules, statistics = _rules(settings, decisions), new_statistics(observation_size)
    lambdas, rng = new_lambda_bins(settings.log_lambda_range), seeded(seed)
    counters = np.zeros(5, dtype=np.int64)
    counters[NEXT_UPDATE], counters[EPISODE_STEP] = _first_update(settings), -1
    return Learner(
        rules=rules,
        sizes=np.array(sizes, dtype=np.int64),
        networks=_new_networks(sizes, len(weights), settings, seed),
        replay=new_replay(settings.buffer_size, observation_size),
        wait_steps=new_replay(settings.buffer_size if settings.model_rollouts else 1, observation_size),
        wait_model=wait_model,
        inputs=inputs,
        statistics=statistics,
        lambdas=lambdas,
        episodes=np.zeros((at_once, 6)),
        weights=np.ascontiguousarray(weights),
        bounds=_first_bounds(settings, weights),
        durations=decisions.durations_of,
        waits=np.array([decisions.wait, *range(len(decisions.actions), decisions.n)], dtype=np.int64),
        acts=np.array([a for a in range(len(decisions.actions)) if a != decisions.wait], dtype=np.int64),
        counters=counters,
        rng=rng,
        workspace=_new_workspace(
            sizes, len(weights), settings, observation_size, wait_model, _beyond(rules, statistics, inputs, lambdas)
        ),
    )


def _beyond(rules: Rules, statistics: Statistics, inputs: Inputs, lambdas: LambdaBins) -> Beyond:
    """Return what the settings want of it."""
    real, whole, words = types.float64, types.int64[::1], types.uint64[::1]
    rows, seen = types.float64[:, ::1], types.float32[::1]
    conditioned, bins, none = rules.conditioned, typeof(lambdas), types.none
    measured = typeof(rules), typeof(statistics), typeof(inputs), whole, rows, rows, seen, real, real
    return Beyond(
        Pointer.where(conditioned, draw_log_lambda, real, bins, words),
        Pointer.where(conditioned, note_episode, none, bins, real, real),
        Pointer.where(rules.normalise, record_statistics, none, *measured),
    )


def _rules(settings: LDQNSettings, decisions: Decisions) -> Rules:
    return kernel_settings(
        Rules,
        settings,
        CHOICES,
        acting=decisions.acting,
        conditioned=settings.log_lambda_range is not None,
        model_rows=settings.model_rollouts * settings.batch_size,
        wait_cost=float(decisions.costs_of[decisions.wait]),
    )


def _first_update(settings: LDQNSettings) -> int:
    """Return the timestep of the first round of learning; where the target rule counts timesteps, a multiple."""
    starts, interval = max(settings.learning_starts, 1), settings.update_interval
    return -(-starts // interval) * interval if settings.target_rule != "gradient_steps" else starts


def _new_networks(sizes: tuple[int, ...], N: int, settings: LDQNSettings, seed: int) -> Networks:
    parameters = initial_parameters(sizes, N, np.random.default_rng([seed, 1]))
    return Networks(
        parameters=parameters,
        target=parameters.copy(),
        first_moment=np.zeros((N, parameter_count(sizes)), dtype=np.float32),
        second_moment=np.zeros((N, parameter_count(sizes)), dtype=np.float32),
        averaged=parameters[: N if settings.ema_steps else 0].copy(),
    )


def _first_bounds(settings: LDQNSettings, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the range of targets at the beginning, `(N, 2)`."""
    if settings.normalise:
        return np.zeros((len(weights), 2))  # nothing was seen yet
    if settings.clip_targets is None:
        return np.array([[-np.inf, np.inf]] * len(weights))
    return np.asarray(weights @ np.array(settings.clip_targets))  # weights are never negative


def _new_workspace(
    sizes: tuple[int, ...],
    N: int,
    settings: LDQNSettings,
    observation_size: int,
    wait_model: WaitModel,
    beyond: Beyond,
) -> Workspace:
    one_batch = settings.double_q or settings.reuse_batch
    blocks = 1 if one_batch else max(1, ROWS_AT_ONCE // settings.batch_size)
    rows = settings.batch_size * min(blocks, settings.gradient_steps, settings.target_interval)
    n, scratch = sizes[-1], new_scratch(sizes, N, rows)
    return Workspace(
        forward=forward_pointer(scratch),
        gradient=gradient_pointer(scratch),
        beyond=beyond,
        scratch=scratch,
        batch=new_batch(rows, observation_size),
        q=np.zeros((N, rows, n), dtype=np.float32),
        q_choosing=np.zeros((N, rows if settings.double_q else 0, n), dtype=np.float32),
        y=np.zeros((N, rows), dtype=np.float32),
        x=np.zeros((rows, sizes[0]), dtype=np.float32),
        next_x=np.zeros((rows, sizes[0]), dtype=np.float32),
        lam=np.full(rows, LEXICOGRAPHIC),
        row_x=np.zeros(sizes[0], dtype=np.float32),
        wait_model=new_wait_model_workspace(wait_model, settings.batch_size),
    )


# --- schedules ---


@compiled
def timestep(rules: Rules, counters: NDArray[np.int64]) -> int:
    """Return how many timesteps have passed: decisions, or primitive steps."""
    return int(counters[DECISIONS] if rules.timestep == 1 else counters[STEPS])


@compiled
def is_before(counters: NDArray[np.int64], steps: int, decisions: int) -> bool:
    """Return whether fewer primitive steps and fewer decisions have passed than these."""
    return bool(counters[STEPS] < steps and counters[DECISIONS] < decisions)


@compiled
def exploration(rules: Rules, counters: NDArray[np.int64]) -> float:
    """Return the probability of a random decision now."""
    done = timestep(rules, counters) / rules.epsilon_steps
    if rules.epsilon_decay == 1:  # exponential
        return rules.epsilon_end + math.exp(-done) * (rules.epsilon_start - rules.epsilon_end)
    return rules.epsilon_start + min(1.0, done) * (rules.epsilon_end - rules.epsilon_start)


@compiled
def learning_rate(rules: Rules, counters: NDArray[np.int64]) -> float:
    """Return the learning rate now."""
    done = min(1.0, timestep(rules, counters) / rules.learning_rate_steps)
    return rules.learning_rate * (1.0 - done * (1.0 - rules.learning_rate_end))


# --- deciding ---


@compiled
def is_wait(learner: Learner, decision: int) -> bool:
    """Return whether a decision waits, for one step or for more."""
    return bool(decision == learner.waits[0] or (len(learner.waits) > 1 and decision >= learner.waits[1]))


@compiled
def begin_episode(learner: Learner, episode: int) -> None:
    """Begin an episode; it has a λ of its own where networks are conditioned on one."""
    now = learner.episodes[episode]
    now[Z] = 0.0
    if learner.rules.conditioned:
        now[Z] = call(learner.workspace.beyond.draw_log_lambda, (learner.lambdas, learner.rng))
    now[LEFT], now[RETURN], now[BEFORE] = 0.0, 0.0, NONE


@compiled
def decide(learner: Learner, episode: int, observation: NDArray[np.float32]) -> int:
    """Return a random decision with probability ε, else the greedy one."""
    rules, now = learner.rules, learner.episodes[episode]
    now[EXPLORING] = 1.0
    if now[LEFT] > 0:
        now[LEFT] -= 1.0
        return int(now[REPEATED])
    if random_float(learner.rng) >= exploration(rules, learner.counters):
        now[EXPLORING] = 0.0
        return greedy(learner, observation, now[Z])
    if rules.max_action_repeat == 0:
        return random_below(learner.rng, learner.sizes[-1])
    # Uniform decisions would spend nearly all the time waiting: half of exploration acts, and repeats its action
    # (εz-greedy; Dabney et al. 2021).
    if random_float(learner.rng) < 0.5:
        return int(learner.waits[random_below(learner.rng, len(learner.waits))])
    now[REPEATED] = learner.acts[random_below(learner.rng, len(learner.acts))]
    now[LEFT] = int(rules.max_action_repeat ** random_float(learner.rng)) - 1  # as often 1 to 4 times as 4 to 16
    return int(now[REPEATED])


@compiled
def greedy(learner: Learner, observation: NDArray[np.float32], z: float) -> int:
    """Return the lexicographically best decision, or the best one for log10 λ = z."""
    rules, x, scratch = learner.rules, learner.workspace.row_x, learner.workspace.scratch
    write_input(learner.inputs, observation, x)
    if rules.conditioned:
        x[-1] = z
    networks = learner.networks.averaged if rules.ema_steps else learner.networks.parameters
    for k in range(len(networks)):
        forward_row(networks[k], learner.sizes, x, scratch.row, scratch.q[k])
    if rules.conditioned:
        average_task_values(scratch.q, rules.task_networks)
        return best_for_lambda(scratch.q, rules, 10.0**z, learner.bounds[0, 1])
    return lex_argmax_kernel(scratch.q, rules.slack)


@compiled
def average_task_values(q: NDArray[np.float64], task_networks: int) -> None:
    """Let the first row of `q`, `(N, n)`, become the mean of the task networks' rows: the first, and the last ones."""
    N = len(q)
    if task_networks == 1:
        return
    for u in range(q.shape[1]):
        for k in range(N - task_networks + 1, N):
            q[0, u] += q[k, u]
        q[0, u] /= task_networks


@compiled
def best_for_lambda(q: NDArray[np.float64], rules: Rules, lam: float, highest: float) -> int:
    """Return the decision with the greatest `q0 + λ q1`, where waits first give up the wait margin.

    The margin is a share of how far the value of acting lies below the `highest` value.
    """
    acting, margin = rules.acting, 0.0
    if rules.wait_margin > 0.0:
        at_stake = 0.0
        for u in range(acting):
            at_stake += (highest - q[0, u] - lam * q[1, u]) / acting
        margin = rules.wait_margin * at_stake
    best, greatest = 0, -np.inf
    for u in range(q.shape[1]):
        value = q[0, u] + lam * q[1, u]
        if u >= acting:
            value -= margin
        if value > greatest:
            best, greatest = u, value
    return best


# --- remembering ---


@compiled
def take_in(learner: Learner, episode: int, transition: Transition) -> int:
    """Remember a decision that was carried out and count it; returns how many gradient steps are due by now."""
    rules, counters, now = learner.rules, learner.counters, learner.episodes[episode]
    row = remember(learner.replay, transition)
    link(learner.replay, row, int(now[BEFORE]), now[Z], now[EXPLORING] > 0.0)
    now[BEFORE] = row
    counters[STEPS] += transition.elapsed
    counters[DECISIONS] += 1
    task_reward, elapsed = transition.reward[0], transition.elapsed
    discounted_steps = (1.0 - transition.discount) / (1.0 - rules.gamma) if rules.gamma < 1.0 else float(elapsed)
    beyond = learner.workspace.beyond
    if rules.normalise:
        seen = transition.next_observation
        measured = rules, learner.statistics, learner.inputs, counters, learner.weights, learner.bounds
        call(beyond.record_statistics, (*measured, seen, task_reward, discounted_steps))
    if rules.conditioned:
        now[RETURN] += task_reward * elapsed / discounted_steps
        if transition.terminated or transition.truncated:
            call(beyond.note_episode, (learner.lambdas, now[Z], now[RETURN]))
    due = 0
    while timestep(rules, counters) >= counters[NEXT_UPDATE]:
        counters[NEXT_UPDATE] += rules.update_interval
        due += rules.gradient_steps
    return due


@compiled
def record_statistics(
    rules: Rules,
    statistics: Statistics,
    inputs: Inputs,
    counters: NDArray[np.int64],
    weights: NDArray[np.float64],
    bounds: NDArray[np.float64],
    observation: NDArray[np.float32],
    task_reward: float,
    elapsed: float,
) -> None:
    """Measure what was seen, and normalise by it: rewards until learning begins, the rest at any time."""
    record(statistics, observation, task_reward, elapsed)
    normalise_observations(statistics, inputs)
    if timestep(rules, counters) <= rules.learning_starts:
        set_reward_scale(statistics, rules.gamma)
    set_target_bounds(statistics, rules.gamma, weights, bounds)


@compiled
def record_wait_steps(
    learner: Learner, path: NDArray[np.float32], rewards: NDArray[np.float64], elapsed: int, terminated: bool
) -> None:
    """Take in the steps of a wait: `path` holds the `elapsed + 1` observations, `rewards` those of the steps."""
    typical, gamma, reward = (
        typical_reward(learner.statistics),
        learner.rules.gamma,
        np.array([0.0, -learner.rules.wait_cost]),
    )
    for t in range(elapsed):
        reward[0] = rewards[t]
        ended = terminated and t + 1 == elapsed
        step = Transition(path[t], learner.waits[0], reward, 1, gamma, path[t + 1], ended, False)
        row = remember(learner.wait_steps, step)
        link(learner.wait_steps, row, NONE, 0.0, False)  # waiting is the same for every λ
        assess_step(learner.wait_model, learner.wait_steps, row, learner.inputs, typical, learner.workspace.wait_model)
