"""The spaces of a saved model, from the text that Stable-Baselines3 writes beside their pickled form."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class RebuildError(Exception):
    """What keeps a model from being rebuilt without unpickling."""


def observation_space_of(text: Any, inputs: int) -> spaces.Space[Any]:
    """Return the observation space in a model's settings; a box has no bounds, for nothing depends on them.

    >>> text = {":type:": "<class 'gymnasium.spaces.box.Box'>", "dtype": "float32", "_shape": [3], "low": "[0. 0. 0.]"}
    >>> observation_space_of(text, inputs=3)
    Box(-inf, inf, (3,), float32)
    """
    kind = _kind(text)
    # Sizes are compared before anything is made: the text may claim any size, the weights have theirs.
    if _size(kind, text) != inputs:
        raise RebuildError(f"its observations are {_said(kind, text)}, and its network takes {inputs} numbers")
    if kind == "Box":
        shape = _shape(text)
        if len(shape) == 3 and text.get("dtype") == "uint8":
            raise RebuildError("its observations are images")
        return spaces.Box(-np.inf, np.inf, shape)
    return _whole(kind, text)


def action_space_of(
    text: Any, given: spaces.Space[Any] | None, outputs: int, several: bool = False
) -> spaces.Space[Any]:
    """Return the action space in a model's settings; its bounds are those of the space that is given, if one is.

    With `several`, the network gives several numbers for each action.
    """
    kind = _kind(text)
    size = _size(kind, text)
    if size < 1 or (outputs % size if several else outputs != size):
        raise RebuildError(f"its actions are {_said(kind, text)}, and its network gives {outputs} numbers")
    if kind != "Box":
        return _whole(kind, text)
    shape = _shape(text)
    if isinstance(given, spaces.Box) and given.shape == shape:
        return given
    dtype = str(text.get("dtype", "float32"))
    if dtype not in ("float32", "float64"):
        raise RebuildError(f"its actions are numbers of the type {dtype}")
    low, high = _bounds(text.get("low"), shape), _bounds(text.get("high"), shape)
    return spaces.Box(low.astype(dtype), high.astype(dtype), shape, np.dtype(dtype).type)


def _whole(kind: str, text: dict[str, Any]) -> spaces.Space[Any]:
    """Return a space of whole numbers."""
    start = np.array(_numbers(text.get("start", 0))).astype(np.int64)
    if start.any():
        raise RebuildError(f"its {kind} space does not begin at 0")
    if kind == "Discrete":
        return spaces.Discrete(_size(kind, text))
    if kind == "MultiBinary":
        return spaces.MultiBinary(_size(kind, text))
    return spaces.MultiDiscrete([int(n) for n in _numbers(text.get("nvec"))])


def _kind(text: Any) -> str:
    """Return the class of a space, of those that are rebuilt."""
    name = str(text.get(":type:")) if isinstance(text, dict) else ""
    match = re.fullmatch(r"<class 'gym(?:nasium)?\.spaces\.\w+\.(\w+)'>", name)
    if match is None or match[1] not in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
        raise RebuildError(
            f"a space of it is {name or 'not readable'}; Box, Discrete, MultiDiscrete or MultiBinary are rebuilt"
        )
    return match[1]


def _size(kind: str, text: dict[str, Any]) -> int:
    """Return the length of a space's flat vector, whole numbers one-hot."""
    if kind == "Box":
        return prod(_shape(text))
    numbers = _numbers(text.get("nvec" if kind == "MultiDiscrete" else "n"))
    if kind == "MultiDiscrete" and str(text.get("nvec")).count("[") == 1:
        return int(sum(numbers))
    if kind != "MultiDiscrete" and len(numbers) == 1:
        return int(numbers[0])
    raise RebuildError(f"its {kind} space has more than one axis")


def _shape(text: dict[str, Any]) -> tuple[int, ...]:
    shape = text.get("_shape", text.get("shape"))
    if not isinstance(shape, list) or not all(type(n) is int and n > 0 for n in shape):
        raise RebuildError("the shape of a Box of it cannot be read")
    return tuple(shape)


def _bounds(text: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return bounds as they were printed."""
    numbers = _numbers(text)
    if len(numbers) != prod(shape):
        raise RebuildError("the bounds of its actions cannot be read; give the environment's action_space")
    return np.array(numbers).reshape(shape)


def _numbers(text: Any) -> list[float]:
    """Return the numbers in the print of an array."""
    parts = re.sub(r"[\[\],]", " ", str(text)).split()
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise RebuildError(f"{str(text)[:60]!r} is not a number or an array of numbers") from None


def _said(kind: str, text: dict[str, Any]) -> str:
    return f"a {kind} of {_size(kind, text)}"
