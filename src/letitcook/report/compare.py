"""Ours, the paper's, and the best possible, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from letitcook import files
from letitcook.envs import TASKS
from letitcook.experiments.results import Results
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.experiments.work import Exact
from letitcook.report.statistics import ROW, estimate, probability_as_good


@dataclass(frozen=True)
class Comparison:
    """One row: means and standard deviations over seeds, beside the paper's and the exact optimum."""

    row: Row
    seeds: int
    length: float
    length_sd: float
    queries: float
    queries_sd: float
    paper: PaperRow | None
    exact: Exact | None
    length_interval: tuple[float, float] | None = None
    queries_interval: tuple[float, float] | None = None
    """95% bootstrap intervals of the means over seeds."""
    as_good: float | None = None
    """Probability that ours is at least as good as the paper's, task return first."""


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
    return Comparison(
        row=row,
        seeds=len(runs),
        length=length.mean,
        length_sd=length.sd,
        queries=queries.mean,
        queries_sd=queries.sd,
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
                "exact_length": c.exact.length if c.exact else None,
                "exact_queries": c.exact.queries if c.exact else None,
                "as_good_as_paper": c.as_good,
            }
        )
    texts = ("task", "mode", "method", "variant", "seeds")
    return pl.DataFrame(rows, schema_overrides={name: pl.Float64 for name in rows[0] if name not in texts})


def write_comparison(results: Results, comparisons: Iterable[Comparison]) -> None:
    """Write `comparison.csv` into the sweep's folder."""
    files.write_file(results.folder / "comparison.csv", comparison_frame(comparisons).write_csv().encode())
