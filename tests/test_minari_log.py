"""Minari datasets as recordings; with the package itself in integration_tests/torch."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from letitcook import recording_from_minari
from letitcook.errors import FileFormatError, SettingError, SpaceError
from letitcook.evaluation.minari_log import read_recording


def episode(n: int, observations: Any, actions: Any, ends: bool = True) -> Any:
    """Return an episode as Minari gives it: one observation more than actions."""
    over = np.zeros(n, dtype=bool)
    over[-1:] = ends
    return SimpleNamespace(
        observations=observations, actions=actions, rewards=np.arange(n), terminations=over, truncations=np.zeros(n)
    )


def dataset(observation_space: Any, action_space: Any, *episodes: Any) -> Any:
    return SimpleNamespace(
        observation_space=observation_space, action_space=action_space, iterate_episodes=lambda: iter(episodes)
    )


LINE = spaces.Box(-9.0, 9.0, (1,))


def test_numbers_are_those_of_the_dataset() -> None:
    first = episode(3, np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[5.0], [6.0], [7.0]]))
    second = episode(2, np.array([[4.0], [5.0], [6.0]]), np.array([[8.0], [8.0]]))
    seen = recording_from_minari(dataset(LINE, LINE, first, second))
    assert seen.observations.ravel().tolist() == [0.0, 1.0, 2.0, 4.0, 5.0]
    assert seen.answers.ravel().tolist() == [5.0, 6.0, 7.0, 8.0, 8.0]
    assert np.array_equal(seen.held.ravel(), [np.nan, 5.0, 6.0, np.nan, 8.0], equal_nan=True)
    assert seen.episodes.tolist() == [0, 0, 0, 1, 1]
    assert seen.rewards.tolist() == [0.0, 1.0, 2.0, 0.0, 1.0]


def test_dictionaries_and_whole_numbers_are_flat_and_one_hot() -> None:
    space = spaces.Dict({"a": LINE, "b": spaces.Tuple([spaces.Discrete(2), LINE]), "mission": spaces.Text(9)})
    shown = {"a": np.array([[1.0], [2.0]]), "b": (np.array([1, 0]), np.array([[3.0], [4.0]])), "mission": ["go", "go"]}
    seen = recording_from_minari(dataset(space, spaces.Discrete(3, start=1), episode(1, shown, np.array([2]))))
    assert seen.observations.tolist() == [[1.0, 0.0, 1.0, 3.0]]
    assert seen.answers.tolist() == [[0.0, 1.0, 0.0]]


def test_episodes_without_an_end_are_left_out() -> None:
    whole = episode(1, np.zeros((2, 1)), np.ones((1, 1)))
    cut = episode(1, np.zeros((2, 1)), np.ones((1, 1)), ends=False)
    with pytest.warns(UserWarning, match="1 episodes of the dataset have no end"):
        assert recording_from_minari(dataset(LINE, LINE, cut, whole)).count == 1
    with pytest.warns(UserWarning), pytest.raises(FileFormatError, match="no whole episode"):
        recording_from_minari(dataset(LINE, LINE, cut))


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(FileFormatError, match="Minari dataset cannot be used"):
        recording_from_minari(dataset(LINE, LINE, episode(1, np.full((2, 1), np.nan), np.ones((1, 1)))))
    with pytest.raises(SpaceError, match="cannot be written as a vector"):
        recording_from_minari(dataset(spaces.Sequence(LINE), LINE))
    with pytest.raises(SettingError, match="no dataset is named"):
        read_recording("minari:")


@pytest.mark.skipif(importlib.util.find_spec("minari") is not None, reason="Minari is installed here")
def test_without_the_package_it_is_said_how_to_get_it() -> None:
    with pytest.raises(SettingError, match=r"letitcook\[minari\]"):
        read_recording("minari:pendulum/swing-v0")


def test_the_command_takes_a_dataset_by_its_name(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held = dataset(LINE, LINE, episode(4, np.zeros((5, 1)), np.array([[1.0], [1.0], [2.0], [2.0]])))
    monkeypatch.setattr("letitcook.evaluation.minari_log._local", lambda name: {"line/push-v0": held}[name])
    code, out, err = call("audit", "--recording", "minari:line/push-v0")
    assert code == 0, err
    assert "4 queries in 1 episodes" in out and "50.0% of the queries" in out
