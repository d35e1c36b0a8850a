"""The command that says when to look whether a job is done: poll."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from letitcook.cli.options import JsonOption, out, print_json
from letitcook.poll import (
    Costs,
    Distribution,
    Expected,
    Schedule,
    back_off,
    estimate,
    every,
    exact_schedule,
    expected,
    read_csv,
)

INTERVALS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Fixed intervals that are compared, in medians of the durations."""
FACTORS = (1.25, 1.5, 2.0, 3.0)
"""Factors of exponential back-off that are compared; the first wait is the best of `FIRST`."""
FIRST = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SHOWN = 12
"""Checks that are printed."""


def poll(
    durations: Annotated[Path, typer.Argument(help="A CSV file of past durations; 120+ is censored", metavar="FILE")],
    check_cost: Annotated[float, typer.Option("--check-cost", help="What a check costs")] = 1.0,
    lateness_cost: Annotated[
        float | None,
        typer.Option("--lateness-cost", help="What it costs to find the job done a second late; 20 checks a median"),
    ] = None,
    cache_seconds: Annotated[
        float | None, typer.Option("--cache-seconds", help="A check after a longer wait costs --cache-cost more")
    ] = None,
    cache_cost: Annotated[float, typer.Option("--cache-cost", help="What a check costs more after such a wait")] = 0.0,
    prior: Annotated[float, typer.Option("--prior", help="How many durations the prior is worth")] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Compute when to check a job, from how long such jobs took before.

    Example: letitcook poll durations.csv --check-cost 1 --lateness-cost 0.05
    """
    log = read_csv(durations)
    known = estimate(log, prior)
    median = known.quantile(0.5)
    late = 20.0 * check_cost / median if lateness_cost is None else lateness_cost
    costs = Costs(check_cost, late, cache_seconds, cache_cost)
    best = exact_schedule(known, costs)
    rows = [("exact schedule", expected(best, known, costs)), *_others(known, costs, median)]
    if as_json:
        facts: dict[str, Any] = {
            "durations": len(log.values),
            "censored": int(log.censored.sum()),
            "median": median,
            "check_cost": check_cost,
            "lateness_cost": late,
            "times": list(best.times),
            "expected": {name: vars(numbers) for name, numbers in rows},
        }
        print_json(facts)
        return
    said = f"{len(log.values)} durations" + (f", {log.censored.sum()} of them censored" if log.censored.any() else "")
    out.print(f"[bold]{durations.name}[/]: {said}; median {median:.4g}", highlight=False)
    shown = ", ".join(f"{time:.4g}" for time in best.times[:SHOWN]) + (", ..." if len(best.times) > SHOWN else "")
    out.print(f"check at {shown}\n", highlight=False)
    out.print(_table(rows, costs))


def _others(known: Distribution, costs: Costs, median: float) -> list[tuple[str, Expected]]:
    """Return what fixed intervals and exponential back-off are expected to come to, by name."""
    rows = [(f"every {part * median:.4g}", expected(every(part * median), known, costs)) for part in INTERVALS]
    for factor in FACTORS:
        tried: list[Schedule] = [back_off(part * median, factor) for part in FIRST]
        found = min(tried, key=lambda one: expected(one, known, costs).cost)
        rows.append((f"from {found.times[0]:.4g}, times {factor:g}", expected(found, known, costs)))
    return rows


def _table(rows: list[tuple[str, Expected]], costs: Costs) -> Table:
    title = f"expected of a job, at {costs.check:g} a check and {costs.lateness:.4g} a second late"
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("")
    for name in ("checks", "seconds late", "cost", "of the best"):
        table.add_column(name, justify="right")
    for name, numbers in rows:
        share = numbers.cost / rows[0][1].cost
        table.add_row(name, f"{numbers.checks:.2f}", f"{numbers.lateness:.4g}", f"{numbers.cost:.3f}", f"{share:.2f}")
    return table
