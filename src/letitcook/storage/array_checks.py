"""Checks of arrays that come from files, before any kernel sees them: kernels index without bounds checks.

An array has a shape, a kind of numbers and, where it holds indices, a range. What does not fit is a `FileFormatError`
that names the array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.errors import FileFormatError

Kind = Literal["real", "whole", "truth"]
KINDS: dict[Kind, str] = {"real": "fiu", "whole": "iu", "truth": "b"}
"""NumPy's kinds of numbers that may stand for each of ours."""
MOST_STEPS = 2**53
"""Counts are at most this: every whole number up to it is a float of its own."""


class Expected(NamedTuple):
    """What an array has to be."""

    shape: tuple[int | None, ...]
    """Its shape; None where any length will do."""
    kind: Kind = "real"
    low: float | None = None
    """The least number that is allowed."""
    high: float | None = None
    """The greatest number that is allowed."""
    nan: bool = False
    """Whether NaN may stand for "none"; infinity never may."""


def checked(arrays: Mapping[str, NDArray[Any]], name: str, expected: Expected) -> NDArray[Any]:
    """Return an array among saved ones, or raise if it is not what is expected.

    >>> checked({"turn": np.array([2])}, "turn", Expected((1,), "whole", 0, 3)).tolist()
    [2]
    >>> checked({"turn": np.array([10**12])}, "turn", Expected((1,), "whole", 0, 3))
    Traceback (most recent call last):
    ...
    letitcook.errors.FileFormatError: the saved turn has a number outside 0..3; the file is damaged, or of another run
    """
    if name not in arrays:
        raise FileFormatError(f"the saved {name} is missing; the file is damaged, or of another version")
    array, shape = arrays[name], expected.shape
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise FileFormatError(
            f"the saved {name} has shape {array.shape} where {wanted} is needed; it was saved with other settings"
        )
    if array.dtype.kind not in KINDS[expected.kind]:
        raise FileFormatError(f"the saved {name} holds {array.dtype} where {expected.kind} numbers are needed")
    if expected.kind != "truth" and array.size:
        _check_numbers(array, name, expected)
    return array


def _check_numbers(array: NDArray[Any], name: str, expected: Expected) -> None:
    if array.dtype.kind == "f":
        bad = np.isinf(array) if expected.nan else ~np.isfinite(array)
        if bad.any():
            raise FileFormatError(f"the saved {name} has a number that is not finite; the file is damaged")
    low, high = expected.low, expected.high
    if expected.nan and np.isnan(array).all():
        return
    # Whole numbers of 64 bits are compared as such: as floats, some just outside would round to the limit.
    least, most = (np.nanmin(array), np.nanmax(array)) if expected.nan else (array.min(), array.max())
    if (low is not None and least.item() < low) or (high is not None and most.item() > high):
        said = f"{'' if low is None else low}..{'' if high is None else high}"
        raise FileFormatError(f"the saved {name} has a number outside {said}; the file is damaged, or of another run")
