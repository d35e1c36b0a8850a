"""Certificates of non-inferiority: a wrapper loses no more than a margin, with a known error rate.

A wrapper and its base policy play the same episodes, and `D` is the difference of their task returns. The wrapper is
*certified* if a lower confidence bound of the mean of `D` lies above minus the margin. The test may stop early: it
looks at the data after 50, 100, 200, ... pairs, and the bound at each look is wide enough that a wrapper whose true
loss is the margin or more is certified in at most 5 % of all cases, over all looks together (a group-sequential test;
Lan and DeMets 1983, with Pocock-type spending of the error).

Rare failures break a test that relies on the spread of what it has seen: who falls once in a hundred episodes may not
have fallen yet. So two failures that cost everything at stake are added to the data before the bound is computed (in
the manner of Agresti and Coull 1998). What is at stake is how much worse an episode can be that goes wrong; doing
nothing at all shows it, and if an episode of the test loses more, then that counts. With `n` pairs and no spread the
bound is then about `-4 · stake / n`: the smaller the margin beside what is at stake, the more episodes it takes, with
this test or any other. The tests simulate the error rate; if failures cost twice what was thought to be at stake, it
rises to about 8 %.

Beside the mean there is a guard on single episodes: how many fail, losing more than a given amount against their pair,
and how many are rescued, gaining as much. Where the base never fails, a wrapper that fails once is not certified;
where it does, one is not that fails in significantly more episodes than it rescues (a sign test). An upper bound of the
share of failures is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.errors import SettingError
from letitcook.storage.setting_values import amount_or_share

LEVEL = 0.05
"""Probability of certifying what loses the margin or more."""
FIRST_LOOK, GROWTH = 50, 2
"""Pairs at the first look, and by how much the looks grow."""
LEAST_PAIRS = 30
"""With fewer pairs nothing is certified, however alike they are."""
ADDED_FAILURES = 2
"""Failures that are added to what was seen."""
DEFAULT_MARGIN = "1%"
SIGN_LEVEL = 0.1
"""A wrapper whose failures exceed its rescues by chance with no more than this probability fails too often."""
FAILURE_SHARE = 0.25
"""An episode fails if it loses more than this share of what is at stake against its pair."""
GRID = 801
"""Points of the numerical integration."""

Pairs = Callable[[int, int], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""`pairs(first, n)` returns the task returns of wrapper and base in episodes `first` to `first + n - 1`."""


class Margin(NamedTuple):
    """A loss of mean task return that is accepted: an amount, or a share of the base's mean return.

    Where that mean is near 0, below its spread over episodes, the share is one of the spread.
    """

    amount: float = 0.0
    share: float = 0.0

    def of(self, mean: float, sd: float = 0.0) -> float:
        """Return the margin beside a base policy of that mean return and standard deviation.

        >>> Margin(share=0.01).of(-150.0, 40.0), Margin(share=0.01).of(3.0, 200.0)
        (1.5, 2.0)
        """
        return self.amount + self.share * max(abs(mean), sd if abs(mean) < sd else 0.0)

    @classmethod
    def read(cls, text: str | float) -> Margin:
        """Return the margin of an amount of task return, or of a share such as `"1%"`.

        >>> Margin.read("1%"), Margin.read(0.5)
        (Margin(amount=0.0, share=0.01), Margin(amount=0.5, share=0.0))
        """
        return cls(*amount_or_share("margin", text))


@dataclass(frozen=True)
class Guard:
    """Single episodes that fail against their pair."""

    loss: float
    """An episode fails if it loses more than this against its pair."""
    failed: int
    """Episodes that failed."""
    rescued: int
    """Episodes that gained as much against their pair: the base failed and the wrapper did not."""
    episodes: int
    bound: float
    """Upper bound of the share of failures less the share of rescues; of 95%, over all looks."""

    @property
    def share(self) -> float:
        """Share of failures less the share of rescues."""
        return (self.failed - self.rescued) / self.episodes

    @property
    def holds(self) -> bool:
        """Whether failures are no reason against the wrapper."""
        from scipy.special import bdtrc

        if self.rescued == 0:
            return self.failed == 0
        return self.failed <= self.rescued or bdtrc(self.failed - 1, self.failed + self.rescued, 0.5) > SIGN_LEVEL


@dataclass(frozen=True)
class Certificate:
    """What paired episodes say about a wrapper.

    >>> certificate = judge(np.random.default_rng(0).normal(0.2, 1.0, 500), margin=1.0, at_stake=50.0)
    >>> certificate.certified, certificate.episodes, certificate.guard.failed
    (True, 500, 0)
    """

    certified: bool
    margin: float
    """Loss of mean task return that is accepted."""
    difference: float
    """Mean task return of the wrapper less that of its base."""
    bound: float
    """Lower 95% bound of the difference: over all looks, with the added failures."""
    episodes: int
    """Pairs that were played."""
    looks: int
    """How often the data were looked at."""
    at_stake: float
    """How much worse than the base's mean an episode can be that goes wrong."""
    guard: Guard
    reason: str
    """Why the test ended here."""

    def summary(self) -> dict[str, Any]:
        """Return the certificate as data that JSON can hold."""
        guard = self.guard
        return {
            "certified": self.certified,
            "margin": self.margin,
            "difference": self.difference,
            "bound": self.bound,
            "episodes": self.episodes,
            "looks": self.looks,
            "at_stake": self.at_stake,
            "reason": self.reason,
            "failure_loss": guard.loss,
            "failed": guard.failed,
            "rescued": guard.rescued,
            "failure_bound": guard.bound,
        }

    def line(self) -> str:
        """Return the certificate in one line for people.

        >>> certificate = judge(np.zeros(800), margin=1.0, at_stake=100.0)
        >>> certificate.line()
        'certified: loses less than 1 (bound -0.54, 800 episodes; none failed, at most 0.37% do)'
        """
        guard = self.guard
        said = f"certified: loses less than {self.margin:.3g}" if self.certified else f"not certified: {self.reason}"
        numbers = (
            f"bound {self.bound:.3g}, margin {self.margin:.3g}" if not self.certified else f"bound {self.bound:.2f}"
        )
        failed = f"{guard.failed or 'none'} failed" + (f" and {guard.rescued} rescued" if guard.rescued else "")
        more = "more than the base do" if guard.rescued else "do"
        return f"{said} ({numbers}, {self.episodes:,} episodes; {failed}, at most {max(guard.bound, 0.0):.2%} {more})"


def look_sizes(most: int) -> tuple[int, ...]:
    """Return the numbers of pairs at which the test looks: doubling, up to `most`.

    >>> look_sizes(1_000)
    (50, 100, 200, 400, 1000)
    """
    sizes = []
    n = FIRST_LOOK
    while n * GROWTH <= most:
        sizes.append(n)
        n *= GROWTH
    return (*sizes, most)


@cache
def look_levels(looks: tuple[int, ...], level: float = LEVEL) -> tuple[float, ...]:
    """Return the one-sided level of the test at each look, such that the error over all of them is `level`.

    The error that may be spent up to a share `t` of all pairs is `level · ln(1 + (e - 1) t)`. How much of that the
    earlier looks have used is integrated numerically over the paths that have not crossed yet.

    >>> [round(p, 4) for p in look_levels((100, 200, 300, 400, 500), 0.025)]
    [0.0074, 0.0076, 0.008, 0.0083, 0.0085]
    """
    from scipy import optimize, special, stats  # they take long to load, and most commands do without

    times = np.array(looks) / looks[-1]
    spent = level * np.log1p((math.e - 1.0) * times)
    levels = [float(spent[0])]
    boundary = float(stats.norm.isf(spent[0]) * math.sqrt(times[0]))
    x = np.linspace(-8.0 * math.sqrt(times[0]), boundary, GRID)
    density = stats.norm.pdf(x, scale=math.sqrt(times[0]))
    for k in range(1, len(looks)):
        step, allowed = math.sqrt(times[k] - times[k - 1]), float(spent[k] - spent[k - 1])

        def excess(b: float, x: Any = x, density: Any = density, step: float = step, allowed: float = allowed) -> float:
            return float(np.trapezoid(density * special.ndtr((x - b) / step), x)) - allowed

        scale = math.sqrt(times[k])
        boundary = float(optimize.brentq(excess, -2.0 * scale, 10.0 * scale))
        levels.append(float(stats.norm.sf(boundary / scale)))
        following = np.linspace(-8.0 * scale, boundary, GRID)
        kernel = stats.norm.pdf((following[:, None] - x[None, :]) / step) / step
        density = np.trapezoid(kernel * density[None, :], x, axis=1)
        x = following
    return tuple(levels)


def lower_bound(differences: NDArray[np.float64], at_stake: float, level: float) -> float:
    """Return a lower bound of the mean difference, with the added failures: Student's t at a one-sided level.

    >>> round(lower_bound(np.zeros(998), at_stake=100.0, level=0.05), 2)
    -0.43
    """
    from scipy.special import stdtrit

    data = np.append(differences, np.full(ADDED_FAILURES, -abs(at_stake)))
    half = float(stdtrit(len(data) - 1, 1.0 - level)) * float(data.std(ddof=1)) / math.sqrt(len(data))
    return float(data.mean()) - half


def judge(
    differences: NDArray[np.float64],
    margin: float,
    at_stake: float,
    level: float = LEVEL,
    looks: int = 1,
    failure_loss: float | None = None,
) -> Certificate:
    """Return the certificate of paired differences at one look, tested at a one-sided level."""
    at_stake = max(abs(at_stake), -float(differences.min()))
    bound = lower_bound(differences, at_stake, level)
    loss = FAILURE_SHARE * at_stake if failure_loss is None else failure_loss
    failures = guard(differences, loss, level)
    difference = float(differences.mean())
    certified = bool(bound > -margin and failures.holds and len(differences) >= LEAST_PAIRS)
    return Certificate(
        certified=certified,
        margin=margin,
        difference=difference,
        bound=bound,
        episodes=len(differences),
        looks=looks,
        at_stake=at_stake,
        guard=failures,
        reason=reason_of(certified, failures, difference, margin, at_stake, len(differences)),
    )


def reason_of(
    certified: bool, failures: Guard, difference: float, margin: float, at_stake: float, episodes: int
) -> str:
    """Return in words why a wrapper is certified or not."""
    if certified:
        return "the bound is above minus the margin"
    if margin <= 0.0:
        return "no loss at all can be ruled out; give a margin above 0"
    if difference <= -margin:
        return "it loses too much"
    if not failures.holds:
        return "episodes fail where the base's do not"
    least = max(LEAST_PAIRS, fewest_episodes(margin, at_stake))
    if episodes < least:
        return f"a rare failure cannot be ruled out by fewer than about {least:,} episodes"
    return "a loss of the margin cannot be ruled out"


def fewest_episodes(margin: float, at_stake: float) -> int:
    """Return how many pairs it takes at least: if none of them shows any difference at all.

    >>> fewest_episodes(margin=10.0, at_stake=1_000.0)
    431
    """
    low, high = 1, 2**40
    while low < high:
        n = (low + high) // 2
        data = n + ADDED_FAILURES
        mean = ADDED_FAILURES / data
        width = 1.645 * math.sqrt(mean * (1.0 - mean) / data)
        low, high = (low, n) if (mean + width) * at_stake < margin else (n + 1, high)
    return low


def guard(differences: NDArray[np.float64], loss: float, level: float = LEVEL) -> Guard:
    """Count the episodes that fail against their pair, and bound how many more fail than are rescued.

    The bound of failures is exact (Clopper and Pearson 1934) where nothing was rescued; else it is that of a normal
    difference of shares.

    >>> guard(np.zeros(100), loss=5.0).bound
    0.0295...
    """
    from scipy import special, stats

    n, failed, rescued = len(differences), int((differences < -loss).sum()), int((differences > loss).sum())
    if rescued == 0:
        bound = 1.0 if failed == n else float(special.betaincinv(failed + 1, n - failed, 1.0 - level))
    else:
        share = (failed - rescued) / n
        variance = ((failed + rescued) / n - share**2) / n
        bound = share + float(stats.norm.isf(level)) * math.sqrt(variance)
    return Guard(loss, failed, rescued, n, bound)


def certify(
    pairs: Pairs,
    margin: float,
    at_stake: float,
    most: int,
    level: float = LEVEL,
    failure_loss: float | None = None,
) -> Certificate:
    """Play paired episodes, at most that many, until the wrapper is certified or it is clear that it will not be.

    >>> dice = np.random.default_rng(0)
    >>> def pairs(first: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ...     base = dice.normal(100.0, 5.0, n)
    ...     return base + dice.normal(0.5, 1.0, n), base
    >>> certificate = certify(pairs, margin=1.0, at_stake=50.0, most=2_000)
    >>> certificate.certified, certificate.episodes
    (True, 200)
    """
    check_level(level)
    sizes = look_sizes(most)
    levels = look_levels(sizes, level)
    differences = np.zeros(0)
    found: Certificate | None = None
    for look, (n, at) in enumerate(zip(sizes, levels, strict=True)):
        wrapper, base = pairs(len(differences), n - len(differences))
        differences = np.append(differences, wrapper - base)
        found = judge(differences, margin, at_stake, at, look + 1, failure_loss)
        if found.certified or (
            n < sizes[-1] and _is_futile(differences, margin, found.at_stake, sizes[look + 1 :], levels[-1])
        ):
            break
    assert found is not None
    return found


def check_level(level: float) -> None:
    """Raise if something is wrong with a level."""
    if not 0.0 < level < 0.5:
        raise SettingError(f"level = {level} is not allowed; give an error rate between 0 and 0.5, such as 0.05")


def _is_futile(
    differences: NDArray[np.float64], margin: float, at_stake: float, later: Sequence[int], level: float
) -> bool:
    """Return whether the wrapper would not be certified at the last look even if its mean were better by two errors."""
    from scipy.special import ndtri

    n, last = len(differences), later[-1]
    spread = float(differences.std(ddof=1))
    hopeful = float(differences.mean()) + 2.0 * spread / math.sqrt(n)
    added = ADDED_FAILURES * (abs(at_stake) + hopeful) / last
    width = -float(ndtri(level)) * math.sqrt(spread**2 + ADDED_FAILURES * at_stake**2 / last) / math.sqrt(last)
    return hopeful - added - width <= -margin
