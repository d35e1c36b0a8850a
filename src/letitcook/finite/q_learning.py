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

What goes beyond the paper (`beyond.py`) is called by address where the settings want it.

Where a policy remembers, a row of `Q` is what is seen *and* remembered. It is then no function of the state, and is
followed from decision to decision by `Recall`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from letitcook.core.episode_stats import EPISODES as ENDED
from letitcook.core.episode_stats import LENGTH, QUERIES, RETURN, WAITED
from letitcook.core.jit import compiled, compiled_fast, inlined, random_below, random_float
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct

Weights = tuple[tuple[float, float], ...]
"""An objective's weights as the kernel takes them: as a tuple, so that it is compiled for this number of objectives."""


class RecallTables(Struct):
    """What is seen and remembered next, where a policy remembers.

    From row `r`, after an action (or a wait of several steps, numbered `n_actions + steps - 2`), and seeing what is
    numbered `seen[i]`, comes the row `after[i]`, with `i` from `offsets[r * n_kinds + kind]` up to the next offset.
    """

    offsets: NDArray[np.int64]
    seen: NDArray[np.int64]
    after: NDArray[np.int64]
    start: NDArray[np.int64]
    """Row of each start."""
    n_kinds: int
    """How many actions and waits there are; 0 where nothing is remembered, and what is seen is the row."""


_EMPTY = np.zeros(1, dtype=np.int64)
NOTHING_REMEMBERED = RecallTables(_EMPTY, _EMPTY, _EMPTY, _EMPTY, n_kinds=0)


class World(Struct):
    """The waiting MDP as the kernel sees it."""

    offsets: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    next_state: NDArray[np.int64]
    reward: NDArray[np.float64]
    deterministic: bool
    start_state: NDArray[np.int64]
    start_cumulative: NDArray[np.float64]
    rows: NDArray[np.int64]
    """What is seen in each state, by number; of the end, the last row of Q."""
    next_row: NDArray[np.int64]
    """The same after each outcome: `rows[next_state]`, which need not wait for the state to be known."""
    recall: RecallTables
    n_actions: int
    durations: NDArray[np.int64]
    actions: NDArray[np.int64]
    costs: NDArray[np.float64]
    """What each decision costs in the second objective."""
    horizon: int
    base: int
    """The decision that queries a base policy; -1 where there is none."""


class Rule(Struct):
    """The settings as the kernels take them: the names are those of `QSettings`, a choice is its place in `CHOICES`."""

    gamma: float
    timestep: int
    alpha: float
    alpha_end: float
    visit_power: float
    epsilon: float
    epsilon_end: float
    schedule: float
    slack: float
    bootstrap: int
    ties: int
    bootstrap_on_truncation: bool
    intra_option: bool
    backward_replay: bool
    backup: int
    wait: int
    """The wait action."""
    horizon: int


class Memory(Struct):
    """What the kernel changes: values, visits, the episode so far, the clock, and arrays to work in."""

    Q: NDArray[np.float64]
    visits: NDArray[np.int64]
    clock: NDArray[np.int64]
    """Primitive steps, decisions, episodes so far; then the state, the time and the decisions in this episode."""
    rng: NDArray[np.uint64]
    path: NDArray[np.int64]
    """States of this episode, by time."""
    seen: NDArray[np.int64]
    """Rows of this episode, by time, where a decision was due."""
    rewards: NDArray[np.float64]
    """Rewards of this episode, by time."""
    taken: NDArray[np.int64]
    """Decisions of this episode, and the times at which they were taken: `(2, H)`."""
    value: NDArray[np.float64]
    """Scratch: the values that a state is worth to each objective, `(K,)`."""
    bar: NDArray[np.float64]
    """Scratch: the least value that is good enough in each objective, `(K,)`."""
    followed: NDArray[np.int64]
    """Rows that followed each row and decision, and how often: `(2, rows, decisions, outcomes)`."""
    gained: NDArray[np.float64]
    """Mean task reward and discount on the way there, of the same shape."""


STEPS, DECISIONS, EPISODES, STATE, TIME, TAKEN = range(6)


class Beyond(Struct):
    """What goes beyond the paper, called by address: it is compiled where the settings want it."""

    full_backup: Pointer
    learn_intra_option: Pointer
    replay_backwards: Pointer


@compiled
def learn(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    beyond: Beyond | None,
    counts: NDArray[np.float64] | None,
    until_steps: int,
    until_decisions: int,
) -> None:
    """Algorithm 1 until that many primitive steps or decisions in all; the comments are its lines.

    Without `beyond` and `counts` it is compiled without a record of the episode, which would cost some percent.
    """
    clock, rng, path, rewards, taken = memory.clock, memory.rng, memory.path, memory.rewards, memory.taken
    Q, H, U, end, seen = memory.Q, world.horizon, len(world.durations), len(world.rows) - 1, memory.seen
    steps, decisions, s, t, n = clock[STEPS], clock[DECISIONS], clock[STATE], clock[TIME], clock[TAKEN]
    row = seen[t]
    alpha, epsilon = rule.alpha, rule.epsilon
    moving = rule.alpha != rule.alpha_end or rule.epsilon != rule.epsilon_end
    greedy = lex_row(Q, weights, row, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)
    while steps < until_steps and decisions < until_decisions:
        if moving:
            progress = min(1.0, (decisions if rule.timestep == 1 else steps) / rule.schedule)
            alpha = rule.alpha + progress * (rule.alpha_end - rule.alpha)
            epsilon = rule.epsilon + progress * (rule.epsilon_end - rule.epsilon)
        # u ← Lex-Argmax(s, Q0, Q1, σ) with probability 1 - ε, else uniform over A ∪ W
        if random_float(rng) < epsilon:
            u = random_below(rng, U)
        elif rule.ties == 1:
            u = random_tie(Q, row, greedy, memory.bar, rng)
        else:
            u = greedy
        # s', r ← step(u), or as many times step(wait) as the wait requests; the end and the horizon cut it short
        if beyond is not None or counts is not None:
            taken[0, n], taken[1, n], path[t] = u, t, s
            n += 1
        begun, last, after, G, discount = t, min(t + world.durations[u], H), row, 0.0, 1.0
        while t < last and s != end:
            outcome = s * world.n_actions + world.actions[u]
            if not world.deterministic:
                outcome = draw(world.cumulative, world.offsets[outcome], world.offsets[outcome + 1], rng)
            s, after = world.next_state[outcome], world.next_row[outcome]
            G += discount * world.reward[outcome]
            discount *= rule.gamma
            if beyond is not None or counts is not None:
                rewards[t], path[t + 1] = world.reward[outcome], s
            t += 1
        # update Q0[s, u], then Q1[s, u]
        if beyond is not None and rule.intra_option and world.actions[u] == rule.wait:
            arguments = (world, rule, weights, memory, beyond.full_backup, u, row, begun, t, alpha, True)
            call(beyond.learn_intra_option, arguments)
        if s != end:
            after = remembered_row(world, row, world.actions[u], t - begun, after)
        if beyond is not None and rule.backup == 1:
            greedy = call(beyond.full_backup, (world, rule, weights, memory, u, row, after, G, discount, t, True))
        else:
            greedy = update(world, rule, weights, memory, u, row, after, G, discount, t, alpha)
        row = after
        if beyond is not None:
            seen[t] = row
        # s ← s', t ← t + elapsed
        steps += t - begun
        decisions += 1
        if s == end or t >= H:
            if counts is not None and taken[1, 0] == 0:  # else it was under way when the counting began
                count_episode(counts, taken[:, :n], rewards[:t], world.actions, rule.wait)
            if beyond is not None and rule.backward_replay:
                full, inside = beyond.full_backup, beyond.learn_intra_option
                call(beyond.replay_backwards, (world, rule, weights, memory, full, inside, n, t, alpha))
            start = draw(world.start_cumulative, 0, len(world.start_state), rng)
            s, t, n = world.start_state[start], 0, 0
            row = start_row(world, start)
            if beyond is not None:
                seen[0] = row
            clock[EPISODES] += 1
            greedy = lex_row(Q, weights, row, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)
    seen[t] = row
    clock[STEPS], clock[DECISIONS], clock[STATE], clock[TIME], clock[TAKEN] = steps, decisions, s, t, n


@compiled_fast
def count_episode(
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
def start_row(world: World, start: int) -> int:
    """Return the row of a start."""
    row: int = world.rows[world.start_state[start]]
    return row if world.recall.n_kinds == 0 else world.recall.start[start]


@inlined
def row_after(world: World, row: int, action: int, steps: int, s_after: int) -> int:
    """Return the row in state `s_after`, `steps` steps of an action after the row `row`."""
    found: int = world.rows[s_after]
    return found if s_after == len(world.rows) - 1 else remembered_row(world, row, action, steps, found)


@inlined
def remembered_row(world: World, row: int, action: int, steps: int, found: int) -> int:
    """Return the row of seeing `found`, `steps` steps of an action after the row `row`."""
    if world.recall.n_kinds > 0:
        kind = action if steps == 1 else world.n_actions + steps - 2
        at = row * world.recall.n_kinds + kind
        for i in range(world.recall.offsets[at], world.recall.offsets[at + 1]):
            if world.recall.seen[i] == found:
                found = world.recall.after[i]
                break
    return found


@inlined
def update(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    u: int,
    s: int,
    s_after: int,
    G: float,
    discount: float,
    until: int,
    alpha: float,
) -> int:
    """Update Q by decision `u` from row `s` to row `s_after`, which ended at time `until`; return what is greedy then.

    `G` is what it brought, and `discount` what a reward after it is worth.
    """
    Q = memory.Q
    if until == rule.horizon and not rule.bootstrap_on_truncation:
        discount = 0.0
    if rule.visit_power > 0.0:
        memory.visits[s, u] += 1
        alpha /= memory.visits[s, u] ** rule.visit_power
    greedy = 0
    for k in range(len(weights) + 1):
        if k == 0 or s == s_after:  # where s' = s, the row has just been written
            greedy = lex_row(Q, weights, s_after, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)
        if k < len(weights):
            target = weights[k][0] * G - weights[k][1] * world.costs[u] + discount * memory.value[k]
            Q[s, k, u] = (1.0 - alpha) * Q[s, k, u] + alpha * target
    return greedy


@inlined
def lex_row(
    Q: NDArray[np.float64],
    weights: Weights,
    row: int,
    slack: float,
    follow: bool,
    value: NDArray[np.float64],
    bar: NDArray[np.float64],
) -> int:
    """Lex-Argmax of one row, ties to the lowest index; `value[k]` becomes what the row is worth to objective k."""
    # With one objective selections are faster than branches, for which decision is best cannot be predicted; with more
    # than one a branch is. A store inside it keeps the compiler from making a selection of it again. The loop reads
    # local names, for a store could change anything else.
    K, values = len(weights), Q[row]
    U = values.shape[1]
    choice = 0
    best = -np.inf
    for u in range(U):
        better = values[0, u] > best
        best = values[0, u] if better else best
        if K == 1:
            choice = u if better else choice
    value[0] = best
    for k in range(1, K):
        least = best - slack
        bar[k - 1] = least
        best = -np.inf
        for u in range(U):
            better = (values[k - 1, u] >= least) & (values[k, u] > best)
            for m in range(k - 1):
                better &= values[m, u] >= bar[m]
            if better:
                best = values[k, u]
                value[k] = best
                choice = u
    if follow:
        for k in range(K - 1):
            value[k] = Q[row, k, choice]
    return choice


@compiled
def random_tie(Q: NDArray[np.float64], row: int, choice: int, bar: NDArray[np.float64], rng: NDArray[np.uint64]) -> int:
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
def draw(cumulative: NDArray[np.float64], first: int, last: int, rng: NDArray[np.uint64]) -> int:
    """Return an index in `first..last-1`, drawn by running sums of probabilities."""
    if last - first == 1:
        return first
    x = random_float(rng)
    while first < last - 1 and x >= cumulative[first]:
        first += 1
    return first


def evaluate(
    world: World, Q: NDArray[np.float64], weights: Weights, slack: float, episodes: int, rng: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Return task return, length, queries, base queries, steps in each decision, `(episodes, 4 + U)`."""
    results = np.zeros((episodes, 4 + Q.shape[2]))
    value, bar = np.empty((2, Q.shape[1]))
    play(world, Q, weights, slack, False, rng, value, bar, results)
    return results


@compiled
def play(
    world: World,
    Q: NDArray[np.float64],
    weights: Weights,
    slack: float,
    follow: bool,
    rng: NDArray[np.uint64],
    value: NDArray[np.float64],
    bar: NDArray[np.float64],
    results: NDArray[np.float64],
) -> None:
    """Play an episode for each row of `results`, which are zeros; `value` and `bar` are arrays to work in."""
    end = len(world.rows) - 1
    for n in range(len(results)):
        start = draw(world.start_cumulative, 0, len(world.start_state), rng)
        s, seen = world.start_state[start], start_row(world, start)
        t = 0
        while t < world.horizon and s != end:
            u = lex_row(Q, weights, seen, slack, follow, value, bar)
            results[n, 2] += 1
            results[n, 3] += u == world.base
            begun, last = t, min(t + world.durations[u], world.horizon)
            while t < last and s != end:
                row = s * world.n_actions + world.actions[u]
                outcome = draw(world.cumulative, world.offsets[row], world.offsets[row + 1], rng)
                s = world.next_state[outcome]
                results[n, 0] += world.reward[outcome]
                results[n, 4 + u] += 1
                t += 1
            seen = row_after(world, seen, world.actions[u], t - begun, s)
        results[n, 1] = t


def greedy_table(Q: NDArray[np.float64], weights: Weights, slack: float) -> NDArray[np.int64]:
    """Return the greedy decision of every row."""
    table = np.empty(len(Q), dtype=np.int64)
    value, bar = np.empty((2, Q.shape[1]))
    choose_all(Q, weights, slack, False, value, bar, table)
    return table


@compiled
def choose_all(
    Q: NDArray[np.float64],
    weights: Weights,
    slack: float,
    follow: bool,
    value: NDArray[np.float64],
    bar: NDArray[np.float64],
    table: NDArray[np.int64],
) -> None:
    """Write the greedy decision of every row."""
    for row in range(len(Q)):
        table[row] = lex_row(Q, weights, row, slack, follow, value, bar)
