"""A few numbers in place of a large observation, for the policy that waits; the base policy sees the whole of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.errors import SpaceError

Function = Callable[[Any], Any]
"""From an observation to a few numbers."""


class Features:
    """A function from observations to a vector, checked each time; its space is found by trying it once.

    >>> picture = spaces.Box(0, 255, (64, 64, 3), np.uint8)
    >>> features = Features(lambda image: [image.mean(), image.std()], picture)
    >>> features.space, features(np.zeros((64, 64, 3))).tolist()
    (Box(-inf, inf, (2,), float32), [0.0, 0.0])
    """

    def __init__(self, function: Function, observation_space: spaces.Space[Any]) -> None:
        self.function = function
        try:
            size = len(self._vector(deepcopy(observation_space).sample()))
        except SpaceError:
            raise
        except Exception as error:
            raise SpaceError(
                f"features cannot be computed of an observation of {observation_space} ({type(error).__name__}: "
                f"{error}); give a function from such an observation to a few numbers"
            ) from error
        self.space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        """Space of the vector."""

    def __call__(self, observation: Any) -> NDArray[np.float32]:
        """Return the features of an observation."""
        vector = self._vector(observation)
        if vector.shape != self.space.shape:
            raise SpaceError(
                f"the features of an observation are {len(vector)} numbers where they were {self.space.shape[0]} "
                "before; return as many each time"
            )
        return vector

    def _vector(self, observation: Any) -> NDArray[np.float32]:
        given = self.function(observation)
        try:
            vector = np.asarray(given, dtype=np.float32).reshape(-1)
        except (TypeError, ValueError):
            vector = np.zeros(0, dtype=np.float32)
        if vector.size == 0 or not np.isfinite(vector).all():
            raise SpaceError(f"features must be finite numbers, and {' '.join(repr(given).split())[:80]} was returned")
        return vector
