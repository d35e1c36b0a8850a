"""The tabular kernel beside a plain C program that learns the same Q to the bit, by turns in one process.

    .venv/bin/python benchmarks/tabular_limit.py [--rounds 9]        (needs gcc)

Preset `paper`, two objectives, one seed; CPU seconds of one thread. A ratio above 1 means faster than C.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from letitcook import Objective
from letitcook.core.jit import seeded
from letitcook.experiments.jobs import world_of
from letitcook.finite.learner import QLearner
from letitcook.finite.settings import PAPER

STEPS = 4_000_000
TASKS = ("cook", "cook-longer", "cook-twice", "coffee")
GCC = ("gcc", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")
"""Without contraction both round alike, so that both do the same work."""


def c_program(folder: Path) -> Any:
    """Compile the C program and return its function."""
    subprocess.run([*GCC, "-o", folder / "tabular.so", Path(__file__).with_name("tabular.c"), "-lm"], check=True)
    learn = ctypes.CDLL(str(folder / "tabular.so")).learn
    whole, real, array = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
    learn.argtypes = [array, *[whole] * 5, *[array] * 4, *[real] * 3, array, whole]
    learn.restype = whole
    return learn


def in_c(learn: Any, task: str) -> tuple[float, np.ndarray[Any, Any]]:
    """Return the steps per CPU second of the C program, and its Q."""
    tables, decisions, horizon = world_of(task, "scratch")
    assert tables.deterministic and len(tables.start_state) == 1 and tables.fully_observed
    assert (tables.rows == np.arange(tables.n_states)).all()
    Q = np.zeros((tables.n_states + 1, 2, decisions.n))
    rng, durations, actions = seeded(0), decisions.durations_of, decisions.actions_of
    arrays = [tables.next_state, tables.reward, durations, actions]
    begun = time.process_time()
    learn(
        Q.ctypes.data, tables.end, tables.n_actions, decisions.n, horizon, int(tables.start_state[0]),
        *[array.ctypes.data for array in arrays], PAPER.alpha, PAPER.epsilon, PAPER.slack, rng.ctypes.data, STEPS,
    )  # fmt: skip
    return STEPS / (time.process_time() - begun), Q[:-1]


def in_kernel(task: str) -> tuple[float, np.ndarray[Any, Any]]:
    """Return those of the kernel."""
    learner = QLearner(*world_of(task, "scratch"), Objective("lexicographic"), PAPER, seed=0)
    learner.advance(0)
    begun = time.process_time()
    learner.advance(STEPS)
    return STEPS / (time.process_time() - begun), learner.Q


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        learn = c_program(Path(folder))
        print("| | steps/s, kernel | steps/s, C | kernel / C, median (range) |\n|---|---|---|---|")
        for task in TASKS:
            kernel, c = [], []
            for _ in range(rounds):
                (speed, Q), (c_speed, c_Q) = in_kernel(task), in_c(learn, task)
                assert np.array_equal(Q, c_Q), "both have to learn the same"
                kernel.append(speed)
                c.append(c_speed)
            ratios = [a / b for a, b in zip(kernel, c, strict=True)]
            speeds = f"{statistics.median(kernel) / 1e6:.1f}M | {statistics.median(c) / 1e6:.1f}M"
            print(f"| {task} | {speeds} | {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
