"""Durations that are drawn at random: how they are given, and how an outcome is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from letitcook.errors import SettingError

Times = tuple[tuple[float, int], ...]
"""Durations with their probabilities, shortest first."""


def read_times(name: str, given: Any) -> Times:
    """Return a duration, or several that are equally likely, as pairs of probability and steps.

    A duration that is given twice is twice as likely.

    >>> read_times("cook_time", 18), read_times("cook_time", (14, 22, 14, 14))
    (((1.0, 18),), ((0.75, 14), (0.25, 22)))
    """
    several: list[Any] = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    whole = all(isinstance(time, int | np.integer) and not isinstance(time, bool) and time >= 1 for time in several)
    if isinstance(given, str) or not several or not whole:
        raise SettingError(
            f"{name} = {given!r} is not allowed; give a whole number of at least 1, or several to draw from: "
            f"{name}=(14, 16, 18)"
        )
    return tuple((n / len(several), int(time)) for time, n in sorted(Counter(several).items()))


def drawn(outcomes: Sequence[tuple[float, Any, float, bool]], rng: np.random.Generator) -> Any:
    """Return one of the outcomes, by their probabilities; where there is but one, nothing is drawn.

    >>> drawn([(1.0, "there", -1.0, False)], np.random.default_rng(0))
    (1.0, 'there', -1.0, False)
    """
    if len(outcomes) == 1:
        return outcomes[0]
    return outcomes[rng.choice(len(outcomes), p=[p for p, *_ in outcomes])]
