"""Observation spaces as plain data, to be kept beside a policy."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.errors import FileFormatError, SpaceError


def space_data(space: spaces.Space[Any]) -> dict[str, Any]:
    """Return a space as data that JSON can hold; bounds that are infinite become None.

    >>> space_data(spaces.Discrete(3, start=1))
    {'type': 'Discrete', 'n': 3, 'start': 1}
    >>> space_data(spaces.Box(0.0, np.inf, (2,)))
    {'type': 'Box', 'shape': [2], 'dtype': 'float32', 'low': 0.0, 'high': None}
    """
    if isinstance(space, spaces.Box):
        bounds = {"low": _plain(space.low), "high": _plain(space.high)}
        return {"type": "Box", "shape": list(space.shape), "dtype": str(space.dtype), **bounds}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"type": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "n": space.n if isinstance(space.n, int) else list(space.n)}
    if isinstance(space, spaces.Dict):
        # Pairs, for their order is the order of the flat vector.
        return {"type": "Dict", "spaces": [[key, space_data(inner)] for key, inner in space.spaces.items()]}
    if isinstance(space, spaces.Tuple):
        return {"type": "Tuple", "spaces": [space_data(inner) for inner in space.spaces]}
    raise SpaceError(
        f"the observation space {space} cannot be kept beside a policy; "
        "use Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of them"
    )


def space_of(data: dict[str, Any]) -> spaces.Space[Any]:
    """Return the space that `space_data` described.

    >>> space_of({"type": "Box", "shape": [2], "dtype": "float32", "low": 0.0, "high": None})
    Box(0.0, inf, (2,), float32)
    """
    try:
        made: spaces.Space[Any] = MAKERS[data["type"]](data)
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise FileFormatError(f"{data!r} does not describe an observation space ({error!r})") from error
    return made


def _box(data: dict[str, Any]) -> spaces.Space[Any]:
    shape, dtype = tuple(data["shape"]), np.dtype(data["dtype"])
    low, high = _bound(data["low"], -np.inf, shape, dtype), _bound(data["high"], np.inf, shape, dtype)
    return spaces.Box(low, high, shape, dtype.type)


MAKERS: dict[str, Any] = {
    "Box": _box,
    "Discrete": lambda data: spaces.Discrete(data["n"], start=data["start"]),
    "MultiDiscrete": lambda data: spaces.MultiDiscrete(np.array(data["nvec"]), start=np.array(data["start"])),
    "MultiBinary": lambda data: spaces.MultiBinary(data["n"]),
    "Dict": lambda data: spaces.Dict([(key, space_of(inner)) for key, inner in data["spaces"]]),
    "Tuple": lambda data: spaces.Tuple([space_of(inner) for inner in data["spaces"]]),
}
"""How a space of each type is made of its data."""


def _plain(bound: NDArray[Any]) -> Any:
    """Return a bound as a list of its numbers, or as one number where they are all the same."""
    numbers = [None if np.isinf(number) else number for number in bound.ravel().tolist()]
    return numbers[0] if numbers and len(set(numbers)) == 1 else numbers


def _bound(plain: Any, infinity: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    numbers = plain if isinstance(plain, list) else [plain] * int(np.prod(shape))
    return np.array([infinity if number is None else number for number in numbers], dtype=dtype).reshape(shape)
