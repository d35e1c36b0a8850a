"""A policy made of networks: one for each objective, and the slack between them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.jit import compiled
from letitcook.core.objective import lex_argmax_kernel
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct
from letitcook.deep.conditioning import split_networks
from letitcook.deep.network import Scratch, best_decision, forward_pointer, new_scratch, parameter_count
from letitcook.deep.normalisation import Inputs, input_size, plain_inputs, write_input
from letitcook.errors import FileFormatError, NotFiniteError, SpaceError
from letitcook.storage.array_checks import Expected, checked
from letitcook.storage.plain_json import parse_json
from letitcook.storage.spaces import flat_size, space_data, space_of

MOST_PARAMETERS = 2**31
"""Widths of layers above this are refused."""


def flat(space: spaces.Space[Any] | None, observation: Any) -> NDArray[np.float32]:
    """Return an observation as one vector of float32: a Box as it is, a Discrete as one-hot, a Dict by its keys.

    An observation that is not one of the space raises: kernels would read past its end. Bounds may be left, numbers may
    have another type, and keys beside those of the space, such as text, are not read.

    >>> flat(spaces.Discrete(3), 1).tolist()
    [0.0, 1.0, 0.0]
    >>> flat(spaces.Box(0.0, 1.0, (3,)), [0.5, 0.5])
    Traceback (most recent call last):
    ...
    letitcook.errors.SpaceError: an observation has shape (2,) where the space has (3,): [0.5, 0.5]
    """
    if isinstance(space, spaces.Box):
        if type(observation) is np.ndarray and observation.dtype == np.float32 and observation.shape == space.shape:
            return observation.reshape(-1)  # nearly always
        return _numbers(observation, space.shape).reshape(-1)
    if space is None:
        return np.asarray(observation, dtype=np.float32).reshape(-1)
    if isinstance(space, spaces.Dict):
        if not isinstance(observation, Mapping) or not set(space.spaces) <= set(observation):
            raise SpaceError(
                f"an observation of the keys {list(space.spaces)} is needed, and {observation!r} was given"
            )
        return np.concatenate([flat(inner, observation[key]) for key, inner in space.spaces.items()])
    if isinstance(space, spaces.Tuple):
        if not isinstance(observation, tuple | list) or len(observation) != len(space.spaces):
            raise SpaceError(f"an observation of {len(space.spaces)} parts is needed, and {observation!r} was given")
        return np.concatenate([flat(inner, part) for inner, part in zip(space.spaces, observation, strict=True)])
    if isinstance(space, spaces.MultiBinary):
        return _numbers(observation, space.shape).reshape(-1)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        discrete = isinstance(space, spaces.Discrete)
        counts = np.array([space.n]) if isinstance(space, spaces.Discrete) else space.nvec.reshape(-1)
        index = (_numbers(observation, () if discrete else space.shape, np.int64) - space.start).reshape(-1)
        if ((index < 0) | (index >= counts)).any():
            raise SpaceError(f"the observation {observation!r} is outside the space {space}")
        hot = np.zeros(int(counts.sum()), dtype=np.float32)
        hot[np.cumsum(counts) - counts + index] = 1.0
        return hot
    return np.asarray(spaces.flatten(space, observation), dtype=np.float32).reshape(-1)


def _numbers(observation: Any, shape: tuple[int, ...] | None, dtype: Any = np.float32) -> NDArray[Any]:
    """Return an observation as an array of that shape."""
    try:
        x = np.asarray(observation)
    except ValueError as error:  # lists of different lengths
        raise SpaceError(f"an observation is not an array of numbers: {error}") from error
    if x.shape != shape:
        raise SpaceError(f"an observation has shape {x.shape} where the space has {shape}: {str(observation)[:80]}")
    if x.dtype.kind not in "fiub":
        raise SpaceError(f"an observation holds {x.dtype} where numbers are needed: {str(observation)[:80]}")
    return x.astype(dtype, copy=False)


class Chooser(Struct):
    """A network policy as the kernels take it, with arrays to work in."""

    networks: NDArray[np.float32]
    """Parameters, a row for each objective, `(K, parameters)`; no rows if there is no policy."""
    sizes: NDArray[np.int64]
    """Inputs, hidden widths, decisions."""
    slack: float
    inputs: Inputs
    x: NDArray[np.float32]
    row: NDArray[np.float32]
    q: NDArray[np.float64]


def new_chooser(networks: NDArray[np.float32], sizes: NDArray[np.int64], slack: float, inputs: Inputs) -> Chooser:
    """Return the kernels' form of a policy."""
    workspace = np.zeros((2, int(sizes.max())), dtype=np.float32)
    x = np.zeros(input_size(inputs), dtype=np.float32)
    return Chooser(networks, sizes, slack, inputs, x, workspace, np.zeros((len(networks), int(sizes[-1]))))


NOBODY = new_chooser(np.zeros((0, 0), dtype=np.float32), np.zeros(2, dtype=np.int64), 0.0, plain_inputs(1))
"""Stands where there is no policy."""


@compiled
def chosen(chooser: Chooser, observation: NDArray[np.float32]) -> int:
    """Return a policy's decision at one observation."""
    write_input(chooser.inputs, observation, chooser.x)
    return best_decision(chooser.networks, chooser.sizes, chooser.x, chooser.slack, chooser.row, chooser.q)


class BatchChooser(Struct):
    """A network policy that answers many observations at once, with arrays to work in."""

    networks: NDArray[np.float32]
    """Those of the first objective, of the second, ...; those of one objective add up."""
    sizes: NDArray[np.int64]
    slack: float
    inputs: Inputs
    forward: Pointer
    scratch: Scratch
    x: NDArray[np.float32]
    q: NDArray[np.float32]
    """Values of each network, `(networks, rows, n)`."""


def new_batch_chooser(chooser: Chooser, rows: int) -> BatchChooser:
    """Return a policy's form for up to that many observations at once."""
    networks, sizes, K = chooser.networks, chooser.sizes.tolist(), len(chooser.networks)
    if K == 1:
        networks, sizes = split_networks(networks[0], sizes)
    scratch = new_scratch(sizes, K, rows)
    return BatchChooser(
        networks,
        np.array(sizes, dtype=np.int64),
        chooser.slack,
        chooser.inputs,
        forward_pointer(scratch),
        scratch,
        np.zeros((rows, sizes[0]), dtype=np.float32),
        np.zeros((len(networks), rows, sizes[-1]), dtype=np.float32),
    )


@compiled
def answers(
    batch_chooser: BatchChooser, observations: NDArray[np.float32], which: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Write a policy's decision at each of the observations that are requested, in their order."""
    rows = len(which)
    if rows == 0:
        return
    for i in range(rows):
        write_input(batch_chooser.inputs, observations[which[i]], batch_chooser.x[i])
    for k in range(len(batch_chooser.networks)):
        x, q = batch_chooser.x[:rows], batch_chooser.q[k, :rows]
        call(batch_chooser.forward, (batch_chooser.networks[k], batch_chooser.sizes, x, batch_chooser.scratch, q))
    row = batch_chooser.scratch.q
    parts = len(batch_chooser.networks) // len(row)
    for i in range(rows):
        for k in range(len(row)):
            for u in range(row.shape[1]):
                row[k, u] = 0.0
                for part in range(parts):
                    row[k, u] += batch_chooser.q[k * parts + part, i, u]
        out[i] = lex_argmax_kernel(row, batch_chooser.slack)


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
        inputs: Inputs | None = None,
    ) -> None:
        self.networks = np.ascontiguousarray(networks, dtype=np.float32)
        """Parameters, a row for each objective, `(K, parameters)`."""
        self.sizes = np.array(sizes, dtype=np.int64)
        """Inputs, hidden widths, decisions."""
        self.slack = float(slack)
        self.space = space
        """The observation space, where observations are not vectors yet."""
        self.inputs = plain_inputs(int(self.sizes[0])) if inputs is None else inputs
        """How an observation becomes an input; as it is, if not said otherwise."""
        self._check()
        self.chooser = new_chooser(self.networks, self.sizes, self.slack, self.inputs)

    def _check(self) -> None:
        """Raise if parts do not fit each other: the kernels, which go by them, check nothing."""
        sizes, networks = self.sizes.tolist(), self.networks
        if len(sizes) < 2 or min(sizes) < 1 or not len(networks) or networks.shape[1:] != (parameter_count(sizes),):
            raise SpaceError(f"a network policy of sizes {sizes} cannot have parameters {networks.shape}")
        if input_size(self.inputs) != sizes[0]:
            raise SpaceError(f"the inputs of a network policy are {input_size(self.inputs)}, and it takes {sizes[0]}")
        if self.space is not None and spaces.flatdim(self.space) != self.observation_size:
            raise SpaceError(
                f"observations of {self.space} are {spaces.flatdim(self.space)} numbers flat, and the policy takes "
                f"{self.observation_size}"
            )

    @property
    def batched(self) -> bool:
        """Whether `predict` answers a batch of observations: not of Dict or Tuple ones."""
        return not isinstance(self.space, spaces.Dict | spaces.Tuple)

    @property
    def observation_size(self) -> int:
        """How many numbers an observation has."""
        return len(self.inputs.mean)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the decision at an observation, or an array of decisions for a batch of them."""
        rows, single = self._rows(observation)
        if not np.isfinite(rows).all():
            raise NotFiniteError(f"the observation {observation!r} is not finite; the policy cannot decide on it")
        decisions = np.zeros(len(rows), dtype=np.int64)
        best_decisions(self.chooser, rows, decisions)
        return (int(decisions[0]) if single else decisions), None

    def _rows(self, observation: Any) -> tuple[NDArray[np.float32], bool]:
        """Return the observations as rows, and whether there was but one."""
        inputs = self.observation_size
        if self.space is not None and not isinstance(self.space, spaces.Box):
            if isinstance(observation, Mapping) or self.space.contains(observation):
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
            **{f"inputs.{name}": array.copy() for name, array in self.inputs._asdict().items()},
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
        sizes = checked(arrays, "sizes", Expected((None,), "whole", 1, MOST_PARAMETERS))
        networks = checked(arrays, "networks", Expected((None, None)))
        slack = checked(arrays, "slack", Expected((1,), low=0.0))
        if len(sizes) < 2 or not len(networks) or networks.shape[1] != parameter_count(sizes.tolist()):
            raise FileFormatError(f"a network policy of sizes {sizes.tolist()} cannot have parameters {networks.shape}")
        inputs = _read_inputs(arrays, int(sizes[0]))
        if "space" in arrays:
            space = _read_space(arrays["space"], int(sizes[0]) if inputs is None else len(inputs.mean))
        try:
            return cls(networks, sizes, float(slack[0]), space, inputs)
        except SpaceError as error:
            raise FileFormatError(f"the parts of a network policy do not fit ({error})") from error


def _read_inputs(arrays: Mapping[str, NDArray[Any]], inputs: int) -> Inputs | None:
    """Return how observations become inputs; None for a policy that was saved without saying."""
    if not any(name.startswith("inputs.") for name in arrays):
        return None
    size = len(checked(arrays, "inputs.mean", Expected((None,))))
    shapes: dict[str, tuple[int | None, ...]] = {"mean": (size,), "scale": (size,), "frequencies": (None, size)}
    saved = {name: checked(arrays, f"inputs.{name}", Expected(shape)) for name, shape in shapes.items()}
    read = Inputs(**{name: np.ascontiguousarray(array, dtype=np.float32) for name, array in saved.items()})
    if input_size(read) != inputs:
        raise FileFormatError(f"the inputs of a network policy do not fit its {inputs} inputs")
    return read


def _read_space(text: NDArray[np.uint8], size: int) -> spaces.Space[Any]:
    """Return the observation space; one of another size is refused before it is made."""
    if text.dtype != np.uint8:
        raise FileFormatError("the observation space of a network policy is damaged (it is no text)")
    data = parse_json(text.tobytes(), "the observation space of a network policy")
    if flat_size(data) != size:
        raise FileFormatError(f"an observation space of {flat_size(data):,} numbers does not fit a policy of {size:,}")
    return space_of(data)


@compiled
def best_decisions(chooser: Chooser, rows: NDArray[np.float32], out: NDArray[np.int64]) -> None:
    """Write the best decision of each row of observations."""
    for i in range(len(rows)):
        out[i] = chosen(chooser, rows[i])
