"""What the paper leaves open: how well each choice reproduces its rows, on seeds that are reported nowhere.

    python benchmarks/fidelity.py                    # tables: lexicographic and vanilla rows, a few minutes
    python benchmarks/fidelity.py --all              # every λ too
    python benchmarks/fidelity.py --networks FOLDER  # networks: of a sweep over `networks.toml`, finished or not

A row counts if both means over the seeds lie within one published standard deviation of the paper's (0.5 where that is
smaller); the distance is in the same units, at most 3 a number.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from letitcook.core.decisions import Timesteps, Unit
from letitcook.experiments.jobs import world_of
from letitcook.experiments.results import read_results
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


def distance(row: Row, points: Iterable[tuple[float, float]]) -> NDArray[np.float64]:
    """Return how far the means of length and queries are from the paper's, in its standard deviations."""
    paper = paper_rows()[row]
    ours = np.array(list(points)).mean(axis=0)
    spread = np.maximum([paper.length_sd, paper.queries_sd], 0.5)
    return np.asarray(np.abs(ours - [paper.length, paper.queries]) / spread)


def judged(far: NDArray[np.float64]) -> str:
    """Return how many rows count, and the mean distance, of rows of distances."""
    return f"{int((far.max(axis=1) <= 1.0).sum()):2} of {len(far):2}   {np.minimum(far, 3.0).mean():.2f}"


def networks(folder: Path) -> None:
    """Print every row of a sweep over readings of the paper, and a line for each reading."""
    runs = read_results(folder).runs.filter(pl.col("seed").is_in(SEEDS))
    found: dict[str, dict[Row, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for run in runs.iter_rows(named=True):
        row = Row(run["task"], run["mode"], run["method"], run["lambda"], run["variant"])
        found[row.variant][row].append((run["length"], run["queries"]))
    for variant, held in found.items():
        far = {row: distance(replace(row, variant=""), points) for row, points in held.items()}
        for row, points in held.items():
            paper, (length, queries) = paper_rows()[replace(row, variant="")], np.mean(points, axis=0)
            said = f"{length:6.1f} / {queries:5.1f}   paper {paper.length:6.1f} / {paper.queries:5.1f}"
            print(f"{row.id:60} {len(points)} seeds   {said}   {far[row].max():5.2f} sd")
        print(f"{variant or 'the preset as it is'}: {judged(np.array(list(far.values())))}\n")


def tables(every: bool) -> None:
    """Train tables in every way; print a line for each."""
    rows = [row for row in paper_rows() if kind_of(row.task) == "table" and (every or row.method != "scalar")]
    work = [(choice, row, seed) for choice in CHOICES for row in rows for seed in SEEDS]
    found: dict[Choice, dict[Row, list[tuple[Point, Point]]]] = defaultdict(lambda: defaultdict(list))
    with ProcessPoolExecutor() as pool:
        for (choice, row, _), points in zip(work, pool.map(best_points, *zip(*work, strict=True)), strict=True):
            found[choice][row].append(points)
    print(f"{'timestep':9} {'Q0 bootstraps on':17} {'at the horizon':15} {'equally good':13} rows       distance")
    for choice, held in found.items():
        for which, name in enumerate(("first", "last")):
            reached = {
                row: [(pair[which].length, pair[which].queries) for pair in pairs] for row, pairs in held.items()
            }
            far = np.array([distance(row, points) for row, points in reached.items()])
            horizon = "goes on" if choice.bootstrap_on_truncation else "ended"
            said = f"{choice.timestep:9} {choice.bootstrap:17} {horizon:15} {name:13}"
            print(f"{said} {judged(far)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--networks"]:
        networks(Path(sys.argv[2]))
    else:
        tables(every="--all" in sys.argv)
