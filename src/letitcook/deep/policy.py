"""A policy made of networks: one for each objective, and the slack between them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.deep.network import best_decision, new_scratch, parameter_count
from letitcook.errors import FileFormatError, NotFiniteError, SpaceError
from letitcook.kernels import compiled
from letitcook.space_data import space_data, space_of


def flat(space: spaces.Space[Any] | None, observation: Any) -> NDArray[np.float32]:
    """Return an observation as one vector of float32: a Box as it is, a Discrete as one-hot, a Dict by its keys.

    >>> flat(spaces.Discrete(3), 1).tolist()
    [0.0, 1.0, 0.0]
    """
    if space is None or isinstance(space, spaces.Box):
        return np.asarray(observation, dtype=np.float32).reshape(-1)
    return np.asarray(spaces.flatten(space, observation), dtype=np.float32).reshape(-1)


class NetworkPolicy:
    """The lexicographically best decision of `K` networks.

    >>> from letitcook.deep.network import initial_parameters
    >>> networks = initial_parameters((3, 8, 4), 2, np.random.default_rng(0))
    >>> policy = NetworkPolicy(networks, (3, 8, 4), slack=0.1)
    >>> decision, _ = policy.predict(np.zeros(3))
    >>> decisions, _ = policy.predict(np.zeros((5, 3)))
    >>> 0 <= decision < 4, decisions.shape
    (True, (5,))
    """

    def __init__(
        self,
        networks: NDArray[np.float32],
        sizes: Any,
        slack: float,
        space: spaces.Space[Any] | None = None,
    ) -> None:
        self.networks = np.ascontiguousarray(networks, dtype=np.float32)
        """Parameters, a row for each objective, `(K, parameters)`."""
        self.sizes = np.array(sizes, dtype=np.int64)
        """Inputs, hidden widths, decisions."""
        self.slack = float(slack)
        self.space = space
        """The observation space, where observations are not vectors yet."""
        self._scratch = new_scratch(self.sizes.tolist(), len(self.networks), 1)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the decision at an observation, or an array of decisions for a batch of them."""
        rows, single = self._rows(observation)
        if not np.isfinite(rows).all():
            raise NotFiniteError(f"the observation {observation!r} is not finite; the policy cannot decide on it")
        decisions = np.zeros(len(rows), dtype=np.int64)
        best_decisions(self.networks, self.sizes, rows, self.slack, self._scratch.row, self._scratch.q, decisions)
        return (int(decisions[0]) if single else decisions), None

    def _rows(self, observation: Any) -> tuple[NDArray[np.float32], bool]:
        """Return the observations as rows, and whether there was but one."""
        inputs = int(self.sizes[0])
        if self.space is not None and not isinstance(self.space, spaces.Box):
            if self.space.contains(observation):
                return flat(self.space, observation)[None], True
            return np.stack([flat(self.space, each) for each in observation]), False
        x = np.ascontiguousarray(observation, dtype=np.float32)
        shape = (inputs,) if self.space is None or self.space.shape is None else self.space.shape
        if x.shape != shape and x.shape[1:] != shape:
            raise SpaceError(f"the policy takes observations of shape {shape}, or a batch of them, and got {x.shape}")
        return x.reshape(-1, inputs), x.shape == shape

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the policy as arrays, to be saved."""
        arrays: dict[str, NDArray[np.generic]] = {
            "networks": self.networks.copy(),
            "sizes": self.sizes.copy(),
            "slack": np.array([self.slack]),
        }
        if self.space is not None:
            with suppress(SpaceError):  # better without its space than not saved
                text = json.dumps(space_data(self.space), allow_nan=False)
                arrays["space"] = np.frombuffer(text.encode(), dtype=np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], space: spaces.Space[Any] | None = None) -> NetworkPolicy:
        """Return the policy that `arrays()` described; `space` is for arrays that were saved without one."""
        missing = {"networks", "sizes", "slack"} - set(arrays)
        if missing:
            raise FileFormatError(f"not a network policy: {', '.join(sorted(missing))} missing from its arrays")
        networks, sizes = arrays["networks"], arrays["sizes"]
        if networks.ndim != 2 or networks.shape[1] != parameter_count(sizes.tolist()):
            raise FileFormatError(f"a network policy of sizes {sizes.tolist()} cannot have parameters {networks.shape}")
        if "space" in arrays:
            space = _read_space(arrays["space"])
        return cls(networks, sizes, float(arrays["slack"][0]), space)


def _read_space(text: NDArray[np.uint8]) -> spaces.Space[Any]:
    try:
        data = json.loads(text.tobytes())
    except ValueError as error:
        raise FileFormatError(f"the observation space of a network policy is damaged ({error})") from error
    return space_of(data)


@compiled
def best_decisions(
    networks: NDArray[np.float32],
    sizes: NDArray[np.int64],
    rows: NDArray[np.float32],
    slack: float,
    row: NDArray[np.float32],
    q: NDArray[np.float64],
    out: NDArray[np.int64],
) -> None:
    """Write the best decision of each row of observations."""
    for i in range(len(rows)):
        out[i] = best_decision(networks, sizes, rows[i], slack, row, q)
