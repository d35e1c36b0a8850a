"""Algorithm 1 of the paper, LQ-learning, on transition tables.

One kernel with `K` objectives in order of importance serves every method: lexicographic is K = 2 with rewards
`(task, waiting)`, scalarised is K = 1 with `task + λ waiting`, vanilla is K = 1 with `task` and no waits. `Q` is
`(rows, K, decisions)`; its last row stands for the end of the episode and stays 0.

For one decision `u` in state `s` that took `e` steps with task reward `G` and led to `s'`::

    Q^k[s, u] ← (1 - α) Q^k[s, u] + α (G^k + γ^e Q^k[s', argmax^k(s')]),   k = 0, 1, ..., K-1

where `argmax^k` is the lexicographic argmax over objectives `0..k`, so that `Q^0` is maximised and `Q^1` follows the
decision that Lex-Argmax would take. `Q^0` is written before `Q^1` bootstraps, which shows where `s' = s`. So it is
printed; `bootstrap="lexicographic"` lets every objective follow Lex-Argmax, which gives numbers nearest to the paper's.
The difference: a decision within the slack of the best that is never taken keeps what is left of its optimistic initial
value. Under the maximum this goes upstream, a little at every state, until it exceeds the slack and the longest
wait, which jumps over those states and is exact, is ruled out.

Beyond the paper, and off unless asked for:

- **sub-wait learning**: a wait of w steps passes through w+1 states; every pair of them as far apart as some wait is
  a valid experience of that shorter wait;
- **backward replay**: at the end of an episode its decisions are learned from once more, last one first, so that what
  was found at the end reaches the beginning at once;
- a **step size that falls with visits**, `α = 1 / visits^ω`, for random transitions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.errors import FileFormatError, SettingError
from letitcook.finite.policy import TablePolicy
from letitcook.finite.settings import PAPER, QSettings
from letitcook.finite.tables import Tables, observation_key
from letitcook.kernels import compiled, compiled_fast, inlined, random_below, random_float, seeded
from letitcook.lexicographic import Objective
from letitcook.totals import EPISODES as ENDED
from letitcook.totals import LENGTH, QUERIES, RETURN, WAITED, Totals
from letitcook.wmdp import WRAPPER, Decisions

Weights = tuple[tuple[float, float], ...]
"""An objective's weights as the kernel takes them: as a tuple, so that it is compiled for this number of objectives."""


class _World(NamedTuple):
    """The waiting MDP as the kernel sees it."""

    offsets: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    next_state: NDArray[np.int64]
    reward: NDArray[np.float64]
    deterministic: bool
    start_state: NDArray[np.int64]
    start_cumulative: NDArray[np.float64]
    rows: NDArray[np.int64]
    n_actions: int
    durations: NDArray[np.int64]
    actions: NDArray[np.int64]
    horizon: int
    base: int
    """The decision that asks a base policy; -1 where there is none."""


class _Rule(NamedTuple):
    """The learning rule's numbers as the kernel sees them."""

    wait: int
    horizon: int
    gamma: float
    alpha: float
    alpha_end: float
    visit_power: float
    epsilon: float
    epsilon_end: float
    schedule: float
    slack: float
    follow: bool
    random_ties: bool
    bootstrap_on_truncation: bool
    sub_waits: bool
    backward_replay: bool


class _Memory(NamedTuple):
    """What the kernel changes: values, visits, the episode so far, the clock, and room to work in."""

    Q: NDArray[np.float64]
    visits: NDArray[np.int64]
    clock: NDArray[np.int64]
    """Primitive steps, decisions, episodes so far; then the state, the time and the decisions in this episode."""
    rng: NDArray[np.uint64]
    path: NDArray[np.int64]
    """States of this episode, by time."""
    rewards: NDArray[np.float64]
    """Rewards of this episode, by time."""
    taken: NDArray[np.int64]
    """Decisions of this episode, and the times at which they were taken: `(2, H)`."""
    value: NDArray[np.float64]
    """Scratch: the values that a state is worth to each objective, `(K,)`."""
    bar: NDArray[np.float64]
    """Scratch: the least value that is good enough in each objective, `(K,)`."""


STEPS, DECISIONS, EPISODES, STATE, TIME, TAKEN = range(6)


class QLearner:
    """Q-learning with `K` objectives; advances by primitive steps, and can stop and go on anywhere.

    >>> from letitcook import make
    >>> from letitcook.finite.settings import EXACT
    >>> from letitcook.finite.tables import enumerate_env
    >>> env = make("cook", mode="wrap")
    >>> learner = QLearner(enumerate_env(env), env.decisions, 200, Objective.named("lexicographic"), EXACT, seed=0)
    >>> learner.advance(50_000)
    >>> learner.greedy_episodes(1, seed=0)[0, :4].tolist()  # task return, length, queries, base queries
    [-53.0, 53.0, 39.0, 38.0]
    """

    def __init__(
        self,
        tables: Tables,
        decisions: Decisions,
        horizon: int,
        objective: Objective,
        settings: QSettings = PAPER,
        seed: int = 0,
    ) -> None:
        if horizon < 1:
            raise SettingError(f"horizon = {horizon} is not allowed; give at least 1 primitive step")
        self.tables = tables
        self.decisions = decisions
        self.objective = objective
        self.settings = settings
        rows = int(tables.rows.max()) + 1
        K, U, H = len(objective.weights), decisions.n, horizon
        self._world = _World(
            offsets=tables.offsets,
            cumulative=_cumulative(tables.probability, tables.offsets),
            next_state=tables.next_state,
            reward=tables.reward,
            deterministic=tables.deterministic,
            start_state=tables.start_state,
            start_cumulative=np.cumsum(tables.start_probability),
            rows=np.append(tables.rows, rows),
            n_actions=tables.n_actions,
            durations=decisions.durations_of,
            actions=decisions.actions_of,
            horizon=H,
            base=0 if decisions.actions == WRAPPER else -1,
        )
        self._weights: Weights = tuple((float(task), float(waiting)) for task, waiting in objective.weights)
        s = settings
        self._rule = _Rule(
            wait=decisions.wait,
            horizon=H,
            gamma=float(s.gamma),
            alpha=float(s.alpha),
            alpha_end=float(s.alpha if s.alpha_end is None else s.alpha_end),
            visit_power=float(s.visit_power),
            epsilon=float(s.epsilon),
            epsilon_end=float(s.epsilon if s.epsilon_end is None else s.epsilon_end),
            schedule=float(s.schedule),
            slack=float(s.slack),
            follow=s.bootstrap == "lexicographic",
            random_ties=s.ties == "random",
            bootstrap_on_truncation=s.bootstrap_on_truncation,
            sub_waits=s.sub_waits,
            backward_replay=s.backward_replay,
        )
        Q = np.full((rows + 1, K, U), float(s.initial))
        Q[rows] = 0.0
        self._memory = _Memory(
            Q=Q,
            visits=np.zeros((rows + 1, U) if s.visit_power > 0.0 else (1, 1), dtype=np.int64),
            clock=np.zeros(6, dtype=np.int64),
            rng=seeded(seed),
            path=np.zeros(H + 1, dtype=np.int64),
            rewards=np.zeros(H),
            taken=np.zeros((2, H), dtype=np.int64),
            value=np.zeros(K),
            bar=np.zeros(K),
        )
        self._counts: NDArray[np.float64] | None = None
        start = _draw(self._world.start_cumulative, 0, len(tables.start_state), self._memory.rng)
        self._memory.clock[STATE] = tables.start_state[start]

    @property
    def Q(self) -> NDArray[np.float64]:  # noqa: N802 (the paper's name)
        """The values, `(rows, K, decisions)`, without the end's."""
        return self._memory.Q[:-1]

    @property
    def steps(self) -> int:
        """Primitive steps so far."""
        return int(self._memory.clock[STEPS])

    @property
    def decisions_taken(self) -> int:
        """Decisions so far."""
        return int(self._memory.clock[DECISIONS])

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended since the first call, which begins the counting."""
        if self._counts is None:
            self._counts = np.zeros(len(Totals._fields))
        return Totals(*self._counts.tolist())

    def rates(self) -> dict[str, float]:
        """Return how much it explores and learns now, by Stable-Baselines3's names."""
        rule, done = self._rule, min(1.0, self.steps / self._rule.schedule)
        return {
            "rollout/exploration_rate": rule.epsilon + done * (rule.epsilon_end - rule.epsilon),
            "train/learning_rate": rule.alpha + done * (rule.alpha_end - rule.alpha),
        }

    def advance(self, steps: int) -> None:
        """Learn for at least that many more primitive steps, to the end of the decision then under way."""
        _learn(self._world, self._rule, self._weights, self._memory, self._counts, self.steps + steps)

    def greedy_episodes(self, episodes: int, seed: int) -> NDArray[np.float64]:
        """Return task return, length, queries, base queries and steps in each decision, `(episodes, 4 + U)`.

        Where all of them would be the same, it is one.
        """
        return _evaluate(
            self._world, self._memory.Q, self._weights, self._rule.slack, self._enough(episodes), seeded(seed)
        )

    def _enough(self, episodes: int) -> int:
        return 1 if self._world.deterministic and len(self._world.start_state) == 1 else episodes

    def play(self, policy: TablePolicy, episodes: int, seed: int, apart: bool = False) -> NDArray[np.float64]:
        """Return the same of a policy that was kept; `apart` means nothing here, where no policies are compared."""
        Q = np.zeros((len(self._memory.Q), 1, self._memory.Q.shape[2]))
        Q[np.arange(len(policy.table)), 0, policy.table] = 1.0
        return _evaluate(self._world, Q, ((1.0, 0.0),), 0.0, self._enough(episodes), seeded(seed))

    @property
    def trade_offs(self) -> None:
        """None: there is but one policy."""
        return None

    def policy(self, z: float | None = None) -> TablePolicy:
        """Return the greedy policy as it is now; there is but one."""
        table = _greedy_table(self.Q, self._weights, self._rule.slack).astype(np.int16)
        first = np.unique(self.tables.rows, return_index=True)[1]
        return TablePolicy([observation_key(self.tables.observations[s]) for s in first], table)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is needed to go on later, to the same bits."""
        return {name: np.array(array) for name, array in self._memory._asdict().items()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` returned."""
        for name, array in self._memory._asdict().items():
            if name not in arrays or arrays[name].shape != array.shape:
                raise FileFormatError(f"the saved learner does not fit: {name} is missing or of another shape")
            array[...] = arrays[name]


def _cumulative(probability: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the running sums of each action's outcomes; the last one is exactly 1."""
    total = np.concatenate([[0.0], np.cumsum(probability)])
    counts = np.diff(offsets)
    cumulative: NDArray[np.float64] = total[1:] - np.repeat(total[offsets[:-1]], counts)
    cumulative[offsets[1:] - 1] = 1.0
    return cumulative


@compiled
def _learn(
    world: _World, rule: _Rule, weights: Weights, memory: _Memory, counts: NDArray[np.float64] | None, until: int
) -> None:
    """Algorithm 1 until that many primitive steps; the comments are its lines.

    Without `counts` it is compiled without the counting, which would cost some percent.
    """
    # Arrays that are passed on one by one cost nothing; inside a tuple each call would count references to all of them.
    Q, visits, clock, rng, path, rewards, taken, value, bar = memory
    next_state, reward, offsets, cumulative = world.next_state, world.reward, world.offsets, world.cumulative
    rows, durations, actions = world.rows, world.durations, world.actions
    n_actions, H, U, end = world.n_actions, world.horizon, len(durations), len(rows) - 1
    steps, decisions, s, t, n = clock[STEPS], clock[DECISIONS], clock[STATE], clock[TIME], clock[TAKEN]
    alpha, epsilon = rule.alpha, rule.epsilon
    moving = rule.alpha != rule.alpha_end or rule.epsilon != rule.epsilon_end
    greedy = _look(Q, weights, rows[s], rule.slack, rule.follow, value, bar)
    while steps < until:
        if moving:
            progress = min(1.0, steps / rule.schedule)
            alpha = rule.alpha + progress * (rule.alpha_end - rule.alpha)
            epsilon = rule.epsilon + progress * (rule.epsilon_end - rule.epsilon)
        # u ← Lex-Argmax(s, Q0, Q1, σ) with probability 1 - ε, else uniform over A ∪ W
        if random_float(rng) < epsilon:
            u = random_below(rng, U)
        elif rule.random_ties:
            u = _random_tie(Q, rows[s], greedy, bar, rng)
        else:
            u = greedy
        # s', r ← step(u), or as many times step(wait) as the wait asks for; the end and the horizon cut it
        taken[0, n], taken[1, n], path[t] = u, t, s
        begun, last = t, min(t + durations[u], H)
        while t < last and s != end:
            outcome = s * n_actions + actions[u]
            if not world.deterministic:
                outcome = _draw(cumulative, offsets[outcome], offsets[outcome + 1], rng)
            s = next_state[outcome]
            rewards[t] = reward[outcome]
            t += 1
            path[t] = s
        # update Q0[s, u], then Q1[s, u]
        if rule.sub_waits and actions[u] == rule.wait:
            _learn_sub_waits(
                Q, visits, weights, rows, durations, actions, path, rewards, value, bar, rule, u, begun, t, alpha
            )
        greedy = _update(Q, visits, weights, rows, path, rewards, value, bar, rule, u, begun, t, alpha)
        # s ← s', t ← t + elapsed
        steps += t - begun
        decisions += 1
        n += 1
        if s == end or t >= H:
            if counts is not None:
                _count_episode(counts, taken[:, :n], rewards[:t], actions, rule.wait)
            if rule.backward_replay:
                _replay(
                    Q,
                    visits,
                    weights,
                    rows,
                    durations,
                    actions,
                    path,
                    rewards,
                    value,
                    bar,
                    rule,
                    taken[:, :n],
                    t,
                    alpha,
                )
            s, t, n = world.start_state[_draw(world.start_cumulative, 0, len(world.start_state), rng)], 0, 0
            clock[EPISODES] += 1
            greedy = _look(Q, weights, rows[s], rule.slack, rule.follow, value, bar)
    clock[STEPS], clock[DECISIONS], clock[STATE], clock[TIME], clock[TAKEN] = steps, decisions, s, t, n


@compiled_fast
def _count_episode(
    counts: NDArray[np.float64],
    taken: NDArray[np.int64],
    rewards: NDArray[np.float64],
    actions: NDArray[np.int64],
    wait: int,
) -> None:
    """Count an episode that has ended."""
    end, waited, gained = len(rewards), 0, 0.0
    for n in range(taken.shape[1] - 1, -1, -1):
        waited += end - taken[1, n] if actions[taken[0, n]] == wait else 0
        end = taken[1, n]
    for t in range(len(rewards)):
        gained += rewards[t]
    counts[ENDED] += 1
    counts[LENGTH] += len(rewards)
    counts[QUERIES] += taken.shape[1]
    counts[RETURN] += gained
    counts[WAITED] += waited


@inlined
def _update(
    Q: NDArray[np.float64],
    visits: NDArray[np.int64],
    weights: Weights,
    rows: NDArray[np.int64],
    path: NDArray[np.int64],
    rewards: NDArray[np.float64],
    value: NDArray[np.float64],
    bar: NDArray[np.float64],
    rule: _Rule,
    u: int,
    t: int,
    until: int,
    alpha: float,
) -> int:
    """Update Q by decision `u`, which lasted from time `t` to `until`; return what is greedy then."""
    s, s_after = rows[path[t]], rows[path[until]]
    G, discount = 0.0, 1.0
    for i in range(t, until):
        G += discount * rewards[i]
        discount *= rule.gamma
    if until == rule.horizon and not rule.bootstrap_on_truncation:
        discount = 0.0
    if rule.visit_power > 0.0:
        visits[s, u] += 1
        alpha /= visits[s, u] ** rule.visit_power
    greedy = 0
    for k in range(len(weights) + 1):
        if k == 0 or s == s_after:  # where s' = s, the row has just been written
            greedy = _look(Q, weights, s_after, rule.slack, rule.follow, value, bar)
        if k < len(weights):
            target = weights[k][0] * G - weights[k][1] + discount * value[k]
            Q[s, k, u] = (1.0 - alpha) * Q[s, k, u] + alpha * target
    return greedy


@compiled
def _learn_sub_waits(
    Q: NDArray[np.float64],
    visits: NDArray[np.int64],
    weights: Weights,
    rows: NDArray[np.int64],
    durations: NDArray[np.int64],
    actions: NDArray[np.int64],
    path: NDArray[np.int64],
    rewards: NDArray[np.float64],
    value: NDArray[np.float64],
    bar: NDArray[np.float64],
    rule: _Rule,
    u: int,
    t: int,
    until: int,
    alpha: float,
) -> None:
    """Learn from every shorter wait inside the wait `u`, which lasted from time `t` to `until`, last ones first."""
    # Which ones are inside is a matter of the plan, not of how it went: to count those that the episode's end cut
    # only when it did come (or only when it did not) would favour one outcome of a random world over the others.
    planned = min(t + durations[u], rule.horizon)
    for i in range(until - 1, t - 1, -1):
        for v in range(len(durations)):
            j = i + durations[v]
            if actions[v] == rule.wait and j <= planned and not (i == t and v == u):
                _update(Q, visits, weights, rows, path, rewards, value, bar, rule, v, i, min(j, until), alpha)


@compiled
def _replay(
    Q: NDArray[np.float64],
    visits: NDArray[np.int64],
    weights: Weights,
    rows: NDArray[np.int64],
    durations: NDArray[np.int64],
    actions: NDArray[np.int64],
    path: NDArray[np.int64],
    rewards: NDArray[np.float64],
    value: NDArray[np.float64],
    bar: NDArray[np.float64],
    rule: _Rule,
    taken: NDArray[np.int64],
    until: int,
    alpha: float,
) -> None:
    """Learn from the episode's decisions once more, last one first."""
    for n in range(taken.shape[1] - 1, -1, -1):
        u, t = taken[0, n], taken[1, n]
        if rule.sub_waits and actions[u] == rule.wait:
            _learn_sub_waits(
                Q, visits, weights, rows, durations, actions, path, rewards, value, bar, rule, u, t, until, alpha
            )
        _update(Q, visits, weights, rows, path, rewards, value, bar, rule, u, t, until, alpha)
        until = t


@inlined
def _look(
    Q: NDArray[np.float64],
    weights: Weights,
    row: int,
    slack: float,
    follow: bool,
    value: NDArray[np.float64],
    bar: NDArray[np.float64],
) -> int:
    """Lex-Argmax of one row, ties to the lowest index; `value[k]` becomes what the row is worth to objective k."""
    # Selections instead of branches: which decision is best is what a processor cannot predict.
    K, U = len(weights), Q.shape[2]
    choice = 0
    best = -np.inf
    for u in range(U):
        better = Q[row, 0, u] > best
        best = Q[row, 0, u] if better else best
        choice = u if better else choice
    value[0] = best
    for k in range(1, K):
        bar[k - 1] = best - slack
        best = -np.inf
        for u in range(U):
            better = (Q[row, k, u] > best) & (Q[row, k - 1, u] >= bar[k - 1])
            for m in range(k - 1):
                better &= Q[row, m, u] >= bar[m]
            best = Q[row, k, u] if better else best
            choice = u if better else choice
        value[k] = best
    if follow:
        for k in range(K - 1):
            value[k] = Q[row, k, choice]
    return choice


@compiled
def _random_tie(
    Q: NDArray[np.float64], row: int, choice: int, bar: NDArray[np.float64], rng: NDArray[np.uint64]
) -> int:
    """Return any decision that is as good as `choice`, each with the same probability."""
    last = Q.shape[1] - 1
    found = 0
    for u in range(Q.shape[2]):
        good = Q[row, last, u] == Q[row, last, choice]
        for m in range(last):
            good = good and Q[row, m, u] >= bar[m]
        if good:
            found += 1
            if found == 1 or random_below(rng, found) == 0:
                choice = u
    return choice


@inlined
def _draw(cumulative: NDArray[np.float64], first: int, last: int, rng: NDArray[np.uint64]) -> int:
    """Return an index in `first..last-1`, drawn by running sums of probabilities."""
    if last - first == 1:
        return first
    x = random_float(rng)
    while first < last - 1 and x >= cumulative[first]:
        first += 1
    return first


@compiled
def _evaluate(
    world: _World, Q: NDArray[np.float64], weights: Weights, slack: float, episodes: int, rng: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Return task return, length, queries, base queries, steps in each decision, `(episodes, 4 + U)`."""
    end = len(world.rows) - 1
    value, bar = np.empty(Q.shape[1]), np.empty(Q.shape[1])
    results = np.zeros((episodes, 4 + Q.shape[2]))
    for n in range(episodes):
        s = world.start_state[_draw(world.start_cumulative, 0, len(world.start_state), rng)]
        t = 0
        while t < world.horizon and s != end:
            u = _look(Q, weights, world.rows[s], slack, False, value, bar)
            results[n, 2] += 1
            results[n, 3] += u == world.base
            last = min(t + world.durations[u], world.horizon)
            while t < last and s != end:
                row = s * world.n_actions + world.actions[u]
                outcome = _draw(world.cumulative, world.offsets[row], world.offsets[row + 1], rng)
                s = world.next_state[outcome]
                results[n, 0] += world.reward[outcome]
                results[n, 4 + u] += 1
                t += 1
        results[n, 1] = t
    return results


@compiled
def _greedy_table(Q: NDArray[np.float64], weights: Weights, slack: float) -> NDArray[np.int64]:
    """Return the greedy decision of every row."""
    value, bar = np.empty(Q.shape[1]), np.empty(Q.shape[1])
    table = np.empty(len(Q), dtype=np.int64)
    for row in range(len(Q)):
        table[row] = _look(Q, weights, row, slack, False, value, bar)
    return table
