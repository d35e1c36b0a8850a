"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich import box
from rich.table import Table

from letitcook.report.compare import Comparison
from letitcook.tasks import Task

LEGEND = (
    "length/queries; ± is one standard deviation over seeds. "
    "[green]green[/]: every seed at the exact optimum of what the row optimises; "
    "[yellow]yellow[/]: worse than the paper's by what the row optimises (Welch's t-test, 5 %)."
)


def tasks_table(tasks: Iterable[Task]) -> Table:
    """Return the tasks as a table."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("task", "what", "waits of", "horizon"):
        table.add_column(name, no_wrap=name == "task", overflow="fold")
    for task in tasks:
        waits = ", ".join(str(d) for d in task.durations)
        table.add_row(task.name, f"{task.summary}\n[dim]{task.env_id}[/]", waits, str(task.horizon))
    return table


def comparison_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """Return a table for each task and mode: ours, the paper's, the exact optimum."""
    tables = []
    for (task, mode), group in groupby(comparisons, key=lambda c: (c.row.task, c.row.mode)):
        title = f"{task}, {'from scratch' if mode == 'scratch' else 'around its base policy'}"
        table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in ("method", "λ", "seeds", "ours", "paper", "exact"):
            table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True, min_width=5)
        for c in group:
            paper = c.paper
            table.add_row(
                ("lexicogr." if c.row.method == "lexicographic" else c.row.method) + (f" {c.row.variant}".rstrip()),
                "" if c.row.lam is None else f"{c.row.lam:g}",
                str(c.seeds),
                f"[{_style(c)}]{_pair(c.length, c.length_sd, c.queries, c.queries_sd)}[/]",
                _pair(paper.length, paper.length_sd, paper.queries, paper.queries_sd) if paper else "",
                "" if c.exact is None else f"{c.exact.length:g}/{_or_any(c.exact.queries)}",
            )
        tables.append(table)
    return tables


def _style(c: Comparison) -> str:
    if c.at_optimum:
        return "green"
    return "yellow" if c.verdict == "worse" else "default"


def _or_any(queries: float | None) -> str:
    return "any" if queries is None else f"{queries:g}"


def _pair(length: float, length_sd: float, queries: float, queries_sd: float) -> str:
    return f"{_number(length, length_sd)} / {_number(queries, queries_sd)}"


def _number(mean: float, sd: float) -> str:
    return f"{mean:.1f}±{sd:.1f}" if sd > 0.0 else f"{mean:g}"
