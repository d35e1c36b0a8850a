"""Ours, the paper's, and the best possible, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from letitcook import files
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.experiments.sweep import Exact, Result


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


def compare(results: Iterable[Result], optima: Mapping[Row, Exact]) -> list[Comparison]:
    """Return a comparison for each row, in the paper's order."""
    by_row: dict[Row, list[Result]] = {}
    for result in results:
        by_row.setdefault(result.run.row, []).append(result)
    place = {row: n for n, row in enumerate(paper_rows())}
    rows = sorted(by_row, key=lambda row: (place.get(row, len(place)), row.id))
    return [_compared(row, by_row[row], optima.get(row)) for row in rows]


def _compared(row: Row, results: list[Result], optimum: Exact | None) -> Comparison:
    lengths = np.array([result.length for result in results])
    queries = np.array([result.queries for result in results])
    many = len(results) > 1
    return Comparison(
        row=row,
        seeds=len(results),
        length=float(lengths.mean()),
        length_sd=float(lengths.std(ddof=1)) if many else 0.0,
        queries=float(queries.mean()),
        queries_sd=float(queries.std(ddof=1)) if many else 0.0,
        paper=paper_rows().get(row),
        exact=optimum,
    )


def runs_frame(results: Iterable[Result]) -> pl.DataFrame:
    """Return a row for each run, sorted by id."""
    rows = [
        {
            "task": r.run.row.task,
            "mode": r.run.row.mode,
            "method": r.run.row.method,
            "lambda": r.run.row.lam,
            "seed": r.run.seed,
            "length": r.length,
            "queries": r.queries,
            "best_step": r.best_step,
        }
        for r in results
    ]
    schema = {"lambda": pl.Float64, "length": pl.Float64, "queries": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=schema).sort("task", "mode", "method", "lambda", "seed")


def comparison_frame(comparisons: Iterable[Comparison]) -> pl.DataFrame:
    """Return a row for each comparison."""
    rows = []
    for c in comparisons:
        paper = c.paper
        rows.append(
            {
                "task": c.row.task,
                "mode": c.row.mode,
                "method": c.row.method,
                "lambda": c.row.lam,
                "seeds": c.seeds,
                "length_mean": c.length,
                "length_sd": c.length_sd,
                "queries_mean": c.queries,
                "queries_sd": c.queries_sd,
                "paper_length_mean": paper.length if paper else None,
                "paper_length_sd": paper.length_sd if paper else None,
                "paper_queries_mean": paper.queries if paper else None,
                "paper_queries_sd": paper.queries_sd if paper else None,
                "exact_length": c.exact.length if c.exact else None,
                "exact_queries": c.exact.queries if c.exact else None,
            }
        )
    numbers = [name for name in rows[0] if name not in ("task", "mode", "method", "seeds")]
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(numbers, pl.Float64))


def write_results(out: Path, results: Iterable[Result], comparisons: Iterable[Comparison]) -> None:
    """Write `runs.csv` and `comparison.csv`."""
    files.write_text(out / "runs.csv", runs_frame(results).write_csv())
    files.write_text(out / "comparison.csv", comparison_frame(comparisons).write_csv())
