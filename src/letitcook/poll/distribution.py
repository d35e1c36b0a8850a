"""How long a job takes: a distribution from past durations.

The durations that were seen are weighed by Kaplan and Meier's (1958) estimate, which knows what to do with *censored*
ones: a job that was given up after 120 seconds took longer than that. Each becomes a kernel on the scale of log time,
whose width is the one under which every duration is likeliest when the others are known. And there is a prior, a wide
log-normal around the median, that weighs as much as one duration: what was never seen may happen, and ten durations are
enough to begin with.

The result is a distribution on a grid of times, fine where durations are; what is computed from it is exact for it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from letitcook.errors import FileFormatError, SettingError

GRID = 12_000
"""Times of the grid."""
REACH = 4.0
"""Standard deviations of the prior, on the scale of log time, after which the grid ends."""
PRIOR_WIDTH = 1.0
"""Standard deviation of the prior on the scale of log time, beside the spread of the durations."""
WIDTHS = np.geomspace(0.01, 1.0, 25)
"""Kernel widths that are tried, in units of the durations' spread on the scale of log time."""
AT_ONCE = 400
"""Durations whose kernels are laid over the grid at once."""
MOST = 2_000
"""Durations that the kernel width is found with, so that long logs take little memory."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Distribution:
    """When a job is done: probabilities `mass` of the times `times`, which increase.

    >>> d = Distribution.of([10.0, 12.0, 12.0, 30.0])
    >>> d.mean, d.quantile(0.5)
    (16.0, 12.0)
    """

    times: Array
    mass: Array

    @classmethod
    def of(cls, durations: Iterable[float], weights: Iterable[float] | None = None) -> Distribution:
        """Return the distribution of exactly these durations, each as likely as its weight says."""
        values = np.array([_positive(d) for d in durations])
        if len(values) == 0:
            raise SettingError("there are no durations; give at least one")
        given = np.ones(len(values)) if weights is None else np.array(list(weights), dtype=np.float64)
        if given.shape != values.shape or not np.isfinite(given).all() or given.min() < 0 or given.sum() <= 0:
            raise SettingError("weights must be as many as the durations, none below 0, and not all 0")
        times, where = np.unique(values, return_inverse=True)
        return cls(times, np.bincount(where, given, len(times)) / given.sum())

    @classmethod
    def mixture(cls, parts: Iterable[tuple[float, Distribution]]) -> Distribution:
        """Return several distributions as one, each with its weight: jobs of several kinds.

        >>> quick, slow = Distribution.of([5.0]), Distribution.of([60.0])
        >>> Distribution.mixture([(3.0, quick), (1.0, slow)]).mass.tolist()
        [0.75, 0.25]
        """
        known = list(parts)
        if not known:
            raise SettingError("a mixture needs at least one part")
        times = np.concatenate([part.times for _, part in known])
        return cls.of(times, np.concatenate([weight * part.mass for weight, part in known]))

    @property
    def mean(self) -> float:
        """The mean duration."""
        return float(self.times @ self.mass)

    def quantile(self, q: float) -> float:
        """Return the shortest time by which a job is done with probability `q`."""
        at = int(np.searchsorted(np.cumsum(self.mass), q - 1e-12))
        return float(self.times[min(at, len(self.times) - 1)])


@dataclass(frozen=True)
class Log:
    """Past durations; a censored one is known only to have been longer."""

    values: Array
    censored: NDArray[np.bool_]

    @classmethod
    def read(cls, given: Iterable[Any]) -> Log:
        """Return durations given as numbers, as `"120+"` where censored, or as pairs `(120, True)`.

        >>> log = Log.read([31, "120+", (45.5, False)])
        >>> log.values.tolist(), log.censored.tolist()
        ([31.0, 120.0, 45.5], [False, True, False])
        """
        pairs = [_entry(one) for one in given]
        if not pairs:
            raise SettingError("there are no durations; give at least one")
        log = cls(np.array([value for value, _ in pairs]), np.array([censored for _, censored in pairs]))
        if log.censored.all():
            raise SettingError("every duration is censored, so no job was ever seen to end; give at least one that was")
        return log

    def weights(self) -> tuple[Array, Array, float]:
        """Return the durations that ended, their probabilities (Kaplan and Meier), and what is left beyond the longest.

        >>> Log.read([1, "2+", 3]).weights()
        (array([1., 3.]), array([0.33333333, 0.66666667]), 0.0)
        """
        order = np.lexsort((self.censored, self.values))
        alive, survival, ends, masses = len(order), 1.0, [], []
        for i in order:
            if not self.censored[i]:
                ends.append(self.values[i])
                masses.append(survival / alive)
                survival *= 1.0 - 1.0 / alive
            alive -= 1
        return np.array(ends), np.array(masses), max(1.0 - sum(masses), 0.0)


def read_csv(path: str | Path) -> Log:
    """Return the durations of a CSV file: the column `duration`, or the first one that holds numbers.

    Those are censored that are written like `120+`, or marked in a column `censored`.
    """
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            rows = [row for row in csv.reader(opened) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not rows:
        raise FileFormatError(f"{file} is empty; write one duration a line")
    header = [cell.strip().lower() for cell in rows[0]]
    named = not any(_number(cell) is not None for cell in rows[0])
    column = header.index("duration") if "duration" in header else _first_numbers(rows[1:] if named else rows, file)
    censoring = header.index("censored") if "censored" in header else None
    entries: list[Any] = []
    for line, row in enumerate(rows[1:] if named else rows, start=2 if named else 1):
        text = row[column].strip() if column < len(row) else ""
        if _number(text) is None:
            raise FileFormatError(f"{file}, line {line}: {text!r} is not a duration; write a number above 0, or 120+")
        flag = censoring is not None and censoring < len(row) and row[censoring].strip().lower() in ("1", "true", "yes")
        entries.append((text.rstrip("+"), flag or text.endswith("+")))
    try:
        return Log.read(entries)
    except SettingError as error:
        raise FileFormatError(f"{file}: {error}") from error


def _first_numbers(rows: Sequence[Sequence[str]], file: Path) -> int:
    for column in range(len(rows[0]) if rows else 0):
        if _number(rows[0][column]) is not None:
            return column
    raise FileFormatError(f"{file} has no column of numbers; write one duration a line, or name a column 'duration'")


def _number(text: str) -> float | None:
    try:
        return float(text.strip().rstrip("+"))
    except ValueError:
        return None


def _entry(given: Any) -> tuple[float, bool]:
    if isinstance(given, str):
        return _positive(given.rstrip("+")), given.endswith("+")
    if isinstance(given, tuple | list):
        value, censored = given
        return _positive(value), bool(censored)
    return _positive(given), False


def _positive(given: Any) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise SettingError(f"duration {given!r} is not allowed; give numbers above 0, censored ones as '120+'")
    return value


def estimate(log: Log, prior: float = 1.0) -> Distribution:
    """Return the distribution of the next duration after these; `prior` is how many durations the prior is worth.

    >>> d = estimate(Log.read([9, 10, 10, 11, 10.5, 9.5, 30, 31, 29]))
    >>> 9.0 < d.quantile(0.5) < 12.0, 30.0 < d.quantile(0.95)
    (True, True)
    """
    if not (math.isfinite(prior) and prior > 0.0):
        raise SettingError(f"prior = {prior} is not allowed; give how many durations it is worth, such as 1")
    ends, masses, beyond = log.weights()
    x = np.log(ends)
    centre = float(np.log(np.median(ends)))
    spread = float(np.sqrt(masses @ (x - masses @ x / masses.sum()) ** 2 / masses.sum()))
    wide = PRIOR_WIDTH + spread
    width = _kernel_width(x, masses, spread)
    n = len(log.values)
    low, high = min(centre - REACH * wide, x.min() - 6 * width), max(centre, x.max()) + REACH * wide
    share, longest = prior / (n + prior), float(np.log(log.values.max()))

    def done_by(grid: Array) -> Array:
        below = np.zeros(len(grid))
        for at in range(0, len(x), AT_ONCE):
            below += ndtr((grid[:, None] - x[at : at + AT_ONCE]) / width) @ masses[at : at + AT_ONCE]
        below *= 1.0 - share
        below += share * ndtr((grid - centre) / wide)
        below += (1.0 - share) * beyond * np.clip((grid - longest) / wide, 0.0, 1.0)  # whatever is left comes later
        below[-1] = 1.0
        return below

    coarse = _grid(x, masses, width, low, high)
    grid = np.unique(np.concatenate([coarse, _where_checks_are(coarse, done_by(coarse))]))
    return Distribution(np.exp(grid), np.diff(done_by(grid), prepend=0.0))


def _where_checks_are(grid: Array, below: Array) -> Array:
    """Return log times as dense as the checks of a schedule, which lie by the root of the durations' density.

    In the long run an inspection density of `sqrt(lateness_cost f / (2 check_cost S))` is best (Keller 1974); without
    `S`, so that times that are hardly ever reached do not take all of the grid.
    """
    likely = np.maximum(np.diff(below), 0.0)  # rounding may make it less
    checks = np.sqrt(likely * np.diff(np.exp(grid)))  # of each step: the root of its density, times its length
    return np.interp(np.linspace(0.0, 1.0, GRID // 2), np.append(0.0, np.cumsum(checks)) / checks.sum(), grid)


def _kernel_width(x: Array, masses: Array, spread: float) -> float:
    """Return the width under which each duration is likeliest, given the others; on the scale of log time."""
    if len(x) < 3 or spread == 0.0:
        return max(0.3 * spread, 0.05)
    if len(x) > MOST:  # all pairs of a long log would take gigabytes
        every = np.linspace(0, len(x) - 1, MOST).round().astype(np.int64)
        x, masses = x[every], masses[every] * (masses.sum() / masses[every].sum())
    apart = (x[:, None] - x) ** 2
    best, found = -np.inf, spread
    # Durations are often rounded, so equal ones count as one: they would draw the width to nothing.
    others = apart > 0.0
    weight = np.maximum(others @ masses, 1e-12)
    for width in np.maximum(WIDTHS * spread, 0.005):
        density = (others * np.exp(-0.5 * apart / width**2) / width) @ masses / weight
        likelihood = float(masses @ np.log(density + 1e-3 / spread))
        if likelihood > best:
            best, found = likelihood, float(width)
    return found


def _grid(x: Array, masses: Array, width: float, low: float, high: float) -> Array:
    """Return log times: one half by the durations' own density, the other half evenly; `GRID / 2` in all."""
    order = np.argsort(x)
    steps = np.cumsum(masses[order]) / masses.sum()
    dense = np.interp(np.linspace(0.0, 1.0, GRID // 8), steps, x[order])
    around = np.concatenate([dense + k * width for k in (-2.0, -1.0, 0.0, 1.0, 2.0)])
    chosen = np.interp(np.linspace(0.0, 1.0, GRID // 4), np.linspace(0.0, 1.0, len(around)), np.sort(around))
    return np.unique(np.concatenate([chosen, np.linspace(low, high, GRID // 4)]))
