from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from letitcook import WaitingEnv, evaluate, make, plan, rollout, wrap
from letitcook.errors import SettingError, SpaceError
from letitcook.evaluation.rollout import episode_seed
from letitcook.wrappers.vector import WaitingVectorEnv


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


def test_every_episode_has_a_start_of_its_own_that_the_policy_does_not_change() -> None:
    class Starts(gym.Wrapper[Any, Any, Any, Any]):
        seen: list[float] = []

        def reset(self, **kwargs: Any) -> Any:
            observation, info = super().reset(**kwargs)
            self.seen.append(float(observation[0]))
            return observation, info

    class Push(Longest):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> Any:
            return (2 if observation[1] > 0 else 0), None

    env = Starts(gym.make("MountainCar-v0"))
    waiting = WaitingEnv(env, wait=1, durations=(2, 4))
    short = evaluate(waiting, Push(), episodes=2, seed=3)
    evaluate(waiting, Push(), episodes=4, seed=3)
    evaluate(waiting, Longest(), episodes=4, seed=3)
    few, many, other = env.seen[:2], env.seen[2:6], env.seen[6:]
    assert few == many[:2]
    assert many == other
    assert len(set(many)) == 4
    assert short.of("length").tolist() == evaluate(waiting, Push(), episodes=4, seed=3).of("length").tolist()[:2]


def test_seeds_of_episodes_differ_and_fit_a_signed_int() -> None:
    seeds = {episode_seed(seed, n) for seed in range(20) for n in range(50)}
    assert len(seeds) == 1000
    assert max(seeds) < 2**31


class Base:
    """Pushes the way it goes; counts how often it is asked."""

    asked = 0

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        self.asked += 1
        return (2 if observation[1] > 0 else 0), None


def test_the_longest_wait_and_the_time_in_policies() -> None:
    base = Base()
    env = wrap(gym.make("MountainCar-v0"), base, wait=1, durations=(2, 7))

    class Sometimes(Longest):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> Any:
            return (3 if abs(observation[1]) < 0.001 else 0), None

    result = evaluate(env, Sometimes(), episodes=2)
    assert result.longest_wait == 7
    assert result.waiting_share == pytest.approx(sum(result.wait_share.values()))
    assert 0 < result.waiting_share < 1
    assert (result.base_queries * 2, base.asked) == (base.asked, int(result.of("base_queries").sum()))
    assert result.policy_seconds > 0
    assert result.base_seconds > 0
    scratch = evaluate(WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4)), Longest(), episodes=1)
    assert (scratch.longest_wait, scratch.base_seconds) == (4, 0.0)


def test_a_wait_that_the_episode_cuts_short_counts_as_long_as_it_was() -> None:
    env = WaitingEnv(gym.make("MountainCar-v0", max_episode_steps=3), wait=1, durations=(2, 8, 9))
    assert evaluate(env, Longest(), episodes=1).longest_wait == 3


def test_several_environments_side_by_side() -> None:
    envs = gym.make_vec("MountainCar-v0", num_envs=2, vectorization_mode="sync")
    result = evaluate(WaitingVectorEnv(envs, wait=1, durations=(2, 4)), Longest(), episodes=3)
    assert (len(result.episodes), result.length, result.queries, result.longest_wait) == (3, 200, 50, 4)


def test_mistakes() -> None:
    with pytest.raises(SettingError, match="seed = -1"):
        evaluate(make("cook"), Longest(), episodes=1, seed=-1)
    with pytest.raises(SettingError, match="at least 1"):
        evaluate(make("cook"), Longest(), episodes=0)
    with pytest.raises(SpaceError, match="not a waiting environment"):
        evaluate(gym.make("MountainCar-v0"), Longest(), episodes=1)


def test_a_function_is_evaluated_as_a_policy() -> None:
    env = WaitingEnv(gym.make("MountainCar-v0", max_episode_steps=40), wait=1, durations=(2, 8))
    played = evaluate(env, lambda observation: 4, episodes=2)
    assert (played.length, played.queries) == (40.0, 5.0)
