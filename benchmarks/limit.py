"""What preset `best` reaches: the table of docs/research.md from the results of `letitcook reproduce --suite limit`.

python benchmarks/limit.py results/limit [--csv docs/limit.csv]

Each wrapper and its base play 1,000 fresh episodes with common random numbers, for the difference in task return
between them.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from letitcook import load
from letitcook.experiments.jobs import training_of
from letitcook.experiments.suites import Row, Run
from letitcook.training.loop import always_base

EPISODES, SEED = 1_000, 424_243


def facts(folder: Path) -> dict[str, Any]:
    """Return what one run reached."""
    run = load(folder)
    task, mode, seed = (run.info.task, run.info.mode, run.info.seed)
    at_end = run.curve[-1]
    found: dict[str, Any] = {
        "task": task,
        "mode": mode,
        "seed": seed,
        "steps": run.steps,
        "evaluation_episodes": run.evaluation_episodes,
        "length": round(run.length, 3),
        "queries": round(run.queries, 2),
        "last_length": round(at_end.length, 2),
        "last_queries": round(at_end.queries, 2),
    }
    if run.base is not None:
        learner = training_of(Run(Row(task, mode, "lexicographic"), seed, 1, "best"), run.base).learner  # type: ignore[arg-type]
        alone = learner.play(always_base(run.policy), EPISODES, SEED, common_random_numbers=True)
        difference = learner.play(run.policy, EPISODES, SEED, common_random_numbers=True)[:, 0] - alone[:, 0]
        found["base_length"] = round(float(alone[:, 1].mean()), 3)
        found["difference"] = round(float(difference.mean()), 3)
        found["half_interval"] = round(1.96 * float(difference.std(ddof=1)) / EPISODES**0.5, 3)
    return found


def spread(values: list[float]) -> str:
    """Return mean and standard deviation."""
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) if len(values) > 1 else 0.0:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--csv", type=Path)
    args = parser.parse_args()
    rows = [facts(path.parent) for path in sorted(args.results.glob("runs/*/lexicographic/*/seed*/manifest.json"))]
    print("| | seeds | length | queries | queries of each seed | not worse than its base |\n|---|---|---|---|---|---|")
    for task, mode in dict.fromkeys((row["task"], row["mode"]) for row in rows):
        of = [row for row in rows if (row["task"], row["mode"]) == (task, mode)]
        wrapped = [row for row in of if "difference" in row]
        fine = sum(row["difference"] + row["half_interval"] >= 0.0 for row in wrapped)
        lengths, queries = [row["length"] for row in of], [row["queries"] for row in of]
        each = ", ".join(f"{value:.1f}" for value in queries)
        against = f"{fine} of {len(wrapped)}" if wrapped else ""
        print(f"| {task}, {mode} | {len(of)} | {spread(lengths)} | {spread(queries)} | {each} | {against} |")
    if args.csv:
        names = list(dict.fromkeys(name for row in rows for name in row))
        with args.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"\nwrote {args.csv}")


if __name__ == "__main__":
    main()
