from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from letitcook import WaitingEnv, evaluate, make, plan, rollout
from letitcook.core.objective import Objective
from letitcook.errors import FinitenessError, SettingError
from letitcook.finite.plan import plan_tables
from worlds import random_decisions, random_tables

# Length and queries of the exact optimum: task, mode, λ (None is lexicographic).
OPTIMA = {
    ("cook", "scratch"): {None: (33, 25), 0.01: (33, 25), 0.1: (33, 25), 0.5: (33, 25), 1: (33, 25), 5: (37, 23),
                          10: (37, 23), 15: (37, 23), 20: (200, 14)},
    ("cook-longer", "scratch"): {None: (51, 29), 0.01: (51, 29), 0.1: (51, 29), 0.5: (52, 24), 1: (52, 24),
                                 5: (52, 24), 10: (52, 24), 15: (200, 14), 20: (200, 14)},
    ("cook-twice", "scratch"): {None: (69, 53), 0.01: (69, 53), 0.1: (69, 53), 0.5: (69, 53), 1: (69, 53),
                                5: (200, 14), 10: (200, 14), 15: (200, 14), 20: (200, 14)},
    ("coffee", "scratch"): {None: (41, 37), 0.01: (41, 37), 0.1: (41, 37), 0.5: (41, 37), 1: (47, 29), 2: (47, 29),
                            5: (53, 27), 10: (58, 26), 15: (200, 14), 30: (200, 14)},
    ("cook", "wrap"): {None: (53, 39), 0.01: (53, 39), 1: (53, 39), 5: (56, 38), 10: (200, 14), 20: (200, 14)},
    ("cook-longer", "wrap"): {None: (71, 39), 0.01: (71, 39), 1: (71, 39), 5: (71, 39), 10: (200, 14)},
    ("cook-twice", "wrap"): {None: (109, 81), 0.01: (109, 81), 1: (109, 81), 5: (200, 14), 10: (200, 14)},
    ("coffee", "wrap"): {None: (54, 36), 0.01: (54, 36), 2: (54, 36), 5: (60, 34), 10: (200, 14), 15: (200, 14)},
}  # fmt: skip
SHORTEST = {"cook": 33, "cook-longer": 51, "cook-twice": 69, "coffee": 41}
STATES = {"cook": 1279, "cook-longer": 2575, "cook-twice": 2557, "coffee": 12475}


@pytest.mark.parametrize(("task", "mode"), OPTIMA)
def test_every_optimum_is_exact_and_real(task: str, mode: str) -> None:
    env = make(task, mode=mode)
    for lam, (length, queries) in OPTIMA[task, mode].items():
        best = plan(env, objective="lexicographic" if lam is None else "scalar", lam=lam)
        assert (best.length, best.queries, best.states) == (length, queries, STATES[task]), lam
        episode = rollout(env, best.policy)
        assert (episode.length, episode.queries, episode.task_return) == (length, queries, -length), lam
        assert episode.decisions == best.decisions, lam


@pytest.mark.parametrize("task", SHORTEST)
def test_the_task_objective_gives_the_shortest_episode(task: str) -> None:
    best = plan(make(task), objective="task")
    assert best.length == SHORTEST[task]
    assert best.task_return == -SHORTEST[task]


def test_coffee_optimum_is_the_published_length_with_one_wait() -> None:
    labels = plan(make("coffee")).labels
    assert labels.count("wait 5") == 1
    assert labels[:14] == ["left"] * 2 + ["forward"] * 4 + ["right"] + ["forward"] * 7


def test_a_wait_of_fifteen_costs_cook_four_steps() -> None:
    best = plan(make("cook", durations=(15,)), objective="scalar", lam=5.0)
    assert "wait 15" in best.labels
    assert best.length == 37


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.integers(2, 3),
    st.integers(1, 3),
    st.sampled_from([None, 0.0, 0.7, 3]),
)
def test_plan_equals_plain_recursion(seed: int, states: int, actions: int, branching: int, lam: float | None) -> None:
    tables = random_tables(seed, states, actions, branching, starts=min(2, states))
    decisions = random_decisions(actions, (2, 4))
    objective = Objective.named("lexicographic" if lam is None else "scalar", lam)

    def better(a: tuple[float, float], b: tuple[float, float]) -> bool:
        for x, y in zip(objective.of(*a), objective.of(*b), strict=True):
            if abs(x - y) > 1e-9 * max(1.0, abs(y)):
                return bool(x > y)
        return False

    best = plan_tables(tables, decisions, 9, objective)
    slow = naive.plan_value(tables, decisions, 9, better)
    assert objective.of(best.task_return, -best.queries) == pytest.approx(objective.of(*slow), abs=1e-9)


@pytest.mark.parametrize("task", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_toy_text_plans_are_what_episodes_give(task: str) -> None:
    env = WaitingEnv(gym.make(task, max_episode_steps=40), wait=0, durations=(2, 3))
    best = plan(env)
    episodes = 400
    result = evaluate(env, best.policy, episodes=episodes, seed=1)
    for name in ("length", "queries", "task_return"):
        values = result.of(name)
        error = values.std() / np.sqrt(episodes)
        assert abs(values.mean() - getattr(best, name)) <= 4 * error + 1e-9, name


def test_slippery_frozen_lake_equals_value_iteration() -> None:
    env = gym.make("FrozenLake-v1", is_slippery=True)
    P = env.unwrapped.P  # type: ignore[attr-defined]
    V = np.zeros(16)
    for _ in range(100):
        V = np.array(
            [max(sum(p * (r + (0 if d else V[s2])) for p, s2, r, d in P[s][a]) for a in range(4)) for s in range(16)]
        )
    best = plan(WaitingEnv(env, wait=0, durations=(2,)), objective="task")
    assert best.task_return == pytest.approx(V[0], abs=1e-12)


def test_the_discount_counts_primitive_steps() -> None:
    # Waiting four steps and then walking to the end must cost what walking later costs, discounted step by step.
    env = make("cook", mode="wrap")
    env.gamma = 0.9
    best = plan(env, objective="task")
    assert best.task_return == -best.length
    assert best.values[0, 0] == pytest.approx(-sum(0.9**i for i in range(53)))


def test_a_horizon_cuts_a_wait() -> None:
    best = plan(make("cook"), horizon=7, objective="scalar", lam=10.0)
    assert (best.length, best.queries, best.labels) == (7.0, 1.0, ["wait 15"])


def test_a_plan_far_from_the_horizon_is_the_plan_of_a_longer_one() -> None:
    short, long = plan(make("cook"), horizon=200), plan(make("cook"), horizon=900)
    assert short.decisions == long.decisions
    assert rollout(make("cook"), long.policy).length == 33


def test_errors_say_what_to_do() -> None:
    with pytest.raises(SettingError, match="at least 1"):
        plan(make("cook"), horizon=0)
    with pytest.raises(SettingError, match="give a horizon"):
        plan(WaitingEnv(gym.make("FrozenLake-v1", max_episode_steps=-1), wait=0, durations=(2,)))
    with pytest.raises(FinitenessError, match="shorter horizon"):
        plan(make("cook"), horizon=10**9)
    best = plan(make("cook"))
    with pytest.raises(FinitenessError, match="not one of the states"):
        best.policy.predict(np.array([99] * 7))
    observation, _ = make("cook").reset()
    with pytest.raises(SettingError, match="past the horizon"):
        best.policy.predict(observation, 200)


def test_a_wait_that_ended_early_sets_the_clock_back() -> None:
    assert plan(make("cook")).policy.ended_early(20, 3) == 17  # type: ignore[union-attr]
