"""What backward induction carries along: the objective's values, and the numbers that people read.

All of them are linear in what happens, so every one is a *channel* with a weight of the primitive reward, a constant
per step, a constant per query and a discount. The first `K` channels are the objective's, and decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from letitcook.core.jit import compiled
from letitcook.core.objective import Objective

TIE = 1e-9
"""Values that differ by less, relative to their size, are equal: what rounding does to expectations."""
LARGEST = 2**28
"""The largest table that is planned with, in entries."""


@dataclass(frozen=True)
class Channels:
    """The objective's K values, then undiscounted task return, queries, length.

    >>> Channels.of(Objective.named("lexicographic"), gamma=0.9).discount.tolist()
    [0.9, 0.9, 1.0, 1.0, 1.0]
    """

    K: int
    of_reward: NDArray[np.float64]
    per_step: NDArray[np.float64]
    per_query: NDArray[np.float64]
    discount: NDArray[np.float64]

    @classmethod
    def of(cls, objective: Objective, gamma: float) -> Channels:
        """Return the channels of an objective under a discount per primitive step."""
        weights = objective.weights
        K = len(weights)
        return cls(
            K=K,
            of_reward=np.concatenate([weights[:, 0], [1.0, 0.0, 0.0]]),
            per_step=np.concatenate([np.zeros(K), [0.0, 0.0, 1.0]]),
            per_query=np.concatenate([-weights[:, 1], [0.0, 1.0, 0.0]]),
            discount=np.concatenate([np.full(K, gamma), [1.0, 1.0, 1.0]]),
        )


@compiled
def better(a: NDArray[np.float64], b: NDArray[np.float64], K: int, tie: float) -> bool:
    """Return whether `a` is lexicographically better than `b` in its first `K` channels, up to rounding."""
    for k in range(K):
        margin = tie * max(1.0, abs(b[k]))
        if a[k] > b[k] + margin:
            return True
        if a[k] < b[k] - margin:
            return False
    return False
