"""Observations as `VecNormalize` of Stable-Baselines3 shows them to its models.

Its statistics are saved as a pickle, in rl-baselines3-zoo beside the model. Here they are read without running anything
in the file: no name in it is looked up. What makes arrays is done by the few lines below, which hold its arguments
until they are asked for, and everything else becomes an empty shell that holds its attributes. Before that the file is
walked through once, for sizes that it does not have and depths that would end the process.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Policy
from letitcook.errors import FileFormatError

NAMES = ("vecnormalize.pkl", "vec_normalize.pkl")
"""Names of the file: rl-baselines3-zoo's, and that of Stable-Baselines3's documentation."""
MOST_BYTES = 16 * 2**20
"""Larger files are refused."""
MOST_OPCODES, MOST_TUPLES = 200_000, 5_000
"""Instructions of a pickle, and those of them that can nest what is hashed without a check of the depth."""


class Shell:
    """Stands for any object in a pickle; it does nothing and holds its attributes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update({name: value for name, value in state.items() if isinstance(name, str)})

    def __setitem__(self, name: Any, value: Any) -> None:
        pass

    def append(self, value: Any) -> None:
        """Leave out what a list would hold."""

    extend = append
    add = append


class _Type:
    """Stands for NumPy's `dtype`: its name, and the order of bytes that its state says."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        self.name, self.order = name, "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def numbers(self) -> np.dtype[Any]:
        """Return the type, one of plain numbers."""
        if not isinstance(self.name, str) or re.fullmatch(r"[fiu][1248]|b1", self.name) is None:
            raise ValueError(f"numbers of the type {str(self.name)[:20]!r}")
        if self.order not in ("<", ">", "=", "|"):
            raise ValueError("an order of bytes that there is not")
        return np.dtype(f"{self.order}{self.name}")


class _Array:
    """Stands for an array of NumPy, as its pickle describes it."""

    def __init__(self, *_: Any) -> None:
        self.parts: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        self.parts = (data, dtype, shape, "F" if fortran else "C")

    def numbers(self) -> NDArray[np.float64]:
        """Return the numbers; their bytes must be as many as they take."""
        data, dtype, shape, order = self.parts
        if not isinstance(data, bytes | bytearray) or not isinstance(dtype, _Type) or order not in ("C", "F"):
            raise ValueError("an array that is none")
        return np.frombuffer(data, dtype.numbers()).reshape(shape, order=order).astype(np.float64)


class _Scalar(_Array):
    """A number of NumPy."""

    def __init__(self, dtype: Any, data: Any) -> None:
        self.parts = (data, dtype, (), "C")


class _Buffer(_Array):
    """An array of a newer pickle."""

    def __init__(self, data: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> None:
        self.parts = (data, dtype, shape, order)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for arrays, and a shell for everything else; nothing is looked up."""
        if module.split(".", maxsplit=1)[0] == "numpy":
            return {"dtype": _Type, "_reconstruct": _Array, "scalar": _Scalar, "_frombuffer": _Buffer}.get(name, Shell)
        return Shell


def _check_opcodes(data: bytes) -> None:
    """Raise if a pickle takes memory that its size does not account for, or is nested deeper than can be hashed."""
    tuples = 0
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):  # raises where bytes are missing
        tuples += "TUPLE" in opcode.name or opcode.name == "FROZENSET"
        if ("PUT" in opcode.name and int(argument or 0) > count) or tuples > MOST_TUPLES or count > MOST_OPCODES:
            raise ValueError("not as Stable-Baselines3 writes it")


class Normalisation:
    """Mean, variance and clipping of observations.

    >>> Normalisation(np.zeros(2), np.full(2, 4.0), epsilon=0.0, clip=1.0)(np.array([1.0, 9.0])).tolist()
    [0.5, 1.0]
    """

    def __init__(
        self, mean: NDArray[np.float64], var: NDArray[np.float64], epsilon: float = 1e-8, clip: float = 10.0
    ) -> None:
        self.mean, self.var, self.epsilon, self.clip = mean, var, epsilon, clip

    def __call__(self, observation: Any) -> NDArray[np.float32]:
        """Return an observation as the model was shown it, or a batch of them."""
        scaled = (np.asarray(observation, dtype=np.float64) - self.mean) / np.sqrt(self.var + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


class NormalisedPolicy:
    """A policy that is shown normalised observations.

    >>> from letitcook.adapters import CallablePolicy
    >>> inside = CallablePolicy(lambda observation: float(observation[0]))
    >>> NormalisedPolicy(inside, Normalisation(np.ones(1), np.ones(1), 0.0)).predict(np.array([3.0]))
    (2.0, None)
    """

    def __init__(self, policy: Policy, normalise: Any) -> None:
        self.policy, self.normalise = policy, normalise
        self.batched = bool(getattr(policy, "batched", False))
        self.observation_space = getattr(policy, "observation_space", None)
        self.action_space = getattr(policy, "action_space", None)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the policy's answer to the normalised observation."""
        return self.policy.predict(self.normalise(observation), state, episode_start, deterministic=deterministic)


def statistics_beside(model: Path) -> Path | None:
    """Return the file of statistics beside a model: in its folder, or in one of the model's or environment's name.

    >>> statistics_beside(Path("model.zip")) is None
    True
    """
    places = [model.parent, model.with_suffix("")]
    places += sorted(path for path in model.parent.glob("*") if path.is_dir() and path not in places)
    for place in places:
        for name in NAMES:
            if (place / name).is_file():
                return place / name
    return None


def read_statistics(file: Path) -> Normalisation | None:
    """Return the normalisation of observations in a pickle of `VecNormalize`; None if it leaves observations alone."""
    try:
        data = _content(file)
        _check_opcodes(data)
        found = _Reader(io.BytesIO(data)).load()
        if not getattr(found, "norm_obs", True):
            return None
        mean, var = (_numbers(getattr(found.obs_rms, name)) for name in ("mean", "var"))
        epsilon, clip = (float(_numbers(value)) for value in (found.epsilon, found.clip_obs))
        good = mean.shape == var.shape and all(np.isfinite(part).all() for part in (mean, var, epsilon, clip))
        good = good and mean.size > 0 and bool((var >= 0.0).all()) and epsilon >= 0.0 and clip > 0.0
    except Exception as error:  # whatever a damaged or hostile file makes of the reader
        raise _not_statistics(file, f"{type(error).__name__}: {str(error)[:100]}") from error
    if not good:
        raise _not_statistics(file, "numbers that are none")
    return Normalisation(mean, var, epsilon, clip)


def _content(file: Path) -> bytes:
    if file.stat().st_size > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES:,} bytes")
    return file.read_bytes()


def _numbers(value: Any) -> NDArray[np.float64]:
    """Return a number or an array of a pickle."""
    if isinstance(value, _Array):
        return value.numbers()
    if type(value) in (int, float):
        return np.array(value, dtype=np.float64)
    raise ValueError(f"{type(value).__name__} in place of numbers")


def _not_statistics(file: Path, why: str) -> FileFormatError:
    return FileFormatError(
        f"{file} beside the model does not hold statistics of Stable-Baselines3's VecNormalize for observations in one "
        f"array ({why}); remove it, or give a function observation -> action that normalises by itself"
    )
