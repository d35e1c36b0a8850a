"""Datasets that Minari itself wrote, as recordings of a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

from letitcook import Budget, learn, recording_from_minari, wrap
from letitcook.errors import FileFormatError
from letitcook.evaluation.minari_log import read_recording
from letitcook.evaluation.persistence import record
from letitcook.evaluation.rollout import episode_seed

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
EPISODES = 3


def push(observation: Any) -> int:
    return 2 if observation[1] > 0 else 0


@pytest.fixture(name="name")
def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = gym.make("MountainCar-v0")
    buffers = []
    for n in range(EPISODES):  # as Minari's DataCollector does, which needs JAX
        seen, actions, rewards, ends = [env.reset(seed=episode_seed(0, n))[0]], [], [], [(False, False)]
        while not any(ends[-1]):
            actions.append(push(seen[-1]))
            observation, reward, terminated, truncated, _ = env.step(actions[-1])
            seen.append(observation)
            rewards.append(reward)
            ends.append((terminated, truncated))
        terminations, truncations = ([end[i] for end in ends[1:]] for i in range(2))
        buffers.append(EpisodeBuffer(n, None, None, seen, actions, rewards, terminations, truncations))
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    minari.create_dataset_from_buffers("car/push-v0", buffers, env=env, algorithm_name="push", **spaces)
    return "car/push-v0"


def test_a_dataset_holds_what_we_record_ourselves(name: str) -> None:
    env = wrap(gym.make("MountainCar-v0"), push, wait="hold", durations=(2, 4))
    ours, theirs = record(env, EPISODES), recording_from_minari(name)
    for field in ("observations", "answers", "held", "episodes", "rewards"):
        np.testing.assert_array_equal(getattr(theirs, field), getattr(ours, field))
    assert read_recording(f"minari:{name}").count == EPISODES
    with pytest.raises(FileFormatError, match="minari download nothing-v0"):
        read_recording("minari:nothing-v0")


def test_a_wrapper_is_found_from_a_dataset(name: str) -> None:
    env = wrap(gym.make("MountainCar-v0"), push, wait="hold", durations=(2, 4, 8))
    run = learn(env, recording=f"minari:{name}", budget=Budget(base_queries=1_500), margin="90%", progress=False)
    assert run.certificate is not None and 0 < run.certificate["spent"]["base_queries"] < 1_700
