"""Selection among policies by playing them: the fewest queries at no measurable loss of task return.

A run with networks leaves many candidates: every evaluation offers policies of several λ. Few episodes cannot tell a
good one from a lucky one, and many episodes for all of them would cost more than the training. So:

    1. while they are trained, all candidates play the same few screening episodes: policies of evenly spread λ, and of
       some between the last that loses nothing and the first that does;
    2. the reference is the candidate with the best mean return; the best of the screening settle that on more and
       more episodes, with ever fewer left;
    3. the best also become candidates without their longest waits, which is safer where a wait ends in a bad state;
    4. from the fewest queries on, each candidate that is not measurably worse on the screening episodes is compared
       with the reference on common episodes, at interim looks of growing size, as in a group-sequential test. At each
       look a paired one-sided t-test decides whether it loses more than the tolerance. The first that passes all looks
       is chosen.

Common episodes have common random numbers, so that a difference of two policies is measured much better than each of
them. Where nobody had a policy before, a loss is therefore accepted that the fresh episodes at the end cannot show.
Around a base policy it is not.

The test is the wrong way round for a statement that nothing is lost: it can only fail to find a loss. So it is repeated
at every look. A policy that loses nothing is then ruled out in up to an eighth of the cases, and another one takes its
place; one that loses something passes only if that is too little to be seen in all the episodes. If no policy with
fewer queries passes, the reference itself is the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.storage.setting_values import amount_or_share

Rows = NDArray[np.float64]
"""Episodes, a row each: task return, length, queries, base queries, steps in each decision."""
Play = Callable[[Any, int, int], Rows]
"""Plays a policy: `play(policy, look, episodes)`; the same look means the same random numbers."""

QUERIES, BASE_QUERIES = 2, 3
"""Places in a row: what is to be few, by `Decisions.cost`."""
LEVEL = 0.025
"""Probability of ruling out a policy that loses nothing, at each look."""
SETTLED = (16, 8, 4)
"""How many candidates for the reference are left after the screening, the first look and the second."""
BASE_ITSELF = 0
"""Step of the candidate that queries the base policy at every step: it was there from the beginning."""
SPREAD, HALVINGS = 7, 3
"""Trade-offs that are spread evenly, and how often the gap is halved in which a loss begins."""


@dataclass(eq=False)
class Candidate:
    """A policy that was met in training."""

    step: int
    """Primitive steps after which it was met."""
    log_lambda: float | None
    """log10 λ; None if there is none."""
    policy: Any
    screening: Rows
    looks: list[Rows] = field(default_factory=list, repr=False)
    """Episodes of the looks that were needed."""
    decision: int = 0
    """Decisions after which it was met."""
    paid: int = QUERIES
    """Place in a row of what is to be few."""

    @property
    def task_return(self) -> float:
        """Mean task return on the screening episodes."""
        return float(self.screening[:, 0].mean())

    @property
    def queries(self) -> float:
        """Mean queries on the screening episodes; those of the base policy, where these are what is paid for."""
        return float(self.screening[:, self.paid].mean())


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it took."""

    candidate: Candidate
    reference: Candidate
    tested: int
    """Candidates that met the reference."""


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
        return cls(*amount_or_share("tolerance", text))


NONE = Tolerance()


def worse(a: NDArray[np.float64], b: NDArray[np.float64], tolerance: float, level: float) -> bool:
    """Return whether the returns `a` are measurably lower than the paired returns `b` by more than the tolerance.

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


def met(meet: Callable[[float], Candidate], span: tuple[float, float], known: Sequence[Candidate]) -> list[Candidate]:
    """Meet candidates of several trade-offs in a range, most of them where a loss of task return begins.

    `meet` gives the candidate of a trade-off, which has run its screening episodes; `known` are those met before.

    >>> def meet(z):  # loses a little as soon as z is above 0.2
    ...     return Candidate(0, z, None, np.array([[100.0 - (z > 0.2), 0.0, 10.0 - z]] * 4))
    >>> [round(c.log_lambda, 2) for c in met(meet, (-3.0, 3.0), [])]
    [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 0.5, 0.25, 0.12]
    """
    places = np.linspace(*span, SPREAD).tolist()
    new = [meet(z) for z in places]
    best = max([*known, *new], key=lambda c: c.task_return)
    unbeaten = [i for i, candidate in enumerate(new) if not lost(candidate, best)]
    at = min(unbeaten, key=lambda i: new[i].queries, default=SPREAD - 1)
    if at == SPREAD - 1:
        return new
    low, high = places[at : at + 2]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        new.append(meet(middle))
        low, high = (low, middle) if lost(new[-1], best) else (middle, high)
    return new


def lost(candidate: Candidate, best: Candidate, tolerance: Tolerance = NONE) -> bool:
    """Return whether a candidate is measurably worse than another one on the screening episodes."""
    return worse(candidate.screening[:, 0], best.screening[:, 0], tolerance.of(best.task_return), LEVEL)


def passing(candidates: Sequence[Candidate], tolerance: Tolerance = NONE) -> list[Candidate]:
    """Return those that are not measurably worse than the best on the screening episodes, the fewest queries first."""
    best = max(candidates, key=lambda c: (c.task_return, -c.queries))
    return sorted((c for c in candidates if not lost(c, best, tolerance)), key=lambda c: c.queries)


def front(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no other one beats in both return and queries, on the screening episodes.

    Fewest queries first.
    """
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.queries, -c.task_return)):
        if not kept or candidate.task_return > kept[-1].task_return:
            kept.append(candidate)
    return kept


def leading(candidates: Sequence[Candidate], price: float = 0.0) -> list[Candidate]:
    """Return the candidates that can still become the reference, the best first; a query costs `price`.

    Many may be equally good on few episodes. Of those, some with few queries and some with many: either may be safer.
    """

    def worth(candidate: Candidate) -> float:
        return candidate.task_return - price * candidate.queries

    ranked = sorted(candidates, key=lambda c: (-worth(c), c.queries, -c.step))
    equal = sum(worth(c) == worth(ranked[0]) for c in ranked)
    return spread(ranked[:equal], SETTLED[0]) if equal > SETTLED[0] else ranked[: SETTLED[0]]


def promising(candidates: Sequence[Candidate], most: int, tolerance: Tolerance = NONE) -> list[Candidate]:
    """Return the candidates that may still be chosen: those not measurably worse than the best in the screening.

    At most `most` of them, from the fewest queries to the most, as many as can still become the reference, and the
    front. Few queries alone would not do: where all of those fail in the end, there must be something before the base.
    """
    kept = {id(c) for c in (*spread(passing(candidates, tolerance), most), *leading(candidates), *front(candidates))}
    return [c for c in candidates if id(c) in kept]


def spread(ranked: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return at most that many of them, evenly from the first to the last."""
    if len(ranked) <= most:
        return list(ranked)
    return [ranked[i] for i in np.linspace(0, len(ranked) - 1, most).astype(int)]


@dataclass(frozen=True)
class Trial:
    """Plays candidates, in looks of growing size."""

    play: Play
    looks: Sequence[int]
    """Episodes of each look."""

    def rows(self, candidate: Candidate, look: int) -> Rows:
        """Return the episodes of a candidate in all looks up to this one."""
        while len(candidate.looks) <= look:
            at = len(candidate.looks)
            candidate.looks.append(self.play(candidate.policy, at, self.looks[at]))
        return np.concatenate(candidate.looks[: look + 1])

    def best(self, candidates: Sequence[Candidate], price: float = 0.0) -> Candidate:
        """Return the candidate with the best mean return, where a query costs `price`.

        The base policy itself stays in to the end, so that nothing is held against less than that.
        """

        def worth(candidate: Candidate, look: int) -> tuple[float, float]:
            rows = self.rows(candidate, look)
            task_return, queries = float(rows[:, 0].mean()), float(rows[:, candidate.paid].mean())
            return task_return - price * queries, -queries

        base = [candidate for candidate in candidates if candidate.step == BASE_ITSELF]
        running = leading(candidates, price)
        for look, left in enumerate(SETTLED[1:][: len(self.looks) - 1]):
            running = sorted(running, key=lambda c: worth(c, look), reverse=True)[:left]
        return max((*running, *base), key=lambda c: worth(c, len(self.looks) - 1))

    def shows_a_loss(self, candidate: Candidate, reference: Candidate, accepted: float) -> bool:
        """Return whether any look shows that a candidate loses more than is accepted."""
        return any(
            worse(self.rows(candidate, look)[:, 0], self.rows(reference, look)[:, 0], accepted, LEVEL)
            for look in range(len(self.looks))
        )


def choose(
    candidates: Sequence[Candidate],
    play: Play,
    looks: Sequence[int],
    tolerance: Tolerance = NONE,
    fresh_episodes: int | None = None,
) -> Choice:
    """Return the candidate with the fewest queries that shows no loss of task return beyond the tolerance.

    `looks` are the numbers of episodes of each look. Of a policy that will be judged by that many `fresh_episodes`, a
    loss that their mean cannot show is accepted as well: half the width of its 95% interval.
    """
    trial = Trial(play, looks)
    reference = trial.best(candidates)
    returns = trial.rows(reference, len(looks) - 1)[:, 0]
    accepted = tolerance.of(float(returns.mean()))
    if fresh_episodes is not None:
        accepted += 1.96 * float(returns.std()) / math.sqrt(fresh_episodes)
    tested = 0
    for candidate in sorted(candidates, key=lambda c: c.queries):
        if candidate is reference:
            break
        if worse(candidate.screening[:, 0], reference.screening[:, 0], accepted, LEVEL):
            continue
        tested += 1
        if not trial.shows_a_loss(candidate, reference, accepted):
            return Choice(candidate, reference, tested)
    return Choice(reference, reference, tested)


def choose_best(candidates: Sequence[Candidate], play: Play, looks: Sequence[int], price: float) -> Choice:
    """Return the candidate with the best mean return, where a query costs `price`: the choice of a single objective."""
    best = Trial(play, looks).best(candidates, price)
    return Choice(best, best, 0)
