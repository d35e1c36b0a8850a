"""How a row of ours stands beside the paper's, in one word, and why.

Each of the two numbers, length and queries, is compared by Welch's two-sample t-test (Welch 1947), from the means,
standard deviations and numbers of seeds of both. A row is

- `same` if neither test tells the two apart, at a level of 5 % for both together (2.5 % for each, Bonferroni);
- `better` or `worse` by what the row itself optimises, tested at the same level: task return and then queries
  (lexicographic), task return - λ queries (scalar), task return (vanilla);
- `other` if by that neither is better: another trade-off of the same value, as everything is in queries at λ = 0.

Few seeds make a test weak, so each comparison also has the 95 % intervals of the differences: `same` with a wide
interval means that not more is known. Seeds that are all equal have no spread; then the numbers themselves are
compared, to the last digit of the paper's tables.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from letitcook.report.statistics import PRECISION
from letitcook.tasks import task_named

LEVEL = 0.05
"""Probability of telling apart, in either number, what is the same."""
VERDICTS = {
    "same": (
        "=",
        "as in the paper",
        "neither length nor queries can be told apart from the paper's, at a level of 5 %",
    ),
    "better": ("▲", "ours is better", "by what the row itself optimises"),
    "other": ("◆", "other trade-off", "length or queries differ, and by what the row optimises neither is better"),
    "worse": ("▼", "ours is worse", "by what the row itself optimises"),
    "new": ("+", "not in the paper", "the paper reports no such row"),
}
"""Sign, words and explanation of each verdict; the sign carries what the colour does."""


class Sample(NamedTuple):
    """Numbers of several seeds: their mean, standard deviation (n - 1) and how many."""

    mean: float
    sd: float
    n: int


class Difference(NamedTuple):
    """Ours minus the paper's: the difference of the means, its 95 % interval, and the p-value of no difference."""

    mean: float
    low: float
    high: float
    p: float

    @property
    def told_apart(self) -> bool:
        """Whether the two differ at half of the level, that of one of two tests."""
        return self.p < LEVEL / 2


def difference(ours: Sample, paper: Sample) -> Difference:
    """Compare two means by Welch's t-test; a single seed is given the other's standard deviation.

    >>> difference(Sample(31.0, 2.1, 10), Sample(33.8, 1.687, 10)).told_apart
    True
    >>> paper = Sample(33.0, 0.0, 10)
    >>> difference(Sample(33.0, 0.0, 10), paper).p, difference(Sample(36.0, 0.0, 3), paper).p
    (1.0, 0.0)
    """
    from scipy import stats  # it takes long to load, and most commands do without

    mean = ours.mean - paper.mean
    parts = [(sd**2 / n, n - 1) for sd, n in _spreads(ours, paper) if sd > 0.0]
    variance = sum(part for part, _ in parts)
    if variance == 0.0 or abs(mean) <= PRECISION:
        width = math.sqrt(variance)
        return Difference(mean, mean - width, mean + width, 1.0 if abs(mean) <= PRECISION else 0.0)
    freedom = variance**2 / sum(part**2 / df for part, df in parts)
    width = float(stats.t.ppf(0.975, freedom)) * math.sqrt(variance)
    p = 2.0 * float(stats.t.sf(abs(mean) / math.sqrt(variance), freedom))
    return Difference(mean, mean - width, mean + width, p)


def _spreads(a: Sample, b: Sample) -> list[tuple[float, int]]:
    """Return the standard deviation and the seeds of both; of a single seed that of the other, with its freedom."""
    if a.n > 1 and b.n > 1:
        return [(a.sd, a.n), (b.sd, b.n)]
    known = a if a.n > 1 else b
    return [(known.sd * math.sqrt(1.0 + known.n), known.n)] if known.n > 1 else []


def verdict_of(length: Difference, queries: Difference, optimised: tuple[tuple[Difference, float], ...]) -> str:
    """Return `same`, `better`, `worse` or `other`.

    `optimised` are the differences in what the row optimises, the most important first, and which sign is better.

    >>> none, fewer = Difference(0.0, 0.0, 0.0, 1.0), Difference(-4.0, -5.0, -3.0, 0.0)
    >>> verdict_of(none, fewer, ((none, -1.0), (fewer, -1.0))), verdict_of(none, fewer, ((none, -1.0),))
    ('better', 'other')
    """
    if not (length.told_apart or queries.told_apart):
        return "same"
    for found, sign in optimised:
        if found.told_apart:
            return "better" if sign * found.mean > 0.0 else "worse"
    return "other"


def value_of(method: str, lam: float | None, task: str, length: float, queries: float) -> float:
    """Return what a row optimises first: task return, or task return - λ queries; more is better.

    >>> value_of("lexicographic", None, "cook", 33.0, 25.0), value_of("scalar", 0.5, "cook", 33.0, 25.0)
    (-33.0, -45.5)
    """
    task_return = task_named(task).return_per_step * length
    return task_return - (lam or 0.0) * queries if method == "scalar" else task_return
