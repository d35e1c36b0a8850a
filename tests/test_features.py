"""Features in place of an image: the wrapper sees a few numbers, the base the whole of it."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import Budget, compare_with_base, enumerate_env, learn, make, run, wrap
from letitcook.deep.settings import LDQNSettings
from letitcook.deploy.control_loop import SimulatedClock
from letitcook.errors import FinitenessError, SettingError, SpaceError
from letitcook.evaluation.persistence import record
from letitcook.finite.tables import can_be_enumerated
from letitcook.wrappers.features import Features
from quick_choice import choose_quickly


class Picture(gym.Env[Any, Any]):
    """Thirty steps; a column of an image of 4,096 numbers is lit, and action 1 pays while it is in the right half."""

    observation_space = spaces.Box(0, 255, (64, 64), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t, self.begin = 0, int(self.np_random.integers(64))
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        reward = float(action == int(self.column() >= 32))
        self.t += 1
        return self.seen(), reward, False, self.t >= 30, {}

    def column(self) -> int:
        return (self.begin + 2 * self.t) % 64

    def seen(self) -> Any:
        image = np.zeros((64, 64), dtype=np.uint8)
        image[:, self.column()] = 255
        return image


def half(image: Any) -> int:
    assert image.shape == (64, 64)  # the base always sees the image
    return int(image[0].argmax() >= 32)


def place(image: Any) -> list[float]:
    return [image[0].argmax() / 64.0]


def around(wait: Any = "hold") -> Any:
    return wrap(Picture(), half, wait=wait, durations=(2, 4, 8), features=place)


def test_the_wrapper_sees_features_and_the_base_the_image() -> None:
    env = around()
    assert env.observation_space["observation"].shape == (1,)
    seen, _ = env.reset(seed=0)
    assert seen["observation"].dtype == np.float32 and 0.0 <= seen["observation"][0] < 1.0
    seen, *_ = env.step(0)
    assert env.observation_space.contains(seen)
    fixed = around(wait=0)
    assert fixed.reset(seed=0)[0].shape == fixed.observation_space.shape == (1,)
    assert record(env, 2).observations.shape == (60, 1)


@pytest.mark.parametrize("budget", [Budget(base_queries=15_000), Budget(episodes=3_000)])  # with a student, and without
def test_a_wrapper_is_found_by_features(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    monkeypatch.setattr("letitcook.evaluation.persistence.UPDATES", 1_500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of images
        learned = learn(around(), steps=0, margin="20%", budget=budget, progress=False)
    assert learned.certificate is not None and learned.choice is not None
    rows = [row for row in learned.choice["candidates"] if row["kind"] == "persistence"]
    assert any(row["saved"] > 0.5 and row["difference"] > -2.0 for row in rows)  # the answer turns once


def test_networks_learn_from_features(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    settings = LDQNSettings(hidden=(8,), buffer_size=500, learning_starts=50)
    learned = learn(around(), steps=300, settings=settings, preset="paper", progress=False)
    played = compare_with_base(around(), learned.policy, episodes=2)
    assert len(played.wrapper.episodes) == 2


def test_the_control_loop_computes_them() -> None:
    env, seen = Picture(), []
    env.reset(seed=0)

    def decide(observation: Any) -> int:
        seen.append(observation)
        return 0

    counters = run(
        decide,
        sense=env.seen,
        act=env.step,
        rate_hz=10,
        decisions=around().decisions,
        base=half,
        action_space=env.action_space,
        features=Features(place, env.observation_space),
        max_steps=5,
        clock=SimulatedClock(),
    )
    assert counters.base_queries == 5
    assert [one["observation"].shape for one in seen] == [(1,)] * 5


def test_tables_and_compiled_tasks_do_not_take_them_for_observations() -> None:
    cook = make("cook", mode="wrap").unwrapped
    env = wrap(cook, lambda seen: 0, wait=4, durations=(2,), features=lambda seen: [1.0])
    assert not can_be_enumerated(env)
    with pytest.raises(FinitenessError, match="sees features"):
        enumerate_env(env)
    pole = wrap(make("cartpole").env, lambda seen: 0, wait=1, durations=(2,), features=lambda seen: seen[:2])
    learned = learn(pole, steps=200, preset="paper", settings={"hidden": (8,)}, progress=False)
    assert learned.info.task is None  # it could not be made again without the features
    assert learned.policy.observation_size == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda image: image["at"], "cannot be computed"),
        (lambda image: "left", "must be finite numbers, and 'left'"),
        (lambda image: [np.nan], "must be finite numbers"),
        (lambda image: [], "must be finite numbers"),
    ],
)
def test_functions_that_are_none(function: Any, said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        wrap(Picture(), half, wait=0, durations=(2,), features=function)


def test_other_mistakes() -> None:
    grows = Features(lambda seen: np.zeros(1 + int(np.ndim(seen) == 0)), Picture.observation_space)
    with pytest.raises(SpaceError, match="2 numbers where they were 1 before"):
        grows(0)
    envs = gym.make_vec("MountainCar-v0", num_envs=2, vectorization_mode="sync")
    with pytest.raises(SettingError, match="single environment"):
        wrap(envs, lambda seen: 0, wait=1, durations=(2,), features=lambda seen: seen)
    envs.close()
