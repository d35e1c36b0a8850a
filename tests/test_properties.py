"""What holds for every world, every policy and every number: properties on random examples."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from letitcook import Objective, WaitingEnv, evaluate, lex_argmax, lex_better, load
from letitcook.adapters import as_policy
from letitcook.core.decisions import WRAPPER, Decisions, Timesteps
from letitcook.deep.network import initial_parameters, parameter_count
from letitcook.deep.policy import NetworkPolicy
from letitcook.finite.learner import QLearner
from letitcook.finite.plan import plan_tables
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import Tables
from letitcook.storage import folders
from letitcook.training.learn import prepare_tables
from letitcook.training.spec import RunSpec
from worlds import random_decisions, random_tables

FEW = settings(max_examples=15, deadline=None)
numbers = st.floats(-1e6, 1e6, allow_nan=False, width=32)
durations = st.lists(st.integers(2, 6), min_size=1, max_size=3, unique=True).map(lambda d: tuple(sorted(d)))


class Corridor(gym.Env[Any, Any]):
    """A walk of some length with rewards that are told in advance; action 0 walks, 1 waits. The goal may be far."""

    def __init__(self, rewards: list[float], goal: int) -> None:
        self.observation_space = spaces.Discrete(1000)
        self.action_space = spaces.Discrete(2)
        self.rewards, self.goal = rewards, goal

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        self.t = 0
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        reward = self.rewards[self.t % len(self.rewards)]
        self.t += 1
        return self.t, reward, self.t >= self.goal, False, {}


# --- the waiting wrapper ---


@given(
    st.lists(numbers, min_size=1, max_size=9),
    st.integers(1, 30),
    st.integers(1, 30),
    durations,
    st.lists(st.integers(0, 100), min_size=1, max_size=40),
    st.floats(0.5, 1.0),
)
@settings(max_examples=60, deadline=None)
def test_waits_end_at_the_goal_and_at_the_horizon(
    rewards: list[float], goal: int, horizon: int, waits: tuple[int, ...], picks: list[int], gamma: float
) -> None:
    env = WaitingEnv(gym.wrappers.TimeLimit(Corridor(rewards, goal), horizon), 1, waits, gamma)
    asked = env.decisions.durations_of.tolist()
    env.reset(seed=0)
    t = queries = saved = 0
    for pick in picks:
        u = pick % env.decisions.n
        observation, reward, terminated, truncated, info = env.step(u)
        expected = min(asked[u], goal - t, horizon - t)
        inside = [rewards[i % len(rewards)] for i in range(t, t + expected)]
        assert (info["elapsed"], info["requested"], observation) == (expected, asked[u], t + expected)
        assert info["discount"] == pytest.approx(gamma**expected)
        assert reward[0] == pytest.approx(sum(gamma**i * r for i, r in enumerate(inside)), rel=1e-9, abs=1e-6)
        assert info["task_reward"] == pytest.approx(sum(inside), rel=1e-9, abs=1e-6)
        assert reward[1] == -1.0
        t, queries, saved = t + expected, queries + 1, saved + expected - 1
        assert (terminated, truncated) == (t >= goal, t >= horizon)
        assert t - queries == saved, "length - queries = Σ (w - 1)"
        if terminated or truncated:
            break


@given(durations, st.integers(1, 25), st.integers(0, 5))
@FEW
def test_an_evaluation_adds_up(waits: tuple[int, ...], goal: int, pick: int) -> None:
    env = WaitingEnv(gym.wrappers.TimeLimit(Corridor([-1.0], goal), 20), 1, waits)
    played = evaluate(env, as_policy(lambda observation: (observation + pick) % env.decisions.n), episodes=2)
    for episode in played.episodes:
        assert episode.length == min(goal, 20) == -episode.task_return
        assert episode.length - episode.queries == sum(elapsed - 1 for elapsed in episode.elapsed)
        assert (episode.terminated, episode.truncated) == (goal <= 20, goal >= 20)


# --- the lexicographic order ---


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), st.floats(0.0, 10.0))
@settings(max_examples=100, deadline=None)
def test_the_choice_is_within_the_slack_and_then_the_best(columns: list[tuple[float, float]], slack: float) -> None:
    q = np.array(columns).T
    chosen = lex_argmax(q, slack)
    admissible = [u for u in range(q.shape[1]) if q[0, u] >= q[0].max() - slack]
    assert chosen == min(admissible, key=lambda u: (-q[1, u], u))


@given(st.tuples(numbers, numbers), st.tuples(numbers, numbers), st.tuples(numbers, numbers))
def test_better_is_an_order(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> None:
    assert not lex_better(a, a)
    assert lex_better(a, b) + lex_better(b, a) == (a != b)
    if lex_better(a, b) and lex_better(b, c):
        assert lex_better(a, c)


# --- the planner ---


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 8), durations, st.sampled_from([1.0, 0.9]))
@FEW
def test_no_policy_is_better_than_the_plan(
    seed: int, states: int, horizon: int, waits: tuple[int, ...], gamma: float
) -> None:
    tables, decisions = random_tables(seed, states, 2), random_decisions(2, waits)
    best = plan_tables(tables, decisions, horizon, Objective.named("lexicographic"), gamma)
    optimum = discounted(tables, decisions, horizon, best.decisions, gamma)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        table = rng.integers(0, decisions.n, (states, horizon + 1))
        task, waiting = naive_value(tables, decisions, horizon, table, gamma)
        assert (round(task, 7), round(waiting, 7)) <= tuple(np.round(optimum, 7).tolist())


def discounted(tables: Tables, U: Decisions, H: int, decisions: list[int], gamma: float) -> tuple[float, float]:
    """Return the value of decisions one after another, in a deterministic world."""
    left = iter(decisions)
    return naive_value(tables, U, H, _Next(left), gamma)


class _Next:
    """A policy that does not look: the next decision of a list."""

    def __init__(self, decisions: Iterator[int]) -> None:
        self.decisions = decisions

    def __getitem__(self, at: Any) -> int:
        return next(self.decisions)


def naive_value(tables: Tables, U: Decisions, H: int, table: Any, gamma: float) -> tuple[float, float]:
    """Return the value of a policy that goes by state and time, in a deterministic world."""
    s, t, task, waiting, discount = int(tables.start_state[0]), 0, 0.0, 0.0, 1.0
    while t < H and s < tables.n_states:
        u = int(table[s, t])
        waiting -= discount
        for _ in range(int(U.durations_of[u])):
            if t >= H or s >= tables.n_states:
                break
            outcome = tables.offsets[s * tables.n_actions + U.actions_of[u]]
            task += discount * tables.reward[outcome]
            s, t, discount = int(tables.next_state[outcome]), t + 1, discount * gamma
    return task, waiting


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(3, 8), durations)
@FEW
def test_a_planned_wrapper_is_never_worse_than_its_base(
    seed: int, states: int, horizon: int, waits: tuple[int, ...]
) -> None:
    tables = random_tables(seed, states, 2)  # action 0 is what the base says, 1 waits
    around = plan_tables(tables, Decisions(WRAPPER, 1, waits), horizon, Objective.named("lexicographic"))
    alone = naive_value(tables, Decisions(WRAPPER, 1, waits), horizon, np.zeros((states, horizon + 1), int), 1.0)
    assert around.task_return >= alone[0] - 1e-9
    if around.task_return == pytest.approx(alone[0]):
        assert -around.queries >= alone[1] - 1e-9


# --- the learner ---


@given(st.integers(0, 1_000), st.sampled_from([0.25, 0.5, 2.0, 8.0]))
@FEW
def test_the_lexicographic_learner_does_not_care_for_the_scale_of_waiting(seed: int, scale: float) -> None:
    tables, decisions = random_tables(seed, 4, 2), random_decisions(2, (2, 3))
    learned = []
    for factor in (1.0, scale):
        objective = Objective.named("lexicographic")
        learner = QLearner(tables, decisions, 8, objective, QSettings(slack=0.0), seed=seed)
        (task, _), (other, waiting) = learner._weights
        learner._weights = ((task, 0.0), (other, factor * waiting))  # powers of 2: the same bits but for the exponent
        learner.advance(400)
        learned.append(learner)
    one, two = learned
    assert np.array_equal(one.policy().table, two.policy().table)
    assert np.array_equal(one.Q[:, 0], two.Q[:, 0])
    assert np.array_equal(scale * one.Q[:, 1], two.Q[:, 1])


@given(st.integers(0, 1_000), st.integers(1, 150), st.integers(1, 150))
@FEW
def test_a_learner_can_stop_anywhere(seed: int, first: int, then: int) -> None:
    tables, decisions = random_tables(seed, 4, 2, branching=2), random_decisions(2, (2, 3))
    through = QLearner(tables, decisions, 8, Objective.named("lexicographic"), seed=seed)
    stopped = QLearner(tables, decisions, 8, Objective.named("lexicographic"), seed=seed)
    stopped.advance(first)
    again = QLearner(tables, decisions, 8, Objective.named("lexicographic"), seed=seed + 1)
    again.restore(folders.unpack_arrays(folders.pack_arrays(stopped.arrays()), Path("x")))
    again.advance(decisions=then)
    through.advance(first)
    through.advance(decisions=then)
    assert all(np.array_equal(a, through.arrays()[name]) for name, a in again.arrays().items())


# --- files ---


@given(st.integers(1, 4), st.lists(st.integers(1, 5), max_size=2), st.integers(1, 4), st.integers(1, 2), st.data())
@FEW
def test_policies_come_back_from_their_arrays(inputs: int, hidden: list[int], n: int, K: int, data: Any) -> None:
    sizes = (inputs, *hidden, n)
    networks = initial_parameters(sizes, K, np.random.default_rng(data.draw(st.integers(0, 99))))
    assert networks.shape == (K, parameter_count(sizes))
    policy = NetworkPolicy(networks, sizes, slack=0.1, space=spaces.Box(-1.0, 1.0, (inputs,)))
    packed = folders.unpack_arrays(folders.pack_arrays(policy.arrays()), Path("x"))
    again = NetworkPolicy.from_arrays(packed)
    rows = np.random.default_rng(1).normal(size=(7, inputs)).astype(np.float32)
    assert np.array_equal(policy.predict(rows)[0], again.predict(rows)[0])
    assert again.space == policy.space


@given(st.integers(0, 1_000), durations)
@settings(max_examples=5, deadline=None)
def test_runs_come_back_from_their_folder(seed: int, waits: tuple[int, ...]) -> None:
    tables, decisions = random_tables(seed, 4, 2), random_decisions(2, waits)
    spec = RunSpec(seed=seed, preset="exact", length=Timesteps(1_000))
    training = prepare_tables(tables, decisions, 8, spec)
    for _ in training.run():
        pass
    done = training.result()
    with tempfile.TemporaryDirectory() as place:
        again = load(done.save(Path(place) / "run"))
    assert replace(again, policy=done.policy) == done
    assert np.array_equal(again.policy.table, done.policy.table)  # type: ignore[attr-defined]
