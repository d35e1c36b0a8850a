"""Certificates from two samples: their error rate, and what a student takes away of the luck."""

from __future__ import annotations

import numpy as np
import pytest

from letitcook.evaluation.unpaired import judge_unpaired, without_luck

REPETITIONS = 2_000


def error_rate(wrapper: np.ndarray, base: np.ndarray, margin: float, stake: float) -> float:
    """Return how often wrappers whose true loss is the margin are certified, a row for each repetition."""
    certified = [judge_unpaired(w, b, margin, stake).certified for w, b in zip(wrapper, base, strict=True)]
    return float(np.mean(certified))


def test_a_loss_of_the_margin_is_certified_in_at_most_one_case_in_twenty() -> None:
    dice = np.random.default_rng(0)
    base = dice.normal(0.0, 1.0, (REPETITIONS, 10))
    noisy = dice.normal(-1.0, 1.0, (REPETITIONS, 60))
    assert error_rate(noisy, base, margin=1.0, stake=4.0) <= 0.05
    share = 0.02  # of the episodes fail, and cost all that is at stake
    failing = np.where(dice.random((REPETITIONS, 60)) < share, -50.0, 0.0)
    assert error_rate(failing, 0.01 * base, margin=50.0 * share, stake=50.0) <= 0.05


def test_a_wrapper_that_loses_nothing_is_certified() -> None:
    dice = np.random.default_rng(1)
    base, wrapper = dice.normal(0.0, 1.0, (200, 10)), dice.normal(0.0, 1.0, (200, 60))
    certified = [judge_unpaired(w, b, margin=3.0, at_stake=20.0).certified for w, b in zip(wrapper, base, strict=True)]
    assert np.mean(certified) > 0.9


@pytest.mark.parametrize(("episodes", "alone"), [(29, 10), (60, 3)])
def test_too_few_episodes_certify_nothing(episodes: int, alone: int) -> None:
    found = judge_unpaired(np.zeros(episodes), np.zeros(alone), margin=100.0, at_stake=1.0)
    assert not found.certified and found.bound > -100.0


def test_failures_that_the_base_does_not_have_certify_nothing() -> None:
    wrapper, base = np.zeros(100), np.zeros(10)
    assert judge_unpaired(wrapper, base, margin=5.0, at_stake=10.0).certified
    wrapper[7] = -9.0
    found = judge_unpaired(wrapper, base, margin=5.0, at_stake=10.0)
    assert found.bound > -5.0 and not found.certified and found.guard.failed == 1
    base[0] = -9.0  # the base fails in one of ten
    assert judge_unpaired(wrapper, base, margin=5.0, at_stake=10.0).guard.holds


@pytest.mark.parametrize("fails", [0.0, 0.02, 0.1])
def test_taking_the_luck_away_keeps_the_error_rate_and_certifies_more(fails: float) -> None:
    dice = np.random.default_rng(2)
    certified = []
    for loss in (10.0, 0.0):
        found = []
        for _ in range(REPETITIONS):
            luck = dice.normal(0.0, 40.0, 70)
            # A student gets about what the base gets, but may fail where the base never does.
            student = np.where(dice.random(70) < fails, -1_000.0, luck + dice.normal(0.0, 3.0, 70))
            wrapper, base = luck[:60] - loss + dice.normal(0.0, 3.0, 60), luck[60:] + dice.normal(0.0, 1.0, 10)
            left = without_luck(wrapper, base, student[:60], student[60:])
            found.append([judge_unpaired(*pair, 10.0, 40.0).bound > -10.0 for pair in (left, (wrapper, base))])
        certified.append(np.mean(found, axis=0))
    (wrong, _), (right, plain) = certified
    assert wrong <= 0.05
    assert right >= (2.0 * plain if fails == 0.0 else plain)
