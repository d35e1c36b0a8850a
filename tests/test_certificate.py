"""Certificates: their error rate by simulation, their parts against independent computations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from letitcook.errors import SettingError
from letitcook.evaluation.certificate import (
    LEVEL,
    Margin,
    certify,
    fewest_episodes,
    guard,
    judge,
    look_levels,
    look_sizes,
    lower_bound,
)

Draw = Callable[[np.random.Generator, int], Any]
REPETITIONS = 2_000


def noisy(rng: np.random.Generator, n: int) -> Any:
    """Differences of two landers: most episodes differ by a little, some by a landing; the mean is -2.5."""
    return np.where(rng.random(n) < 0.15, rng.normal(0.0, 140.0, n), rng.normal(0.0, 20.0, n)) - 2.5


def skewed(rng: np.random.Generator, n: int) -> Any:
    """A little better nearly always, and now and then a crash; the mean is -2.5."""
    return np.where(rng.random(n) < 0.03, -300.0, rng.normal(6.5 / 0.97, 10.0, n))


def falling(share: float) -> Draw:
    """The same as the base, but for a share of episodes that lose all 1,000."""
    return lambda rng, n: np.where(rng.random(n) < share, -1_000.0, 0.0)


@pytest.mark.parametrize(
    ("draw", "margin", "at_stake"),
    [
        (noisy, 2.5, 380.0),
        (skewed, 2.5, 380.0),
        *((falling(share), 1_000.0 * share, 1_000.0) for share in (0.005, 0.01, 0.05, 0.2)),
    ],
    ids=["noisy", "skewed", "falls 0.5%", "falls 1%", "falls 5%", "falls 20%"],
)
@pytest.mark.parametrize("most", [400, 2_000])
def test_a_loss_of_the_margin_is_certified_in_at_most_5_percent(
    draw: Draw, margin: float, at_stake: float, most: int
) -> None:
    sizes = look_sizes(most)
    levels = look_levels(sizes)
    rng = np.random.default_rng(most)
    certified = 0
    for _ in range(REPETITIONS):
        differences = draw(rng, most)
        # The mean's bound alone: the guard on single episodes can only refuse more.
        certified += any(
            lower_bound(differences[:n], at_stake, at) > -margin for n, at in zip(sizes, levels, strict=True)
        )
    assert certified / REPETITIONS <= LEVEL


def test_what_loses_nothing_is_certified_early_and_what_loses_much_is_given_up_early() -> None:
    rng = np.random.default_rng(1)
    played = []

    def pairs(mean: float) -> Any:
        def play(first: int, n: int) -> Any:
            played.append((first, n))
            return rng.normal(100.0 + mean, 2.0, n), np.full(n, 100.0)

        return play

    good = certify(pairs(1.0), margin=1.0, at_stake=30.0, most=3_200)
    assert good.certified and good.episodes <= 200 and good.looks == len(played)
    assert [first for first, _ in played] == [sum(n for _, n in played[:i]) for i in range(len(played))]
    bad = certify(pairs(-4.0), margin=1.0, at_stake=30.0, most=3_200)
    assert (bad.certified, bad.episodes, bad.reason) == (False, 50, "it loses too much")
    assert "not certified: it loses too much" in bad.line()
    assert bad.summary()["episodes"] == 50


def test_levels_are_those_of_the_literature_and_spend_what_they_may() -> None:
    # Five equal looks, one-sided 2.5%, Lan-DeMets with Pocock-type spending: the published boundaries.
    published = [2.438, 2.427, 2.410, 2.397, 2.386]
    found = stats.norm.isf(look_levels((1, 2, 3, 4, 5), 0.025))
    assert np.allclose(found, published, atol=0.002)
    sizes = look_sizes(1_600)
    boundaries = stats.norm.isf(look_levels(sizes))
    rng = np.random.default_rng(0)
    steps = np.diff([0, *sizes])
    paths = np.cumsum(rng.normal(size=(200_000, len(steps))) * np.sqrt(steps), axis=1) / np.sqrt(sizes)
    crossed = (paths > boundaries).any(axis=1).mean()
    assert abs(crossed - LEVEL) < 4.0 * math.sqrt(LEVEL * 0.95 / len(paths))


def test_the_bound_is_students_with_two_failures_added() -> None:
    differences = np.random.default_rng(0).normal(0.0, 3.0, 80)
    data = [*differences, -50.0, -50.0]
    expected = np.mean(data) - stats.t.isf(0.03, len(data) - 1) * stats.sem(data)
    assert math.isclose(lower_bound(differences, 50.0, 0.03), expected)
    n = fewest_episodes(2.0, 50.0)
    assert lower_bound(np.zeros(n + 3), 50.0, LEVEL) > -2.0 > lower_bound(np.zeros(n - 3), 50.0, LEVEL)


def test_more_is_at_stake_if_an_episode_shows_it() -> None:
    differences = np.zeros(500)
    differences[7] = -80.0
    assert judge(differences, margin=1.0, at_stake=20.0).at_stake == 80.0


def test_a_wrapper_that_fails_where_its_base_does_not_is_not_certified() -> None:
    differences = np.full(2_000, 0.5)
    assert judge(differences, margin=1.0, at_stake=40.0).certified
    differences[3] = -30.0
    refused = judge(differences, margin=1.0, at_stake=40.0)
    assert refused.bound > -1.0
    assert (refused.certified, refused.guard.failed, refused.guard.rescued) == (False, 1, 0)
    assert refused.reason == "episodes fail where the base's do not"
    differences[4:6] = 30.0  # the base fails too, and more often
    assert judge(differences, margin=1.0, at_stake=40.0).certified
    differences[10:20] = -30.0  # eleven failures, two rescues: not by chance
    assert not guard(differences, 10.0).holds
    assert guard(np.array([-30.0] * 11 + [30.0] * 9), 10.0).holds


def test_the_share_of_failures_has_an_exact_bound() -> None:
    for failed in (0, 1, 7):
        differences = np.zeros(300)
        differences[:failed] = -5.0
        bound = guard(differences, 4.0).bound
        assert math.isclose(stats.binom.cdf(failed, 300, bound), 0.05, rel_tol=1e-6)
    assert guard(np.full(5, -9.0), 4.0).bound == 1.0


def test_margins() -> None:
    assert Margin.read("2%").of(-150.0) == 3.0
    assert Margin.read(0.5).of(1_000.0) == 0.5
    assert Margin.read("1%").of(0.0, 30.0) == 0.3  # near 0 the spread counts
    for wrong in ("-1", "nan", "1%%", "a lot", "inf"):
        with pytest.raises(SettingError, match="margin"):
            Margin.read(wrong)
    with pytest.raises(SettingError, match="level"):
        certify(lambda first, n: (np.zeros(n), np.zeros(n)), 1.0, 1.0, 100, level=0.7)
    assert (
        judge(np.zeros(50), margin=0.0, at_stake=1.0).reason == "no loss at all can be ruled out; give a margin above 0"
    )
