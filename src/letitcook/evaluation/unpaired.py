"""Certificates where a base policy is too expensive to play every episode twice.

The wrapper plays fresh episodes, in which it queries the base only now and then. The base's own returns are those of
the episodes that were recorded. So there are two samples in place of pairs, and the bound of their difference is
Welch's (1947), with the added failures of `certificate.py` among the wrapper's.

Much of the luck of an episode is its beginning. A student of the base plays the same episodes for nothing, and its
returns are taken from both samples: what is left is where the base differs from its student (a control variate). A
student is better at what it was fitted to, so each part of the recorded episodes is compared with a student of the
other parts, and the wrapper's episodes with all of these students (cross-fitting).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from letitcook.evaluation.certificate import (
    ADDED_FAILURES,
    FAILURE_SHARE,
    LEAST_PAIRS,
    LEVEL,
    Certificate,
    Guard,
    reason_of,
)

LEAST_ALONE = 4
"""With fewer episodes of the base alone nothing is certified."""


def judge_unpaired(
    wrapper: NDArray[np.float64],
    base: NDArray[np.float64],
    margin: float,
    at_stake: float,
    level: float = LEVEL,
) -> Certificate:
    """Return the certificate of a wrapper's returns beside others of its base; one look, tested at a one-sided level.

    >>> dice = np.random.default_rng(0)
    >>> certificate = judge_unpaired(dice.normal(100.0, 5.0, 100), dice.normal(100.0, 5.0, 20), 10.0, 50.0)
    >>> certificate.certified, certificate.episodes
    (True, 100)
    """
    from scipy.special import stdtrit

    mean = float(base.mean())
    stake = max(abs(at_stake), mean - float(wrapper.min()))
    data = np.append(wrapper, np.full(ADDED_FAILURES, mean - stake))
    parts = [float(sample.var(ddof=1)) / len(sample) for sample in (data, base)]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / max(sum(p**2 / (len(s) - 1) for p, s in zip(parts, (data, base), strict=True)), 1e-300)
    bound = float(data.mean()) - mean - float(stdtrit(max(freedom, 1.0), 1.0 - level)) * error
    failures = _guard(wrapper, base, mean, FAILURE_SHARE * stake, level)
    difference = float(wrapper.mean()) - mean
    enough = len(wrapper) >= LEAST_PAIRS and len(base) >= LEAST_ALONE
    certified = bool(bound > -margin and failures.holds and enough)
    reason = reason_of(certified, failures, difference, margin, stake, len(wrapper))
    return Certificate(certified, margin, difference, bound, len(wrapper), 1, stake, failures, reason)


def _guard(wrapper: NDArray[np.float64], base: NDArray[np.float64], mean: float, loss: float, level: float) -> Guard:
    """Count episodes far below the base's mean; as many as the base has are no reason against the wrapper."""
    from scipy import special

    n, failed = len(wrapper), int((wrapper < mean - loss).sum())
    expected = round(float((base < mean - loss).mean()) * n)
    bound = 1.0 if failed == n else float(special.betaincinv(failed + 1, n - failed, 1.0 - level))
    return Guard(loss, failed, expected, n, bound - expected / n)


def without_luck(
    wrapper: NDArray[np.float64],
    base: NDArray[np.float64],
    of_wrapper: NDArray[np.float64],
    of_base: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the returns of both samples less a share of what students got on the same episodes.

    The share is what the wrapper's episodes show to take most luck away, between none and all. Where a student fails as
    neither wrapper nor base does, it is none: in few episodes of the base such a failure may be missing by chance.

    >>> luck = np.array([1.0, 5.0, 9.0])
    >>> [left.tolist() for left in without_luck(luck + 2.0, luck, luck, luck)]
    [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]
    """
    low, high = (float(end(np.append(wrapper, base))) for end in (np.min, np.max))
    variance = float(of_wrapper.var())
    if variance == 0.0 or float(of_wrapper.min()) < low - (high - low) / 2:
        return wrapper, base
    common = float(np.mean((wrapper - wrapper.mean()) * (of_wrapper - of_wrapper.mean())))
    share = min(max(common / variance, 0.0), 1.0)
    return wrapper - share * of_wrapper, base - share * of_base
