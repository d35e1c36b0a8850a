from __future__ import annotations

import importlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from letitcook import WaitingEnv, evaluate, make, plan, rollout
from letitcook.core.decisions import WRAPPER, Decisions
from letitcook.core.objective import Objective
from letitcook.errors import FinitenessError, SettingError
from letitcook.finite.plan import PlanPolicy, plan_tables
from letitcook.finite.tables import Tables, enumerate_env
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


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([1, 3]), st.sampled_from([5, 40]), st.booleans())
def test_a_plan_is_what_its_policy_gives(seed: int, states: int, branching: int, horizon: int, base: bool) -> None:
    """Every number of a plan follows from its policy's decisions; with a long horizon they repeat themselves."""
    gamma, lam = (1.0, 0.9)[seed % 2], (None, 0.7)[seed % 3 == 0]
    tables = random_tables(seed, states, 2, branching, starts=min(2, states))
    decisions = Decisions(WRAPPER, 1, (2, 3), cost="base") if base else random_decisions(2, ((2, 3), ())[seed % 5 == 0])
    objective = Objective.named("lexicographic" if lam is None else "scalar", lam)
    best = plan_tables(tables, decisions, horizon, objective, gamma)
    assert isinstance(best.policy, PlanPolicy)
    value = naive.timed_policy_values(tables, decisions, horizon, best.policy.table, gamma)
    at_start = value[tables.start_state]
    expected = tables.start_probability @ at_start
    assert (best.task_return, best.queries, best.length) == pytest.approx(tuple(expected[2:]))
    assert (best.states, best.horizon, best.beliefs) == (states + 1, horizon, None)
    if not base:  # else a query of the base costs more than another decision
        assert best.values == pytest.approx(np.array([objective.of(task, -asked) for task, asked, *_ in at_start]))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([1, 3]))
def test_the_likeliest_episode_and_the_policys_clock(seed: int, states: int, branching: int) -> None:
    tables = random_tables(seed, states, 2, branching)
    decisions = random_decisions(2, (2, 3))
    best = plan_tables(tables, decisions, 9, Objective.named("scalar", 2.0))
    s, t, start = 0, 0, True
    state: Any = None
    episode: list[int] = []
    while t < 9 and s != tables.end:
        u, state = best.policy.predict(s, state, np.array([start]))
        assert (u, state) == best.policy.predict(s, t)
        assert best.policy.predict(s, 8, np.array([True]))[0] == best.policy.predict(s)[0]
        start, episode = False, [*episode, u]
        for _ in range(int(decisions.durations_of[u])):
            row = 2 * s + int(decisions.actions_of[u])
            outcomes = range(tables.offsets[row], tables.offsets[row + 1])
            s, t = int(tables.next_state[max(outcomes, key=lambda i: tables.probability[i])]), t + 1
            if s == tables.end or t == 9:
                break
        else:
            assert state == t
    assert best.decisions == episode
    assert best.labels == [decisions.label(u) for u in episode]
    with pytest.raises(FinitenessError, match="not one of the states"):
        best.policy.predict(states + 5)
    with pytest.raises(SettingError, match="time 9 is past the horizon of 9"):
        best.policy.predict(0, 9)
    assert best.policy.ended_early(7, 3) == 4  # type: ignore[union-attr]


def test_states_that_look_the_same_and_are_the_same_change_nothing() -> None:
    """One state more, the twin of the first one: it looks the same and does the same."""
    tables = random_tables(3, 3, 2, branching=2)
    where = [*tables.next_state.tolist(), *tables.next_state[: tables.offsets[2]].tolist()]
    spans = [*tables.offsets.tolist(), *(tables.offsets[1:3] + len(tables.next_state)).tolist()]
    twins = replace(
        tables,
        n_states=4,
        offsets=np.array(spans),
        probability=np.append(tables.probability, tables.probability[: tables.offsets[2]]),
        next_state=np.array([4 if s == 3 else s for s in where]),
        reward=np.append(tables.reward, tables.reward[: tables.offsets[2]]),
        start_state=np.array([0, 3]),
        start_probability=np.array([0.25, 0.75]),
        observations=[0, 1, 2, 0],
    )
    decisions, objective = random_decisions(2, (2,)), Objective.named("lexicographic")
    seen, unseen = (plan_tables(one, decisions, 6, objective, 0.9) for one in (tables, twins))
    assert (unseen.length, unseen.queries, unseen.task_return) == pytest.approx(
        (seen.length, seen.queries, seen.task_return)
    )
    assert unseen.values == pytest.approx(seen.values)
    assert (unseen.states, unseen.horizon) == (5, 6)
    assert unseen.beliefs is not None
    assert unseen.beliefs > 1
    assert unseen.decisions == seen.decisions


def test_limits() -> None:
    tables, decisions = random_tables(0, 2, 2), random_decisions(2, (2,))
    objective = Objective.named("task")
    assert plan_tables(tables, decisions, 1, objective).horizon == 1
    with pytest.raises(SettingError, match="horizon = 0"):
        plan_tables(tables, decisions, 0, objective)
    with pytest.raises(FinitenessError, match="2 states times a horizon of 134,217,729 steps"):
        plan_tables(tables, decisions, 2**27 + 1, objective)
    env = WaitingEnv(gym.make("FrozenLake-v1", max_episode_steps=-1), wait=0, durations=(2,))
    assert plan(env, horizon=3).horizon == 3
    with pytest.raises(SettingError, match="give a horizon"):
        plan(env)
    assert plan(WaitingEnv(gym.make("FrozenLake-v1", max_episode_steps=4), wait=0, durations=(2,))).horizon == 4


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


def rational_optimum(tables: Tables, decisions: Decisions, horizon: int) -> tuple[Fraction, Fraction]:
    """Return the lexicographic optimum, task return and queries, by backward induction without any rounding."""
    A, S, end = len(decisions.actions), tables.n_states, (Fraction(0), Fraction(0))
    chances = [Fraction(float(p)).limit_denominator(99) for p in tables.probability]
    rewards = [Fraction(float(r)).limit_denominator(99) for r in tables.reward]

    def expected(s: int, action: int, then: list[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
        task = waiting = Fraction(0)
        for i in range(tables.offsets[s * A + action], tables.offsets[s * A + action + 1]):
            after = then[tables.next_state[i]]
            task, waiting = task + chances[i] * (rewards[i] + after[0]), waiting + chances[i] * after[1]
        return task, waiting

    values = [end] * (S + 1)
    committed = [[end] * (S + 1) for _ in range(max(decisions.durations) + 1)]  # to that many more steps of waiting
    for _ in range(horizon):
        committed[0] = values
        committed = [values] + [
            [*(expected(s, decisions.wait, then) for s in range(S)), end] for then in committed[:-1]
        ]
        best = []
        for s in range(S):
            waits = [committed[w][s] for w in decisions.durations]
            task, waiting = max([expected(s, a, values) for a in range(A)] + waits)
            best.append((task, waiting - 1))
        values = [*best, end]
    (start,) = tables.start_state
    return values[start][0], -values[start][1]


@pytest.mark.parametrize("seed", range(4))
def test_slippery_lakes_equal_the_optimum_in_rational_numbers(seed: int) -> None:
    """Many waits and actions are equally good here, and rounding must decide nothing."""
    lake = gym.make("FrozenLake-v1", desc=generate_random_map(4, seed=seed), is_slippery=True)
    env = WaitingEnv(lake, wait=0, durations=(2, 4))
    best = plan(env, horizon=25)
    task, queries = rational_optimum(enumerate_env(env), env.decisions, 25)
    assert best.task_return == pytest.approx(float(task), rel=1e-12)
    assert best.queries == pytest.approx(float(queries), rel=1e-12)


def test_a_plan_that_would_not_fit_into_memory_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("letitcook.finite.plan")
    states, longest, channels = make_states("cook"), 15, 5
    needed = 2 * 200 * states + 16 * (states + 1) * channels * (longest + 1)
    monkeypatch.setattr(module, "_memory", lambda: needed)
    assert plan(make("cook")).queries == 25
    monkeypatch.setattr(module, "_memory", lambda: needed - 1)
    with pytest.raises(FinitenessError, match=rf"needs {needed / 1e9:.1f} GB, and this machine has"):
        plan(make("cook"))


def make_states(task: str) -> int:
    return enumerate_env(make(task)).n_states
