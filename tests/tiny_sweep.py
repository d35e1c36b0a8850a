"""A sweep of a few short runs, carried out as `letitcook reproduce` does it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from letitcook.experiments.engines import Serial
from letitcook.experiments.results import Results, read_results
from letitcook.experiments.suites import Suite, suite
from letitcook.experiments.sweep import opened, sweep
from letitcook.tasks import task_named

ROWS = ("cook", "coffee/lexicographic/*", "cartpole/lexicographic/wrap", "pong/lexicographic/scratch")
FINITE_STEPS = 500_000
"""Enough for some rows of the kitchen to come out as in the paper, and for others not."""


def tiny_sweep(folder: Path, rows: tuple[str, ...] = ROWS) -> Results:
    """Carry out rows of the smoke suite, a seed each, and read what came of them."""
    runs = suite("smoke").only(rows=list(rows)).runs
    longer = [replace(run, steps=FINITE_STEPS) if task_named(run.row.task).finite else run for run in runs]
    chosen = Suite("tiny", tuple(longer))
    with opened(folder, chosen):
        for _ in sweep(chosen, folder, Serial()):
            pass
    return read_results(folder)
