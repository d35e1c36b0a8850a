"""Choosing among policies by playing them: the fewest queries at no loss of task return that can be measured.

A run with networks leaves many candidates: every evaluation offers policies of several trade-offs. Few episodes cannot
tell a good one from a lucky one, and many episodes for all of them would cost more than the training. So:

    1. all candidates live the same few screening episodes, while they are trained;
    2. the reference is the candidate with the best mean return; the best of the screening settle that on more episodes;
    3. from the fewest queries on, each candidate that is not measurably worse on the screening episodes meets the
       reference on common episodes, in looks of growing size. At each look a paired one-sided t-test asks whether it
       loses more than the tolerance. The first that passes all looks is chosen.

The test is the wrong way round for a statement that nothing is lost: it can only fail to find a loss. So its level is
high. A policy that loses nothing is then ruled out in up to a third of the cases, and another one takes its place; one
that loses something passes only if that is too little to be seen in all the episodes.

Common episodes mean common seeds: both policies meet the same chances, so that their difference is measured much better
than each of them. The reference itself ends the search: if no policy with fewer queries passes, it is the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.errors import SettingError

Rows = NDArray[np.float64]
"""Episodes, a row each: task return, length, queries, base queries, steps in each decision."""
Play = Callable[[Any, int, int], Rows]
"""Plays a policy: `play(policy, look, episodes)`; the same look means the same chances."""

LEVEL = 0.1
"""Chance of ruling out a policy that loses nothing, at each look."""
SETTLED = (8, 3)
"""How many candidates for the reference are left after the screening, and after the first look."""


@dataclass(eq=False)
class Candidate:
    """A policy that was met in training."""

    step: int
    """Primitive steps after which it was met."""
    trade_off: float | None
    """log10 λ; None if there is none."""
    policy: Any
    screening: Rows
    looks: list[Rows] = field(default_factory=list, repr=False)
    """Episodes of the looks that were needed."""

    @property
    def task_return(self) -> float:
        """Mean task return on the screening episodes."""
        return float(self.screening[:, 0].mean())

    @property
    def queries(self) -> float:
        """Mean queries on the screening episodes."""
        return float(self.screening[:, 2].mean())


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it took."""

    candidate: Candidate
    reference: Candidate
    tested: int
    """Candidates that met the reference."""
    episodes: int
    """Episodes that were played for the choice."""


class Tolerance(NamedTuple):
    """A loss of mean task return that is accepted for fewer queries: an amount, and a share of the best return."""

    amount: float = 0.0
    share: float = 0.0

    def of(self, task_return: float) -> float:
        """Return the loss that is accepted beside a return.

        >>> Tolerance(share=0.01).of(-150.0)
        1.5
        """
        return self.amount + self.share * abs(task_return)

    @classmethod
    def read(cls, text: str | float) -> Tolerance:
        """Return the tolerance of an amount of task return, or of a share such as `"1%"`.

        >>> Tolerance.read("1%"), Tolerance.read(0.5)
        (Tolerance(amount=0.0, share=0.01), Tolerance(amount=0.5, share=0.0))
        """
        said = str(text).strip()
        try:
            number = float(said.removesuffix("%"))
        except ValueError:
            number = math.nan
        if not 0.0 <= number < math.inf:
            raise SettingError(f"tolerance = {text} is not allowed; give a task return of at least 0, or a share: 1%")
        return cls(share=number / 100.0) if said.endswith("%") else cls(amount=number)


NONE = Tolerance()


def worse(a: NDArray[np.float64], b: NDArray[np.float64], tolerance: float, level: float) -> bool:
    """Say whether the returns `a` are measurably lower than the paired returns `b` by more than the tolerance.

    >>> b = np.array([200.0, 180.0, 190.0, 170.0])
    >>> worse(b - 5.0, b, 0.0, 0.05), worse(b - 5.0, b, 6.0, 0.05), worse(b, b, 0.0, 0.05)
    (True, False, False)
    """
    from scipy.special import stdtr  # Student's t; loaded only where it is needed

    difference = a - b + tolerance
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    mean = float(difference.mean())
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return mean < -1e-9 * max(1.0, float(np.abs(b).max()))
    return bool(stdtr(len(difference) - 1, mean / (spread / math.sqrt(len(difference)))) < level)


def front(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no other one beats in both return and queries, on the screening episodes.

    Fewest queries first.
    """
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.queries, -c.task_return)):
        if not kept or candidate.task_return > kept[-1].task_return:
            kept.append(candidate)
    return kept


def promising(candidates: Sequence[Candidate], most: int, tolerance: Tolerance = NONE) -> list[Candidate]:
    """Return the candidates that may still be chosen: those not measurably worse than the best in the screening.

    At most `most` of them by queries, as many as can still become the reference by return, and the front.
    """
    best = max(candidates, key=lambda c: (c.task_return, -c.queries))
    leading = sorted(candidates, key=lambda c: (-c.task_return, c.queries))[: SETTLED[0]]
    accepted = tolerance.of(best.task_return)
    open_ = [c for c in candidates if not worse(c.screening[:, 0], best.screening[:, 0], accepted, LEVEL)]
    few = sorted(open_, key=lambda c: c.queries)[:most]
    kept = {id(c) for c in (*few, *leading, *front(candidates))}
    return [c for c in candidates if id(c) in kept]


def choose(candidates: Sequence[Candidate], play: Play, looks: Sequence[int], tolerance: Tolerance = NONE) -> Choice:
    """Return the candidate with the fewest queries that shows no loss of task return beyond the tolerance.

    `looks` are the numbers of episodes of each look.
    """
    played = 0

    def returns(candidate: Candidate, look: int) -> NDArray[np.float64]:
        """Return the task returns of a candidate in all looks up to this one."""
        nonlocal played
        while len(candidate.looks) <= look:
            at = len(candidate.looks)
            candidate.looks.append(play(candidate.policy, at, looks[at]))
            played += looks[at]
        return np.concatenate([rows[:, 0] for rows in candidate.looks[: look + 1]])

    first, last = SETTLED
    running = sorted(candidates, key=lambda c: (-c.task_return, c.queries))[:first]
    running = sorted(running, key=lambda c: (-returns(c, 0).mean(), c.queries))[:last]
    reference = max(running, key=lambda c: (returns(c, len(looks) - 1).mean(), -c.queries))
    accepted = tolerance.of(float(returns(reference, len(looks) - 1).mean()))
    tested = 0
    for candidate in sorted(candidates, key=lambda c: c.queries):
        if candidate is reference:
            break
        if worse(candidate.screening[:, 0], reference.screening[:, 0], accepted, LEVEL):
            continue
        tested += 1
        if not any(
            worse(returns(candidate, look), returns(reference, look), accepted, LEVEL) for look in range(len(looks))
        ):
            return Choice(candidate, reference, tested, played)
    return Choice(reference, reference, tested, played)
