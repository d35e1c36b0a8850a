from __future__ import annotations

from dataclasses import replace
from functools import cache

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from letitcook import WaitingEnv, make, plan
from letitcook.core.decisions import Decisions
from letitcook.core.objective import Objective
from letitcook.errors import FinitenessError, SettingError
from letitcook.experiments.jobs import exact, world_of
from letitcook.experiments.suites import paper_rows
from letitcook.finite.front import FrontPoint, discounted_front_tables, front_tables, pareto_front
from letitcook.finite.plan import plan_tables
from letitcook.finite.tables import Tables
from worlds import random_decisions, random_tables

FRONTS = {
    ("cook", "scratch"): [(33, 25), (37, 23), (200, 14)],
    ("cook", "wrap"): [(53, 39), (56, 38), (200, 14)],
    ("cook-longer", "scratch"): [(51, 29), (52, 24), (200, 14)],
    ("cook-longer", "wrap"): [(71, 39), (200, 14)],
    ("cook-twice", "scratch"): [(69, 53), (73, 51), (77, 49), (200, 14)],
    ("cook-twice", "wrap"): [(109, 81), (112, 80), (115, 79), (200, 14)],
    ("coffee", "scratch"): [(41, 37), (44, 36), (46, 32), (47, 29), (50, 28), (53, 27), (58, 26), (200, 14)],
    ("coffee", "wrap"): [(54, 36), (57, 35), (60, 34), (65, 33), (200, 14)],
}


@pytest.mark.parametrize(("task", "mode"), FRONTS)
def test_every_exact_optimum_lies_on_the_front(task: str, mode: str) -> None:
    front = front_tables(*world_of(task, mode))
    assert front == FRONTS[task, mode]
    rows = [row for row in paper_rows() if (row.task, row.mode) == (task, mode) and row.method != "vanilla"]
    assert len(rows) >= 9
    for row in rows:
        best = exact(row)
        if row.lam is None:
            assert front[0] == (best.length, best.queries)
        elif best.queries is None:
            assert front[0].length == best.length
        else:
            cost = {point: point.length + row.lam * point.queries for point in front}
            assert (best.length, best.queries) in front, row
            assert best.length + row.lam * best.queries == pytest.approx(min(cost.values())), row


def naive_front(tables: Tables, decisions: Decisions, horizon: int) -> list[tuple[int, int]]:
    """Every pair that any episode has, and then those that no other pair beats."""

    @cache
    def pairs(t: int, s: int) -> frozenset[tuple[int, int]]:
        if s == tables.end or t == horizon:
            return frozenset({(0, 0)})
        found = set()
        for u in range(decisions.n):
            place, passed = s, 0
            while passed < decisions.durations_of[u] and place != tables.end and t + passed < horizon:
                place = int(tables.next_state[place * tables.n_actions + decisions.actions_of[u]])
                passed += 1
            found |= {(passed + length, 1 + queries) for length, queries in pairs(t + passed, place)}
        return frozenset(found)

    every = pairs(0, int(tables.start_state[0]))
    return sorted(p for p in every if not any(o != p and o[0] <= p[0] and o[1] <= p[1] for o in every))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 8),
    st.integers(1, 3),
    st.sampled_from([(), (2,), (2, 4), (3, 5)]),
    st.integers(1, 11),
    st.booleans(),
)
@example(0, 6, 2, (2, 4), 6, False)
@example(3, 4, 1, (3, 5), 4, False)  # the end is met by waiting, at the horizon
def test_front_equals_every_episode_there_is(
    seed: int, states: int, actions: int, durations: tuple[int, ...], horizon: int, anywhere: bool
) -> None:
    tables = random_tables(seed, states, actions)
    tables = replace(tables, reward=np.full_like(tables.reward, -1.0))
    if anywhere:  # worlds in which the end may be out of reach
        targets = np.random.default_rng(seed).integers(0, states + 1, len(tables.next_state))
        tables = replace(tables, next_state=targets)
    decisions = random_decisions(actions, durations)
    front = front_tables(tables, decisions, horizon)
    assert front == naive_front(tables, decisions, horizon)
    for lam in (0.3, 1.0, 4.0):
        best = plan_tables(tables, decisions, horizon, Objective.named("scalar", lam))
        assert best.length + lam * best.queries == pytest.approx(min(p.length + lam * p.queries for p in front))
    best = plan_tables(tables, decisions, horizon, Objective.named("lexicographic"))
    assert front[0] == (best.length, best.queries)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([(), (2,), (2, 4), (3, 5)]),
    st.integers(1, 9),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_the_discounted_front_equals_every_episode_there_is(
    seed: int, states: int, actions: int, durations: tuple[int, ...], horizon: int, gamma: float
) -> None:
    tables = random_tables(seed, states, actions)
    targets = np.random.default_rng(seed).integers(0, states + 1, len(tables.next_state))
    tables = replace(tables, reward=np.full_like(tables.reward, -1.0), next_state=targets)
    decisions = random_decisions(actions, durations)
    every: list[tuple[float, float]] = []

    def play(t: int, s: int, task: float, waiting: float) -> None:
        if s == tables.end or t == horizon:
            every.append((round(task, 9), round(waiting, 9)))
            return
        for u in range(decisions.n):
            place, passed, gained = s, 0, task
            while passed < decisions.durations_of[u] and place != tables.end and t + passed < horizon:
                gained -= gamma ** (t + passed)
                place = int(tables.next_state[place * tables.n_actions + decisions.actions_of[u]])
                passed += 1
            play(t + passed, place, gained, waiting - gamma**t)

    play(0, int(tables.start_state[0]), 0.0, 0.0)
    best = sorted({p for p in every if not any(o != p and o[0] >= p[0] and o[1] >= p[1] for o in every)}, reverse=True)
    front = discounted_front_tables(tables, decisions, horizon, gamma)
    np.testing.assert_allclose(front, best, atol=1e-8)


def test_the_front_in_mo_gymnasiums_form() -> None:
    env = make("coffee", mode="wrap")
    assert [tuple(-point) for point in env.pareto_front()] == FRONTS["coffee", "wrap"]
    discounted = env.pareto_front(gamma=0.99)
    assert len(discounted) >= 2
    assert discounted[0][0] == pytest.approx(-(1 - 0.99**54) / 0.01)
    best = plan(env.with_discount(0.99))
    assert discounted[0] == pytest.approx(best.values[0])
    with pytest.raises(SettingError, match="gamma = 2"):
        env.pareto_front(gamma=2.0)


def test_the_horizon_is_respected() -> None:
    assert pareto_front(make("cook"), horizon=36) == [(33, 25), (36, 3)]
    assert pareto_front(make("cook"), horizon=33) == [(33, 3)]
    assert pareto_front(make("cook"), horizon=20) == [FrontPoint(length=20, queries=2)]


def test_worlds_that_have_no_such_front_are_refused() -> None:
    def lake(**settings: bool) -> WaitingEnv:
        return WaitingEnv(gym.make("FrozenLake-v1", **settings), wait=0, durations=(2,))

    with pytest.raises(FinitenessError, match=r"the outcomes of this environment are random.*plan\(\)"):
        pareto_front(lake(is_slippery=True))
    with pytest.raises(FinitenessError, match="is rewarded with 0, and"):
        pareto_front(lake(is_slippery=False))
    tables = replace(random_tables(0, 3, 2, starts=2), reward=np.full(6, -1.0))
    with pytest.raises(FinitenessError, match="the starts of this environment are random"):
        front_tables(tables, random_decisions(2, (2,)), 9)
    with pytest.raises(FinitenessError, match="nothing hidden"):
        pareto_front(make("cook-twice", hide_delivered=True))
    with pytest.raises(SettingError, match="horizon = 0"):
        pareto_front(make("cook"), horizon=0)
    with pytest.raises(SettingError, match="give a horizon"):
        pareto_front(WaitingEnv(gym.make("FrozenLake-v1", max_episode_steps=-1), wait=0, durations=(2,)))
