"""A policy that is a table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.errors import FileFormatError, FinitenessError
from letitcook.finite.tables import observation_key
from letitcook.storage.array_checks import Expected, checked


class TablePolicy:
    """A decision for each observation.

    >>> policy = TablePolicy([(0,), (1,)], np.array([3, 5]))
    >>> policy.predict(1)
    (5, None)
    >>> policy.predict(np.array([[0], [1]]))[0].tolist()
    [3, 5]
    """

    def __init__(self, keys: list[tuple[Any, ...]], table: NDArray[np.int16]) -> None:
        self.keys = keys
        self.table = table

    @cached_property
    def _decision(self) -> dict[tuple[Any, ...], int]:
        """The decision at each observation; made when it is first needed, as for most checkpoints never are."""
        return {key: int(u) for key, u in zip(self.keys, self.table, strict=True)}

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, None]:
        """Return the decision at an observation, or those at an array of them."""
        key = observation_key(observation)
        if key in self._decision:
            return self._decision[key], None
        if isinstance(observation, np.ndarray) and observation.ndim >= 1 and len(key) > len(self.keys[0]):
            return np.array([self.predict(o)[0] for o in observation]), None
        raise FinitenessError(f"observation {observation!r} is not one of the {len(self.keys):,} that were learned")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the policy as arrays, for a file."""
        return {"observations": np.array(self.keys), "decisions": self.table}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TablePolicy:
        """Return the policy that `arrays` came from, or raise if there is something wrong with them."""
        keys = arrays.get("observations")
        if keys is None or keys.ndim != 2 or not keys.shape[1] or keys.dtype.kind not in "biuf":
            raise FileFormatError("a table policy has no observations, or not one row of numbers for each")
        table = checked(arrays, "decisions", Expected((len(keys),), "whole", 0, np.iinfo(np.int16).max))
        if not len(table):
            raise FileFormatError("a table policy has no observations")
        return cls([tuple(key) for key in keys.tolist()], table)
