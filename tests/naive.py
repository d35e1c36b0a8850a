"""Slow, obvious twins of the fast code."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from letitcook.core.decisions import Decisions
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import Tables

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1


class SplitMix64:
    """The published generator, on Python's whole numbers."""

    def __init__(self, seed: int) -> None:
        self.state = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])

    def bits(self) -> int:
        self.state = (self.state + GOLDEN) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def float(self) -> float:
        return (self.bits() >> 11) / 2**53

    def below(self, n: int) -> int:
        return int(self.float() * n)


def lex_argmax(q: list[list[float]], slack: float) -> int:
    """Lex-Argmax as the paper prints it: the admissible set, then the argmax; ties to the lowest index."""
    admissible = list(range(len(q[0])))
    for k, row in enumerate(q):
        best = max(row[u] for u in admissible)
        if k == len(q) - 1:
            return next(u for u in admissible if row[u] == best)
        admissible = [u for u in admissible if row[u] >= best - slack]
    raise AssertionError


class World:
    """PythonDriver through tables, drawing outcomes as the kernel does."""

    def __init__(self, tables: Tables, rng: SplitMix64) -> None:
        self.tables, self.rng = tables, rng

    def draw(self, probabilities: list[float]) -> int:
        if len(probabilities) == 1:
            return 0
        x = self.rng.float()
        total = 0.0
        for i, p in enumerate(probabilities[:-1]):
            total += p
            if x < total:
                return i
        return len(probabilities) - 1

    def reset(self) -> int:
        return int(self.tables.start_state[self.draw(self.tables.start_probability.tolist())])

    def step(self, s: int, a: int) -> tuple[int, float]:
        t = self.tables
        span = slice(t.offsets[s * t.n_actions + a], t.offsets[s * t.n_actions + a + 1])
        i = self.draw(t.probability[span].tolist())
        return int(t.next_state[span][i]), float(t.reward[span][i])


def lq_learning(
    tables: Tables,
    decisions: Decisions,
    H: int,
    weights: Any,
    settings: QSettings,
    steps: int,
    seed: int,
    episodes: list[tuple[float, ...]] | None = None,
) -> np.ndarray:
    """Algorithm 1, literally, with the same random numbers as the kernel: Q as `(states, K, decisions)`.

    Into `episodes` go length, queries, task return and steps in waits of each episode that has ended.
    """
    assert tables.fully_observed
    rng = SplitMix64(seed)
    world = World(tables, rng)
    K, n = len(weights), decisions.n
    Q = [[[float(settings.initial)] * n for _ in range(K)] for _ in range(tables.n_states)]
    Q.append([[0.0] * n for _ in range(K)])  # the end is worth nothing
    visits: dict[tuple[int, int], int] = {}
    followed: dict[tuple[int, int], dict[int, list[float]]] = {}  # next state: how often, mean reward, mean discount
    done, decided = 0, 0
    s = world.reset()
    while True:
        t = 0
        rewards: list[float] = []
        taken: list[tuple[int, int, int]] = []
        path = [s]

        def update(
            i: int, j: int, u: int, alpha: float, new: bool, path: list[int] = path, rewards: list[float] = rewards
        ) -> None:
            G, discount = 0.0, 1.0
            for r in rewards[i:j]:
                G += discount * r
                discount *= settings.gamma
            if j == H and not settings.bootstrap_on_truncation:
                discount = 0.0
            before, after = path[i], path[j]
            if settings.visit_power > 0:
                visits[before, u] = visits.get((before, u), 0) + 1
                alpha = alpha / visits[before, u] ** settings.visit_power
            if new and settings.backup == "full":
                of = followed.setdefault((before, u), {}).setdefault(after, [0, 0.0, 0.0])
                of[0] += 1
                of[1] += (G - of[1]) / of[0]
                of[2] += (discount - of[2]) / of[0]
            for k in range(K):

                def worth(state: int, k: int = k) -> float:
                    seen = Q[state] if settings.bootstrap == "lexicographic" else Q[state][: k + 1]
                    return Q[state][k][lex_argmax(seen, settings.slack)]

                if settings.backup == "full":
                    total = 0.0
                    for state, (times, gain, left) in followed[before, u].items():
                        total += times * (
                            weights[k][0] * gain - weights[k][1] * decisions.costs_of[u] + left * worth(state)
                        )
                    Q[before][k][u] = total / sum(times for times, _, _ in followed[before, u].values())
                else:
                    target = weights[k][0] * G - weights[k][1] * decisions.costs_of[u] + discount * worth(after)
                    Q[before][k][u] = (1.0 - alpha) * Q[before][k][u] + alpha * target

        def learn(i: int, j: int, u: int, alpha: float, new: bool, update: Any = update) -> None:
            waits = [v for v in range(n) if decisions.actions_of[v] == decisions.wait]
            if settings.intra_option and u in waits:
                planned = min(i + int(decisions.durations_of[u]), H)
                for a in range(j - 1, i - 1, -1):
                    for v in waits:
                        b = a + int(decisions.durations_of[v])
                        if b <= planned and (a, v) != (i, u):
                            update(a, min(b, j), v, alpha, new)
            update(i, j, u, alpha, new)

        while t < H and s != tables.end:
            if done >= steps:
                return np.array(Q[:-1])
            progress = min(1.0, (decided if settings.timestep == "decision" else done) / settings.schedule)
            alpha, epsilon = settings.alpha, settings.epsilon
            if settings.alpha_end is not None:
                alpha = settings.alpha + progress * (settings.alpha_end - settings.alpha)
            if settings.epsilon_end is not None:
                epsilon = settings.epsilon + progress * (settings.epsilon_end - settings.epsilon)
            explore = rng.float() < epsilon
            if explore:
                u = rng.below(n)
            else:
                u = lex_argmax(Q[s], settings.slack)
                if settings.ties == "random":
                    u = random_tie(Q[s], u, settings.slack, rng)
            begun = t
            for _ in range(int(decisions.durations_of[u])):
                if t >= H or s == tables.end:
                    break
                s, r = world.step(s, int(decisions.actions_of[u]))
                rewards.append(r)
                t += 1
                path.append(s)
            taken.append((begun, t, u))
            learn(begun, t, u, alpha, True)
            done, decided = done + t - begun, decided + 1
        if episodes is not None:
            waited = sum(b - a for a, b, u in taken if decisions.actions_of[u] == decisions.wait)
            episodes.append((len(rewards), len(taken), sum(rewards), waited))
        if settings.backward_replay:
            for begun, ended, u in reversed(taken):
                learn(begun, ended, u, alpha, False)
        s = world.reset()


def greedy_episodes(tables: Tables, decisions: Decisions, H: int, Q: Any, slack: float, n: int, seed: int) -> Any:
    """Return task return, length, queries, base queries and steps in each decision of greedy episodes."""
    world, rows = World(tables, SplitMix64(seed)), []
    for _ in range(n):
        s, t, task, queries, base, steps = world.reset(), 0, 0.0, 0, 0, [0.0] * decisions.n
        while t < H and s != tables.end:
            u = lex_argmax(Q[s].tolist(), slack)
            queries, base = queries + 1, base + (decisions.has_base and u == 0)
            for _ in range(int(decisions.durations_of[u])):
                if t >= H or s == tables.end:
                    break
                s, r = world.step(s, int(decisions.actions_of[u]))
                task, t = task + r, t + 1
                steps[u] += 1
        rows.append([task, t, queries, base, *steps])
    return np.array(rows)


def random_tie(q: list[list[float]], choice: int, slack: float, rng: SplitMix64) -> int:
    """Any of the decisions that are as good as `choice`, by reservoir sampling."""
    admissible = list(range(len(q[0])))
    for row in q[:-1]:
        best = max(row[u] for u in admissible)
        admissible = [u for u in admissible if row[u] >= best - slack]
    equal = [u for u in admissible if q[-1][u] == q[-1][choice]]
    picked = equal[0]
    for found, u in enumerate(equal[1:], start=2):
        if rng.below(found) == 0:
            picked = u
    return picked


def plan_value(tables: Tables, decisions: Decisions, H: int, better: Any) -> tuple[float, float]:
    """Return the best expected `(J0, J1)` by plain recursion over (time, state)."""
    memo: dict[tuple[int, int], tuple[float, float]] = {}

    def outcomes(s: int, a: int) -> list[tuple[float, int, float]]:
        row = s * tables.n_actions + a
        span = range(int(tables.offsets[row]), int(tables.offsets[row + 1]))
        return [(float(tables.probability[i]), int(tables.next_state[i]), float(tables.reward[i])) for i in span]

    def committed(t: int, s: int, left: int) -> tuple[float, float]:
        if s == tables.end or t == H:
            return 0.0, 0.0
        if left == 0:
            return value(t, s)
        parts = [(p, r, committed(t + 1, after, left - 1)) for p, after, r in outcomes(s, decisions.wait)]
        return sum(p * (r + v[0]) for p, r, v in parts), sum(p * v[1] for p, _, v in parts)

    def value(t: int, s: int) -> tuple[float, float]:
        if s == tables.end or t == H:
            return 0.0, 0.0
        if (t, s) not in memo:
            best = None
            for u in range(decisions.n):
                if u < len(decisions.actions):
                    parts = [(p, r, value(t + 1, after)) for p, after, r in outcomes(s, u)]
                    here = sum(p * (r + v[0]) for p, r, v in parts), sum(p * v[1] for p, _, v in parts)
                else:
                    here = committed(t, s, int(decisions.durations_of[u]))
                here = here[0], here[1] - 1.0
                if best is None or better(here, best):
                    best = here
            assert best is not None
            memo[t, s] = best
        return memo[t, s]

    starts = list(zip(tables.start_probability.tolist(), tables.start_state.tolist(), strict=True))
    return tuple(sum(p * value(0, s)[k] for p, s in starts) for k in range(2))


def timed_policy_values(tables: Tables, decisions: Decisions, H: int, table: Any, gamma: float) -> Any:
    """Return what a policy that goes by time and state is worth from each state, `(states, 5)`.

    That is task return and queries under the discount, then task return, queries and length without it. `table[t, s]`
    is the decision.
    """
    value = np.zeros((H + 1, tables.n_states + 1, 5))
    factors = np.array([gamma, gamma, 1.0, 1.0, 1.0])
    for t in range(H - 1, -1, -1):
        for s in range(tables.n_states):
            u = int(table[t, s])
            where, total, now = {s: 1.0}, np.array([0.0, 1.0, 0.0, 1.0, 0.0]), np.ones(5)
            steps = min(int(decisions.durations_of[u]), H - t)
            for _ in range(steps):
                after: dict[int, float] = {}
                for state, p in where.items():
                    if state == tables.end:
                        continue
                    row = state * tables.n_actions + int(decisions.actions_of[u])
                    for i in range(tables.offsets[row], tables.offsets[row + 1]):
                        q, r = p * tables.probability[i], tables.reward[i]
                        total = total + now * q * np.array([r, 0.0, r, 0.0, 1.0])
                        after[int(tables.next_state[i])] = after.get(int(tables.next_state[i]), 0.0) + q
                where, now = after, now * factors
            value[t, s] = total + now * sum(p * value[t + steps, state] for state, p in where.items())
    return value[0, : tables.n_states]


def policy_value(tables: Tables, decisions: Decisions, H: int, table: Any, gamma: float) -> tuple[float, float]:
    """Return `(J0, J1)` of a policy that knows no clock, exactly, from the end of time to its beginning."""
    n, end = tables.n_actions, tables.end
    value = [[(0.0, 0.0)] * (end + 1) for _ in range(H + 1)]
    for t in range(H - 1, -1, -1):
        for s in range(tables.n_states):
            u = int(table[tables.rows[s]])
            left, action = min(int(decisions.durations_of[u]), H - t), int(decisions.actions_of[u])
            where, task, discount = {s: 1.0}, 0.0, 1.0
            for _ in range(left):
                after: dict[int, float] = {}
                for state, chance in where.items():
                    if state == end:
                        after[end] = after.get(end, 0.0) + chance
                        continue
                    for i in range(tables.offsets[state * n + action], tables.offsets[state * n + action + 1]):
                        p, s2 = chance * float(tables.probability[i]), int(tables.next_state[i])
                        task += discount * p * float(tables.reward[i])
                        after[s2] = after.get(s2, 0.0) + p
                where, discount = after, discount * gamma
            task += discount * sum(p * value[t + left][s2][0] for s2, p in where.items())
            waiting = -1.0 + discount * sum(p * value[t + left][s2][1] for s2, p in where.items())
            value[t][s] = task, waiting
    starts = list(zip(tables.start_probability.tolist(), tables.start_state.tolist(), strict=True))
    return sum(p * value[0][s][0] for p, s in starts), sum(p * value[0][s][1] for p, s in starts)


def network_values(network: Any, sizes: Any, x: Any) -> Any:
    """Return what a network, a flat row of weights `(out, in)` and biases by layer, says of `x`."""
    h, at = x.astype(float), 0
    for n_in, n_out in pairwise(sizes):
        weights = network[at : at + n_in * n_out].reshape(n_out, n_in)
        h = weights @ (h if at == 0 else np.maximum(h, 0)) + network[at + n_in * n_out : at + n_in * n_out + n_out]
        at += n_in * n_out + n_out
    return h


def dqn_round(
    parameters: Any,
    target: Any,
    sizes: Any,
    batches: Any,
    weights: Any,
    slack: float,
    rate: float,
    copy: bool,
) -> tuple[list[Any], list[Any]]:
    """Return networks and target networks after a round of skrl's DQN with K networks: a gradient step on each batch.

    Every objective follows Lex-Argmax of the target networks; where `copy`, these are replaced after every step.
    """
    networks, targets = ([np.array(row, dtype=float) for row in rows] for rows in (parameters, target))
    moments = [(np.zeros_like(row), np.zeros_like(row)) for row in networks]
    rows = range(len(batches[0].decision))
    for t, batch in enumerate(batches, start=1):
        q = [np.array([network_values(net, sizes, batch.next_observation[i]) for i in rows]) for net in targets]
        best = [lex_argmax([values[i].tolist() for values in q], slack) for i in rows]
        for k, network in enumerate(networks):
            y = [weights[k] @ batch.reward[i] + batch.discount[i] * q[k][i, best[i]] for i in rows]
            slope = np.mean(
                [_slope(network, sizes, batch.observation[i], batch.decision[i], y[i]) for i in rows], axis=0
            )
            m, v = moments[k]
            m[:] = 0.9 * m + 0.1 * slope
            v[:] = 0.999 * v + 0.001 * slope**2
            network[:] -= rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        if copy:
            targets = [network.copy() for network in networks]
    return networks, targets


def _slope(network: Any, sizes: Any, x: Any, taken: int, y: float) -> Any:
    """Return the gradient of `(Q(x, taken) - y)²` by the network's parameters, layer by layer from the last."""
    cuts, at = [], 0
    for n_in, n_out in pairwise(sizes):
        cuts.append((at, at + n_in * n_out, at + n_in * n_out + n_out, n_out, n_in))
        at = cuts[-1][2]
    h = [x.astype(float)]
    for n, (a, b, c, n_out, n_in) in enumerate(cuts):
        z = network[a:b].reshape(n_out, n_in) @ h[-1] + network[b:c]
        h.append(z if n == len(cuts) - 1 else np.maximum(z, 0))
    delta = np.zeros(sizes[-1])
    delta[taken] = 2 * (h[-1][taken] - y)
    slope = np.zeros_like(network)
    for n in range(len(cuts) - 1, -1, -1):
        a, b, c, n_out, n_in = cuts[n]
        slope[a:b], slope[b:c] = np.outer(delta, h[n]).ravel(), delta
        delta = (network[a:b].reshape(n_out, n_in).T @ delta) * (h[n] > 0)
    return slope


def best_over_histories(tables: Tables, decisions: Decisions, horizon: int, weights: Any, gamma: float = 1.0) -> Any:
    """Return the best value `(K,)` of a policy that sees observations alone, by trying all decisions in all histories.

    What a policy can know is its history; every path of states that fits it is kept with its probability, and paths
    are never merged.
    """
    rows = tables.rows.tolist()

    def value(paths: list[tuple[float, int]], t: int) -> Any:
        """Return the value of all that can still happen to these paths `(probability, state)`, not divided by it."""
        zero = np.zeros(len(weights))
        if t >= horizon or not paths:
            return zero
        best = None
        for u in range(decisions.n):
            steps = min(int(decisions.durations_of[u]), horizon - t)
            here = -np.asarray(weights)[:, 1] * sum(p for p, _ in paths)
            now = paths
            for j in range(steps):
                after = []
                for p, s in now:
                    row = s * tables.n_actions + int(decisions.actions_of[u])
                    for i in range(tables.offsets[row], tables.offsets[row + 1]):
                        q = p * tables.probability[i]
                        here = here + np.asarray(weights)[:, 0] * q * tables.reward[i] * gamma**j
                        if tables.next_state[i] != tables.end:
                            after.append((q, int(tables.next_state[i])))
                now = after
            for seen in sorted({rows[s] for _, s in now}):
                here = here + gamma**steps * value([(p, s) for p, s in now if rows[s] == seen], t + steps)
            if best is None or _better_value(here, best):
                best = here
        return best

    starts = list(zip(tables.start_probability.tolist(), tables.start_state.tolist(), strict=True))
    return sum(value([(p, s) for p, s in starts if rows[s] == row], 0) for row in sorted({rows[s] for _, s in starts}))


def _better_value(a: Any, b: Any) -> bool:
    for x, y in zip(a, b, strict=True):
        if abs(x - y) > 1e-9 * max(1.0, abs(y)):
            return bool(x > y)
    return False
