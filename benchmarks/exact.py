"""How soon the preset `exact` reaches the exact optimum: ten seeds for each task, from scratch and wrapped.

python benchmarks/exact.py [--seeds 10]
"""

from __future__ import annotations

import argparse
import sys

from letitcook.experiments.jobs import exact, training_of
from letitcook.experiments.suites import Row, Run

LIMITS = {"cook": 1_000_000, "cook-longer": 2_000_000, "cook-twice": 2_000_000, "coffee": 4_000_000}
"""Primitive steps from scratch; around a base policy it is 200,000."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    enough = True
    for task, limit in LIMITS.items():
        for mode, steps in (("scratch", limit), ("wrap", 200_000)):
            row = Row(task, mode, "lexicographic")
            optimum = exact(row)
            reached = []
            for seed in range(seeds):
                run = Run(row, seed, steps, "exact")
                training = training_of(run)
                points = list(training.run())
                reached += [p.step for p in points if (p.length, p.queries) == (optimum.length, optimum.queries)][:1]
            span = f"after {min(reached):,} to {max(reached):,} steps" if reached else ""
            print(f"{task:12} {mode:8} {optimum.length:g}/{optimum.queries:g}  {len(reached)} of {seeds} seeds  {span}")
            enough &= len(reached) >= 0.9 * seeds
    sys.exit(not enough)


if __name__ == "__main__":
    main()
