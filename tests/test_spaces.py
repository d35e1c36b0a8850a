"""Spaces as data and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from letitcook.errors import FileFormatError, SpaceError
from letitcook.storage.spaces import space_data, space_of

SPACES = [
    spaces.Box(-1.0, 1.0, (3,)),
    spaces.Box(np.array([-4.8, -np.inf], dtype=np.float32), np.array([4.8, np.inf], dtype=np.float32)),
    spaces.Box(np.array([[0.1], [-np.inf]]), np.array([[np.inf], [7.0]]), dtype=np.float64),
    spaces.Box(0, 255, (2, 2), dtype=np.uint8),
    spaces.Box(-2.0, np.inf, ()),
    spaces.Discrete(5),
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3, 4]),
    spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[1, 1], [0, -2]])),
    spaces.MultiBinary(4),
    spaces.MultiBinary([2, 3]),
    spaces.Tuple([spaces.Discrete(2), spaces.Box(0.0, 1.0, (2,))]),
    spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Tuple([spaces.MultiBinary(1), spaces.Discrete(3)]))]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_space_survives_json(space: spaces.Space[Any]) -> None:
    again = space_of(json.loads(json.dumps(space_data(space), allow_nan=False)))
    assert again == space
    assert spaces.flatdim(again) == spaces.flatdim(space)
    space.seed(0)
    for _ in range(5):
        sample = space.sample()
        assert again.contains(sample)
        np.testing.assert_array_equal(spaces.flatten(again, sample), spaces.flatten(space, sample))


def test_the_order_of_a_dictionary_is_kept() -> None:
    space = spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Discrete(3))])
    again = space_of(space_data(space))
    assert isinstance(again, spaces.Dict)
    assert list(again.spaces) == ["z", "a"]


def test_mistakes_are_said() -> None:
    with pytest.raises(SpaceError, match="Text"):
        space_data(spaces.Dict({"name": spaces.Text(3)}))
    for damaged in ({"type": "Sphere"}, {"type": "Box", "shape": [2]}, {"type": "Discrete", "n": 0, "start": 0}, {}):
        with pytest.raises(FileFormatError, match="does not describe"):
            space_of(damaged)
