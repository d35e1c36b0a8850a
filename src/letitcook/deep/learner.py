"""The learner in machine code: what it is, how it decides, and what it remembers. `learning.py` is how it learns.

Both ways of driving it call these same kernels. It has `K` objectives in order of importance and a network for each;
the first, the task, can have more than one: their mean then decides. Beyond the paper, the networks can be conditioned
on a trade-off λ (`trade_off.py`): one run then learns the policies of all λ in a range.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.deep.adaptation import (
    Measures,
    adapt_bounds,
    adapt_inputs,
    adapt_rewards,
    measure,
    new_measures,
    typical_reward,
)
from letitcook.deep.inputs import Inputs, input_size, plain_inputs, write_input
from letitcook.deep.network import (
    Scratch,
    forward_row,
    initial_parameters,
    new_scratch,
    parameter_count,
)
from letitcook.deep.passive import (
    Passive,
    PassiveRoom,
    new_passive,
    new_passive_room,
    try_step,
)
from letitcook.deep.replay import NONE, Batch, Replay, link, new_batch, new_replay, remember
from letitcook.deep.settings import LDQNSettings
from letitcook.deep.trade_off import TradeOffs, draw_trade_off, new_trade_offs, note_episode
from letitcook.errors import SettingError
from letitcook.kernels import compiled, random_below, random_float, seeded
from letitcook.lexicographic import lex_argmax_kernel
from letitcook.wmdp import Decisions

STEPS, DECISIONS, GRADIENT_STEPS, NEXT_UPDATE, EPISODE_STEP = range(5)
"""Places in `Learner.counters`; an episode step of -1 means that an episode has to begin."""
Z, REPEATED, LEFT, RETURN, BEFORE, EXPLORING = range(6)
"""Places in a row of `Learner.episodes`: log10 λ of the episode under way, the decision that exploration repeats, how
often it still does, the task return so far, the replay's row of the last decision, whether the next is a random one."""
LEXICOGRAPHIC = -1.0
"""Stands in place of a λ where there is none."""
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
    task_networks: int
    caution: float
    hesitation: float
    acting: int
    """Decisions before the waits that are hesitated to take."""
    follow: bool
    huber: bool
    double_q: bool
    bootstrap_on_truncation: bool
    sub_waits: int
    ahead: int
    imagined: int
    conditioned: bool
    adapt: bool
    longest_repeat: int
    average: int
    learning_rate_end: float
    learning_rate_steps: int


class Networks(NamedTuple):
    """One row for each objective, and then one for each further network of the first: `(N, parameters)`."""

    parameters: NDArray[np.float32]
    target: NDArray[np.float32]
    first_moment: NDArray[np.float32]
    second_moment: NDArray[np.float32]
    average: NDArray[np.float32]
    """The networks' mean over the last gradient steps; empty if they are not averaged."""


class Room(NamedTuple):
    """Room to work in; holds nothing from one call to the next."""

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
    passive: PassiveRoom


class Learner(NamedTuple):
    """All that a learner is; the arrays change in place."""

    rules: Rules
    sizes: NDArray[np.int64]
    networks: Networks
    replay: Replay
    steps: Replay
    """Passive steps that were lived, where waits are imagined."""
    passive: Passive
    inputs: Inputs
    measures: Measures
    trade_offs: TradeOffs
    episodes: NDArray[np.float64]
    """What each episode under way is about, `(episodes, 6)`."""
    weights: NDArray[np.float64]
    """What each network learns, as weights of `(task, waiting)`: `(N, 2)`."""
    bounds: NDArray[np.float64]
    """Lowest and highest target of each network, `(N, 2)`."""
    durations: NDArray[np.int64]
    """Steps that each decision asks for."""
    waits: NDArray[np.int64]
    """The decisions that wait."""
    acts: NDArray[np.int64]
    """The decisions that do not."""
    counters: NDArray[np.int64]
    rng: NDArray[np.uint64]
    room: Room


def new_learner(
    observation_size: int,
    decisions: Decisions,
    weights: NDArray[np.float64],
    settings: LDQNSettings,
    seed: int,
    at_once: int = 1,
) -> Learner:
    """Make a learner that knows nothing yet, for that many episodes at once."""
    K, n = len(weights), decisions.n
    conditioned = settings.trade_offs is not None
    if conditioned and K != 2:
        raise SettingError("trade_offs goes with the lexicographic method, which has two objectives")
    inputs = plain_inputs(observation_size, settings.waves, seed)
    sizes = (input_size(inputs) + conditioned, *settings.hidden, n)
    weights = np.concatenate([weights, *[weights[:1]] * (settings.task_networks - 1)])
    N = len(weights)
    parameters = initial_parameters(sizes, N, np.random.default_rng([seed, 1]))
    blocks = 1 if settings.double_q else max(1, ROWS_AT_ONCE // settings.batch_size)
    rows = settings.batch_size * min(blocks, settings.gradient_steps, settings.target_interval)
    counters = np.zeros(5, dtype=np.int64)
    counters[NEXT_UPDATE], counters[EPISODE_STEP] = max(settings.learning_starts, 1), -1
    bounds = np.array([[-np.inf, np.inf]] * N)
    if settings.adapt:
        bounds[:] = 0.0  # nothing was seen yet
    elif settings.clip_targets is not None:
        bounds = weights @ np.array(settings.clip_targets)  # weights are never negative
    passive = new_passive(observation_size, seed)
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
            task_networks=int(settings.task_networks),
            caution=float(settings.caution),
            hesitation=float(settings.hesitation),
            acting=decisions.acting,
            follow=settings.bootstrap == "lexicographic",
            huber=settings.loss == "huber",
            double_q=bool(settings.double_q),
            bootstrap_on_truncation=bool(settings.bootstrap_on_truncation),
            sub_waits=int(settings.sub_waits),
            ahead=int(settings.ahead),
            imagined=int(settings.imagined * settings.batch_size),
            conditioned=conditioned,
            adapt=bool(settings.adapt),
            longest_repeat=int(settings.longest_repeat),
            average=int(settings.average),
            learning_rate_end=float(settings.learning_rate_end),
            learning_rate_steps=int(settings.learning_rate_steps),
        ),
        sizes=np.array(sizes, dtype=np.int64),
        networks=Networks(
            parameters=parameters,
            target=parameters.copy(),
            first_moment=np.zeros((N, parameter_count(sizes)), dtype=np.float32),
            second_moment=np.zeros((N, parameter_count(sizes)), dtype=np.float32),
            average=parameters[: N if settings.average else 0].copy(),
        ),
        replay=new_replay(settings.buffer_size, observation_size),
        steps=new_replay(settings.buffer_size if settings.imagined else 1, observation_size),
        passive=passive,
        inputs=inputs,
        measures=new_measures(observation_size),
        trade_offs=new_trade_offs(settings.trade_offs),
        episodes=np.zeros((at_once, 6)),
        weights=np.ascontiguousarray(weights),
        bounds=bounds,
        durations=decisions.durations_of,
        waits=np.array([decisions.wait, *range(len(decisions.actions), n)], dtype=np.int64),
        acts=np.array([a for a in range(len(decisions.actions)) if a != decisions.wait], dtype=np.int64),
        counters=counters,
        rng=seeded(seed),
        room=Room(
            scratch=new_scratch(sizes, N, rows),
            batch=new_batch(rows, observation_size),
            q=np.zeros((N, rows, n), dtype=np.float32),
            q_choosing=np.zeros((N, rows if settings.double_q else 0, n), dtype=np.float32),
            y=np.zeros((N, rows), dtype=np.float32),
            x=np.zeros((rows, sizes[0]), dtype=np.float32),
            next_x=np.zeros((rows, sizes[0]), dtype=np.float32),
            lam=np.full(rows, LEXICOGRAPHIC),
            row_x=np.zeros(sizes[0], dtype=np.float32),
            passive=new_passive_room(passive, settings.batch_size),
        ),
    )


@compiled
def begin_episode(learner: Learner, episode: int) -> None:
    """Begin an episode: with a trade-off of its own, where networks are conditioned on one."""
    now = learner.episodes[episode]
    now[Z] = draw_trade_off(learner.trade_offs, learner.rng) if learner.rules.conditioned else 0.0
    now[LEFT], now[RETURN], now[BEFORE] = 0.0, 0.0, NONE


@compiled
def decide(learner: Learner, episode: int, observation: NDArray[np.float32]) -> int:
    """Return a random decision with chance ε, else the greedy one."""
    rules, now = learner.rules, learner.episodes[episode]
    now[EXPLORING] = 1.0
    if now[LEFT] > 0:
        now[LEFT] -= 1.0
        return int(now[REPEATED])
    done = min(1.0, learner.counters[STEPS] / rules.epsilon_steps)
    epsilon = rules.epsilon_start + done * (rules.epsilon_end - rules.epsilon_start)
    if random_float(learner.rng) >= epsilon:
        now[EXPLORING] = 0.0
        return greedy(learner, observation, now[Z])
    if rules.longest_repeat == 0:
        return random_below(learner.rng, learner.sizes[-1])
    # Drawing all decisions alike spends nearly all the time waiting: half of exploration acts, and goes on acting.
    if random_float(learner.rng) < 0.5:
        return int(learner.waits[random_below(learner.rng, len(learner.waits))])
    now[REPEATED] = learner.acts[random_below(learner.rng, len(learner.acts))]
    now[LEFT] = int(rules.longest_repeat ** random_float(learner.rng)) - 1  # as often 1 to 4 times as 4 to 16
    return int(now[REPEATED])


@compiled
def greedy(learner: Learner, observation: NDArray[np.float32], z: float) -> int:
    """Return the lexicographically best decision, or the best one for log10 λ = z."""
    rules, x, scratch = learner.rules, learner.room.row_x, learner.room.scratch
    write_input(learner.inputs, observation, x)
    if rules.conditioned:
        x[-1] = z
    networks = learner.networks.average if rules.average else learner.networks.parameters
    for k in range(len(networks)):
        forward_row(networks[k], learner.sizes, x, scratch.row, scratch.q[k])
    lam = 10.0**z if rules.conditioned else LEXICOGRAPHIC
    return choose(scratch.q, rules, lam, learner.bounds[0, 1])


@compiled
def choose(q: NDArray[np.float64], rules: Rules, lam: float, highest: float) -> int:
    """Return the column of `q`, `(N, n)`, that is lexicographically best, or greatest in `q0 + λ q1`.

    Waits must be better by a share of what is at stake, which is how far acting lies below the `highest` value. The
    first row becomes the mean of the task networks'.
    """
    task_networks, acting = rules.task_networks, rules.acting
    K = len(q) - task_networks + 1
    if len(q) > K:
        for u in range(q.shape[1]):
            for k in range(K, len(q)):
                q[0, u] += q[k, u]
            q[0, u] /= task_networks
    if lam == LEXICOGRAPHIC:
        return lex_argmax_kernel(q[:K], rules.slack)
    margin = 0.0
    if rules.hesitation > 0.0:
        at_stake = 0.0
        for u in range(acting):
            at_stake += (highest - q[0, u] - lam * q[1, u]) / acting
        margin = rules.hesitation * at_stake
    best, greatest = 0, -np.inf
    for u in range(q.shape[1]):
        value = q[0, u] + lam * q[1, u]
        if u >= acting:
            value -= margin
        if value > greatest:
            best, greatest = u, value
    return best


@compiled
def take_in(
    learner: Learner,
    episode: int,
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
    now = learner.episodes[episode]
    row = remember(
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
    link(learner.replay, row, int(now[BEFORE]), now[Z], now[EXPLORING] > 0.0)
    now[BEFORE] = row
    learner.counters[STEPS] += elapsed
    learner.counters[DECISIONS] += 1
    gamma = learner.rules.gamma
    discounted_steps = (1.0 - discount) / (1.0 - gamma) if gamma < 1.0 else float(elapsed)
    if learner.rules.adapt:
        look(learner, next_observation, task_reward, discounted_steps)
    if learner.rules.conditioned:
        now[RETURN] += task_reward * elapsed / discounted_steps
        if terminated or truncated:
            note_episode(learner.trade_offs, now[Z], now[RETURN])
    due = 0
    while learner.counters[STEPS] >= learner.counters[NEXT_UPDATE]:
        learner.counters[NEXT_UPDATE] += learner.rules.update_interval
        due += learner.rules.gradient_steps
    return due


@compiled
def look(learner: Learner, observation: NDArray[np.float32], task_reward: float, elapsed: float) -> None:
    """Measure what was seen, and adapt: what rewards count until learning begins, the rest at any time."""
    rules, measures = learner.rules, learner.measures
    measure(measures, observation, task_reward, elapsed)
    adapt_inputs(measures, learner.inputs)
    if learner.counters[STEPS] <= rules.learning_starts:
        adapt_rewards(measures, rules.gamma)
    adapt_bounds(measures, rules.gamma, learner.weights, learner.bounds)


@compiled
def look_inside(
    learner: Learner, path: NDArray[np.float32], rewards: NDArray[np.float64], elapsed: int, terminated: bool
) -> None:
    """Take in the steps of a wait: `path` holds the `elapsed + 1` observations, `rewards` those of the steps."""
    typical, gamma = typical_reward(learner.measures), learner.rules.gamma
    for t in range(elapsed):
        ended = terminated and t + 1 == elapsed
        row = remember(learner.steps, path[t], learner.waits[0], rewards[t], -1.0, gamma, path[t + 1], ended, False)
        link(learner.steps, row, NONE, 0.0, False)  # the passive world is the same for every λ
        try_step(learner.passive, learner.steps, row, learner.inputs, typical, learner.room.passive)
