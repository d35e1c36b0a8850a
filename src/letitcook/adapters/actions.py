"""Actions in the form that an environment takes: a base policy's answers, and the fixed action that waits."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.errors import SettingError, SpaceError

ARRAYS = (spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)
"""Spaces whose actions are arrays."""

CLIPPED = 1e-6
"""How far outside its bounds (relative to bounds above 1) an action of a Box is taken for rounding, and clipped."""


def wait_action(wait: Any, space: spaces.Space[Any]) -> Any:
    """Return a wait action in the form that `space` takes, or raise that it is outside it.

    Lists and numbers take the space's type and shape; one number fills an action of several.

    >>> wait_action(0.0, spaces.Box(-2.0, 2.0, (1,)))
    array([0.], dtype=float32)
    >>> wait_action([0, 2], spaces.MultiDiscrete([2, 3])).tolist()
    [0, 2]
    """
    fills = isinstance(space, ARRAYS) and isinstance(wait, int | float | np.number)
    try:
        return _in_space(np.full(space.shape or (), wait) if fills else wait, space, clipped=0.0)
    except SpaceError as error:
        raise SettingError(
            f"wait action {wait!r} is outside the action space {_said(space)}: {error}; "
            "give the action that does nothing"
        ) from error


def checked_action(action: Any, space: spaces.Space[Any]) -> Any:
    """Return a base policy's action in the form that `space` takes, or raise if something is wrong with it.

    An axis of one around the action is taken away. An action of a Box that is outside by no more than rounding
    (`CLIPPED`) is clipped; what is farther outside is an error, for then the policy was made for something else.

    >>> checked_action([1.0], spaces.Discrete(3))
    1
    >>> checked_action([2.0000002], spaces.Box(-2.0, 2.0, (1,)))
    array([2.], dtype=float32)
    """
    try:
        return _in_space(action, space, CLIPPED)
    except SpaceError as error:
        raise SpaceError(
            f"the base policy answered {action!r}, which is not one action of {_said(space)}: {error}; "
            "was it trained for another environment?"
        ) from error


def _in_space(action: Any, space: spaces.Space[Any], clipped: float) -> Any:
    """Return an action in the space's form; SpaceError says why it has none."""
    if isinstance(space, spaces.Discrete):
        whole = isinstance(action, int | np.integer)
        action = int(action) if whole else _whole(_shaped(action, ()), np.dtype(np.int64)).item()
    elif isinstance(space, ARRAYS):
        action = _array(action, space, clipped)
    if not space.contains(action):
        bounded = isinstance(space, spaces.Box)
        raise SpaceError("it is outside the bounds; clip it if the environment does" if bounded else "it is outside")
    return action


def _array(action: Any, space: spaces.Space[Any], clipped: float) -> Any:
    """Return an action as an array of the space's shape and type."""
    array, dtype = _shaped(action, space.shape or ()), np.dtype(space.dtype)
    if not isinstance(space, spaces.Box) or dtype.kind != "f":
        return _whole(array, dtype)
    if not np.isfinite(array).all():
        raise SpaceError("it is not finite")
    array = array.astype(np.float64)
    inside = np.clip(array, space.low, space.high)
    near = np.abs(array - inside) <= clipped * np.maximum(1.0, np.abs(inside))
    return np.where(near, inside, array).astype(dtype)


def _whole(array: Any, dtype: np.dtype[Any]) -> Any:
    """Return an array of whole numbers as one of the type `dtype`."""
    if not (np.isfinite(array).all() and (array == np.floor(array)).all()):
        raise SpaceError("it is not whole numbers")
    limits = np.iinfo(dtype)
    if ((array < limits.min) | (array > limits.max)).any():
        raise SpaceError("it is outside")
    return array.astype(dtype)


def _shaped(action: Any, shape: tuple[int, ...]) -> Any:
    """Return an action as an array of numbers of one shape, without an axis of one around it."""
    try:
        array = np.asarray(action)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; tensors that NumPy cannot read
        raise SpaceError(f"it is not an array of numbers ({error})") from error
    if array.dtype.kind not in "biuf":
        raise SpaceError("it is not a number or an array of numbers")
    if array.shape in (shape, (1, *shape)) or array.size == np.prod(shape) == 1:
        return array.reshape(shape)
    raise SpaceError(f"its shape is {array.shape}, not {shape}")


def _said(space: spaces.Space[Any]) -> str:
    """Return a space as text; discrete actions by their first and last."""
    if isinstance(space, spaces.Discrete):
        return f"{space} ({space.start}..{space.start + space.n - 1})"
    return str(space)
