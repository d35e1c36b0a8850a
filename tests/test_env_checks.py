"""Environments that newcomers bring: text, images, no time limit, vectors, another one for evaluations."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import letitcook
from letitcook import Budget, WaitingEnv, evaluate, learn, load, wrap
from letitcook.errors import SettingError, SpaceError
from letitcook.evaluation.persistence import record
from letitcook.training.env_checks import warn_of_observations
from letitcook.wrappers import env_returns
from quick_choice import choose_quickly

QUICK = {"learning_starts": 20, "hidden": (8,)}


class Corridor(gym.Env[Any, Any]):
    """Ten steps; going right pays. What is seen can be anything."""

    action_space = spaces.Discrete(2)
    observation_space: spaces.Space[Any] = spaces.Box(0.0, 10.0, (1,))

    def __init__(self, bonus: float = 0.0, endless: bool = False) -> None:
        self.bonus, self.endless, self.resets = bonus, endless, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        self.resets += 1
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.seen(), float(action) + self.bonus, False, not self.endless and self.t >= 10, {}

    def seen(self) -> Any:
        return np.array([self.t], dtype=np.float32)


class Told(Corridor):
    """The same with a mission in words, as MiniGrid has."""

    observation_space = spaces.Dict({"at": spaces.Discrete(20), "mission": spaces.Text(20)})

    def seen(self) -> Any:
        return {"at": self.t, "mission": "go right"}


def test_text_in_observations_is_left_out_with_a_warning(tmp_path: Path) -> None:
    env = WaitingEnv(Told(), wait=0, durations=(2,))
    with pytest.warns(UserWarning, match="mission"):
        run = learn(env, steps=60, settings=QUICK, preset="paper", progress=False)
    decision, _ = load(run.save(tmp_path / "run")).policy.predict(env.reset(seed=0)[0])
    assert 0 <= decision < env.decisions.n
    assert evaluate(env, run.policy, episodes=1).length == 10.0


def test_minigrid_as_it_comes_is_learned() -> None:
    import minigrid  # noqa: F401 (registers its environments)

    env = WaitingEnv(gym.make("MiniGrid-Empty-5x5-v0", max_episode_steps=20), wait=6, durations=(2,))
    with pytest.warns(UserWarning, match="mission"):
        run = learn(env, steps=60, settings=QUICK, preset="paper", progress=False)
    assert run.length <= 20.0


def test_a_wrapper_around_text_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    env = wrap(Told(), lambda seen: 1 if seen["mission"] == "go right" else 0, wait="hold", durations=(2,))
    run = learn(env, steps=0, margin="50%", progress=False)
    assert {row["kind"] for row in run.choice["candidates"]} == {"schedule", "persistence"}  # type: ignore[index]


def test_images_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="27,648 numbers look like images"):
        warn_of_observations(spaces.Box(0, 255, (96, 96, 3), np.uint8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_observations(spaces.Box(0, 255, (7, 7, 3), np.uint8))


def test_episodes_that_never_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_returns, "LONGEST_EPISODE", 50)
    endless = wrap(Corridor(endless=True), lambda seen: 1, wait=0, durations=(2,))
    for play in (lambda: record(endless, 1), lambda: learn(endless, steps=0, progress=False)):
        with pytest.raises(SettingError, match="no time limit; give it one"):
            play()


def test_several_environments_are_to_wait_side_by_side() -> None:
    several = gym.make_vec(
        "CartPole-v1", 2, vectorization_mode="sync", wrappers=[lambda env: WaitingEnv(env, wait=0, durations=(2,))]
    )
    calls: list[Any] = [
        lambda: evaluate(several, lambda seen: 0),  # type: ignore[arg-type]
        lambda: learn(several, progress=False),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(SpaceError, match="with the waits outside: letitcook.WaitingVectorEnv"):
            call()
    several.close()


def test_policies_are_evaluated_in_an_environment_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    train, judge = Corridor(), Corridor(bonus=100.0)
    run = learn(
        WaitingEnv(train, wait=0, durations=(2,)),
        steps=60,
        settings=QUICK,
        preset="paper",
        progress=False,
        eval_env=WaitingEnv(judge, wait=0, durations=(2,)),
    )
    assert run.task_return >= 1_000.0 and judge.resets == 120  # 20 of the evaluation, 100 fresh ones
    choose_quickly(monkeypatch)
    judge = Corridor(bonus=100.0)
    around = [wrap(env, lambda seen: 1, wait="hold", durations=(2,)) for env in (Corridor(), judge)]
    run = learn(around[0], steps=0, progress=False, eval_env=around[1], budget=Budget(base_queries=30_000))
    assert run.task_return >= 1_000.0
    assert run.certificate is not None and run.certificate["spent"]["episodes"] == judge.resets


def test_an_environment_for_evaluations_must_be_alike() -> None:
    env = WaitingEnv(Corridor(), wait=0, durations=(2,))
    with pytest.raises(SpaceError, match="make both alike"):
        learn(env, progress=False, eval_env=WaitingEnv(Corridor(), wait=0, durations=(4,)))
    with pytest.raises(SpaceError, match="eval_env must be one waiting environment"):
        learn(env, progress=False, eval_env=gym.make_vec("CartPole-v1", 2))  # type: ignore[arg-type]


def test_a_function_is_compared_with_the_base() -> None:
    env = wrap(Corridor(), lambda seen: 1, wait="hold", durations=(2,))
    savings = letitcook.compare_with_base(env, lambda seen: 0, episodes=2)
    assert savings.queries_saved.value == 0.0
