"""Observations as `VecNormalize` of Stable-Baselines3 shows them to its models.

Its statistics are saved as a pickle, in rl-baselines3-zoo beside the model. Here they are read without running anything
in the file: arrays of NumPy are the only objects that are made, and everything else becomes an empty shell that holds
its attributes.
"""

from __future__ import annotations

import io
import pickle
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
ARRAYS = {("numpy", "ndarray"), ("numpy", "dtype")} | {
    (f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")
}
"""What arrays are made of: the only names that are looked up. All are compiled, so nothing can be set on them."""


class Shell:
    """Stands for any object in a pickle; it does nothing and holds its attributes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update({name: value for name, value in state.items() if isinstance(name, str)})


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what makes arrays, and a shell for everything else."""
        if name == "_frombuffer":  # how newer pickles hold arrays; a function of our own, new each time

            def from_buffer(data: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> Any:
                return np.frombuffer(data, dtype=dtype).reshape(shape, order=order)

            return from_buffer
        return super().find_class(module, name) if (module, name) in ARRAYS else Shell


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
        data = file.read_bytes() if file.stat().st_size <= MOST_BYTES else b""
        found = _Reader(io.BytesIO(data)).load()
        if not getattr(found, "norm_obs", True):
            return None
        mean, var = (np.array(getattr(found.obs_rms, name), dtype=np.float64) for name in ("mean", "var"))
        numbers = [float(found.epsilon), float(found.clip_obs), *mean.flat, *var.flat]
        good = mean.shape == var.shape and var.min() >= 0.0 and np.isfinite(numbers).all()
    except Exception as error:  # whatever a damaged or hostile file makes of the reader
        raise _not_statistics(file, f"{type(error).__name__}: {str(error)[:100]}") from error
    if not good:
        raise _not_statistics(file, "numbers that are none")
    return Normalisation(mean, var, numbers[0], numbers[1])


def _not_statistics(file: Path, why: str) -> FileFormatError:
    return FileFormatError(
        f"{file} beside the model does not hold statistics of Stable-Baselines3's VecNormalize for observations in one "
        f"array ({why}); remove it, or give a function observation -> action that normalises by itself"
    )
