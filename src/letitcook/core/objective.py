"""Lexicographic order: what is best first in one objective, then among equals in the next.

An `Objective` is a small matrix of weights over the rewards `(task, waiting)`, a row for each objective in order
of importance. The lexicographic, the scalarised and the task objective are then one and the same thing to every
learner and planner::

    lexicographic   [[1, 0],    scalarised λ   [[1, λ]]    task   [[1, 0]]
                     [0, 1]]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from letitcook.core.jit import compiled
from letitcook.errors import SettingError, UnknownNameError

ObjectiveName = Literal["lexicographic", "scalar", "task"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("lexicographic", "scalar", "task")


@dataclass(frozen=True)
class Objective:
    """What a policy is judged by.

    >>> Objective.named("scalar", lam=0.5).of(-33.0, -25.0)
    array([-45.5])
    >>> Objective.named("lexicographic").better((-33.0, -25.0), (-33.0, -29.0))
    True
    """

    name: ObjectiveName
    lam: float | None = None

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise UnknownNameError("objective", self.name, OBJECTIVES)
        if self.name == "scalar":
            if self.lam is None:
                raise SettingError("the scalarised objective needs a λ; give one of at least 0, such as 0.1")
            if not (math.isfinite(self.lam) and self.lam >= 0):
                raise SettingError(f"λ = {self.lam:g} is not allowed; give a finite number of at least 0, such as 0.1")
        elif self.lam is not None:
            raise SettingError(f"λ goes with the scalarised objective, not with {self.name!r}; leave it out")

    @classmethod
    def named(cls, name: str, lam: float | None = None) -> Objective:
        """Return the objective of that name; λ goes with `"scalar"` and with nothing else."""
        return cls(name, lam)  # type: ignore[arg-type]

    @cached_property
    def _rows(self) -> tuple[tuple[float, float], ...]:
        rows = {"lexicographic": ((1.0, 0.0), (0.0, 1.0)), "scalar": ((1.0, self.lam or 0.0),), "task": ((1.0, 0.0),)}
        return rows[self.name]

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights over `(task, waiting)`, `(K, 2)`, most important row first."""
        return np.array(self._rows)

    def of(self, task: float, waiting: float) -> NDArray[np.float64]:
        """Return the `K` values of a return `(J0, J1)`."""
        return np.array(self._values(task, waiting))

    def _values(self, task: float, waiting: float) -> tuple[float, ...]:
        return tuple(first * task + second * waiting for first, second in self._rows)

    def better(self, a: Sequence[float], b: Sequence[float]) -> bool:
        """Return whether the return `a = (J0, J1)` is strictly better than `b`."""
        return self._values(*a) > self._values(*b)


def lex_better(a: ArrayLike, b: ArrayLike) -> bool:
    """Return whether vector `a` is lexicographically greater than `b`.

    >>> lex_better([-33, -25], [-33, -29]), lex_better([-34, -1], [-33, -29]), lex_better([1, 1], [1, 1])
    (True, False, False)
    """
    return tuple(np.asarray(a).tolist()) > tuple(np.asarray(b).tolist())


def lex_argmax(q: ArrayLike, slack: float = 0.0) -> int:
    """Return the lexicographically best column of `q`, `(K, n)`.

    Keeps the columns within an absolute `slack` σ of the best in row 0, among them those within σ of the best in row
    1, and so on; the last row decides without slack, ties go to the lowest index. For K = 2 this is the paper's
    Lex-Argmax.

    >>> lex_argmax([[1.0, 0.9995, 0.5], [-3.0, -2.0, -1.0]], slack=0.001)
    1
    >>> lex_argmax([[1.0, 1.0, 1.0]])
    0
    """
    values = np.atleast_2d(np.asarray(q, dtype=np.float64))
    if values.ndim != 2 or values.shape[1] == 0:
        raise SettingError(f"lex_argmax needs a (K, n) array with n ≥ 1, got shape {values.shape}")
    if np.isnan(values).any():
        raise SettingError("lex_argmax got NaN; values must be numbers")
    if not slack >= 0:
        raise SettingError(f"slack = {slack} is not allowed; give a number of at least 0")
    return int(lex_argmax_kernel(values, slack))


@compiled
def lex_argmax_kernel(q: NDArray[np.floating[Any]], slack: float) -> int:
    """`lex_argmax` for kernels: the same, unchecked. `q` is `(K, n)`."""
    K, n = q.shape
    admissible = np.ones(n, dtype=np.bool_)
    for k in range(K - 1):
        best = -np.inf
        for u in range(n):
            if admissible[u] and q[k, u] > best:
                best = q[k, u]
        for u in range(n):
            if q[k, u] < best - slack:
                admissible[u] = False
    choice = -1
    for u in range(n):
        if admissible[u] and (choice < 0 or q[K - 1, u] > q[K - 1, choice]):
            choice = u
    return choice
