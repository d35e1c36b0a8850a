"""Results of the suite `zoo`: a line for each row with its spread over seeds, and every run as a table of numbers."""

from __future__ import annotations

import csv
import io
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Runs = Sequence[Mapping[str, Any]]

WRAPPED = (
    "row",
    "seeds",
    "certified",
    "saved",
    "best schedule saves",
    "return: base",
    "difference",
    "within the margin: yes, open, no",
    "rare failures",
    "queries spent",
)
SCRATCH = ("row", "seeds", "return", "steps", "queries", "steps queried")


def zoo_tables(runs: Runs) -> list[str]:
    """Return the results as lines of Markdown, wrapped rows first: the median over seeds, and the range.

    >>> run = {"row": "taxi/scratch", "seed": 0, "task_return": 7.9, "length": 13.0, "queries": 9.1, "steps": 100}
    >>> zoo_tables([run])[-1]
    '| taxi/scratch | 1 | 7.9 | 13.0 | 9.1 | 70.0% |'
    """
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run in runs:
        rows[run["row"]].append(run)
    lines: list[str] = []
    for names, cells, wrapped in ((WRAPPED, _wrapped, True), (SCRATCH, _scratch, False)):
        chosen = {name: found for name, found in rows.items() if ("certificate" in found[0]) == wrapped}
        if chosen:
            lines += [""] * bool(lines) + [_line(names), "|" + "---|" * len(names)]
            lines += [_line([name, str(len(found)), *cells(found)]) for name, found in chosen.items()]
    return lines


def fresh_verdict(run: Mapping[str, Any]) -> str:
    """Return whether fresh episodes show that a wrapper keeps within its margin: yes, no, or open.

    >>> fresh = {"result": {"return_difference": {"low": -3.0, "high": 5.0}}}
    >>> fresh_verdict({"certificate": {"margin": 2.0}, "fresh": fresh})
    'open'
    """
    margin, difference = run["certificate"]["margin"], run["fresh"]["result"]["return_difference"]
    return "yes" if difference["low"] > -margin else "no" if difference["high"] < -margin else "open"


def zoo_csv(runs: Runs) -> str:
    """Return every run as a line of CSV."""
    lines = [_flat(run) for run in runs]
    names = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _flat(run: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: run[name] for name in ("row", "env", "seed", "seconds")}
    if "certificate" not in run:
        return flat | {name: run[name] for name in ("steps", "task_return", "length", "queries")}
    certificate, fresh = run["certificate"], run["fresh"]
    flat |= {"chosen": run["chosen"], "best_schedule": run["best_schedule"]}
    flat |= {name: certificate.get(name) for name in ("certified", "margin", "bound", "episodes")}
    flat |= {"spent_queries": certificate["spent"]["base_queries"], "within_margin": fresh_verdict(run)}
    for name, savings in fresh.items():
        difference, saved = savings["return_difference"], savings["queries_saved"]
        flat |= {f"{name}_difference": difference["value"], f"{name}_saved": saved["value"]}
        flat |= {f"{name}_difference_low": difference["low"], f"{name}_difference_high": difference["high"]}
    return flat | {"base_task_return": fresh["result"]["base_task_return"], "failures": _failures(run)}


def _failures(run: Mapping[str, Any]) -> int:
    """Return in how many fresh episodes the wrapper failed and its base did not."""
    return int(run["fresh"]["result"]["certificate"]["failed"])


def _wrapped(runs: Runs) -> list[str]:
    results = [run["fresh"]["result"] for run in runs]
    schedules = [run["fresh"].get("schedule") for run in runs]
    verdicts = [fresh_verdict(run) for run in runs]
    return [
        f"{sum(run['certificate']['certified'] for run in runs)} of {len(runs)}",
        _spread((each["queries_saved"]["value"] for each in results), ".1%"),
        _spread((each["queries_saved"]["value"] if each else 0.0 for each in schedules), ".1%"),
        _spread((each["base_task_return"] for each in results), ".2f"),
        _spread((each["return_difference"]["value"] for each in results), "+.2f"),
        ", ".join(str(verdicts.count(each)) for each in ("yes", "open", "no")),
        str(sum(_failures(run) for run in runs)),
        _spread((run["certificate"]["spent"]["base_queries"] for run in runs), ",.0f"),
    ]


def _scratch(runs: Runs) -> list[str]:
    return [
        *(_spread((run[name] for run in runs), ".1f") for name in ("task_return", "length", "queries")),
        _spread((run["queries"] / run["length"] for run in runs), ".1%"),
    ]


def _spread(values: Iterable[float], form: str) -> str:
    """Return the median, and the range where there is one."""
    found = sorted(values)
    middle, low, high = (f"{each:{form}}" for each in (statistics.median(found), found[0], found[-1]))
    return middle if low == high else f"{middle} ({low} to {high})"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
