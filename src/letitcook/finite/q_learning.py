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

Beyond the paper, and off by default:

- **intra-option learning** (Sutton, Precup and Singh 1999): a wait of w steps passes through w+1 states; any two of
  them that lie as many steps apart as a shorter wait has are a valid experience of it;
- **backward replay**: at the end of an episode its decisions are learned from once more, last one first, so that what
  was found at the end reaches the beginning at once;
- a **step size that falls with visits**, `α = 1 / visits^ω`, for random transitions;
- **full backups**, for random transitions too: a value is set to the mean over everything that has followed the
  decision so far, in place of a step towards what followed this time (adaptive real-time dynamic programming; Barto,
  Bradtke and Singh 1995). Values then differ by what is random alone, not by when each of them was last updated.

Where a policy remembers, a row of `Q` is what is seen *and* remembered. It is then no function of the state, and is
followed from decision to decision by `Recall`.
"""

from __future__ import annotations

import numpy as np
from numba import typeof, types
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

    learn_intra_option: Pointer
    replay_backwards: Pointer


def beyond_the_paper(world: World, rule: Rule, weights: Weights, memory: Memory) -> Beyond:
    """Return what the settings want of it."""
    learner, whole, real = tuple(typeof(each) for each in (world, rule, weights, memory)), types.int64, types.float64
    intra_option = learn_intra_option if rule.intra_option else no_intra_option
    replay = replay_backwards if rule.backward_replay else no_replay
    inside = Pointer(intra_option, *learner, whole, whole, whole, whole, real, types.boolean)
    return Beyond(inside, Pointer(replay, *learner, whole, whole, real, inside.type))


@compiled
def learn(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    beyond: Beyond,
    counts: NDArray[np.float64] | None,
    until_steps: int,
    until_decisions: int,
) -> None:
    """Algorithm 1 until that many primitive steps or decisions in all; the comments are its lines.

    Without `counts` it is compiled without the counting, which would cost some percent.
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
        taken[0, n], taken[1, n], path[t] = u, t, s
        begun, last = t, min(t + world.durations[u], H)
        while t < last and s != end:
            outcome = s * world.n_actions + world.actions[u]
            if not world.deterministic:
                outcome = draw(world.cumulative, world.offsets[outcome], world.offsets[outcome + 1], rng)
            s = world.next_state[outcome]
            rewards[t] = world.reward[outcome]
            t += 1
            path[t] = s
        # update Q0[s, u], then Q1[s, u]
        if rule.intra_option and world.actions[u] == rule.wait:
            call(beyond.learn_intra_option, (world, rule, weights, memory, u, row, begun, t, alpha, True))
        after = row_after(world, row, world.actions[u], t - begun, s)
        greedy = update(world, rule, weights, memory, u, row, after, begun, t, alpha, True)
        row = after
        seen[t] = row
        # s ← s', t ← t + elapsed
        steps += t - begun
        decisions += 1
        n += 1
        if s == end or t >= H:
            if counts is not None:
                count_episode(counts, taken[:, :n], rewards[:t], world.actions, rule.wait)
            if rule.backward_replay:
                inside = beyond.learn_intra_option
                call(beyond.replay_backwards, (world, rule, weights, memory, n, t, alpha, inside))
            start = draw(world.start_cumulative, 0, len(world.start_state), rng)
            s, t, n = world.start_state[start], 0, 0
            row = start_row(world, start)
            seen[0] = row
            clock[EPISODES] += 1
            greedy = lex_row(memory.Q, weights, row, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)
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
    if world.recall.n_kinds > 0 and s_after != len(world.rows) - 1:
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
    t: int,
    until: int,
    alpha: float,
    new: bool,
) -> int:
    """Update Q by decision `u` from row `s` to row `s_after`, from time `t` to `until`; return what is greedy then.

    `new` is False where it is learned from once more.
    """
    Q = memory.Q
    G, discount = 0.0, 1.0
    for i in range(t, until):
        G += discount * memory.rewards[i]
        discount *= rule.gamma
    if until == rule.horizon and not rule.bootstrap_on_truncation:
        discount = 0.0
    if rule.visit_power > 0.0:
        memory.visits[s, u] += 1
        alpha /= memory.visits[s, u] ** rule.visit_power
    if rule.backup == 1:
        if new:
            count_outcome(memory, s, u, s_after, G, discount)
        full_backup(world, rule, weights, memory, s, u)
        return lex_row(Q, weights, s_after, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)
    greedy = 0
    for k in range(len(weights) + 1):
        if k == 0 or s == s_after:  # where s' = s, the row has just been written
            greedy = lex_row(Q, weights, s_after, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)
        if k < len(weights):
            target = weights[k][0] * G - weights[k][1] * world.costs[u] + discount * memory.value[k]
            Q[s, k, u] = (1.0 - alpha) * Q[s, k, u] + alpha * target
    return greedy


@compiled
def count_outcome(memory: Memory, s: int, u: int, s_after: int, G: float, discount: float) -> None:
    """Count that row `s_after` followed decision `u` in row `s`; where there is no room, the rarest row gives way."""
    at, rarest = 0, 0
    times = memory.followed[1, s, u]
    while at < len(times) and times[at] > 0 and memory.followed[0, s, u, at] != s_after:
        rarest = at if times[at] < times[rarest] else rarest
        at += 1
    if at == len(times):
        at = rarest
        times[at] = 0
    memory.followed[0, s, u, at] = s_after
    times[at] += 1
    memory.gained[0, s, u, at] += (G - memory.gained[0, s, u, at]) / times[at]
    memory.gained[1, s, u, at] += (discount - memory.gained[1, s, u, at]) / times[at]


@compiled
def full_backup(world: World, rule: Rule, weights: Weights, memory: Memory, s: int, u: int) -> None:
    """Set Q of a row and decision to its mean over everything that has followed it so far."""
    times = memory.followed[1, s, u]
    for k in range(len(weights)):
        total, n = 0.0, 0
        for i in range(len(times)):
            if times[i] == 0:
                break
            after = memory.followed[0, s, u, i]
            lex_row(memory.Q, weights, after, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)
            reward = weights[k][0] * memory.gained[0, s, u, i] - weights[k][1] * world.costs[u]
            total += times[i] * (reward + memory.gained[1, s, u, i] * memory.value[k])
            n += times[i]
        memory.Q[s, k, u] = total / n


@compiled
def learn_intra_option(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    u: int,
    row: int,
    t: int,
    until: int,
    alpha: float,
    new: bool,
) -> None:
    """Learn from every shorter wait inside the wait `u` in row `row`, from time `t` to `until`, last ones first."""
    # Which ones are inside is a matter of the plan, not of how it went: to count those that the episode's end cut
    # only when it did come (or only when it did not) would favour one outcome of a random world over the others.
    planned = min(t + world.durations[u], rule.horizon)
    # What would be remembered is what a policy would that sensed where the shorter wait begins, and where it ends.
    for i in range(until - 1, t - 1, -1):
        begun = row if i == t else row_after(world, row, rule.wait, i - t, memory.path[i])
        for v in range(len(world.durations)):
            j = i + world.durations[v]
            if world.actions[v] == rule.wait and j <= planned and not (i == t and v == u):
                j = min(j, until)
                after = row_after(world, begun, rule.wait, j - i, memory.path[j])
                update(world, rule, weights, memory, v, begun, after, i, j, alpha, new)


@compiled
def no_intra_option(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    u: int,
    row: int,
    t: int,
    until: int,
    alpha: float,
    new: bool,
) -> None:
    """Stands in for `learn_intra_option` where it is off."""


@compiled
def replay_backwards(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    decisions: int,
    until: int,
    alpha: float,
    intra_option: Pointer,
) -> None:
    """Learn from the episode's decisions once more, last one first."""
    for n in range(decisions - 1, -1, -1):
        u, t = memory.taken[0, n], memory.taken[1, n]
        if rule.intra_option and world.actions[u] == rule.wait:
            call(intra_option, (world, rule, weights, memory, u, memory.seen[t], t, until, alpha, False))
        update(world, rule, weights, memory, u, memory.seen[t], memory.seen[until], t, until, alpha, False)
        until = t


@compiled
def no_replay(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    decisions: int,
    until: int,
    alpha: float,
    intra_option: Pointer,
) -> None:
    """Stands in for `replay_backwards` where it is off."""


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


@compiled
def evaluate(
    world: World, Q: NDArray[np.float64], weights: Weights, slack: float, episodes: int, rng: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Return task return, length, queries, base queries, steps in each decision, `(episodes, 4 + U)`."""
    end = len(world.rows) - 1
    value, bar = np.empty(Q.shape[1]), np.empty(Q.shape[1])
    results = np.zeros((episodes, 4 + Q.shape[2]))
    for n in range(episodes):
        start = draw(world.start_cumulative, 0, len(world.start_state), rng)
        s, seen = world.start_state[start], start_row(world, start)
        t = 0
        while t < world.horizon and s != end:
            u = lex_row(Q, weights, seen, slack, False, value, bar)
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
    return results


@compiled
def greedy_table(Q: NDArray[np.float64], weights: Weights, slack: float) -> NDArray[np.int64]:
    """Return the greedy decision of every row."""
    value, bar = np.empty(Q.shape[1]), np.empty(Q.shape[1])
    table = np.empty(len(Q), dtype=np.int64)
    for row in range(len(Q)):
        table[row] = lex_row(Q, weights, row, slack, False, value, bar)
    return table
