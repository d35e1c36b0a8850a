"""The exact optimum where states are hidden: backward induction over (time, belief), decision by decision.

A policy that sees observations alone knows a *belief*, a distribution over states (Åström 1965; Kaelbling, Littman and
Cassandra 1998). In a waiting MDP it is revised only where a decision ends: inside a wait nothing is observed. So a wait
of `w` steps is no composition of observed steps; the belief goes through `w` unobserved steps of the wait action, and
the observation after the last one splits it::

    b_0 = b,   b_{j+1}(s') = Σ_s b_j(s) P(s' | s, wait),   terminal states leave b
    b' = b_w restricted to the states that look like o, with probability P(o) = Σ b_w(those states)
    V_t(b) = best over decisions u of  E[rewards of u from b] + query + γ^w Σ_o P(o) V_{t+w}(b'_o),   V_t = 0 for t ≥ H

Rewards are not observed. The beliefs that can be reached from the starts before the horizon are enumerated. They are
few where what is hidden is a clock, a count or a choice that was drawn, and may otherwise grow with the horizon without
end: then a limit is met.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions
from letitcook.core.jit import compiled
from letitcook.errors import FinitenessError, SettingError
from letitcook.finite.channels import LARGEST, TIE, Channels, better
from letitcook.finite.tables import Tables, observation_key

BELIEF_LIMIT = 200_000
"""The largest number of beliefs that is tried."""
DIGITS = 10
"""Decimal places to which the probabilities of equal beliefs agree."""

Weighed = dict[int, float]
"""States with their weights."""


@dataclass(frozen=True)
class Beliefs:
    """Every reachable belief, and what each decision makes of it.

    Decision `u` leads from belief `b` to the rows `offsets[b * U + u]` up to the next offset of `probability` and
    `next_belief`; what is missing to 1 is the probability that the episode ends.

    >>> from letitcook import enumerate_env, make
    >>> env = make("cook", hidden=True)
    >>> found = enumerate_beliefs(enumerate_env(env), env.decisions, horizon=200)
    >>> found.n, max(len(belief) for belief in found.weighed)  # with one cook time, a count of steps tells it all
    (1278, 1)
    """

    weighed: list[Weighed]
    """The states of each belief, by number, with their probabilities."""
    rows: NDArray[np.int64]
    """The observation of each belief, as numbered by `Tables.rows`."""
    start_belief: NDArray[np.int64]
    start_probability: NDArray[np.float64]
    offsets: NDArray[np.int64]
    probability: NDArray[np.float64]
    next_belief: NDArray[np.int64]
    acted: NDArray[np.float64]
    """Expected reward of one step of each primitive action, `(B, A)`."""
    waited: NDArray[np.float64]
    """Expected discounted reward, reward and steps of `j` steps of waiting, `(B, longest + 1, 3)`."""

    @property
    def n(self) -> int:
        """How many beliefs there are."""
        return len(self.weighed)


class _Search:
    """A search through the beliefs, in the order of the time at which they can be met."""

    def __init__(self, tables: Tables, decisions: Decisions, gamma: float, limit: int) -> None:
        self._decisions = decisions
        self._gamma = gamma
        self._limit = limit
        self._row_of: list[int] = tables.rows.tolist()
        self._outcomes = _outcomes(tables)
        self._n_actions = tables.n_actions
        self._longest = decisions.durations[-1] if decisions.durations else 0
        self._number: dict[Hashable, int] = {}
        self.weighed: list[Weighed] = []
        self.leads: list[list[list[tuple[float, int]]]] = []
        """Of each belief and decision, the probability and the number of the beliefs it leads to."""
        self.acted: list[list[float]] = []
        self.waited: list[list[tuple[float, float, float]]] = []

    def split(self, weights: Weighed) -> list[tuple[float, int]]:
        """Return what an observation makes of weights: the probability and the number of each belief."""
        seen: dict[int, Weighed] = {}
        for state, p in weights.items():
            seen.setdefault(self._row_of[state], {})[state] = p
        return [self._numbered(part) for part in seen.values()]

    def _numbered(self, weights: Weighed) -> tuple[float, int]:
        total = sum(weights.values())
        belief = {state: p / total for state, p in weights.items()}
        key = tuple(sorted((state, round(p, DIGITS)) for state, p in belief.items()))
        if key not in self._number:
            if len(self.weighed) >= self._limit:
                raise FinitenessError(
                    f"more than {self._limit:,} beliefs can be reached: without seeing its state, this environment is "
                    "too large to plan exactly; hide less, give fewer durations, or learn with a memory "
                    "(letitcook.learn(env, memory=...))"
                )
            self._number[key] = len(self.weighed)
            self.weighed.append(belief)
            self.leads.append([[]] * self._decisions.n)
            self.acted.append([0.0] * self._n_actions)
            self.waited.append([(0.0, 0.0, 0.0)] * (self._longest + 1))
        return total, self._number[key]

    def run(self, starts: Iterable[int], horizon: int) -> None:
        """Expand every belief that can be met before the horizon, in the order of the earliest time."""
        queue = [(0, belief) for belief in starts]
        durations, expanded = self._decisions.durations_of.tolist(), set[int]()
        while queue:
            time, belief = heappop(queue)
            if belief in expanded or time >= horizon:
                continue
            expanded.add(belief)
            self._expand(belief)
            for lead, steps in zip(self.leads[belief], durations, strict=True):
                for _, following in lead:
                    if following not in expanded:
                        heappush(queue, (time + steps, following))

    def _expand(self, number: int) -> None:
        """Try every decision in a belief."""
        belief, U = self.weighed[number], self._decisions
        rewards, leads = [], []
        for action in range(len(U.actions)):
            after, reward = self._stepped(belief, action)
            rewards.append(reward)
            leads.append(self.split(after))
        weights, gained, alive, discount = belief, [(0.0, 0.0, 0.0)], 1.0, 1.0
        for steps in range(1, self._longest + 1):
            weights, reward = self._stepped(weights, U.wait)
            discounted, total, length = gained[-1]
            gained.append((discounted + discount * reward, total + reward, length + alive))
            alive, discount = sum(weights.values()), discount * self._gamma
            if steps in U.durations:
                leads.append(self.split(weights))
        self.leads[number], self.acted[number], self.waited[number] = leads, rewards, gained

    def _stepped(self, weights: Weighed, action: int) -> tuple[Weighed, float]:
        """Return the weights after an unobserved step, without what ended, and the expected reward."""
        after: Weighed = {}
        gained = 0.0
        for state, p in weights.items():
            for q, following, reward in self._outcomes[state * self._n_actions + action]:
                gained += p * q * reward
                if following >= 0:
                    after[following] = after.get(following, 0.0) + p * q
        return after, gained


def _outcomes(tables: Tables) -> list[list[tuple[float, int, float]]]:
    """Return probability, next state (-1 for the end) and reward of each state's and action's outcomes."""
    nexts = np.where(tables.next_state == tables.end, -1, tables.next_state).tolist()
    rows = list(zip(tables.probability.tolist(), nexts, tables.reward.tolist(), strict=True))
    bounds = tables.offsets.tolist()
    return [rows[bounds[i] : bounds[i + 1]] for i in range(len(bounds) - 1)]


def enumerate_beliefs(
    tables: Tables, decisions: Decisions, horizon: int, gamma: float = 1.0, limit: int = BELIEF_LIMIT
) -> Beliefs:
    """Return every belief that can be reached from the starts by any decisions before the horizon."""
    search = _Search(tables, decisions, gamma, limit)
    starts: Weighed = {}
    for state, p in zip(tables.start_state.tolist(), tables.start_probability.tolist(), strict=True):
        starts[state] = starts.get(state, 0.0) + p
    begun = search.split(starts)
    search.run((belief for _, belief in begun), horizon)
    leads = [lead for of_belief in search.leads for lead in of_belief]
    pairs = [pair for lead in leads for pair in lead]
    return Beliefs(
        weighed=search.weighed,
        rows=tables.rows[[next(iter(belief)) for belief in search.weighed]],
        start_belief=np.array([belief for _, belief in begun], dtype=np.int64),
        start_probability=np.array([p for p, _ in begun]),
        offsets=np.cumsum([0, *(len(lead) for lead in leads)], dtype=np.int64),
        probability=np.array([p for p, _ in pairs]),
        next_belief=np.array([belief for _, belief in pairs], dtype=np.int64),
        acted=np.array(search.acted),
        waited=np.array(search.waited),
    )


def best_decisions(
    beliefs: Beliefs, decisions: Decisions, horizon: int, channels: Channels
) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """Return the best decision at each time and belief, `(H, B)`, and the channels' values at time 0, `(B, C)`."""
    longest = beliefs.waited.shape[1]
    if max(horizon, longest * len(channels.discount)) * beliefs.n > LARGEST:
        raise FinitenessError(
            f"{beliefs.n:,} beliefs times a horizon of {horizon:,} steps is more than {LARGEST:,}; "
            "give a shorter horizon, or shorter waits"
        )
    discounted, plain, steps = (beliefs.waited[:, :, i, None] for i in range(3))
    reward = np.where(channels.discount < 1.0, discounted, plain)
    return _backward(
        horizon,
        channels.K,
        beliefs.offsets,
        beliefs.probability,
        beliefs.next_belief,
        beliefs.acted[:, :, None] * channels.of_reward + channels.per_step,
        reward * channels.of_reward + steps * channels.per_step,
        channels.per_query,
        channels.discount[None, :] ** decisions.durations_of[:, None],
        decisions.durations_of,
        decisions.costs_of,
        TIE,
    )


@compiled
def _backward(
    H: int,
    K: int,
    offsets: NDArray[np.int64],
    probability: NDArray[np.float64],
    next_belief: NDArray[np.int64],
    acted: NDArray[np.float64],
    waited: NDArray[np.float64],
    per_query: NDArray[np.float64],
    discount: NDArray[np.float64],
    durations: NDArray[np.int64],
    costs: NDArray[np.float64],
    tie: float,
) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """Return the decisions `(H, B)` and the channels' values at time 0 `(B, C)`."""
    B, A, C = acted.shape
    U, longest = len(durations), max(durations[-1], 1)
    values = np.zeros((longest + 1, B, C))  # of the times t to t + longest, each at its remainder
    table = np.empty((H, B), dtype=np.int16)
    here, best = np.empty(C), np.empty(C)
    unchanged = 0
    for t in range(H - 1, -1, -1):
        now, before = t % (longest + 1), (t + 1) % (longest + 1)
        changed = False
        for b in range(B):
            for u in range(U):
                steps = min(durations[u], H - t)
                for c in range(C):
                    query = per_query[c] * (costs[u] if c < K else 1.0)
                    here[c] = query + (acted[b, u, c] if u < A else waited[b, steps, c])
                if t + steps < H:
                    then = (t + steps) % (longest + 1)
                    for i in range(offsets[b * U + u], offsets[b * U + u + 1]):
                        for c in range(C):
                            here[c] += probability[i] * discount[u, c] * values[then, next_belief[i], c]
                if u == 0 or better(here, best, K, tie):
                    for c in range(C):
                        best[c] = here[c]
                    table[t, b] = u
            for c in range(C):
                changed = changed or best[c] != values[before, b, c]
                values[now, b, c] = best[c]
        # Where no wait is cut by the horizon, only the values know the time: if they stood still for as long as the
        # longest wait, they stay.
        unchanged = unchanged + 1 if not changed and t <= H - longest else 0
        if unchanged > longest:
            for earlier in range(t):
                for b in range(B):
                    table[earlier, b] = table[t, b]
            return table, values[now].copy()
    return table, values[0].copy()


class BeliefPolicy:
    """An exact policy that sees observations alone; its `state` is the time, the belief, and its last decision."""

    def __init__(self, table: NDArray[np.int16], decisions: Decisions, tables: Tables, beliefs: Beliefs) -> None:
        self.table = table
        self.decisions = decisions
        self.beliefs = beliefs
        self._states = tables.states
        self._row = {observation_key(o): row for o, row in zip(tables.observations, tables.rows.tolist(), strict=True)}
        self._durations = decisions.durations_of.tolist()

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, tuple[int, int, int]]:
        """Return the optimal decision; the state is the time when the next one is due, the belief and the decision."""
        fresh = state is None or (episode_start is not None and bool(np.any(episode_start)))
        time = 0 if fresh else int(state[0])
        if time >= len(self.table):
            raise SettingError(f"time {time} is past the horizon of {len(self.table)} steps; start a new episode")
        belief = self._seen(observation, None if fresh else state)
        decision = int(self.table[time, belief])
        return decision, (time + self._durations[decision], belief, decision)

    def _seen(self, observation: Any, state: tuple[int, int, int] | None) -> int:
        """Return the belief that an observation leads to."""
        row = self._row.get(observation_key(observation))
        if state is None:
            possible: Iterable[int] = self.beliefs.start_belief.tolist()
        else:
            at = state[1] * self.decisions.n + state[2]
            possible = self.beliefs.next_belief[self.beliefs.offsets[at] : self.beliefs.offsets[at + 1]].tolist()
        for belief in possible:
            if self.beliefs.rows[belief] == row:
                return belief
        raise FinitenessError(
            f"observation {observation!r} cannot follow what this policy has seen and done in the episode; "
            "pass the state that it returned, or None at an episode's begin"
        )

    def belief(self, state: tuple[int, int, int]) -> list[tuple[float, Hashable]]:
        """Return what was believed when the decision of `state` was taken: probabilities and states, likeliest first.

        >>> from letitcook import make, plan
        >>> env = make("cook", hidden=True)
        >>> _, state = plan(env).policy.predict(env.reset(seed=0)[0])
        >>> [(p, state.phase) for p, state in plan(env).policy.belief(state)]
        [(1.0, 0)]
        """
        weights = self.beliefs.weighed[state[1]]
        return sorted(((p, self._states[s]) for s, p in weights.items()), key=lambda pair: -pair[0])


def likeliest_episode(beliefs: Beliefs, decisions: Decisions, table: NDArray[np.int16]) -> list[int]:
    """Return the decisions from the likeliest first observation when always the likeliest one follows."""
    b = int(beliefs.start_belief[np.argmax(beliefs.start_probability)])
    t, chosen = 0, []
    while t < len(table):
        u = int(table[t, b])
        chosen.append(u)
        at = b * decisions.n + u
        span = slice(beliefs.offsets[at], beliefs.offsets[at + 1])
        probability = beliefs.probability[span]
        if len(probability) == 0 or probability.max() < 1.0 - probability.sum():
            break
        b, t = int(beliefs.next_belief[span][np.argmax(probability)]), t + int(decisions.durations_of[u])
    return chosen
