from __future__ import annotations

import gymnasium as gym
import pytest

from letitcook import Budget, WaitingEnv, learn, wrap
from letitcook.core.decisions import Timesteps
from letitcook.errors import SettingError
from letitcook.training.budget import Spending
from letitcook.training.certified_run import announce
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
    assert set(spending.summary()) == {"base_queries", "episodes", "student_episodes", "seconds"}
    assert Spending([inside, inside], Budget()).envs == [inside]


def test_the_plan_says_how_long_its_queries_take(capsys: pytest.CaptureFixture[str]) -> None:
    env = wrap(gym.make("MountainCar-v0"), lambda o: 2, wait=1, durations=(2,))
    inside = base_env_of(env)
    assert inside is not None
    inside.base_queries, inside.base_seconds = 4, 0.8
    announce(Timesteps(0), Spending([inside], Budget(base_queries=5_000)))
    said = " ".join(capsys.readouterr().err.split())
    assert "at most 5,000 queries of the base policy (1000 s in it, at 200 ms a query); no training" in said


def test_mistakes() -> None:
    for wrong in (Budget, Budget):
        with pytest.raises(SettingError, match="base_queries = 0"):
            wrong(base_queries=0)
    with pytest.raises(SettingError, match="a budget is for a wrapper"):
        learn(WaitingEnv(gym.make("MountainCar-v0"), 1, (2,)), budget=Budget(episodes=5), progress=False)
    assert Budget(episodes=3, seconds=60.0).said() == "at most 3 episodes, 60 seconds"
    assert not Budget().limited
    assert Budget(base_queries=1_000_000).training_steps(500_000) == 200_000
