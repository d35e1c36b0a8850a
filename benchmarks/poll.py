"""How good a schedule is that was made of few durations, and what intervals and back-off would cost.

    python benchmarks/poll.py few [--draws 40]      schedules made of 20 and of 200 durations
    python benchmarks/poll.py lateness              checks of others at equal lateness
    python benchmarks/poll.py log tests.xml         durations of a run of tests (pytest --junitxml=tests.xml), as CSV

`few`: the expected cost of the schedule made of n durations, over that of the exact schedule for the true distribution:
mean, median and 90th percentile over draws. Of a log (`test_durations.csv`, durations of this project's own tests) the
truth is not known. There it is once the smoothed log, from which durations are drawn; and once, with no model of it at
all, those durations of the log that had no part in the schedule; beside the schedule made of the whole log, in which
they had.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from letitcook.poll import Costs, Distribution, Log, back_off, estimate, every, exact_schedule, expected, read_csv

LOG = Path(__file__).parent / "test_durations.csv"
SIZES = (20, 200)
TRUTH = 2_000
"""Quantiles that stand for a true distribution."""
FINE, FINEST = 20_000, 400_000
"""Times that stand for one with a long tail: those of the exact schedule, and those it is judged by, so fine that it
gains nothing from where they are."""


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


def finer(known: Distribution, times: int) -> Distribution:
    """Return a distribution with a long tail on a finer grid."""
    grid = np.linspace(np.log(known.times[0]), np.log(known.quantile(1 - 1e-5)), times)
    below = np.interp(grid, np.log(known.times), np.cumsum(known.mass))
    below[-1] = 1.0
    return Distribution(np.exp(grid), np.diff(below, prepend=0.0))


def costs_of(truth: Distribution) -> list[Costs]:
    """Return costs at which a median of lateness is worth 10 and 50 checks."""
    return [Costs(1.0, checks / truth.quantile(0.5)) for checks in (10.0, 50.0)]


def from_few(draws: int, rng: np.random.Generator) -> None:
    """Print how good schedules are that were made of few durations."""
    print(f"{'':<20}{'lateness':>9}{'optimum':>9}" + "".join(f"{f'n = {n}: mean, median, 90%':>30}" for n in SIZES))
    samplers: dict[str, tuple[Distribution, Distribution, Any]] = {}
    for name, draw in kinds(rng).items():
        truth = truth_of(draw(100_000))
        samplers[name] = truth, truth, draw
    log = read_csv(LOG)
    known = estimate(log)
    smooth = finer(known, FINEST)
    samplers["tests, smoothed"] = finer(known, FINE), smooth, lambda n: rng.choice(smooth.times, n, p=smooth.mass)
    for name, (planned, truth, draw) in samplers.items():
        drawn = [[estimate(Log.read(draw(n))) for _ in range(draws)] for n in SIZES]
        for costs in costs_of(truth):
            best = cost(planned, truth, costs)
            show(name, truth, costs, best, [[cost(one, truth, costs) / best for one in few] for few in drawn])
    held_out(log.values, draws, rng)


def held_out(durations: Any, draws: int, rng: np.random.Generator) -> None:
    """Print the same for durations that had no part in the schedule, beside the schedule of all, in which they had."""
    everything, whole = estimate(Log.read(durations)), Distribution.of(durations)
    shares: dict[Costs, list[list[float]]] = {costs: [[] for _ in SIZES] for costs in costs_of(whole)}
    for _ in range(draws):
        mixed = rng.permutation(durations)
        few, rest = [estimate(Log.read(mixed[:n])) for n in SIZES], Distribution.of(mixed[max(SIZES) :])
        for costs, columns in shares.items():
            best = cost(everything, rest, costs)
            for column, one in zip(columns, few, strict=True):
                column.append(cost(one, rest, costs) / best)
    for costs, columns in shares.items():
        show("tests, held out", whole, costs, float("nan"), columns)


def cost(known: Distribution, truth: Distribution, costs: Costs) -> float:
    """Return the expected cost, under the truth, of the schedule that is exact for what is known."""
    return expected(exact_schedule(known, costs), truth, costs).cost


def show(name: str, truth: Distribution, costs: Costs, best: float, row: list[list[float]]) -> None:
    """Print one line."""
    late = costs.lateness * truth.quantile(0.5)
    cells = "".join(f"{np.mean(r):16.3f}{np.median(r):7.3f}{np.quantile(r, 0.9):7.3f}" for r in row)
    print(f"{name:<20}{late:9.0f}{best:9.2f}{cells}", flush=True)


def print_log(report: Path) -> None:
    """Print the durations of a run of tests as CSV."""
    seconds = [float(case.get("time", 0.0)) for case in ElementTree.parse(report).iter("testcase")]
    print("duration", *[f"{one:g}" for one in seconds if one > 0.0], sep="\n")


def at_equal_lateness(rng: np.random.Generator) -> None:
    """Print the checks of others over those of the exact schedule that is late by as much."""
    intervals = (0.02, 0.05, 0.1, 0.2, 0.5)
    pairs = [(first, factor) for first in (0.01, 0.05, 0.2) for factor in (1.2, 1.5, 2.0, 3.0)]
    samples = {**{name: draw(100_000) for name, draw in kinds(rng).items()}, "tests": read_csv(LOG).values}
    for name, sample in samples.items():
        truth = finer(estimate(Log.read(sample)), FINE) if name == "tests" else truth_of(sample)
        median = truth.quantile(0.5)
        rates = np.geomspace(0.05, 100_000, 40) / median
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
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["few", "lateness", "log"])
    parser.add_argument("report", type=Path, nargs="?")
    parser.add_argument("--draws", type=int, default=40)
    given, rng = parser.parse_args(), np.random.default_rng(0)
    if given.what == "log":
        if given.report is None:
            sys.exit("which report? pytest --junitxml=tests.xml writes one")
        print_log(given.report)
    elif given.what == "few":
        from_few(given.draws, rng)
    else:
        print("checks over those of the exact schedule at equal lateness; times are in medians")
        at_equal_lateness(rng)


if __name__ == "__main__":
    main()
