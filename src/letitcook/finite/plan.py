"""The exact optimum of a finite waiting MDP, by backward induction over (time, state).

With `V_t(s)` the vector of values when a decision is due in state `s` at time `t`, and `C_j(t, s)` the value of having
committed to `j` more steps of waiting there::

    V_H = 0,   C_0(t, s) = V_t(s),   C_j(t, s) = E[ r + γ C_{j-1}(t+1, s') ],   terminal states have value 0
    V_t(s) = best over actions a of  E[ r + γ V_{t+1}(s') ] + query,  and over durations w of  C_w(t, s) + query

A wait beyond the horizon is cut by it, for `C_j(H, s) = 0`. Best is the objective's lexicographic order. Carried along
are the objective's own values and those that people read, see `channels.py`.

Where different states look the same to a policy, the optimum is over beliefs, see `belief.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions
from letitcook.core.jit import compiled
from letitcook.core.objective import Objective
from letitcook.errors import FinitenessError, SettingError
from letitcook.finite.belief import BELIEF_LIMIT, BeliefPolicy, best_decisions, enumerate_beliefs, likeliest_episode
from letitcook.finite.channels import LARGEST, TIE, Channels, better
from letitcook.finite.tables import STATE_LIMIT, Tables, enumerate_env, observation_key
from letitcook.wrappers.waiting import horizon_of, waiting_env_of


class PlanPolicy:
    """An exact policy: a decision for each (time, state). Its `state` is the time, in primitive steps."""

    def __init__(self, table: NDArray[np.int16], decisions: Decisions, tables: Tables) -> None:
        self.table = table
        self.decisions = decisions
        self._number = {observation_key(o): s for s, o in enumerate(tables.observations)}
        self._durations = decisions.durations_of.tolist()

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, int]:
        """Return the optimal decision and the time at which the next one is due."""
        fresh = state is None or (episode_start is not None and bool(np.any(episode_start)))
        time = 0 if fresh else int(state)
        key = observation_key(observation)
        if key not in self._number:
            raise FinitenessError(f"observation {observation!r} is not one of the states that were planned for")
        if time >= len(self.table):
            raise SettingError(f"time {time} is past the horizon of {len(self.table)} steps; start a new episode")
        decision = int(self.table[time, self._number[key]])
        return decision, time + self._durations[decision]

    def ended_early(self, state: int, steps: int) -> int:
        """Return the time when a wait ended `steps` before its time (see `interleaving.Resumable`)."""
        return state - steps


@dataclass(frozen=True)
class Plan:
    """An exact optimum. All numbers are expectations over starts and transitions.

    >>> from letitcook import make
    >>> best = plan(make("cook", mode="wrap"))
    >>> best.length, best.queries
    (53.0, 39.0)
    """

    objective: Objective
    length: float
    """Primitive steps of an episode."""
    queries: float
    """Queries of the policy, `-J1`."""
    task_return: float
    """`J0`, undiscounted."""
    values: NDArray[np.float64]
    """The objective's value of each start under `(start, K)`, discounted where `γ < 1`."""
    states: int
    """Reachable states, terminal ones included."""
    horizon: int
    policy: PlanPolicy | BeliefPolicy
    decisions: list[int]
    """The optimal episode from the likeliest start, following the likeliest outcomes."""
    beliefs: int | None = None
    """Reachable beliefs, where states are hidden."""

    @property
    def labels(self) -> list[str]:
        """The optimal episode's decisions for people."""
        return [self.policy.decisions.label(u) for u in self.decisions]


def plan(
    waiting_env: gym.Env[Any, Any],
    horizon: int | None = None,
    objective: str = "lexicographic",
    lam: float | None = None,
    limit: int = STATE_LIMIT,
    belief_limit: int = BELIEF_LIMIT,
) -> Plan:
    """Return the exact optimum of an enumerable waiting environment, from scratch or around a base policy.

    `horizon` counts primitive steps and defaults to the environment's own time limit. Stochastic transitions are
    taken in expectation. Where different states look the same, it is the optimum of policies that remember all they
    saw and did, over at most `belief_limit` beliefs; `policy` is then such a one.

    >>> from letitcook import make
    >>> best = plan(make("cook"))
    >>> best.length, best.queries, best.labels[-4:]
    (33.0, 25.0, ['wait 5', 'interact', 'east', 'interact'])
    >>> around = plan(make("cook", mode="wrap"))
    >>> around.length, around.queries
    (53.0, 39.0)
    >>> unseen = plan(make("cook", hidden=True, cook_time=(14, 16, 18, 20, 22)))
    >>> unseen.length, round(unseen.queries, 6), unseen.beliefs  # 25.4 queries would do if the clock was seen
    (33.0, 29.0, 1566)
    """
    env = waiting_env_of(waiting_env)
    tables = enumerate_env(env, limit)
    steps = horizon_of(env) if horizon is None else horizon
    if steps is None:
        raise SettingError("this environment has no time limit of its own; give a horizon in primitive steps")
    return plan_tables(tables, env.decisions, steps, Objective.named(objective, lam), env.gamma, belief_limit)


def plan_tables(
    tables: Tables,
    decisions: Decisions,
    horizon: int,
    objective: Objective,
    gamma: float = 1.0,
    belief_limit: int = BELIEF_LIMIT,
) -> Plan:
    """Return the exact optimum of transition tables."""
    if horizon < 1:
        raise SettingError(f"horizon = {horizon} is not allowed; give at least 1 primitive step")
    channels = Channels.of(objective, gamma)
    if not tables.fully_observed:
        return _plan_beliefs(tables, decisions, horizon, objective, channels, gamma, belief_limit)
    if horizon * tables.n_states > LARGEST:
        raise FinitenessError(
            f"{tables.n_states:,} states times a horizon of {horizon:,} steps is more than {LARGEST:,}; "
            "give a shorter horizon"
        )
    _check_memory(tables.n_states, horizon, len(channels.discount), max(decisions.durations, default=0))
    # committed[s, c, j] is channel c of C_j(t+1, s), and becomes C_j(t, s) in following; the last row is the end: 0.
    longest = max(decisions.durations, default=0)
    committed, following = np.zeros((2, tables.n_states + 1, len(channels.discount), longest + 1))
    here, best = np.empty((2, len(channels.discount)))
    table = np.empty((horizon, tables.n_states), dtype=np.int16)
    swaps = _backward(
        channels.K,
        tables.offsets,
        tables.probability,
        tables.next_state,
        tables.reward[:, None] * channels.of_reward + channels.per_step,
        channels.per_query,
        channels.discount,
        len(decisions.actions),
        decisions.wait,
        np.array(decisions.durations, dtype=np.int64),
        decisions.costs_of,
        TIE,
        committed,
        following,
        here,
        best,
        table,
    )
    values = (following if swaps % 2 else committed)[:, :, 0]
    at_start = values[tables.start_state]
    expected = tables.start_probability @ at_start
    return Plan(
        objective=objective,
        length=float(expected[channels.K + 2]),
        queries=float(expected[channels.K + 1]),
        task_return=float(expected[channels.K]),
        values=at_start[:, : channels.K],
        states=tables.n_states + tables.n_terminal,
        horizon=horizon,
        policy=PlanPolicy(table, decisions, tables),
        decisions=_likeliest_episode(tables, decisions, table),
    )


def _check_memory(states: int, horizon: int, channels: int, longest: int) -> None:
    """Raise where the plan of that many states would not fit into the machine's memory."""
    needed, memory = 2 * horizon * states + 2 * 8 * (states + 1) * channels * (longest + 1), _memory()
    if memory is not None and needed > memory:
        raise FinitenessError(
            f"planning for {states:,} states over {horizon:,} steps with waits of up to {longest:,} needs "
            f"{needed / 1e9:.1f} GB, and this machine has {memory / 1e9:.1f} GB; "
            "leave out the longest waits, give a shorter horizon, or learn"
        )


def _memory() -> int | None:
    """Return the bytes of memory that the machine has; None where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _plan_beliefs(
    tables: Tables,
    decisions: Decisions,
    horizon: int,
    objective: Objective,
    channels: Channels,
    gamma: float,
    limit: int,
) -> Plan:
    """Return the exact optimum of policies that do not see the state."""
    beliefs = enumerate_beliefs(tables, decisions, horizon, gamma, limit)
    table, values = best_decisions(beliefs, decisions, horizon, channels)
    at_start = values[beliefs.start_belief]
    expected = beliefs.start_probability @ at_start
    return Plan(
        objective=objective,
        length=float(expected[channels.K + 2]),
        queries=float(expected[channels.K + 1]),
        task_return=float(expected[channels.K]),
        values=at_start[:, : channels.K],
        states=tables.n_states + tables.n_terminal,
        horizon=horizon,
        policy=BeliefPolicy(table, decisions, tables, beliefs),
        decisions=likeliest_episode(beliefs, decisions, table),
        beliefs=beliefs.n,
    )


@compiled
def _backward(
    K: int,
    offsets: NDArray[np.int64],
    probability: NDArray[np.float64],
    next_state: NDArray[np.int64],
    rewards: NDArray[np.float64],
    per_query: NDArray[np.float64],
    discount: NDArray[np.float64],
    n_actions: int,
    wait: int,
    durations: NDArray[np.int64],
    costs: NDArray[np.float64],
    tie: float,
    committed: NDArray[np.float64],
    following: NDArray[np.float64],
    here: NDArray[np.float64],
    best: NDArray[np.float64],
    table: NDArray[np.int16],
) -> int:
    """Write the decisions `(H, S)` and the values, in `committed` after an even number of swaps, which is returned."""
    H, S = table.shape
    C, longest = committed.shape[1], committed.shape[2] - 1
    unchanged, swaps = 0, 0
    for t in range(H - 1, -1, -1):
        changed = False
        for s in range(S):
            row = s * n_actions + wait
            for i in range(offsets[row], offsets[row + 1]):
                p, after = probability[i], next_state[i]
                for c in range(C):
                    r, gamma, kept = p * rewards[i, c], p * discount[c], 0.0 if i == offsets[row] else 1.0
                    for j in range(longest):
                        following[s, c, j + 1] = kept * following[s, c, j + 1] + r + gamma * committed[after, c, j]
            for u in range(n_actions + len(durations)):
                for c in range(C):
                    here[c] = per_query[c] * (costs[u] if c < K else 1.0)
                if u < n_actions:
                    row = s * n_actions + u
                    for i in range(offsets[row], offsets[row + 1]):
                        p, after = probability[i], next_state[i]
                        for c in range(C):
                            here[c] += p * (rewards[i, c] + discount[c] * committed[after, c, 0])
                else:
                    for c in range(C):
                        here[c] += following[s, c, durations[u - n_actions]]
                if u == 0 or better(here, best, K, tie):
                    for c in range(C):
                        best[c] = here[c]
                    table[t, s] = u
            for c in range(C):
                changed = changed or best[c] != committed[s, c, 0]
                following[s, c, 0] = best[c]
        committed, following = following, committed
        swaps += 1
        # Nothing in the recursion but V knows the time: where V stood still for as long as the longest wait, it stays.
        unchanged = 0 if changed else unchanged + 1
        if unchanged > longest:
            for earlier in range(t):
                for s in range(S):
                    table[earlier, s] = table[t, s]
            break
    return swaps


def _likeliest_episode(tables: Tables, decisions: Decisions, table: NDArray[np.int16]) -> list[int]:
    """Return the decisions from the likeliest start when always the likeliest outcome happens."""
    s = int(tables.start_state[np.argmax(tables.start_probability)])
    t, chosen = 0, []
    while t < len(table) and s != tables.end:
        u = int(table[t, s])
        chosen.append(u)
        for _ in range(int(decisions.durations_of[u])):
            row = s * tables.n_actions + int(decisions.actions_of[u])
            span = slice(tables.offsets[row], tables.offsets[row + 1])
            s = int(tables.next_state[span][np.argmax(tables.probability[span])])
            t += 1
            if s == tables.end or t >= len(table):
                break
    return chosen
