"""What the training episodes are like, counted as they run, for curves of training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.core.jit import compiled

EPISODES, LENGTH, QUERIES, RETURN, WAITED = range(5)
"""Places in a row of counts."""


class Totals(NamedTuple):
    """Sums over training episodes that have ended.

    >>> Totals(3, 90, 60, -90, 45).since(Totals(1, 50, 30, -50, 25))
    Totals(episodes=2, length=40, queries=30, task_return=-40, waited=20)
    """

    episodes: float
    length: float
    """Primitive steps."""
    queries: float
    task_return: float
    """Undiscounted."""
    waited: float
    """Primitive steps in waits, of one step or of more."""

    def since(self, before: Totals) -> Totals:
        """Return the sums over the episodes that ended after `before`."""
        return Totals(*(now - then for now, then in zip(self, before, strict=True)))


def new_counts(at_once: int) -> NDArray[np.float64]:
    """Return room to count in, `(1 + at_once, 5)`: a row for what has ended, and one for each episode under way.

    >>> counts = new_counts(1)
    >>> count(counts, 1, 3, -3.0, True, False)
    >>> count(counts, 1, 1, -1.0, False, True)
    >>> Totals(*counts[0].tolist())
    Totals(episodes=1.0, length=4.0, queries=2.0, task_return=-4.0, waited=3.0)
    """
    return np.zeros((1 + at_once, len(Totals._fields)))


@compiled
def count(counts: NDArray[np.float64], row: int, elapsed: int, task_reward: float, waits: bool, over: bool) -> None:
    """Count a decision that took `elapsed` steps of the episode in `row`; its end moves the row into row 0."""
    counts[row, LENGTH] += elapsed
    counts[row, QUERIES] += 1.0
    counts[row, RETURN] += task_reward
    counts[row, WAITED] += elapsed if waits else 0.0
    if over:
        counts[row, EPISODES] = 1.0
        for i in range(counts.shape[1]):
            counts[0, i] += counts[row, i]
            counts[row, i] = 0.0
