from __future__ import annotations

import gymnasium as gym
import pytest

from letitcook import Budget, WaitingEnv, learn, wrap
from letitcook.errors import SettingError
from letitcook.training.budget import Spending
from letitcook.wrappers.base_policy import base_env_of


def test_what_is_spent_is_counted_from_the_beginning() -> None:
    env = wrap(gym.make("MountainCar-v0"), lambda o: 2, wait=1, durations=(2,))
    env.reset(seed=0)
    env.step(0)
    inside = base_env_of(env)
    assert inside is not None
    spending = Spending([inside], Budget(base_queries=4, episodes=10))
    env.reset(seed=0)
    for decision in (0, 1, 0, 2):
        env.step(decision)
    assert (spending.queries, spending.episodes) == (2, 1)
    assert spending.exhausted(0.5) and not spending.exhausted()
    assert Spending([inside], Budget(seconds=1e-9)).exhausted()
    assert set(spending.summary()) == {"base_queries", "episodes", "seconds"}


def test_mistakes() -> None:
    for wrong in (Budget, Budget):
        with pytest.raises(SettingError, match="base_queries = 0"):
            wrong(base_queries=0)
    with pytest.raises(SettingError, match="a budget is for a wrapper"):
        learn(WaitingEnv(gym.make("MountainCar-v0"), 1, (2,)), budget=Budget(episodes=5), progress=False)
    assert Budget(episodes=3, seconds=60.0).said() == "at most 3 episodes, 60 seconds"
    assert not Budget().limited
    assert Budget(base_queries=1_000_000).training_steps(500_000) == 200_000
