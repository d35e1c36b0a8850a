from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import naive
from letitcook import Decisions, Plan, evaluate, make, plan
from letitcook.core.objective import Objective
from letitcook.errors import FinitenessError, SettingError
from letitcook.finite.belief import BeliefPolicy, best_decisions, enumerate_beliefs
from letitcook.finite.channels import Channels
from letitcook.finite.plan import plan_tables
from letitcook.finite.tables import Tables, enumerate_env
from worlds import random_decisions, random_tables

FIVE = (14, 16, 18, 20, 22)


def hidden_tables(seed: int) -> tuple[Tables, Decisions]:
    """Return a small random world of which only every second bit or so is seen."""
    rng = np.random.default_rng(seed)
    states, actions = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    tables = random_tables(seed, states, actions, branching=int(rng.integers(1, 3)), starts=int(rng.integers(1, 3)))
    seen = [int(o) for o in rng.integers(0, 2, states)]
    seen[0] = seen[-1]  # at least two states look the same
    durations = ((2,), (3,), (2, 3))[int(rng.integers(3))]
    return replace(tables, observations=seen), random_decisions(actions, durations)


@pytest.mark.parametrize("seed", range(100))
def test_equal_to_brute_force_over_all_histories(seed: int) -> None:
    tables, decisions = hidden_tables(seed)
    horizon = 4 if decisions.n < 5 else 3
    objective = Objective.named("lexicographic") if seed % 2 else Objective.named("scalar", 0.7)
    gamma = (1.0, 0.9)[seed % 3 == 0]
    best = plan_tables(tables, decisions, horizon, objective, gamma)
    assert isinstance(best.policy, BeliefPolicy)
    weights = best.policy.beliefs.start_probability @ best.values
    np.testing.assert_allclose(
        weights, naive.best_over_histories(tables, decisions, horizon, objective.weights, gamma), atol=1e-9
    )


@pytest.mark.parametrize("seed", range(10))
def test_where_everything_is_seen_it_is_the_optimum_over_states(seed: int) -> None:
    tables, decisions = random_tables(seed, 6, 3, branching=2, starts=2), random_decisions(3, (2, 5))
    objective = Objective.named("lexicographic")
    seen = plan_tables(tables, decisions, 30, objective, 0.95)
    beliefs = enumerate_beliefs(tables, decisions, 30, 0.95)
    assert beliefs.n <= tables.n_states
    _, values = best_decisions(beliefs, decisions, 30, Channels.of(objective, 0.95))
    np.testing.assert_allclose(values[beliefs.start_belief, :2], seen.values, rtol=1e-12)


@pytest.mark.parametrize(
    ("task", "length", "queries"),
    [("cook", 33, 25), ("cook-longer", 51, 29), ("cook-twice", 69, 53), ("coffee", 41, 37)],
)
def test_a_fixed_duration_costs_nothing_to_hide(task: str, length: int, queries: int) -> None:
    best = plan(make(task, hidden=True))
    assert (best.length, best.queries) == (length, queries)
    assert isinstance(best.policy, BeliefPolicy)
    assert max(len(belief) for belief in best.policy.beliefs.weighed) == 1


@pytest.mark.parametrize(
    ("mode", "times", "seen", "unseen"),
    [
        ("scratch", (17, 18, 19), 25.0, 25.0),
        ("scratch", FIVE, 25.4, 29.0),
        ("scratch", tuple(range(10, 27)), 25 + 6 / 17, 33.0),
        ("wrap", FIVE, 39.4, 45.0),
    ],
)
def test_the_price_of_not_seeing(mode: str, times: tuple[int, ...], seen: float, unseen: float) -> None:
    optima: list[Plan] = [plan(make("cook", mode, hidden=hidden, cook_time=times)) for hidden in (False, True)]
    length = {"scratch": 33.0, "wrap": 53.0}[mode]
    assert [best.length for best in optima] == pytest.approx([length, length])
    assert [best.queries for best in optima] == pytest.approx([seen, unseen])


@pytest.mark.parametrize(("task", "mode"), [("cook", "scratch"), ("coffee", "wrap")])
def test_the_policy_gets_what_the_plan_promises(task: str, mode: str) -> None:
    env = make(task, mode, hidden=True, **{"cook": {"cook_time": FIVE}, "coffee": {"brew_time": FIVE}}[task])  # type: ignore[arg-type]
    best = plan(env)
    result = evaluate(env, best.policy, episodes=400)
    for name in ("length", "queries"):
        numbers = result.of(name)
        assert abs(numbers.mean() - getattr(best, name)) <= 4 * numbers.std() / 20 + 1e-9, name


def test_a_hidden_count_is_a_belief_too() -> None:
    seen, unseen = plan(make("cook-twice")), plan(make("cook-twice", hide_delivered=True))
    assert (unseen.length, unseen.queries) == (seen.length, seen.queries)


def test_an_observation_that_cannot_be_is_refused() -> None:
    env = make("cook", hidden=True)
    policy = plan(env).policy
    observation, _ = env.reset(seed=0)
    _, state = policy.predict(observation)
    with pytest.raises(FinitenessError, match="cannot follow"):
        policy.predict(np.array([3, 3, 0, 0, 0, 0]), state)
    with pytest.raises(FinitenessError, match="cannot follow"):
        policy.predict(np.array([9, 9, 9, 9, 9, 9]))
    with pytest.raises(SettingError, match="past the horizon"):
        policy.predict(observation, (200, 0, 0))
    assert policy.predict(observation, (200, 0, 0), episode_start=np.array([True]))[0] == policy.predict(observation)[0]


def test_limits_are_named() -> None:
    with pytest.raises(FinitenessError, match="more than 100 beliefs"):
        plan(make("cook", hidden=True), belief_limit=100)
    with pytest.raises(FinitenessError, match="shorter horizon"):
        plan(make("cook", hidden=True), horizon=10_000_000)


def test_what_is_believed_can_be_read() -> None:
    env = make("cook", hidden=True, cook_time=FIVE)
    policy = plan(env).policy
    assert isinstance(policy, BeliefPolicy)
    observation, _ = env.reset(seed=0)
    state, sizes = None, []
    over = False
    while not over:
        decision, state = policy.predict(observation, state)
        believed = policy.belief(state)
        assert sum(p for p, _ in believed) == pytest.approx(1.0)
        assert any(s == env.unwrapped.state for _, s in believed)  # type: ignore[attr-defined]
        sizes.append(len(believed))
        observation, _, terminated, truncated, _ = env.step(decision)
        over = terminated or truncated
    assert sizes[0] == sizes[-1] == 1
    assert max(sizes) == len(FIVE)


def test_tables_name_their_states() -> None:
    tables = enumerate_env(make("cook", hidden=True))
    assert len(tables.states) == tables.n_states
    assert tables.states[0] == make("cook").unwrapped.state  # type: ignore[attr-defined]


BY_POMDP_PY = {
    "tiger": [-1.0, -1.95, 2.3098, 1.795544219, 2.763096193],
    "crying baby": [-5.0, -9.95, -10.81, -12.1951, -13.46956291],
}
"""Values for the horizons 1 to 5 by the exact solver of pomdp-py 1.3.5.1: `python benchmarks/pomdp_oracle.py`."""


class Published(gym.Env[Any, Any]):
    """A published POMDP: the state is its own and what was last observed, which alone is seen."""

    def __init__(self, of: dict[str, Any]) -> None:
        self.of = of
        self.observation_space = gym.spaces.Discrete(len(of["observations"]) + 1)
        self.action_space = gym.spaces.Discrete(len(of["actions"]))

    def initial_states(self) -> list[tuple[float, Any]]:
        return [(p, (state, None)) for state, p in self.of["start"].items()]

    def outcomes(self, state: Any, action: int) -> list[tuple[float, Any, float, bool]]:
        name = self.of["actions"][action]
        return [
            (p * q, (after, seen), self.of["R"](state[0], name), False)
            for after, p in self.of["T"](state[0], name).items()
            for seen, q in self.of["O"](name, after).items()
            if q > 0.0
        ]

    def observe(self, state: Any) -> int:
        return 0 if state[1] is None else 1 + int(self.of["observations"].index(state[1]))


@pytest.mark.parametrize("name", BY_POMDP_PY)
def test_equal_to_an_independent_solver_on_published_problems(name: str) -> None:
    path = Path(__file__).parent.parent / "benchmarks" / "pomdp_oracle.py"
    of = runpy.run_path(str(path))["PROBLEMS"][name]
    tables = enumerate_env(Published(of))
    decisions = Decisions(tuple(of["actions"]), 0, ())
    for horizon, value in enumerate(BY_POMDP_PY[name], start=1):
        best = plan_tables(tables, decisions, horizon, Objective.named("task"), of["gamma"])
        assert best.values[0, 0] == pytest.approx(value, abs=1e-8), horizon
    # Where it may wait two steps unobserved as well, it is as good or better, and as brute force says.
    waits = Decisions(tuple(of["actions"]), 0, (2,))
    best = plan_tables(tables, waits, 4, Objective.named("task"), of["gamma"])
    assert best.values[0, 0] >= BY_POMDP_PY[name][3] - 1e-9
    brute = naive.best_over_histories(tables, waits, 4, Objective.named("task").weights, of["gamma"])
    assert best.values[0, 0] == pytest.approx(brute[0])
