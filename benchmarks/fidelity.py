"""What the paper leaves open for tables: how well each choice reproduces its rows, on seeds that are reported nowhere.

    python benchmarks/fidelity.py                    # lexicographic and vanilla rows, a few minutes
    python benchmarks/fidelity.py --all              # every λ too

A row counts if both means over the seeds lie within one published standard deviation of the paper's (0.5 where that is
smaller); the distance is in the same units, at most 3 a number.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Timesteps, Unit
from letitcook.experiments.jobs import world_of
from letitcook.experiments.suites import Row, kind_of, paper_rows
from letitcook.training.learn import prepare_tables
from letitcook.training.run import Point
from letitcook.training.spec import RunSpec

SEEDS = (0, 1, 2)
LENGTH = 10_000_000


class Choice(NamedTuple):
    """One reading of the paper."""

    timestep: Unit
    bootstrap: str
    bootstrap_on_truncation: bool


UNITS: tuple[Unit, ...] = ("step", "decision")
CHOICES = [Choice(*parts) for parts in product(UNITS, ("lexicographic", "max"), (True, False))]


def best_points(choice: Choice, row: Row, seed: int) -> tuple[Point, Point]:
    """Train a run; return the first and the last of its best evaluations."""
    spec = RunSpec(row.method, row.lam, seed, "paper", choice._asdict(), Timesteps(LENGTH, choice.timestep))
    training = prepare_tables(*world_of(row.task, row.mode), spec, row.task)
    first = last = None
    for point in training.run():
        if first is None or last is None or training.better(point, last):
            first = last = point
        elif not training.better(last, point):
            last = point
    assert first is not None and last is not None
    return first, last


def distance(row: Row, points: Iterable[Point]) -> NDArray[np.float64]:
    """Return how far the means of length and queries are from the paper's, in its standard deviations."""
    paper = paper_rows()[row]
    ours = np.array([(point.length, point.queries) for point in points]).mean(axis=0)
    spread = np.maximum([paper.length_sd, paper.queries_sd], 0.5)
    return np.asarray(np.abs(ours - [paper.length, paper.queries]) / spread)


def main() -> None:
    """Print a line for each choice."""
    every = "--all" in sys.argv
    rows = [row for row in paper_rows() if kind_of(row.task) == "table" and (every or row.method != "scalar")]
    work = [(choice, row, seed) for choice in CHOICES for row in rows for seed in SEEDS]
    found: dict[Choice, dict[Row, list[tuple[Point, Point]]]] = defaultdict(lambda: defaultdict(list))
    with ProcessPoolExecutor() as pool:
        for (choice, row, _), points in zip(work, pool.map(best_points, *zip(*work, strict=True)), strict=True):
            found[choice][row].append(points)
    print(f"{'timestep':9} {'Q0 bootstraps on':17} {'at the horizon':15} {'equally good':13} rows       distance")
    for choice, held in found.items():
        for which, name in enumerate(("first", "last")):
            far = np.array([distance(row, [pair[which] for pair in pairs]) for row, pairs in held.items()])
            near, mean = int((far.max(axis=1) <= 1.0).sum()), np.minimum(far, 3.0).mean()
            horizon = "goes on" if choice.bootstrap_on_truncation else "ended"
            said = f"{choice.timestep:9} {choice.bootstrap:17} {horizon:15} {name:13}"
            print(f"{said} {near:2} of {len(held):2}   {mean:.2f}")


if __name__ == "__main__":
    main()
