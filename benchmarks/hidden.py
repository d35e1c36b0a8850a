"""What it costs not to see the clock, and what a memory gets back: exact optima, LQ with and without a memory.

    python benchmarks/hidden.py price                    the exact price of not seeing, all tasks (a minute)
    python benchmarks/hidden.py fixed [--seeds 10]       LQ, hidden clocks of fixed durations (minutes)
    python benchmarks/hidden.py random [--seeds 10]      LQ, hidden clocks of random durations, and the belief optimum

Lines are JSON, one for each run; `--out FILE` appends them to a file.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import Any

from letitcook import enumerate_env, learn, make, plan
from letitcook.finite.recall import sufficient_memory

MIDDLE = {"cook": 18, "cook-longer": 36, "cook-twice": 18, "coffee": 18}
ARGUMENT = {"cook": "cook_time", "cook-longer": "cook_time", "cook-twice": "cook_time", "coffee": "brew_time"}
STEPS = {"cook": 1_200_000, "cook-longer": 2_400_000, "cook-twice": 2_400_000, "coffee": 5_000_000}
WRAPPED_STEPS = 300_000
RANDOM = {"slack": 0.1, "epsilon": 0.05}
"""Settings for random durations: what is random is known only so well, so more decisions count as equally good; and
values that begin above the truth explore by themselves, so that fewer random decisions are needed."""
HORIZON = 200
WITHOUT = 3
"""Seeds of runs without a memory."""
FIRST_SEED = 100
"""Seeds that no setting was chosen with."""


def times(task: str) -> dict[str, Any]:
    """Return the durations that are compared, by name."""
    m = MIDDLE[task]
    return {
        "fixed": (m,),
        "±1": (m - 1, m, m + 1),
        "±2, ±4": tuple(m + d for d in (-4, -2, 0, 2, 4)),
        "±8": tuple(range(m - 8, m + 9)),
    }


def price() -> list[dict[str, Any]]:
    """Return the exact optima, with the clock seen and hidden."""
    rows = []
    for task in MIDDLE:
        for mode in ("scratch", "wrap"):
            for name, durations in times(task).items():
                best = [
                    plan(make(task, mode, hidden=hidden, **{ARGUMENT[task]: durations})) for hidden in (False, True)
                ]
                seen, hidden = ({"length": b.length, "queries": b.queries} for b in best)
                rows.append(
                    {
                        "task": task,
                        "mode": mode,
                        "durations": name,
                        "seen": seen,
                        "hidden": hidden,
                        "beliefs": best[1].beliefs,
                    }
                )
                print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    return rows


@cache
def world(task: str, mode: str, durations: Any, hidden: bool) -> tuple[Any, Any, Any]:
    """Return the environment, its exact optimum, and the memory that suffices."""
    env = make(task, mode, hidden=hidden, **{ARGUMENT[task]: durations})
    memory = sufficient_memory(enumerate_env(env), env.decisions, env.observation_space, HORIZON) if hidden else None
    return env, plan(env), memory


def exact_means(env: Any, policy: Any) -> tuple[float, float]:
    """Return the mean length and queries of a policy over everything that can happen, without drawing episodes."""
    tables, durations, actions = enumerate_env(env), env.decisions.durations_of, env.decisions.actions_of
    open_ends = [(float(p), int(s), None, 0) for p, s in zip(tables.start_probability, tables.start_state, strict=True)]
    length = queries = 0.0
    while open_ends:
        p, s, remembered, t = open_ends.pop()
        u, remembered = policy.predict(tables.observations[s], remembered)
        reached = [(p, s)]
        queries += p
        last = min(t + int(durations[u]), HORIZON)
        while t < last:
            length += sum(q for q, _ in reached)
            reached = [(q * r, after) for q, s in reached for r, after in _following(tables, s, int(actions[u]))]
            t += 1
        open_ends += [(q, s, remembered, t) for q, s in reached if t < HORIZON]
    return length, queries


def _following(tables: Any, s: int, action: int) -> list[tuple[float, int]]:
    """Return probabilities and states that follow, without the end."""
    at = slice(tables.offsets[s * tables.n_actions + action], tables.offsets[s * tables.n_actions + action + 1])
    pairs = zip(tables.probability[at].tolist(), tables.next_state[at].tolist(), strict=True)
    return [(p, after) for p, after in pairs if after != tables.end]


def trained(task: str, mode: str, durations: Any, hidden: bool, remembers: bool, seed: int) -> dict[str, Any]:
    """Return what one run reached, and after how many steps an evaluation first showed the exact numbers."""
    env, best, memory = world(task, mode, durations, hidden)
    fixed = len(durations) == 1
    steps = (STEPS[task] if mode == "scratch" else WRAPPED_STEPS) * (1 if fixed else 2 if mode == "scratch" else 4)
    settings, remembered = {} if fixed else RANDOM, memory if remembers else None
    result = learn(env, steps=steps, seed=seed, preset="exact", settings=settings, memory=remembered, progress=False)
    length, queries = exact_means(env, result.policy)
    first = next(
        (p.step for p in result.curve if p.length <= best.length + 1e-9 and p.queries <= best.queries + 1e-9), None
    )
    return {
        "task": task,
        "mode": mode,
        "durations": list(durations),
        "hidden": hidden,
        "memory": remembers,
        "seed": seed,
        "length": length,
        "queries": queries,
        "exact": [best.length, best.queries],
        "steps_to_exact": first,
        "steps": steps,
    }


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["price", "fixed", "random"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tasks", default=",".join(MIDDLE))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.what == "price":
        lines = price()
        if given.out is not None:
            given.out.write_text(
                "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
            )
        return
    # Fixed durations beside the clock seen; random ones beside the optimum over beliefs.
    compared = [(False, False), (True, True), (True, False)] if given.what == "fixed" else [(True, True), (True, False)]
    for task in given.tasks.split(","):
        durations = times(task)["fixed" if given.what == "fixed" else "±2, ±4"]
        for mode in ("scratch", "wrap"):
            for hidden, remembers in compared:
                for seed in range(FIRST_SEED, FIRST_SEED + (given.seeds if remembers or not hidden else WITHOUT)):
                    line = json.dumps(trained(task, mode, durations, hidden, remembers, seed))
                    print(line, flush=True)
                    if given.out is not None:
                        with given.out.open("a", encoding="utf-8") as file:
                            file.write(line + "\n")


if __name__ == "__main__":
    main()
