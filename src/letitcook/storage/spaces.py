"""Observation spaces as plain data, to be kept beside a policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.errors import FileFormatError, SpaceError

MOST_NUMBERS = 2**22
"""Numbers of an observation above which a described space is refused."""
LARGEST = 2**53
"""Counts above this are refused."""
DTYPES = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"float16", "float32", "float64"}
"""Types of a box's numbers."""


def numbers_in(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Return a space without the text in its dictionaries, such as MiniGrid's `mission`: what a network can read.

    >>> numbers_in(spaces.Dict({"direction": spaces.Discrete(4), "mission": spaces.Text(20)}))
    Dict('direction': Discrete(4))
    """
    if not isinstance(space, spaces.Dict):
        return space
    kept = {key: numbers_in(inner) for key, inner in space.spaces.items() if not is_text(inner)}
    return spaces.Dict(kept) if kept else space


def text_in(space: spaces.Space[Any]) -> list[str]:
    """Return the names of the text in a space's dictionaries.

    >>> text_in(spaces.Dict({"direction": spaces.Discrete(4), "mission": spaces.Text(20)}))
    ['mission']
    """
    if not isinstance(space, spaces.Dict):
        return []
    inside = (name for inner in space.spaces.values() for name in text_in(inner))
    return [*(key for key, inner in space.spaces.items() if is_text(inner)), *inside]


def is_text(space: spaces.Space[Any]) -> bool:
    """Return whether a space holds text: Gymnasium's `Text`, or one of its own kind such as MiniGrid's missions.

    >>> is_text(spaces.Text(20)), is_text(spaces.Discrete(4))
    (True, False)
    """
    return isinstance(space, spaces.Text) or (space.dtype is not None and np.dtype(space.dtype).kind == "U")


def can_be_flat(space: spaces.Space[Any]) -> bool:
    """Return whether observations of a space can be made one vector; a space that does not know cannot.

    >>> can_be_flat(spaces.Box(0.0, 1.0, (2,))), can_be_flat(spaces.Sequence(spaces.Discrete(2)))
    (True, False)
    """
    try:
        return bool(space.is_np_flattenable)
    except NotImplementedError:
        return False


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


def space_of(data: Any) -> spaces.Space[Any]:
    """Return the space that `space_data` described; its size is checked before anything is made.

    >>> space_of({"type": "Box", "shape": [2], "dtype": "float32", "low": 0.0, "high": None})
    Box(0.0, inf, (2,), float32)
    >>> space_of({"type": "Box", "shape": [300_000_000], "dtype": "float32", "low": 0.0, "high": None})
    Traceback (most recent call last):
    ...
    letitcook.errors.FileFormatError: a space of 300,000,000 numbers is larger than the 4,194,304 that are read
    """
    size = flat_size(data)
    if size > MOST_NUMBERS:
        raise FileFormatError(f"a space of {size:,} numbers is larger than the {MOST_NUMBERS:,} that are read")
    try:
        with np.errstate(invalid="raise", over="raise"):
            made: spaces.Space[Any] = MAKERS[data["type"]](data)
    except (KeyError, TypeError, ValueError, AssertionError, ArithmeticError, IndexError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise _not_a_space(data, error) from error
    return made


def flat_size(data: Any) -> int:
    """Return how many numbers an observation of a described space has when it is flat, whole numbers one-hot.

    >>> flat_size({"type": "Tuple", "spaces": [{"type": "Discrete", "n": 3}, {"type": "Box", "shape": [2, 2]}]})
    7
    """
    try:
        return SIZES[data["type"]](data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise _not_a_space(data, error) from error


def _not_a_space(data: Any, error: Exception) -> FileFormatError:
    return FileFormatError(f"{str(data)[:200]} does not describe an observation space ({str(error)[:100]})")


def _counts(value: Any) -> list[int]:
    """Return whole numbers of at least 0 in nested lists, one after another."""
    if isinstance(value, list):
        return [n for inner in value for n in _counts(inner)]
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise ValueError(f"{str(value)[:40]} is not a count")
    return [value]


SIZES: dict[str, Callable[[Any], int]] = {
    "Box": lambda data: math.prod(_counts(list(data["shape"]))),
    "Discrete": lambda data: _counts(data["n"])[0],
    "MultiDiscrete": lambda data: sum(_counts(data["nvec"])),
    "MultiBinary": lambda data: math.prod(_counts(data["n"])),
    "Dict": lambda data: sum(flat_size(inner) for _, inner in data["spaces"]),
    "Tuple": lambda data: sum(flat_size(inner) for inner in data["spaces"]),
}
"""How long a flat observation of each type of space is."""


def _box(data: dict[str, Any]) -> spaces.Space[Any]:
    if data["dtype"] not in DTYPES:
        raise ValueError(f"{str(data['dtype'])[:40]} is not a type of numbers")
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
    if not isinstance(plain, list):
        return np.full(shape, infinity if plain is None else plain, dtype=dtype)
    return np.array([infinity if number is None else number for number in plain], dtype=dtype).reshape(shape)
