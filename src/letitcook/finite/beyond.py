"""What LQ-learning does beyond the paper, off by default; the kernel of `q_learning.py` calls it by address.

- **intra-option learning** (Sutton, Precup and Singh 1999): a wait of w steps passes through w+1 states; any two of
  them that lie as many steps apart as a shorter wait has are a valid experience of it;
- **backward replay**: at the end of an episode its decisions are learned from once more, last one first, so that what
  was found at the end reaches the beginning at once;
- **full backups**, for random transitions too: a value is set to the mean over everything that has followed the
  decision so far, in place of a step towards what followed this time (adaptive real-time dynamic programming; Barto,
  Bradtke and Singh 1995). Values then differ by what is random alone, not by when each of them was last updated.
"""

from __future__ import annotations

from numba import typeof, types

from letitcook.core.jit import compiled, inlined
from letitcook.core.pointer import Pointer, call
from letitcook.finite.q_learning import Beyond, Memory, Rule, Weights, World, lex_row, row_after, update


def beyond_the_paper(world: World, rule: Rule, weights: Weights, memory: Memory) -> Beyond | None:
    """Return what the settings want of it; None where that is nothing."""
    if not (rule.intra_option or rule.backward_replay or rule.backup == 1):
        return None
    learner, whole, real = tuple(typeof(each) for each in (world, rule, weights, memory)), types.int64, types.float64
    none, truth = types.none, types.boolean
    of_backup = *learner, whole, whole, whole, real, real, whole, truth
    full = Pointer.where(rule.backup == 1, full_backup, whole, *of_backup)
    of_inside = *learner, full.type, whole, whole, whole, whole, real, truth
    inside = Pointer.where(rule.intra_option, learn_intra_option, none, *of_inside)
    of_replay = *learner, full.type, inside.type, whole, whole, real
    replay = Pointer.where(rule.backward_replay, replay_backwards, none, *of_replay)
    return Beyond(full, inside, replay)


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
def full_backup(
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
    new: bool,
) -> int:
    """Set Q of a row and decision to its mean over everything that has followed it so far; return what is greedy then.

    `new` is False where it is learned from once more, and is not counted again.
    """
    if until == rule.horizon and not rule.bootstrap_on_truncation:
        discount = 0.0
    if new:
        count_outcome(memory, s, u, s_after, G, discount)
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
    return lex_row(memory.Q, weights, s_after, rule.slack, rule.bootstrap == 1, memory.value, memory.bar)


@inlined
def learn_once(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    full: Pointer,
    u: int,
    row: int,
    after: int,
    t: int,
    until: int,
    alpha: float,
    new: bool,
) -> None:
    """Learn from decision `u` from row `row` at time `t` to row `after` at time `until`."""
    G, discount = 0.0, 1.0
    for i in range(t, until):
        G += discount * memory.rewards[i]
        discount *= rule.gamma
    if rule.backup == 1:
        call(full, (world, rule, weights, memory, u, row, after, G, discount, until, new))
    else:
        update(world, rule, weights, memory, u, row, after, G, discount, until, alpha)


@compiled
def learn_intra_option(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    full: Pointer,
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
                learn_once(world, rule, weights, memory, full, v, begun, after, i, j, alpha, new)


@compiled
def replay_backwards(
    world: World,
    rule: Rule,
    weights: Weights,
    memory: Memory,
    full: Pointer,
    intra_option: Pointer,
    decisions: int,
    until: int,
    alpha: float,
) -> None:
    """Learn from the episode's decisions once more, last one first."""
    for n in range(decisions - 1, -1, -1):
        u, t = memory.taken[0, n], memory.taken[1, n]
        if rule.intra_option and world.actions[u] == rule.wait:
            call(intra_option, (world, rule, weights, memory, full, u, memory.seen[t], t, until, alpha, False))
        seen, after = memory.seen[t], memory.seen[until]
        learn_once(world, rule, weights, memory, full, u, seen, after, t, until, alpha, False)
        until = t
