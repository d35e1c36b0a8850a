"""What every compiled kernel shares: the compile decorator and the random numbers.

A kernel is a plain typed Python function under `@compiled`: machine code that releases the GIL, cached on disk after
its first compilation. Random numbers come from an array that travels with the learner (never a global seed), so
that a run can stop anywhere and go on to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast, get_type_hints

import numpy as np
from numba import njit
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


def compiled(function: F) -> F:
    """Compile `function` with Numba; strict floating point, so that results are the same everywhere."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))


def compiled_fast(function: F) -> F:
    """Compile `function` with Numba, free to reorder sums, so that loops over floats use the vector units.

    NaN and infinity keep their meaning. The same machine gives the same bits; another processor may differ in the last.
    """
    flags = {"reassoc", "contract", "arcp", "nsz", "afn"}
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", fastmath=flags)(function))


def inlined(function: F) -> F:
    """Compile `function` into its callers."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function))


def kernel_settings(
    kind: Callable[..., T], settings: object, choices: Mapping[str, Sequence[str]], **derived: object
) -> T:
    """Return settings as the NamedTuple of numbers that kernels take, by equal names.

    A choice becomes its place in `choices`; `derived` are the fields that the settings do not have by themselves.

    >>> from types import SimpleNamespace
    >>> from typing import NamedTuple
    >>> class Rule(NamedTuple):
    ...     gamma: float
    ...     loss: int
    ...     horizon: int
    >>> kernel_settings(Rule, SimpleNamespace(gamma=1, loss="huber"), {"loss": ("mse", "huber")}, horizon=200)
    Rule(gamma=1.0, loss=1, horizon=200)
    """
    numbers = {}
    for name, number in get_type_hints(kind).items():
        value = derived[name] if name in derived else getattr(settings, name)
        numbers[name] = number(choices[name].index(value) if name in choices else value)
    return kind(**numbers)


def seeded(seed: int) -> NDArray[np.uint64]:
    """Return the random state of `seed`, one word for SplitMix64 (Steele, Lea and Flood 2014).

    >>> rng = seeded(0)
    >>> first = random_float(rng)
    >>> 0.0 <= first < 1.0 and first == random_float(seeded(0)) and first != random_float(rng)
    True
    """
    return np.asarray(np.random.SeedSequence(seed).generate_state(1, np.uint64), dtype=np.uint64)


@compiled
def random_bits(rng: NDArray[np.uint64]) -> np.uint64:
    """Return the next 64 random bits and move `rng` on."""
    rng[0] += np.uint64(0x9E3779B97F4A7C15)
    z = rng[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(z ^ (z >> np.uint64(31)))


@compiled
def random_float(rng: NDArray[np.uint64]) -> float:
    """Return a uniform number in [0, 1) with 53 random bits."""
    return float(random_bits(rng) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def random_below(rng: NDArray[np.uint64], n: int) -> int:
    """Return a uniform whole number in [0, n); the bias is below n / 2^53."""
    return int(random_float(rng) * n)
