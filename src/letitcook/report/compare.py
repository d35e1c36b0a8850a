"""Ours, the paper's, and the best possible, side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from letitcook.experiments.jobs import Exact
from letitcook.experiments.results import ROW, Results
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.report.reasons import known_reason
from letitcook.report.statistics import estimate, probability_as_good
from letitcook.report.verdicts import Difference, Sample, difference, value_of, verdict_of
from letitcook.storage import folders
from letitcook.tasks import TASKS, task_named


@dataclass(frozen=True)
class Comparison:
    """One row: means and standard deviations over seeds, beside the paper's and the exact optimum."""

    row: Row
    seeds: int
    length: float
    length_sd: float
    queries: float
    queries_sd: float
    value: float
    """What the row optimises first: task return, or task return - λ queries."""
    value_sd: float
    paper: PaperRow | None
    exact: Exact | None
    length_interval: tuple[float, float] | None = None
    queries_interval: tuple[float, float] | None = None
    """95% bootstrap intervals of the means over seeds."""
    as_good: float | None = None
    """Probability that ours is at least as good as the paper's, task return first."""

    @cached_property
    def length_difference(self) -> Difference | None:
        """Ours minus the paper's; None if the paper has no such row."""
        if self.paper is None:
            return None
        ours = Sample(self.length, self.length_sd, self.seeds)
        return difference(ours, Sample(self.paper.length, self.paper.length_sd, self.paper.n))

    @cached_property
    def queries_difference(self) -> Difference | None:
        """Ours minus the paper's; None if the paper has no such row."""
        if self.paper is None:
            return None
        ours = Sample(self.queries, self.queries_sd, self.seeds)
        return difference(ours, Sample(self.paper.queries, self.paper.queries_sd, self.paper.n))

    @cached_property
    def verdict(self) -> str:
        """How the row stands beside the paper's, a key of `VERDICTS`."""
        if self.paper is None or self.length_difference is None or self.queries_difference is None:
            return "new"
        optimised = [(self._value_difference(self.paper), 1.0)]
        if self.row.method == "lexicographic":
            optimised.append((self.queries_difference, -1.0))
        return verdict_of(self.length_difference, self.queries_difference, tuple(optimised))

    def _value_difference(self, paper: PaperRow) -> Difference:
        """Compare what the row optimises first; the paper's spread of it is that of independent length and queries."""
        row, price = self.row, (self.row.lam or 0.0) if self.row.method == "scalar" else 0.0
        theirs = value_of(row.method, row.lam, row.task, paper.length, paper.queries)
        spread = math.hypot(paper.length_sd, price * paper.queries_sd)
        return difference(Sample(self.value, self.value_sd, self.seeds), Sample(theirs, spread, paper.n))

    @property
    def at_optimum(self) -> bool:
        """Whether every seed of the row reached the exact optimum of what it optimises."""
        if self.exact is None or self.value_sd > 0.0:
            return False
        best = value_of(self.row.method, self.row.lam, self.row.task, self.exact.length, self.exact.queries or 0.0)
        if self.row.method == "lexicographic" and (self.queries != self.exact.queries or self.queries_sd > 0.0):
            return False
        return math.isclose(self.value, best, abs_tol=1e-9)

    @property
    def reason(self) -> str:
        """Why the row is not as in the paper, as far as it is known; empty if it is."""
        if self.verdict in ("same", "new"):
            return ""
        if self.row.lam == 0.0 and self.length_difference and not self.length_difference.told_apart:
            return "at λ = 0 any number of queries is optimal, and which one comes out is a matter of ties"
        if self.at_optimum and self.verdict == "better":
            return "ours is the exact optimum in every seed, which the paper's runs did not reach"
        return known_reason(self.row)


def compare(results: Results) -> list[Comparison]:
    """Return a comparison for each row: task by task, mode by mode, then in the paper's order."""
    found = {Row(*key): group for key, group in results.runs.group_by(ROW, maintain_order=True)}
    return [_compared(row, found[row], results.optima.get(row)) for row in sorted(found, key=_place)]


def _place(row: Row) -> tuple[int, str, int, float, str]:
    published = {paper: n for n, paper in enumerate(paper_rows())}
    place = published.get(replace(row, variant=""), len(published))
    return list(TASKS).index(row.task), row.mode, place, row.lam or 0.0, row.variant


def _compared(row: Row, runs: pl.DataFrame, optimum: Exact | None) -> Comparison:
    paper = paper_rows().get(row)
    length, queries = estimate(runs["length"].to_numpy()), estimate(runs["queries"].to_numpy())
    price = (row.lam or 0.0) if row.method == "scalar" else 0.0
    value = task_named(row.task).return_per_step * runs["length"] - price * runs["queries"]
    return Comparison(
        row=row,
        seeds=len(runs),
        length=length.mean,
        length_sd=length.sd,
        queries=queries.mean,
        queries_sd=queries.sd,
        value=float(value.mean()),  # type: ignore[arg-type]
        value_sd=float(value.std() or 0.0),  # type: ignore[arg-type]
        paper=paper,
        exact=optimum,
        length_interval=(length.low, length.high),
        queries_interval=(queries.low, queries.high),
        as_good=None if paper is None else probability_as_good(runs["length"], runs["queries"], paper),
    )


def comparison_frame(comparisons: Iterable[Comparison]) -> pl.DataFrame:
    """Return a row for each comparison."""
    rows = []
    for c in comparisons:
        paper = c.paper
        length_low, length_high = c.length_interval or (None, None)
        queries_low, queries_high = c.queries_interval or (None, None)
        rows.append(
            {
                "task": c.row.task,
                "mode": c.row.mode,
                "method": c.row.method,
                "lambda": c.row.lam,
                "variant": c.row.variant,
                "seeds": c.seeds,
                "length_mean": c.length,
                "length_sd": c.length_sd,
                "length_low": length_low,
                "length_high": length_high,
                "queries_mean": c.queries,
                "queries_sd": c.queries_sd,
                "queries_low": queries_low,
                "queries_high": queries_high,
                "paper_length_mean": paper.length if paper else None,
                "paper_length_sd": paper.length_sd if paper else None,
                "paper_queries_mean": paper.queries if paper else None,
                "paper_queries_sd": paper.queries_sd if paper else None,
                "paper_seeds": paper.n if paper else None,
                **_difference_columns("length", c.length_difference),
                **_difference_columns("queries", c.queries_difference),
                "exact_length": c.exact.length if c.exact else None,
                "exact_queries": c.exact.queries if c.exact else None,
                "at_optimum": c.at_optimum,
                "as_good_as_paper": c.as_good,
                "verdict": c.verdict,
                "reason": c.reason,
            }
        )
    other = ("task", "mode", "method", "variant", "seeds", "paper_seeds", "at_optimum", "verdict", "reason")
    return pl.DataFrame(rows, schema_overrides={name: pl.Float64 for name in rows[0] if name not in other})


def _difference_columns(name: str, found: Difference | None) -> dict[str, float | None]:
    low, high, p = (None, None, None) if found is None else (found.low, found.high, found.p)
    return {f"{name}_difference_low": low, f"{name}_difference_high": high, f"{name}_p": p}


def write_comparison(results: Results, comparisons: Iterable[Comparison]) -> None:
    """Write `comparison.csv` into the sweep's folder."""
    folders.write_file(results.folder / "comparison.csv", comparison_frame(comparisons).write_csv().encode())
