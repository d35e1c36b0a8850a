"""Actions that are sent several times before the policy is asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import letitcook
from letitcook import Decisions, WaitingEnv, WaitingVectorEnv, evaluate, learn, plan, wrap
from letitcook.deploy import numpy_policy
from letitcook.deploy.export import to_numpy
from letitcook.errors import FinitenessError, SettingError
from letitcook.finite.tables import can_be_enumerated
from letitcook.training.env_spec import WrappedEnvSpec


def cart(repeat: int = 4, **settings: Any) -> WaitingEnv:
    made = gym.make("MountainCar-v0")
    return WaitingEnv(made, wait=1, durations=(8, 16), action_repeat=repeat, **settings)


def test_an_action_is_sent_so_often_and_counts_as_one_query() -> None:
    env, plain = cart(), gym.make("MountainCar-v0")
    env.reset(seed=3)
    plain.reset(seed=3)
    for decision, action, steps in ((0, 0, 4), (2, 2, 4), (1, 1, 4), (3, 1, 8), (4, 1, 16)):
        seen, reward, *_, info = env.step(decision)
        for _ in range(steps):
            expected = plain.step(action)[0]
        assert np.array_equal(seen, expected)
        assert reward.tolist() == [-steps, -1.0] and info["elapsed"] == info["requested"] == steps


def test_the_end_of_an_episode_cuts_an_action_short() -> None:
    env = WaitingEnv(gym.make("CartPole-v1"), wait=0, durations=(9,), action_repeat=7)
    env.reset(seed=0)
    elapsed = [(info["elapsed"], terminated) for _, _, terminated, _, info in (env.step(1) for _ in range(2))]
    assert elapsed[0] == (7, False) and elapsed[1][0] < 7 and elapsed[1][1]


def test_a_vector_of_environments_does_the_same() -> None:
    one = cart()
    several = WaitingVectorEnv(gym.make_vec("MountainCar-v0", num_envs=1), wait=1, durations=(8, 16), action_repeat=4)
    one.reset(seed=5)
    several.reset(seed=5)
    for decision in (0, 2, 3, 1, 4):
        (done,) = several.step([decision])
        seen, reward, *_, info = one.step(decision)
        assert np.allclose(done.observation, seen) and done.elapsed == info["elapsed"]
        assert np.array_equal(done.reward, reward)
    assert several.with_discount(0.9).decisions == one.with_discount(0.9).decisions == one.decisions


def test_what_is_learned_is_saved_evaluated_and_exported(tmp_path: Path) -> None:
    env = WrappedEnvSpec("CartPole-v1", None, None, (4, 6), "0", None, {}, "decisions", 2).make()
    learned = learn(env, steps=600, seed=0, preset="best", progress=False, out=tmp_path / "run")
    read = letitcook.load(tmp_path / "run")
    assert read.decisions.repeat == 2 and read.info.env_spec is not None and read.info.env_spec.action_repeat == 2
    played = evaluate(read.info.env_spec.make(), read.policy, episodes=3, seed=1)
    assert all(steps in (2, 4, 6) for episode in played.episodes for steps in episode.elapsed[:-1])
    assert sum(played.wait_share.values()) == pytest.approx(played.waiting_share)
    exported = numpy_policy.load(to_numpy(learned, tmp_path / "robot") / "policy.npz")
    observation = env.reset(seed=4)[0]
    decision = int(learned.policy.predict(observation)[0])
    action, steps = exported.decide(observation)
    assert (action, steps) == (int(env.decisions.actions_of[decision]), int(env.decisions.durations_of[decision]))
    assert steps >= 2


def test_older_runs_repeat_nothing() -> None:
    data = WrappedEnvSpec("MountainCar-v0", None, None, (2,), "1", None, {}, "decisions").data()
    del data["action_repeat"]
    assert WrappedEnvSpec.of_data(data).action_repeat == 1


def test_repeated_actions_are_not_taken_for_waits() -> None:
    env = cart()
    learned = learn(env, "vanilla", steps=2_000, seed=0, preset="paper", progress=False)
    assert learned.decisions.durations == () and learned.decisions.repeat == 4
    played = evaluate(env, lambda observation: 2, episodes=1, seed=0)
    assert played.waiting_share == 0.0 and played.queries == played.length / 4


@pytest.mark.parametrize(
    ("repeat", "durations", "told"),
    [(0, (8,), "whole number"), (2.5, (8,), "whole number"), (4, (4, 8), "such as 8,16")],
)
def test_what_is_not_allowed(repeat: Any, durations: tuple[int, ...], told: str) -> None:
    with pytest.raises(SettingError, match=told):
        WaitingEnv(gym.make("MountainCar-v0"), 1, durations, action_repeat=repeat)


def test_around_a_policy_and_in_tables_there_is_none() -> None:
    with pytest.raises(SettingError, match="from scratch"):
        Decisions(("base", "wait"), 1, (8,), repeat=2)
    assert wrap(gym.make("MountainCar-v0"), lambda observation: 2, 1, (8,)).decisions.repeat == 1
    kitchen = WaitingEnv(letitcook.make("cook").env, 0, (4,), action_repeat=2)
    assert not can_be_enumerated(kitchen)
    with pytest.raises(FinitenessError, match="single steps"):
        plan(kitchen)
