"""Wrappers of controllers that nobody trained, on tasks outside the paper: what is saved, lost and certified.

python benchmarks/zoo.py lander car --seeds 3 --out zoo.jsonl

Needs `pip install 'letitcook[zoo]'`. Every run is `learn` with its defaults and without training, then the result and
the best schedule beside the base on fresh episodes that nothing else used. Finished runs are kept in the file, one a
line, and not repeated; at the end a table of all of them is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from letitcook import Budget, SchedulePolicy, compare_with_base, learn
from letitcook.evaluation.certificate import DEFAULT_MARGIN
from letitcook.training.env_spec import WrappedEnvSpec, fingerprint
from letitcook.training.run import Learned

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DURATIONS = (2, 4, 8)
FRESH_SEED = 1_000_000
"""Fresh episodes begin here; no other episode of a run has such a seed."""
ROWS: dict[str, tuple[str, str, str | None, str | None]] = {
    "lander": ("LunarLander-v3", "controllers:lander", "hold", None),
    "car": ("MountainCarContinuous-v0", "controllers:push", "hold", None),
    "pendulum": ("Pendulum-v1", "controllers:swing", "hold", None),
    "reacher": ("Reacher-v5", "controllers:reach", "hold", None),
    "inverted": ("InvertedPendulum-v5", "controllers:balance", "0", None),
    "acrobot": ("Acrobot-v1", "controllers:pump", "hold", None),
    "cartpole": ("CartPole-v1", "controllers:pole", None, "passive:no_force"),
}
"""Environment, controller, and what waits: an action, or what adds one."""


def run(row: str, seed: int, margin: str, fresh: int, budget: int | None) -> dict[str, Any]:
    """Learn one wrapper, and compare it and the best schedule with the base on fresh episodes."""
    env, policy, wait, passive = ROWS[row]
    begun = time.monotonic()
    with closing(WrappedEnvSpec(env, policy, fingerprint(policy), DURATIONS, wait, passive).make()) as waiting_env:
        limits = None if budget is None else Budget(base_queries=budget)
        result = learn(waiting_env, steps=0, seed=seed, margin=margin, budget=limits, progress=False)
        compared = {"result": compare_with_base(waiting_env, result.policy, fresh, FRESH_SEED + seed, margin)}
        schedule = best_schedule(result)
        if schedule is not None:
            compared["schedule"] = compare_with_base(waiting_env, schedule, fresh, FRESH_SEED + seed, margin)
    return {
        "row": row,
        "env": env,
        "seed": seed,
        "chosen": (result.choice or {})["name"],
        "certificate": result.certificate,
        "best_schedule": None if schedule is None else schedule.name,
        "fresh": {name: savings.summary() for name, savings in compared.items()},
        "seconds": time.monotonic() - begun,
    }


def best_schedule(result: Learned) -> SchedulePolicy | None:
    """Return the schedule that saved most of those that lost less than the margin in the choosing."""
    assert result.choice is not None and result.certificate is not None
    held = [
        row
        for row in result.choice["candidates"]
        if row["kind"] == "schedule" and row["difference"] > -result.certificate["margin"]
    ]
    if not held:
        return None
    name = max(held, key=lambda row: float(row["saved"]))["name"]
    return SchedulePolicy(int(name.split()[1]), DURATIONS)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the runs as a table in Markdown."""
    lines = [
        "| base | seed | task return: base, wrapper | difference (95%) | saved | best schedule, same episodes "
        "| certified wrapper | bound, margin, episodes | queries in all |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (list(ROWS).index(row["row"]), row["seed"])):
        fresh, certificate = row["fresh"]["result"], row["certificate"]
        lines.append(
            f"| {row['env']} | {row['seed']} | {fresh['base_task_return']:.2f}, {fresh['task_return']:.2f} "
            f"| {interval(fresh['return_difference'])} | {fresh['queries_saved']['value']:.1%} | {beside(row)} "
            f"| {row['chosen'] if certificate['certified'] else 'none'} | {bound(certificate)} "
            f"| {certificate['spent']['base_queries']:,} |"
        )
    return lines


def beside(row: dict[str, Any]) -> str:
    """Return how the best schedule did."""
    if row["best_schedule"] is None:
        return "none"
    fresh = row["fresh"]["schedule"]
    return f"{row['best_schedule']}: {fresh['queries_saved']['value']:.1%}, {interval(fresh['return_difference'])}"


def interval(difference: dict[str, float]) -> str:
    """Return a difference with its interval."""
    return f"{difference['value']:+.2f} ({difference['low']:+.2f} to {difference['high']:+.2f})"


def bound(certificate: dict[str, Any]) -> str:
    """Return what was certified."""
    if not certificate["certified"]:
        return f"-, {certificate['margin']:.3g}, -"
    return f"{certificate['bound']:+.2f}, {certificate['margin']:.3g}, {certificate['episodes']:,}"


def main() -> None:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(ROWS)}; all if none is given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--margin", default=DEFAULT_MARGIN)
    parser.add_argument("--fresh", type=int, default=500, help="fresh pairs of episodes")
    parser.add_argument("--budget", type=int, help="queries of the base that a run may cost")
    parser.add_argument("--out", type=Path, default=Path("zoo.jsonl"))
    given = parser.parse_args()
    unknown = [row for row in given.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row named {unknown[0]!r}; known: {', '.join(ROWS)}")
    sys.path.insert(0, str(EXAMPLES))
    done = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    for row in given.rows or ROWS:
        for seed in range(given.seeds):
            if any((run["row"], run["seed"]) == (row, seed) for run in done):
                continue
            done.append(run(row, seed, given.margin, given.fresh, given.budget))
            with given.out.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
            print(table(done[-1:])[-1], flush=True)
    print("\n".join(table(done)))


if __name__ == "__main__":
    main()
