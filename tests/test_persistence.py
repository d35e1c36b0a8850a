"""Recordings of a base policy, what they say before anything is learned, and wrappers that are fitted to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import SchedulePolicy, WaitingEnv, compare_with_base, wrap
from letitcook.deep.policy import flat
from letitcook.errors import FileFormatError, SettingError
from letitcook.evaluation.persistence import (
    FIELDS,
    Recording,
    audit,
    examples,
    persistence_policies,
    record,
    spread_of,
    stays,
)
from letitcook.wrappers.base_policy import base_env_of


def push(observation: Any) -> Any:
    return np.array([1.0 if observation[1] >= 0 else -1.0], dtype=np.float32)


def car(wait: Any = "hold") -> WaitingEnv:
    return wrap(gym.make("MountainCarContinuous-v0"), push, wait, (2, 4, 8))


def naive_stays(recording: Recording, reference: Any, tolerance: float) -> list[float]:
    """One step after the other."""
    limit, out = tolerance * spread_of(recording), []
    for t in range(len(recording.answers)):
        count, at = 0.0, t
        while not np.isnan(reference[t]).any():
            if at == len(recording.answers) or recording.episodes[at] != recording.episodes[t]:
                count = np.inf
                break
            if (np.abs(recording.answers[at] - reference[t]) > limit).any():
                break
            count, at = count + 1, at + 1
        out.append(count)
    return out


def test_how_long_answers_stay_as_counted_step_by_step() -> None:
    rng = np.random.default_rng(0)
    n = 200
    answers = np.cumsum(rng.normal(0.0, 0.3, (n, 2)), axis=0).astype(np.float32)
    recording = Recording(answers, answers, answers, np.sort(rng.integers(0, 5, n)), np.zeros(n))
    reference = answers.copy()
    reference[::7] = np.nan
    for tolerance in (0.0, 0.1, 1.0):
        found = stays(recording, reference, tolerance).astype(float)
        found[found > n] = np.inf
        assert found.tolist() == naive_stays(recording, reference, tolerance)


def test_a_recording_is_what_the_base_saw_and_answered(tmp_path: Path) -> None:
    env = car()
    recording = record(env, episodes=2, seed=4)
    plain = gym.make("MountainCarContinuous-v0")
    from letitcook.evaluation.rollout import episode_seed

    row = 0
    for n in range(2):
        observation, _ = plain.reset(seed=episode_seed(4, n))
        over, before = False, np.full(1, np.nan)
        while not over:
            assert np.array_equal(recording.observations[row], observation)
            assert np.array_equal(recording.held[row], before, equal_nan=True)
            assert (recording.episodes[row], recording.answers[row]) == (n, push(observation))
            before = push(observation)
            observation, reward, terminated, truncated, _ = plain.step(before)
            assert recording.rewards[row] == reward
            over, row = terminated or truncated, row + 1
    assert row == len(recording.answers)
    file = recording.save(tmp_path / "car.safetensors")
    again = Recording.load(file)
    assert all(np.array_equal(getattr(again, f), getattr(recording, f), equal_nan=f == "held") for f in vars(recording))
    both = again.joined(recording)
    assert (both.count, len(both.answers)) == (4, 2 * row)


def test_with_a_wrapper_its_waits_are_carried_out_and_the_base_is_queried_all_the_same() -> None:
    env = car()
    queries = base_env_of(env).base_queries  # type: ignore[union-attr]
    recording = record(env, 1, seed=4, policy=SchedulePolicy(4, (2, 4, 8)))
    n = len(recording.answers)
    assert base_env_of(env).base_queries - queries == n  # type: ignore[union-attr]
    asked = recording.answers[np.arange(n) // 4 * 4]  # held for four steps
    assert np.array_equal(recording.held[1:], asked[:-1])


def test_examples_are_what_a_wrapper_sees() -> None:
    for wait in ("hold", 0.0):
        env = car(wait)
        recording = record(env, 1)
        wrapped = base_env_of(env)
        assert wrapped is not None
        x, y = examples(env, wrapped, recording, 0.05)
        seen, _ = env.reset(seed=0)
        assert x.shape[1] == len(flat(env.observation_space, seen))
        if wait == "hold":
            shown = {"observation": recording.observations[1], "last_action": recording.answers[0]}
            assert np.array_equal(x[0], flat(env.observation_space, shown))
        assert (y[:, 0] == 1.0).all()
        assert (np.diff(y[:, 1:], axis=1) <= 0.0).all()  # who may wait for long may wait for a moment


def test_an_audit_counts_the_changes() -> None:
    recording = record(car(), episodes=3)
    changed = (recording.answers[1:, 0] != recording.answers[:-1, 0]) | (np.diff(recording.episodes) > 0)
    assert audit(recording)[0].kept == (1 + changed.sum()) / len(recording.answers)
    assert audit(recording)[0].waited is None
    assert audit(recording, np.array([1.0], dtype=np.float32))[1].waited == (recording.answers == 1.0).mean()


def test_a_fitted_wrapper_saves_most_queries_of_a_base_that_seldom_changes_its_mind() -> None:
    env = car()
    policies = persistence_policies(env, record(env, episodes=6, seed=1))
    assert len(policies) == 3  # the answers are the same or far apart: one tolerance is enough
    savings = compare_with_base(env, policies[0][1], episodes=5, seed=2)
    assert savings.queries_saved.value > 0.8
    assert savings.return_difference.value > -1.0


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="no base policy"):
        record(WaitingEnv(gym.make("MountainCar-v0"), 1, (2,)), 1)
    with pytest.raises(SettingError, match="episodes = 0"):
        record(car(), 0)
    with pytest.raises(FileFormatError, match="letitcook record"):
        Recording.load(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FileFormatError):
        Recording.load(tmp_path / "text")
    fine = record(car(), 1)
    wrong: dict[str, Any] = {
        "answers": fine.answers[:-1],
        "held": np.full_like(fine.held, np.inf),
        "episodes": fine.episodes - 1,
        "observations": fine.observations.astype(bool),
        "rewards": fine.rewards[:, None],
    }
    for name, array in wrong.items():
        file = replace(fine, **{name: array}).save(tmp_path / name)
        with pytest.raises(FileFormatError, match=r"the saved .*; make it anew: letitcook record"):
            Recording.load(file)
    nothing = replace(fine, **{name: getattr(fine, name)[:0] for name in FIELDS}).save(tmp_path / "empty")
    with pytest.raises(FileFormatError, match="empty"):
        Recording.load(nothing)
    one = replace(fine, **{name: getattr(fine, name)[:1] for name in FIELDS}).save(tmp_path / "one")
    assert Recording.load(one).count == 1, "an episode of a single step holds nothing"
    assert isinstance(car().observation_space, spaces.Dict)
