from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook import Memory, Objective, Timer, enumerate_env, evaluate, learn, make, plan
from letitcook.errors import FinitenessError
from letitcook.finite.belief import enumerate_beliefs
from letitcook.finite.learner import QLearner
from letitcook.finite.recall import is_sufficient, remember, sufficient_memory
from letitcook.finite.settings import EXACT, PAPER
from letitcook.finite.tables import Tables
from letitcook.wrappers.memory import Recall
from worlds import random_decisions, random_tables

POT = Memory(timers=(Timer(4, values=(1,)),), cap=200)


@pytest.mark.parametrize(
    ("task", "part", "values"), [("cook", 4, (1,)), ("cook-longer", 4, (1,)), ("coffee", 5, (1, 3))]
)
def test_the_timer_that_suffices_is_found(task: str, part: int, values: tuple[int, ...]) -> None:
    env = make(task, mode="wrap", hidden=True)
    memory = sufficient_memory(enumerate_env(env), env.decisions, env.observation_space, 200)
    assert memory.timers == (Timer(part, values),)


def test_what_does_not_suffice_is_refused() -> None:
    env = make("cook", hidden=True)
    tables = enumerate_env(env)
    beliefs = enumerate_beliefs(tables, env.decisions, 200)
    for memory, enough in ((POT, True), (Memory(timers=(Timer(0),)), False), (Memory(window=1), False)):
        assert is_sufficient(memory, tables, env.decisions, env.observation_space, beliefs, 200) == enough


@pytest.mark.parametrize(
    "memory", [Memory(clock=True, actions=(0,), cap=6), Memory(window=2), Memory(timers=(Timer(0),))]
)
def test_rows_follow_each_other_as_the_memory_says(memory: Memory) -> None:
    """Walk at random through a hidden world, by the tables of rows and by the memory itself."""
    tables = replace(random_tables(1, 6, 3, branching=2, starts=2), observations=[0, 1, 0, 1, 0, 1])
    decisions = random_decisions(3, (2, 4))
    memory = replace(memory, cap=6)
    rows = remember(tables, decisions, memory, spaces.Discrete(2), limit=200_000)
    recall = Recall(memory, decisions, spaces.Discrete(2))
    learner = QLearner(tables, decisions, 12, Objective.named("lexicographic"), EXACT, 0, rows)
    offsets, seen, after, start, n_kinds = rows.arrays
    rng = np.random.default_rng(0)
    for _ in range(200):
        first = int(rng.integers(len(tables.start_state)))
        s, row = int(tables.start_state[first]), int(start[first])
        remembered = recall.begin(tables.observations[s])
        for _ in range(6):
            u = int(rng.integers(decisions.n))
            for _ in range(int(decisions.durations_of[u])):
                at = s * tables.n_actions + int(decisions.actions_of[u])
                s = int(rng.choice(tables.next_state[tables.offsets[at] : tables.offsets[at + 1]]))
                if s == tables.end:
                    break
            if s == tables.end:
                break
            steps = int(decisions.durations_of[u])
            kind = int(decisions.actions_of[u]) if steps == 1 else tables.n_actions + steps - 2
            place = slice(offsets[row * n_kinds + kind], offsets[row * n_kinds + kind + 1])
            (row,) = after[place][seen[place] == tables.rows[s]]
            remembered = recall.decided(remembered, u, steps, tables.observations[s])
            key = recall.key(tables.observations[s], remembered)
            assert learner.policy().keys[row] == tuple(np.ravel(_flat(key)).tolist())


def _flat(key: Any) -> list[int]:
    """Return the numbers of a key in their order."""
    return [n for part in key for n in _flat(part)] if isinstance(key, tuple | list) else [int(np.asarray(key))]


def with_time(tables: Tables, longest: int) -> Tables:
    """Return a world whose states are those of `tables` with the time, up to the longest; it shows both."""
    n, times = tables.n_states, longest + 1
    outcomes = len(tables.next_state)

    def later(t: int) -> NDArray[np.int64]:
        where = tables.next_state + n * min(t + 1, longest)
        return np.where(tables.next_state == tables.end, n * times, where)

    return replace(
        tables,
        n_states=n * times,
        offsets=np.append(np.concatenate([tables.offsets[:-1] + outcomes * t for t in range(times)]), outcomes * times),
        probability=np.tile(tables.probability, times),
        next_state=np.concatenate([later(t) for t in range(times)]),
        reward=np.tile(tables.reward, times),
        observations=[(s, t) for t in range(times) for s in range(n)],
    )


@pytest.mark.parametrize("name", ["paper", "exact", "random ties", "all"])
def test_to_remember_the_time_is_to_see_it(name: str) -> None:
    """Bit for bit, also inside waits, and where episodes are replayed."""
    settings = {
        "paper": PAPER,
        "exact": EXACT,
        "random ties": replace(PAPER, ties="random", bootstrap_on_truncation=False),
        "all": replace(PAPER, gamma=0.95, intra_option=True, backward_replay=True, epsilon=0.7),
    }[name]
    decisions, objective = random_decisions(2, (2, 3)), Objective.named("lexicographic")
    for seed in range(3):
        tables = random_tables(seed, 4, 2, branching=3, starts=2)
        rows = remember(tables, decisions, Memory(clock=True, cap=7), spaces.Discrete(4))
        remembers = QLearner(tables, decisions, 6, objective, settings, 5, rows)
        sees = QLearner(with_time(tables, 7), decisions, 6, objective, settings, 5)
        for learner in (remembers, sees):
            learner.advance(300)
        assert remembers.decisions_taken == sees.decisions_taken
        keys: list[Any] = remembers.policy().keys
        assert np.array_equal(remembers.Q, sees.Q[[s + 4 * t for s, t in keys]])
        assert np.array_equal(remembers.greedy_episodes(20, 3), sees.greedy_episodes(20, 3))


def test_too_much_to_remember_is_said() -> None:
    env = make("cook", hidden=True)
    with pytest.raises(FinitenessError, match="remember less"):
        remember(enumerate_env(env), env.decisions, Memory(window=3), env.observation_space, limit=5_000)


@pytest.mark.parametrize(("mode", "steps", "exact"), [("scratch", 800_000, (33, 25)), ("wrap", 60_000, (53, 39))])
def test_with_a_memory_the_hidden_clock_is_as_good_as_seen(mode: str, steps: int, exact: tuple[int, int]) -> None:
    env = make("cook", mode, hidden=True)
    learned = learn(env, steps=steps, seed=0, preset="exact", memory="auto", progress=False)
    assert [learned.length, learned.queries] == list(exact)
    assert evaluate(env, learned.policy, episodes=1).queries == exact[1]
    without = learn(env, steps=steps, seed=0, preset="exact", progress=False)
    assert without.queries > exact[1]


def test_a_wait_is_learned_from_its_parts_as_if_they_were_waits() -> None:
    """Intra-option learning finds the belief optimum of random durations."""
    env = make("cook", "wrap", hidden=True, cook_time=(16, 18, 20))
    best = plan(env)
    slack = {"slack": 0.1, "epsilon": 0.05}
    learned = learn(env, steps=200_000, seed=1, preset="exact", settings=slack, memory="auto", progress=False)
    assert learned.length == pytest.approx(best.length, rel=0.01)
    assert learned.queries == pytest.approx(best.queries, rel=0.01)
    without = learn(env, steps=200_000, seed=1, preset="exact", settings=slack, progress=False)
    assert without.queries > 1.05 * best.queries
