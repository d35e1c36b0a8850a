from __future__ import annotations

from itertools import combinations, islice
from typing import Any

import numpy as np
import pytest

from letitcook import make, plan
from letitcook.errors import SettingError
from letitcook.poll import (
    Costs,
    Distribution,
    Log,
    Schedule,
    back_off,
    estimate,
    every,
    exact_schedule,
    expected,
    schedule,
)
from letitcook.tasks.job import DURATIONS

COSTS = Costs(check=1.0, lateness=0.1)


def lognormal(rng: np.random.Generator, n: int) -> Any:
    return 720 * np.exp(0.15 * rng.standard_normal(n))


def bimodal(rng: np.random.Generator, n: int) -> Any:
    quick, slow = 60 * np.exp(0.1 * rng.standard_normal(n)), 600 * np.exp(0.2 * rng.standard_normal(n))
    return np.where(rng.random(n) < 0.3, quick, slow)


@pytest.mark.parametrize("seed", range(20))
def test_no_schedule_is_better(seed: int) -> None:
    """Try every set of check times, with and without something that expires."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.choice(np.arange(2, 16), 5, replace=False)).astype(float)
    known = Distribution.of(times, rng.random(5) + 0.1)
    costs = Costs(1.0, float(rng.choice([0.05, 0.3, 2.0])), *((4.0, 1.5) if seed % 2 else (None, 0.0)))
    possible = [float(t) for t in range(1, int(times[-1]))]
    best = min(
        expected(Schedule((*chosen, float(times[-1]))), known, costs).cost
        for n in range(len(possible) + 1)
        for chosen in combinations(possible, n)
    )
    assert expected(exact_schedule(known, costs), known, costs).cost == pytest.approx(best)


@pytest.mark.parametrize("kwargs", [{}, {"cache_steps": 10, "cache_cost": 2.0}, {"lateness_cost": 1.0}])
def test_the_job_planned_over_beliefs_is_the_same(kwargs: dict[str, Any]) -> None:
    best = plan(make("job", **kwargs))
    costs = Costs(1.0, kwargs.get("lateness_cost", 0.1), kwargs.get("cache_steps"), kwargs.get("cache_cost", 0.0))
    known = Distribution.of(DURATIONS)
    assert -best.task_return == pytest.approx(expected(exact_schedule(known, costs), known, costs).cost)


@pytest.mark.parametrize("late", [0.03, 1.0, 40.0])
def test_the_next_check_is_found_where_it_is_looked_for(late: float) -> None:
    """The search that goes no further than the check after a later time, against one over all times."""
    rng = np.random.default_rng(0)
    known = Distribution.of(10.0 * rng.lognormal(0.0, 1.5, 300), rng.random(300))
    times, mass = np.concatenate([[0.0], known.times]), np.concatenate([[0.0], known.mass])
    worth = np.zeros(len(times))
    for i in range(len(times) - 2, -1, -1):
        late_by = [mass[i + 1 : j + 1] @ (times[j] - times[i + 1 : j + 1]) for j in range(i + 1, len(times))]
        worth[i] = mass[i + 1 :].sum() + np.min(late * np.array(late_by) + worth[i + 1 :])
    costs = Costs(1.0, late)
    assert expected(exact_schedule(known, costs), known, costs).cost == pytest.approx(worth[0])


def test_what_is_expected_is_what_happens() -> None:
    rng = np.random.default_rng(0)
    x, chosen = bimodal(rng, 300), schedule(bimodal(rng, 50), 1.0, 0.1)
    total, checks = 0.0, 0
    for duration in x:
        for time in chosen:
            checks += 1
            if time >= duration:
                total += time - duration
                break
    numbers = expected(chosen, Distribution.of(x), COSTS)
    assert numbers.checks == pytest.approx(checks / 300)
    assert numbers.lateness == pytest.approx(total / 300)
    assert numbers.cost == pytest.approx(numbers.checks + 0.1 * numbers.lateness)


@pytest.mark.parametrize("kind", [lognormal, bimodal])
@pytest.mark.parametrize(("n", "most"), [(20, 1.10), (200, 1.02)])
def test_few_durations_are_enough(kind: Any, n: int, most: float) -> None:
    rng = np.random.default_rng(1)
    truth = Distribution.of(np.quantile(kind(rng, 40_000), (np.arange(2_000) + 0.5) / 2_000))
    costs = Costs(1.0, 0.02)
    best = expected(exact_schedule(truth, costs), truth, costs).cost
    reached = [expected(exact_schedule(estimate(Log.read(kind(rng, n))), costs), truth, costs).cost for _ in range(12)]
    assert np.mean(reached) / best <= most


@pytest.mark.parametrize("kind", [lognormal, bimodal])
def test_at_equal_lateness_it_checks_less_than_intervals_and_back_off(kind: Any) -> None:
    truth = Distribution.of(np.quantile(kind(np.random.default_rng(2), 40_000), (np.arange(500) + 0.5) / 500))
    ours = [expected(exact_schedule(truth, Costs(1.0, rate)), truth, COSTS) for rate in np.geomspace(1e-4, 3.0, 40)]
    others = [every(seconds) for seconds in (10, 30, 60, 120, 300)]
    others += [back_off(first, factor) for first in (5, 30, 120) for factor in (1.2, 1.5, 2.0, 3.0)]
    for other in others:
        numbers = expected(other, truth, COSTS)
        checks = min(one.checks for one in ours if one.lateness <= numbers.lateness)
        assert checks < numbers.checks, other


def test_schedules_go_on() -> None:
    assert list(islice(every(5.0), 3)) == [5.0, 10.0, 15.0]
    assert list(islice(back_off(1.0, 2.0, longest=4.0), 5)) == [1.0, 3.0, 7.0, 11.0, 15.0]
    chosen = schedule([10, 11, 12])
    assert chosen.after(chosen.times[-1]) > chosen.times[-1]
    assert chosen.after(0.0) == chosen.times[0]


def test_mistakes_are_named() -> None:
    for wrong in ({"check_cost": 0}, {"lateness_cost": -1}, {"cache_cost": -1}, {"cache_seconds": 0}):
        with pytest.raises(SettingError, match=next(iter(wrong))):
            schedule([1, 2], **wrong)
    with pytest.raises(SettingError, match="interval"):
        every(0.0)
    with pytest.raises(SettingError, match="factor"):
        back_off(1.0, 0.5)
    with pytest.raises(SettingError, match="check less often"):
        expected(back_off(1e-6, 1.0 + 1e-9), Distribution.of([100.0]), COSTS)


@pytest.mark.parametrize("costs", [Costs(1.0, 0.5), Costs(2.0, 0.1, cache_seconds=3.0, cache=4.0)])
def test_a_fixed_interval_needs_no_list_of_its_checks(costs: Costs) -> None:
    known = Distribution.of([2.0, 7.0, 7.5, 21.0, 22.0], [1, 2, 3, 4, 5])
    for seconds in (0.5, 3.5, 7.0, 100.0):
        written_down = expected(Schedule((seconds, 2 * seconds), growth=1.0), known, costs)
        assert vars(expected(every(seconds), known, costs)) == pytest.approx(vars(written_down))
    many = expected(every(1e-6), Distribution.of([100.0]), COSTS)
    assert many.checks == pytest.approx(1e8)
