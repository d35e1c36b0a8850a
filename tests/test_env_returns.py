"""Environments that return odd things, change their space, hang or never end."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import StepDeadline, WaitingEnv, evaluate, learn, wrap
from letitcook.adapters import as_policy
from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN
from letitcook.deep.settings import LDQNSettings
from letitcook.errors import EnvironmentTimeError, NotFiniteError, SettingError, SpaceError
from letitcook.wrappers import env_returns

SMALL = LDQNSettings(hidden=(8,), buffer_size=200, learning_starts=20, batch_size=8)
GOOD: tuple[Any, ...] = (np.zeros(2, dtype=np.float32), -1.0, False, False, {})


class Odd(gym.Env[Any, Any]):
    """Returns what it is told to from its 17th step on, and before it what is right."""

    def __init__(self, odd: Any = GOOD, first: Any = (GOOD[0], {}), at: int = 17) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,))
        self.action_space = spaces.Discrete(2)
        self.odd, self.first, self.at, self.steps = odd, first, at, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.steps = 0
        return self.first

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps < self.at:
            return GOOD
        if isinstance(self.odd, Exception):
            raise self.odd
        return self.odd


def trained(env: gym.Env[Any, Any], steps: int = 40) -> None:
    waiting = WaitingEnv(env, wait=1, durations=(2, 4))
    LDQN(waiting, waiting.decisions, Objective.named("lexicographic"), SMALL, seed=0).advance(steps)


def returned(**changes: Any) -> tuple[Any, ...]:
    names = ("observation", "reward", "terminated", "truncated", "info")
    return tuple(changes.get(name, value) for name, value in zip(names, GOOD, strict=True))


ODD = {
    "a 4-tuple": (GOOD[:4], "4 values at primitive step 17 .* not the 5"),
    "nothing": (None, "step.. returned None at primitive step 17"),
    "info None": (returned(info=None), "the info None at primitive step 17 .* must be a dict"),
    "a text as reward": (returned(reward="1.0"), "the reward '1.0' at primitive step 17 .* one number"),
    "no reward": (returned(reward=None), "the reward None at primitive step 17"),
    "a huge reward": (returned(reward=10**400), "the reward 10+... at primitive step 17 .* a float can hold"),
    "terminated None": (returned(terminated=None), "the terminated None at primitive step 17 .* True or False"),
    "truncated text": (returned(truncated="no"), "the truncated 'no' at primitive step 17"),
    "shorter": (returned(observation=np.zeros(1)), r"shape \(1,\) where the space has \(2,\).* primitive step \d+"),
    "longer": (returned(observation=np.zeros(3)), r"shape \(3,\) where the space has \(2,\).* primitive step \d+"),
    "texts": (returned(observation=np.array(["a", "b"])), "holds <U1 where numbers are needed.* primitive step"),
    "ragged": (returned(observation=[[1], [1, 2]]), "not an array of numbers.* primitive step"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_returns_name_the_step_and_the_cause(odd: Any) -> None:
    what, said = odd
    with pytest.raises(SpaceError, match=said):
        trained(Odd(what))


@pytest.mark.parametrize("what", [np.inf, -np.inf, np.nan])
def test_rewards_without_end(what: float) -> None:
    with pytest.raises(NotFiniteError, match="primitive step"):
        trained(Odd(returned(reward=what)))
    env = gym.wrappers.TimeLimit(Odd(returned(reward=what)), 30)
    with pytest.raises(NotFiniteError, match="primitive step 1[78]"):
        evaluate(WaitingEnv(env, wait=1, durations=(2,)), as_policy(lambda observation: 2), episodes=1)


def test_numbers_of_numpy_are_as_good() -> None:
    trained(Odd(returned(reward=np.float32(-1), terminated=np.False_, truncated=0)))


@pytest.mark.parametrize("first", [np.zeros(2), (GOOD[0], None), [GOOD[0], {}], GOOD[0].tolist()])
def test_a_reset_of_another_form(first: Any) -> None:
    with pytest.raises(SpaceError, match="reset.. returned .* not .observation, info."):
        trained(Odd(first=first))
    wrapped = wrap(Odd(first=first), lambda observation: 0, wait=1, durations=(2,))
    with pytest.raises(SpaceError, match="reset.. returned"):
        wrapped.reset()


def test_an_error_of_the_environment_is_its_own_and_says_where() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        trained(Odd(ZeroDivisionError("mine")))
    assert raised.value.__notes__ == ["raised in primitive step 17 of an episode, action 0"] or any(
        "primitive step 17" in note for note in raised.value.__notes__
    )


def test_a_space_that_changes_is_noticed() -> None:
    class Growing(Odd):
        def step(self, action: Any) -> Any:
            result = super().step(action)
            if self.steps >= self.at:
                self.observation_space = spaces.Box(-1.0, 1.0, (3,))
                return returned(observation=np.zeros(3))
            return result

    with pytest.raises(SpaceError, match=r"shape \(3,\) where the space has \(2,\)"):
        trained(Growing())


def test_an_episode_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_returns, "LONGEST_EPISODE", 1_000)
    env = WaitingEnv(Odd(), wait=1, durations=(2, 4))
    with pytest.raises(SettingError, match="did not end within 1,000 .* no time limit; give it one"):
        learn(env, steps=100, settings={"hidden": (8,), "buffer_size": 200}, progress=False)
    with pytest.raises(SettingError, match="no time limit; give it one"):
        evaluate(env, as_policy(lambda observation: 0), episodes=1)
    limited = WaitingEnv(gym.wrappers.TimeLimit(Odd(), 2_000), wait=1, durations=(2, 4))
    assert evaluate(limited, as_policy(lambda observation: 0), episodes=1).length == 2_000


def test_a_step_that_hangs() -> None:
    class Hanging(Odd):
        def step(self, action: Any) -> Any:
            if self.steps == 5:
                time.sleep(60.0)
            return super().step(action)

    began = time.monotonic()
    with pytest.raises(EnvironmentTimeError, match="primitive step 6 of an episode, did not return within 0.05 s"):
        trained(StepDeadline(Hanging(), seconds=0.05))
    assert time.monotonic() - began < 30.0
    with pytest.raises(SettingError, match="give a time above 0"):
        StepDeadline(Odd(), seconds=0.0)


class Unseeded(Odd):
    """Has a `reset` of its own form."""

    def reset(self) -> Any:  # type: ignore[override]
        return self.first


class Optionless(Odd):
    def reset(self, seed: int | None = None) -> Any:  # type: ignore[override]
        return self.first


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: WaitingEnv(gym.wrappers.TimeLimit(Unseeded(), 9), 1, (2,)), "Unseeded takes no seed and no options"),
        (lambda: WaitingEnv(Optionless(), 1, (2,)), "Optionless takes no options"),
        (lambda: WaitingEnv(Unseeded(), "hold", (2,)), "Unseeded takes no seed"),
        (lambda: wrap(StepDeadline(Unseeded(), 5.0), lambda o: 0, wait=1, durations=(2,)), "Unseeded takes no seed"),
    ],
)
def test_a_reset_without_a_seed_is_explained(made: Any, said: str) -> None:
    with pytest.raises(SpaceError, match=rf"reset\(\) of {said}.*def reset\(self, \*, seed=None, options=None\)"):
        evaluate(made(), as_policy(lambda observation: 0), episodes=1)


def test_a_mistake_inside_a_reset_keeps_its_own_error() -> None:
    class Broken(Odd):
        def reset(self, **kwargs: Any) -> Any:
            return len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len"):
        evaluate(WaitingEnv(Broken(), 1, (2,)), as_policy(lambda observation: 0), episodes=1)
