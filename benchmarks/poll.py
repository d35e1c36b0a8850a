"""How good a schedule is that was made of few durations, and what intervals and back-off would cost.

    python benchmarks/poll.py [--draws 100]

Of each kind of duration: the expected cost of the schedule made of n durations, over that of the exact schedule for the
true distribution (mean, and the 90th percentile over draws); and the checks of fixed intervals and of exponential
back-off, over those of the exact schedule that is late by as much. `tests` are durations of this project's own tests,
from a log: the schedule made of all of them stands for the exact one, and durations are drawn from them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from letitcook.poll import Costs, Distribution, Log, back_off, estimate, every, exact_schedule, expected, read_csv

LOG = Path(__file__).parent / "test_durations.csv"
SIZES = (10, 20, 200)
TRUTH = 2_000
"""Quantiles that stand for a true distribution."""


def kinds(rng: np.random.Generator) -> dict[str, Any]:
    """Return samplers of durations by name."""

    def bimodal(n: int) -> Any:
        quick, slow = 60 * np.exp(0.1 * rng.standard_normal(n)), 600 * np.exp(0.2 * rng.standard_normal(n))
        return np.where(rng.random(n) < 0.3, quick, slow)

    return {
        "log-normal σ .15": lambda n: 720 * np.exp(0.15 * rng.standard_normal(n)),
        "log-normal σ .5": lambda n: 720 * np.exp(0.5 * rng.standard_normal(n)),
        "bimodal": bimodal,
    }


def truth_of(durations: Any) -> Distribution:
    """Return a distribution of many durations as one of their quantiles."""
    return Distribution.of(np.quantile(durations, (np.arange(TRUTH) + 0.5) / TRUTH))


def finer(known: Distribution) -> Distribution:
    """Return a distribution with a long tail on a grid so fine that a schedule cannot make use of it."""
    grid = np.linspace(np.log(known.times[0]), np.log(known.quantile(1 - 1e-5)), 15 * TRUTH)
    below = np.interp(grid, np.log(known.times), np.cumsum(known.mass))
    below[-1] = 1.0
    return Distribution(np.exp(grid), np.diff(below, prepend=0.0))


def costs_of(truth: Distribution) -> list[Costs]:
    """Return costs at which a median of lateness is worth 10 and 50 checks."""
    return [Costs(1.0, checks / truth.quantile(0.5)) for checks in (10.0, 50.0)]


def from_few(draws: int, rng: np.random.Generator) -> None:
    """Print how good schedules are that were made of few durations."""
    print(f"{'':<18}{'lateness':>9}{'optimum':>9}" + "".join(f"{f'n = {n}':>16}" for n in SIZES))
    for name, draw in kinds(rng).items():
        truth = truth_of(draw(100_000))
        for costs in costs_of(truth):
            best = expected(exact_schedule(truth, costs), truth, costs).cost
            row = [[cost(draw(n), truth, costs) / best for _ in range(draws)] for n in SIZES]
            show(name, truth, costs, best, row)
    log = read_csv(LOG)
    known = estimate(log)
    truth = finer(known)
    for costs in costs_of(truth):
        best = expected(exact_schedule(known, costs), truth, costs).cost
        row = [[cost(rng.choice(log.values, n), truth, costs) / best for _ in range(draws)] for n in SIZES]
        show("tests", truth, costs, best, row)


def cost(durations: Any, truth: Distribution, costs: Costs) -> float:
    """Return the expected cost, under the truth, of the schedule made of durations."""
    return expected(exact_schedule(estimate(Log.read(durations)), costs), truth, costs).cost


def show(name: str, truth: Distribution, costs: Costs, best: float, row: list[list[float]]) -> None:
    """Print one line."""
    late = costs.lateness * truth.quantile(0.5)
    cells = "".join(f"{np.mean(r):9.3f}{f'({np.quantile(r, 0.9):.2f})':>7}" for r in row)
    print(f"{name:<18}{late:9.0f}{best:9.2f}{cells}", flush=True)


def at_equal_lateness(rng: np.random.Generator) -> None:
    """Print the checks of others over those of the exact schedule that is late by as much."""
    intervals = (0.02, 0.05, 0.1, 0.2, 0.5)
    pairs = [(first, factor) for first in (0.01, 0.05, 0.2) for factor in (1.2, 1.5, 2.0, 3.0)]
    samples = {**{name: draw(100_000) for name, draw in kinds(rng).items()}, "tests": read_csv(LOG).values}
    for name, sample in samples.items():
        truth = finer(estimate(Log.read(sample))) if name == "tests" else truth_of(sample)
        median = truth.quantile(0.5)
        rates = np.geomspace(0.05, 1_000, 30) / median
        ours = [expected(exact_schedule(truth, Costs(1.0, rate)), truth, Costs()) for rate in rates]
        others = {f"every {part:g}": every(part * median) for part in intervals}
        others |= {f"{first:g} x{factor:g}": back_off(first * median, factor) for first, factor in pairs}
        shares = {}
        for label, other in others.items():
            numbers = expected(other, truth, Costs())
            equal = [one.checks for one in ours if one.lateness <= numbers.lateness]
            shares[label] = numbers.checks / min(equal)
        print(f"{name}: " + ", ".join(f"{label} {share:.2f}" for label, share in shares.items()), flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    rng = np.random.default_rng(0)
    from_few(parser.parse_args().draws, rng)
    print("\nchecks over those of the exact schedule at equal lateness; times are in medians")
    at_equal_lateness(rng)


if __name__ == "__main__":
    main()
