"""Wrappers of expensive policies: found around a student, certified around the base, within few queries of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import Budget, learn, load, wrap
from letitcook.errors import SettingError
from letitcook.evaluation.persistence import Recording, record
from letitcook.training.by_student import FEW_QUERIES, suits_a_student
from quick_choice import choose_quickly


class Ramp(gym.Env[Any, Any]):
    """Forty steps; each pays by how near the answer is to the right one, and by luck that the beginning tells."""

    observation_space = spaces.Box(-1.0, 1.0, (2,))
    action_space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t, self.luck = 0, float(self.np_random.uniform(-1.0, 1.0))
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        reward = 1.0 + self.luck - abs(float(action[0]) - right(self.seen()))
        self.t += 1
        return self.seen(), reward, False, self.t >= 40, {}

    def seen(self) -> Any:
        return np.array([self.t / 20 - 1.0, self.luck], dtype=np.float32)


def right(seen: Any) -> float:
    return 0.5


def counted() -> tuple[Any, list[int]]:
    """Return a waiting environment and how often its base was really queried."""
    queries = [0]

    def base(seen: Any) -> Any:
        queries[0] += 1
        return np.array([right(seen)], dtype=np.float32)

    return wrap(Ramp(), base, wait="hold", durations=(2, 3)), queries


def test_every_episode_is_counted_those_of_students_too(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    monkeypatch.setattr("letitcook.evaluation.persistence.UPDATES", 50)
    begun: list[int] = []
    reset = Ramp.reset

    def counting(self: Ramp, **given: Any) -> Any:
        begun.append(1)
        return reset(self, **given)

    monkeypatch.setattr(Ramp, "reset", counting)
    run = learn(counted()[0], margin="20%", budget=Budget(base_queries=600), progress=False)
    assert run.certificate is not None
    spent = run.certificate["spent"]
    assert spent["episodes"] == len(begun) == run.evaluation_episodes
    assert 0 < spent["student_episodes"] < spent["episodes"]
    around = wrap(Ramp(), lambda seen: np.array([0.5], dtype=np.float32), wait="hold", durations=(2,))
    begun.clear()
    run = learn(around, steps=0, margin="20%", eval_env=around, budget=Budget(seconds=30.0), progress=False)
    assert run.certificate is not None and run.certificate["spent"]["episodes"] == len(begun)
    assert run.certificate["spent"]["student_episodes"] == 0


def test_a_wrapper_is_certified_within_a_few_queries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose_quickly(monkeypatch)
    monkeypatch.setattr("letitcook.evaluation.persistence.UPDATES", 300)
    monkeypatch.setattr("letitcook.training.certified.ROUNDS", (10, 20))
    env, queries = counted()
    run = learn(env, margin="20%", budget=Budget(base_queries=1_500), progress=False, out=tmp_path / "run")
    assert queries[0] <= 1_500 + 40  # the last episode is played to its end
    certificate = run.certificate
    assert certificate is not None and certificate["spent"]["base_queries"] == queries[0]
    assert run.certified and not certificate["paired"] and certificate["bound"] > -certificate["margin"]
    assert certificate["queries_saved"] > 0.4 and certificate["episodes"] >= 30
    assert run.savings is None  # the base did not play the same episodes
    again = load(tmp_path / "run")
    assert again.certificate == certificate and again.certified


def test_a_margin_that_cannot_be_met_gives_the_base_and_says_what_could(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    env, _ = counted()
    run = learn(env, margin="0.001%", budget=Budget(base_queries=800), progress=False)
    assert not run.certified and run.choice is not None and run.choice["base_itself"]
    assert run.certificate is not None
    nearest = run.certificate["nearest"]
    assert nearest is None or nearest["bound"] < 0.0


def test_a_recording_that_was_made_before_is_not_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose_quickly(monkeypatch)
    env, queries = counted()
    log = record(env, 30, seed=5)
    assert [len(one.answers) for one in log.split()] == [40] * 30
    before = queries[0]
    run = learn(env, margin="60%", budget=Budget(base_queries=600), recording=log.save(tmp_path / "log"), verbose=0)
    assert queries[0] - before <= 600 + 40
    assert run.certified and run.certificate is not None and run.certificate["episodes"] >= 30
    other = wrap(gym.make("MountainCarContinuous-v0"), lambda seen: [0.0], wait="hold", durations=(2,))
    with pytest.raises(SettingError, match="record the policy in it"):
        learn(other, budget=Budget(base_queries=600), recording=Recording(*_narrower(log)), verbose=0)
    for budget, problem in (
        (None, "goes with a base policy and a budget"),
        (Budget(None, 50_000), "an expensive base"),
    ):
        with pytest.raises(SettingError, match=problem):
            learn(env, budget=budget, recording=log, verbose=0)


def _narrower(log: Recording) -> tuple[Any, ...]:
    return log.observations[:, :1], log.answers, log.held, log.episodes, log.rewards


def test_a_student_is_for_small_budgets_and_plain_answers() -> None:
    env, _ = counted()
    assert suits_a_student(env, Budget(base_queries=5_000))
    assert not suits_a_student(env, Budget(base_queries=FEW_QUERIES))
    assert not suits_a_student(env, Budget(episodes=100))
    assert not suits_a_student(env, Budget(episodes=100, base_queries=5_000))
    several = Ramp()
    several.action_space = spaces.MultiBinary(2)
    assert not suits_a_student(wrap(several, lambda seen: [0, 1], wait=[0, 0], durations=(2,)), Budget(None, 100))
