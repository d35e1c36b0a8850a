from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import WaitingEnv, enumerate_env, learn, make, plan, wrap
from letitcook.errors import FinitenessError, NotFiniteError
from letitcook.finite.tables import observation_key


class Corridor(gym.Env[Any, Any]):
    """A user's environment: walk right to the end; it offers `get_state` and `set_state`."""

    def __init__(self, length: int = 5, reward: float = -1.0) -> None:
        self.observation_space = spaces.Discrete(length + 1)
        self.action_space = spaces.Discrete(3)  # left, stay, right
        self.length, self.reward, self.place = length, reward, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(0, 2))
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place = min(max(self.place + action - 1, 0), self.length)
        return self.place, self.reward, self.place == self.length, False, {}

    def get_state(self) -> int:
        return self.place

    def set_state(self, state: int) -> None:
        self.place = state


def limited(env: gym.Env[Any, Any], steps: int = 50) -> WaitingEnv:
    return WaitingEnv(gym.wrappers.TimeLimit(env, steps), wait=1, durations=(2, 3))


@pytest.mark.parametrize(
    ("task", "states", "terminal"),
    [("cook", 1278, 1), ("cook-longer", 2574, 1), ("cook-twice", 2556, 1), ("coffee", 12472, 3)],
)
def test_state_counts(task: str, states: int, terminal: int) -> None:
    tables = enumerate_env(make(task))
    assert (tables.n_states, tables.n_terminal) == (states, terminal)
    assert tables.deterministic
    assert tables.fully_observed


@pytest.mark.parametrize(
    ("env_id", "deterministic"),
    [("FrozenLake-v1", False), ("FrozenLake8x8-v1", False), ("CliffWalking-v1", True),
     ("CliffWalkingSlippery-v1", False), ("Taxi-v4", True)],
)  # fmt: skip
def test_toy_text_tables_equal_their_source(env_id: str, deterministic: bool) -> None:
    env = gym.make(env_id)
    tables = enumerate_env(env)
    P = env.unwrapped.P  # type: ignore[attr-defined]
    assert tables.deterministic == deterministic
    assert tables.start_probability.sum() == pytest.approx(1.0)
    for s, state in enumerate(tables.observations):
        for a in range(tables.n_actions):
            span = slice(tables.offsets[s * tables.n_actions + a], tables.offsets[s * tables.n_actions + a + 1])
            ours: dict[Any, float] = {}
            for p, after, r in zip(tables.probability[span], tables.next_state[span], tables.reward[span], strict=True):
                key = ("end" if after == tables.end else tables.observations[after], float(r))
                ours[key] = ours.get(key, 0.0) + p
            theirs: dict[Any, float] = {}
            for p, after, r, done in P[state][a]:
                key = ("end" if done else int(after), float(r))
                theirs[key] = theirs.get(key, 0.0) + p
            assert ours == pytest.approx(theirs)


def test_slippery_frozen_lake_frequencies() -> None:
    tables = enumerate_env(gym.make("FrozenLake-v1", is_slippery=True))
    left, down = (tables.probability[tables.offsets[a] : tables.offsets[a + 1]] for a in (0, 1))
    assert sorted(left.tolist()) == pytest.approx([1 / 3, 2 / 3])  # in the corner, two of the three slips stay
    assert down.tolist() == pytest.approx([1 / 3] * 3)
    assert np.add.reduceat(tables.probability, tables.offsets[:-1]) == pytest.approx(1.0)


def test_a_users_environment_that_offers_its_state() -> None:
    env = limited(Corridor())
    tables = enumerate_env(env)
    assert (tables.n_states, tables.n_terminal) == (5, 1)
    assert sorted(tables.start_state.tolist()) == [0, 1]
    assert tables.start_probability.sum() == pytest.approx(1.0)
    best = plan(env)
    walked = 5.0 - float(tables.start_probability @ [tables.observations[s] for s in tables.start_state])
    assert (best.length, best.queries) == (pytest.approx(walked), pytest.approx(walked))  # type: ignore[comparison-overlap]
    learned = learn(env, steps=20_000, preset="exact", progress=False)
    assert 4.0 <= learned.length <= 5.0


def test_an_environment_that_offers_nothing_is_named() -> None:
    with pytest.raises(FinitenessError, match="CartPole-v1 cannot be enumerated.*networks"):
        enumerate_env(gym.make("CartPole-v1"))
    with pytest.raises(FinitenessError, match="Blackjack-v1 cannot be enumerated"):
        enumerate_env(gym.make("Blackjack-v1"))


def test_too_many_states_say_how_many_were_found() -> None:
    with pytest.raises(FinitenessError, match=r"more than 1,000 reachable states \(1,001 found so far\)"):
        enumerate_env(make("coffee"), limit=1_000)
    with pytest.raises(FinitenessError, match="more than 1,000"):
        plan(make("coffee"), limit=1_000)


def test_a_wrapper_that_may_change_the_world_is_refused() -> None:
    env = gym.wrappers.TransformReward(gym.make("FrozenLake-v1"), lambda r: 2 * float(r))
    with pytest.raises(FinitenessError, match="TransformReward"):
        enumerate_env(env)


def test_rewards_and_probabilities_must_be_numbers() -> None:
    with pytest.raises(NotFiniteError, match="reward of action 0 in state"):
        enumerate_env(limited(Corridor(reward=float("nan"))))

    class Leaky(Corridor):
        def initial_states(self) -> list[tuple[float, int]]:
            return [(1.0, 0)]

        def outcomes(self, state: int, action: int) -> list[tuple[float, int, float, bool]]:
            return [(0.5, 1, -1.0, False)]

        def observe(self, state: int) -> int:
            return state

    with pytest.raises(FinitenessError, match=r"sum to 0\.5"):
        enumerate_env(limited(Leaky()))


class Remembering:
    """A base policy that keeps a state."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        return 1, (state or 0) + 1


def test_base_policies_that_cannot_be_enumerated() -> None:
    with pytest.raises(FinitenessError, match="keeps a state"):
        enumerate_env(wrap(gym.make("FrozenLake-v1"), Remembering(), wait=0, durations=(2,)))
    with pytest.raises(FinitenessError, match="at random"):
        enumerate_env(wrap(gym.make("FrozenLake-v1"), lambda o: 1, wait=0, durations=(2,), deterministic=False))


def test_wrapped_tables_are_rows_of_the_tables_inside() -> None:
    inner = gym.make("FrozenLake-v1", is_slippery=True)
    env = wrap(inner, lambda o: o % 4, wait=3, durations=(2,))
    plain, wrapped = enumerate_env(inner), enumerate_env(env)
    assert wrapped.n_actions == 2
    for s, state in enumerate(plain.observations):
        for action, row in ((state % 4, 2 * s), (3, 2 * s + 1)):
            source = slice(plain.offsets[4 * s + action], plain.offsets[4 * s + action + 1])
            copy = slice(wrapped.offsets[row], wrapped.offsets[row + 1])
            assert np.array_equal(plain.next_state[source], wrapped.next_state[copy])
            assert np.array_equal(plain.probability[source], wrapped.probability[copy])


def test_observation_keys() -> None:
    assert observation_key(np.int64(3)) == (3,)
    assert observation_key((1, np.array([2, 3]))) == (1, 2, 3)
    assert observation_key({"b": np.array([1]), "a": 0}) == (0, 1)
