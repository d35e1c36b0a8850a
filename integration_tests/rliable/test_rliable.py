"""Our intervals are rliable's."""

from typing import Any

import numpy as np
import pytest
from rliable import library

from letitcook.report.statistics import bootstrap_interval, estimate

RESAMPLES = 50_000


def theirs(values: Any) -> Any:
    np.random.seed(1)  # noqa: NPY002 - rliable draws from NumPy's global generator
    scores = {"ours": np.asarray(values, dtype=np.float64)[:, None]}  # runs x tasks
    points, intervals = library.get_interval_estimates(scores, lambda x: np.array([x.mean()]), reps=RESAMPLES)
    return float(points["ours"][0]), *intervals["ours"][:, 0].tolist()


@pytest.mark.parametrize("n", [3, 5, 10, 30])
@pytest.mark.parametrize("draw", ["normal", "lognormal"])
def test_intervals_agree_within_the_noise_of_resampling(n: int, draw: Any) -> None:
    values = getattr(np.random.default_rng(n), draw)(3.0, 0.8, n)
    ours, (mean, low, high) = estimate(values, resamples=RESAMPLES), theirs(values)
    error = values.std() / np.sqrt(n)
    assert ours.mean == pytest.approx(mean)
    # The ends of a 95% interval of 50,000 resamples are known to about 0.012 standard errors; a 94% one is 0.08 off.
    assert ours.low == pytest.approx(low, abs=0.06 * error)
    assert ours.high == pytest.approx(high, abs=0.06 * error)


def test_intervals_of_seeds_that_succeed_or_fail_are_equal() -> None:
    values = [37.0] * 6 + [200.0] * 4
    ours, (mean, low, high) = estimate(values), theirs(values)
    assert (ours.mean, ours.low, ours.high) == pytest.approx((mean, low, high))
    assert (ours.low, ours.high) == pytest.approx((53.3, 151.1))


def test_every_column_has_the_interval_that_it_has_alone() -> None:
    values = np.random.default_rng(0).normal(100.0, [1.0, 5.0, 20.0], (10, 3))
    both = bootstrap_interval(values, resamples=RESAMPLES)
    for column in range(3):
        _, low, high = theirs(values[:, column])
        error = values[:, column].std() / np.sqrt(10)
        assert both[:, column] == pytest.approx([low, high], abs=0.06 * error)
