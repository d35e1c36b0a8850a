"""When to look whether a job is done: the exact schedule for a distribution of durations.

Checks at times `t_1 < t_2 < ...` cost `check_cost` each, until one finds the job done; from when it is done until then
every second costs `lateness_cost`. With `S(t)` the probability that the job takes longer than `t`, the schedule from
time `t_i` on, if it is not done by then, costs at least ::

    W(t_i) = min over t_j > t_i of  check_cost S(t_i) + lateness_cost E[(t_j - T)⁺; T > t_i, T ≤ t_j] + W(t_j)

which is solved backwards over the times of the distribution (`W` is not divided by `S`). Nothing is gained by a check
between them, as no job ends there. What a later check adds to the lateness is the less the later `t_i` is, so the best
`t_j` never moves back as `t_i` grows, and is not looked for beyond that of the time after `t_i`.

Where something expires if it is not used for a while, such as a cache, a check after a longer wait than `cache_seconds`
costs `cache_cost` more; then all times are tried, and a check just before that may be worth its price, so times that
lie a multiple of `cache_seconds` before or after others are tried too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.errors import SettingError
from letitcook.poll.distribution import Distribution, Log, estimate

MOST_TIMES = 5_000
"""Times that are tried for checks, beside those of the distribution."""
MOST_CHECKS = 1_000_000
"""Checks that are written down of a schedule without end."""


@dataclass(frozen=True)
class Costs:
    """What checks and lateness cost."""

    check: float = 1.0
    lateness: float = 1.0
    cache_seconds: float | None = None
    """A check after a longer wait than this costs `cache` more; None if nothing expires."""
    cache: float = 0.0

    def __post_init__(self) -> None:
        for name in ("check", "lateness"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise SettingError(f"{name}_cost = {getattr(self, name)} is not allowed; give a cost above 0")
        if not (math.isfinite(self.cache) and self.cache >= 0.0):
            raise SettingError(f"cache_cost = {self.cache} is not allowed; give a cost of at least 0")
        if self.cache_seconds is not None and not self.cache_seconds > 0.0:
            raise SettingError(f"cache_seconds = {self.cache_seconds} is not allowed; give seconds above 0")

    def of_check(self, gap: Any) -> Any:
        """Return what a check costs after a wait of `gap` seconds."""
        return self.check + self.cache * (np.asarray(gap) > (self.cache_seconds or math.inf) * (1 + 1e-12))


@dataclass(frozen=True)
class Schedule:
    """When to check: at `times`, then again and again after longer and longer waits.

    >>> days = Schedule((10.0, 14.0), growth=2.0)
    >>> list(islice(days, 5))
    [10.0, 14.0, 22.0, 38.0, 70.0]
    >>> days.after(14.0)
    22.0
    """

    times: tuple[float, ...]
    growth: float = 1.5
    """After the last of the times, each wait is so much longer than the one before."""
    longest: float = math.inf
    """No wait after the last of the times is longer."""

    def __iter__(self) -> Iterator[float]:
        """Yield the times of all checks, without end."""
        yield from self.times
        time = self.times[-1]
        wait = time - (self.times[-2] if len(self.times) > 1 else 0.0)
        for _ in count():
            wait = min(wait * self.growth, self.longest)
            time += wait
            yield time

    def after(self, seconds: float) -> float:
        """Return the time of the first check after so many seconds."""
        return next(time for time in self if time > seconds * (1 + 1e-12) + 1e-12)

    def until(self, end: float) -> NDArray[np.float64]:
        """Return the times of the checks up to the first one at `end` or later."""
        times: list[float] = []
        for time in islice(self, MOST_CHECKS):
            times.append(time)
            if time >= end:
                break
        return np.array(times)


@dataclass(frozen=True)
class Expected:
    """What a schedule is expected to come to: checks of a job, seconds that its end is found late, and the cost."""

    checks: float
    lateness: float
    cost: float


def every(seconds: float) -> Schedule:
    """Return the schedule that checks at a fixed interval.

    >>> every(60.0).until(150.0).tolist()
    [60.0, 120.0, 180.0]
    """
    return Schedule((_interval(seconds),), growth=1.0)


def back_off(first: float, factor: float, longest: float = math.inf) -> Schedule:
    """Return exponential back-off: each wait is `factor` times the one before, up to the longest.

    >>> back_off(1.0, 2.0).until(10.0).tolist()
    [1.0, 3.0, 7.0, 15.0]
    """
    if not factor >= 1.0:
        raise SettingError(f"factor = {factor} is not allowed; give at least 1")
    return Schedule((_interval(first),), growth=factor, longest=longest)


def _interval(seconds: float) -> float:
    if not (math.isfinite(seconds) and seconds > 0.0):
        raise SettingError(f"an interval of {seconds} seconds is not allowed; give one above 0")
    return float(seconds)


def expected(schedule: Schedule, distribution: Distribution, costs: Costs) -> Expected:
    """Return what a schedule is expected to come to under a distribution of durations.

    >>> expected(every(10.0), Distribution.of([5.0, 12.0]), Costs(check=1.0, lateness=0.5))
    Expected(checks=1.5, lateness=6.5, cost=4.75)
    """
    if len(schedule.times) == 1 and schedule.growth == 1.0 and schedule.longest >= schedule.times[0]:
        return _expected_of_interval(schedule.times[0], distribution, costs)
    times = schedule.until(float(distribution.times[-1]))
    if times[-1] < distribution.times[-1]:
        raise SettingError(f"a schedule with more than {MOST_CHECKS:,} checks of a job is not one; check less often")
    found = np.searchsorted(times, distribution.times * (1 - 1e-12))
    spent = np.cumsum(costs.of_check(np.diff(times, prepend=0.0)))
    lateness = float(distribution.mass @ (times[found] - distribution.times))
    checks = float(distribution.mass @ (found + 1))
    return Expected(checks, lateness, float(distribution.mass @ spent[found]) + costs.lateness * lateness)


def _expected_of_interval(seconds: float, distribution: Distribution, costs: Costs) -> Expected:
    """Return the same of a fixed interval, whose checks need not be written down, however many they are."""
    checks = np.maximum(np.ceil(distribution.times * (1 - 1e-12) / seconds), 1.0)
    lateness = float(distribution.mass @ (checks * seconds - distribution.times))
    number = float(distribution.mass @ checks)
    return Expected(number, lateness, float(costs.of_check(seconds)) * number + costs.lateness * lateness)


def exact_schedule(distribution: Distribution, costs: Costs) -> Schedule:
    """Return the schedule of least expected cost under a distribution of durations.

    >>> exact_schedule(Distribution.of([5.0, 6.0, 60.0]), Costs(check=1.0, lateness=0.5)).times
    (6.0, 60.0)
    """
    times, mass = _with_renewals(distribution, costs)
    done, moment = np.cumsum(mass), np.cumsum(mass * times)
    left = np.maximum(1.0 - done, 0.0)
    left[-1] = 0.0
    n = len(times)
    value, choice = np.zeros(n), np.full(n, n - 1, dtype=np.int64)
    expires = costs.cache_seconds is not None and costs.cache > 0.0
    for i in range(n - 2, -1, -1):
        later = slice(i + 1, n if expires else choice[i + 1] + 1)
        late = times[later] * (done[later] - done[i]) - (moment[later] - moment[i])
        total = costs.of_check(times[later] - times[i]) * left[i] + costs.lateness * late + value[later]
        best = int(np.argmin(total))
        value[i], choice[i] = total[best], i + 1 + best
    chosen: list[float] = []
    i = 0
    while i < n - 1 and (left[i] > 0.0 or i == 0):
        i = int(choice[i])
        chosen.append(float(times[i]))
    return Schedule(tuple(chosen), longest=costs.cache_seconds or math.inf)


def _with_renewals(distribution: Distribution, costs: Costs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the times at which a check may be best, 0 first, and the probabilities that the job ends there."""
    ends = np.concatenate([[0.0], distribution.times])
    life = costs.cache_seconds
    if life is None or costs.cache == 0.0:
        return ends, np.concatenate([[0.0], distribution.mass])
    last = float(ends[-1])
    if last / life * len(ends) > MOST_TIMES:  # the grid is fine enough as it is
        ends = ends[:1]
    renewals = [time % life + k * life for time in ends.tolist() for k in range(int(last / life) + 1)]
    renewals = [time for time in renewals if 0.0 < time < last]
    times = np.unique(np.concatenate([[0.0], distribution.times, renewals]))
    # Without those that differ from another by rounding alone.
    kept = np.isin(times, distribution.times) | (np.diff(times, prepend=-life) > 1e-9 * last)
    times = times[kept]
    mass = np.zeros(len(times))
    mass[np.searchsorted(times, distribution.times)] = distribution.mass
    return times, mass


def schedule(
    durations: Iterable[Any] | Log | Distribution,
    check_cost: float = 1.0,
    lateness_cost: float = 1.0,
    *,
    prior: float = 1.0,
    cache_seconds: float | None = None,
    cache_cost: float = 0.0,
) -> Schedule:
    """Return when to check a job, from past durations of such jobs: the schedule of least expected cost.

    Durations are seconds, or any other unit; `lateness_cost` is per unit. A job that was given up is a censored
    duration, `"120+"`. A `Distribution` is taken as it is; from a list it is estimated, see `distribution.py`.

    >>> times = schedule([118, 121, 120, 119, 125, 117, 122, 120, "60+", 123], check_cost=1, lateness_cost=0.1).times
    >>> 115 < times[0] < 130
    True
    """
    costs = Costs(check_cost, lateness_cost, cache_seconds, cache_cost)
    if isinstance(durations, Distribution):
        return exact_schedule(durations, costs)
    return exact_schedule(estimate(durations if isinstance(durations, Log) else Log.read(durations), prior), costs)
