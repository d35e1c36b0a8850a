"""What every compiled kernel shares: the compile decorator and the random numbers.

A kernel is a plain typed Python function under `@compiled`: machine code that releases the GIL, cached on disk after
its first compilation. Numba is loaded when the first kernel is called, not before: it takes longer than most commands.
Random numbers come from an array that travels with the learner (never a global seed), so that a run can stop anywhere
and go on to the same bits.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


class Kernel:
    """A function that Numba compiles when it is called, from Python or by another kernel.

    What Numba's dispatchers know, such as `signatures`, it passes on.
    """

    def __init__(self, function: Callable[..., object], options: Mapping[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # it is a name of its module

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks for in a kernel that calls this one."""
        from numba import types

        return types.Dispatcher(self.dispatcher)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's form of it; the plain function where compiling is turned off."""
        from numba import njit

        shared = {"cache": is_cached(), "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        return njit(**shared, **self._options)(self.py_func)


def compiled(function: F) -> F:
    """Compile `function` with Numba; strict floating point, so that results are the same everywhere."""
    return cast(F, Kernel(function, {}))


def compiled_fast(function: F) -> F:
    """Compile `function` with Numba, free to reorder sums, so that loops over floats use the vector units.

    NaN and infinity keep their meaning. The last bit of a sum then depends on the width of the vector units;
    `deep/products.py` has sums of which no bit does.
    """
    return cast(F, Kernel(function, {"fastmath": {"reassoc", "contract", "arcp", "nsz", "afn"}}))


def inlined(function: F) -> F:
    """Compile `function` into its callers."""
    return cast(F, Kernel(function, {"forceinline": True}))


@cache
def is_cached() -> bool:
    """Return whether machine code is kept between processes; says so where it is not, or in an unusual place."""
    place = _cache_place()
    if place is not None:
        from numba import config

        kept = f"is kept in {place}" if place else "cannot be kept, and is compiled anew in every process"
        sys.stderr.write(f"letitcook: machine code {kept}; name a folder for it in NUMBA_CACHE_DIR\n")
        config.CACHE_DIR = place
    return place != ""


def _cache_place() -> str | None:
    """Return a folder for machine code where Numba would find none, None where it finds one by itself.

    Numba keeps it beside the source, else under the home folder. Where neither can be written, as with an install that
    belongs to root and a user without a home, it refuses to compile. Then it is a folder of this user's alone under the
    temporary one: machine code that others can write must not be loaded.
    """
    from numba import config
    from numba.misc.appdirs import user_cache_dir

    source, home = Path(__file__).parent / "__pycache__", Path(user_cache_dir(appname="numba", appauthor=False))
    if config.CACHE_DIR or _is_writable(source) or _is_writable(home):
        return None
    user = os.getuid() if hasattr(os, "getuid") else 0
    place = Path(tempfile.gettempdir()) / f"letitcook-numba-{user}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError:
        return ""
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return str(place) if ours and _is_writable(place) else ""


def _is_writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


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
