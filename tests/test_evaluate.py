from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from letitcook import WaitingEnv, evaluate, make, plan, rollout
from letitcook.errors import SettingError, SpaceError


class Longest:
    """Always the longest wait."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        return 4, None


def test_an_episode_adds_up() -> None:
    env = make("cook")
    episode = rollout(env, plan(env).policy)
    requested = env.decisions.durations_of[episode.decisions]
    assert episode.length - episode.queries == int((requested - 1).sum()) == 8
    assert episode.task_return == -33.0


def test_the_same_seed_plays_the_same_episodes() -> None:
    env = WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4))

    class Push(Longest):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> Any:
            return (2 if observation[1] > 0 else 0), None

    one, two, other = (evaluate(env, Push(), episodes=5, seed=seed) for seed in (1, 1, 2))
    assert one.of("length").tolist() == two.of("length").tolist() != other.of("length").tolist()
    assert len(set(one.of("length").tolist())) > 1


def test_shares_of_waiting() -> None:
    env = WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4))
    result = evaluate(env, Longest(), episodes=2)
    assert (result.length, result.queries, result.wait_share) == (200, 50, {1: 0.0, 2: 0.0, 4: 1.0})
    summary = result.summary()
    assert (summary["episodes"], summary["length_sd"], summary["task_return"]) == (2, 0.0, -200.0)
    assert np.isfinite(list(summary.values())).all()


def test_mistakes() -> None:
    with pytest.raises(SettingError, match="at least 1"):
        evaluate(make("cook"), Longest(), episodes=0)
    with pytest.raises(SpaceError, match="not a waiting environment"):
        evaluate(gym.make("MountainCar-v0"), Longest(), episodes=1)
