"""Publish the results of a sweep in `docs/results`, beside those that were published before.

    python docs/publish.py results/paper

A sweep over many rows may take several sittings, or several machines: the runs of this folder take the place of
published ones with the same id, and the others stay. Where a task was now run with other settings, its older rows are
marked as those of an earlier version of the preset, until they are run anew: within a row the two are not mixed.
Written are the tables, the figures, the report, and the page `docs/results.md` that leads to them; the runs' own
folders are not needed afterwards.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from letitcook.experiments.results import ROW, VARIES, Results, joined, read_results, read_tables
from letitcook.experiments.suites import Row, paper_rows
from letitcook.report.compare import Comparison
from letitcook.report.figures import CAPTIONS
from letitcook.report.markup import label_of, number
from letitcook.report.traces import episodes_of, traces_as_data, traces_of_data
from letitcook.report.verdicts import VERDICTS
from letitcook.report.write import write_report
from letitcook.tasks import task_named

PUBLISHED = Path(__file__).parent / "results"
EPISODES = "episodes.json"
COMMAND = "letitcook reproduce --suite paper"
EARLIER = "paper, earlier version"
"""Preset of published runs that were made with other settings than preset `paper` has now."""


def publish(folder: Path, published: Path = PUBLISHED) -> Path:
    """Write what is finished in a sweep's folder, and what was published before; return the report's path."""
    results, kept = read_results(folder), []
    if (published / EPISODES).is_file():
        older, outdated = _beside(read_tables(published, results.suite), results)
        results = joined(older, results)
        kept = traces_of_data(json.loads((published / EPISODES).read_text(encoding="utf-8")))
        kept = [named for named in kept if named.source.partition("/")[0] not in outdated]
    episodes = episodes_of(results, kept)
    published.mkdir(exist_ok=True)
    made = replace(results.made, command=COMMAND)
    page, comparisons = write_report(replace(results, folder=published, suite="paper", made=made), episodes)
    published.with_suffix(".md").write_text(results_page(results, comparisons), encoding="utf-8")
    (published / EPISODES).write_text(json.dumps(traces_as_data(episodes)), encoding="utf-8")
    for unused in (published / "curves.csv", *published.glob("figures/*.pdf")):  # large, and in the Parquet and PNG
        unused.unlink(missing_ok=True)
    return page


def _beside(older: Results, newer: Results) -> tuple[Results, set[str]]:
    """Return the older results that may stand beside newer ones, and the tasks that were now run with other settings.

    Within a row, runs of two versions of a preset are not mixed: a row that is run anew loses its outdated runs.
    Others of its task stay, as those of an earlier version, until they are run anew too.
    """

    def differ(task: str) -> bool:
        held, now = older.made.settings[task], newer.made.settings[task]
        return any(VARIES not in (held[name], now[name]) and held[name] != now[name] for name in set(held) & set(now))

    outdated = {task for task in set(older.made.settings) & set(newer.made.settings) if differ(task)}
    is_outdated = pl.col("task").is_in(sorted(outdated))
    runs = older.runs.with_columns(pl.when(is_outdated).then(pl.lit(EARLIER)).otherwise("preset").alias("preset"))
    anew = runs.join(newer.runs.select(ROW).unique(), on=ROW, how="semi", nulls_equal=True)
    runs = runs.join(anew.filter(preset=EARLIER).select("id"), on="id", how="anti")
    curves = older.curves.join(runs.select("id"), on="id", how="semi")
    settings = {task: held for task, held in older.made.settings.items() if task not in outdated}
    return replace(older, runs=runs, curves=curves, made=replace(older.made, settings=settings)), outdated


def results_page(results: Results, comparisons: Sequence[Comparison]) -> str:
    """Return the page of the documentation that tells what was run, and what came of it."""
    known = [c for c in comparisons if c.paper is not None]
    run = {c.row for c in known}
    earlier = {Row(*key) for key in results.runs.filter(preset=EARLIER).select(ROW).unique().iter_rows()}
    missing = [f"{row.task}/{row.method}/{row.mode}" for row in paper_rows() if row not in run]
    parts = [
        "# Results: the paper's rows, run\n",
        f"{len(known)} of the paper's {len(paper_rows())} rows, {len(results.runs):,} runs with preset `paper`"
        + (f"; {len(earlier)} rows, marked °, are still of an earlier version of it" if earlier else "")
        + ". "
        "[The report](results/report.html) has every number, all figures, and episodes to play; "
        "[comparison.csv](results/comparison.csv) and [runs.csv](results/runs.csv) are its tables. "
        "[Fidelity](fidelity.md) tells what was decided where the paper says nothing.\n",
        f"    {COMMAND} --out results/paper\n    python docs/publish.py results/paper\n",
        "A row is `same` if Welch's t-tests tell neither its length nor its queries apart from the paper's, at a level "
        "of 5% for both together; else it is better or worse by what the row optimises, or another trade-off of the "
        "same value. With few seeds a test is weak: the report has the intervals.\n",
        _counts(known),
        "## Lexicographic and vanilla rows\n",
        _table([c for c in known if c.row.method != "scalar"], earlier),
        "## Scalarised rows\n",
        _table([c for c in known if c.row.method == "scalar"], earlier),
        "## Rows that differ, and why\n",
        *[f"- `{c.row.id}`, {VERDICTS[c.verdict][1]}: {c.reason}" for c in known if c.verdict != "same"],
    ]
    if missing:
        parts += ["\n## Not run yet\n", ", ".join(f"`{rows}` ({n})" for rows, n in Counter(missing).items())]
    shown = [name for name in ("methods-scratch", "methods-wrap", "wait-durations") if name in CAPTIONS]
    parts += ["\n## Figures\n", *[f"![{CAPTIONS[name]}](results/figures/{name}.png)\n" for name in shown]]
    return "\n".join(parts).rstrip() + "\n"


def _counts(comparisons: Sequence[Comparison]) -> str:
    """Return how many rows have each verdict, of the finite tasks and of the others."""
    halves = {True: "tables", False: "networks"}
    lines = [
        f"| | {' | '.join(VERDICTS[name][1] for name in list(VERDICTS)[:4])} | rows |",
        "|---|---|---|---|---|---|",
    ]
    for finite, name in halves.items():
        verdicts = Counter(c.verdict for c in comparisons if task_named(c.row.task).finite == finite)
        lines.append(f"| {name} | {' | '.join(str(verdicts[v]) for v in list(VERDICTS)[:4])} | {verdicts.total()} |")
    return "\n".join(lines) + "\n"


def _table(comparisons: Sequence[Comparison], earlier: Collection[Row]) -> str:
    """Return rows as a table: ours, the paper's, the exact optimum, the verdict; those of an earlier version marked."""
    lines = ["| row | seeds | length / queries | paper | exact | |", "|---|---|---|---|---|---|"]
    for c in comparisons:
        assert c.paper is not None
        name = f"{task_named(c.row.task).title}, {label_of(c)}{', wrapped' if c.row.mode == 'wrap' else ''}"
        name += " °" if c.row in earlier else ""
        ours = f"{_mean(c.length, c.length_sd)} / {_mean(c.queries, c.queries_sd)}"
        paper = f"{_mean(c.paper.length, c.paper.length_sd)} / {_mean(c.paper.queries, c.paper.queries_sd)}"
        queries = "any" if c.exact is None or c.exact.queries is None else number(c.exact.queries)
        exact = "" if c.exact is None else f"{number(c.exact.length)} / {queries}"
        lines.append(f"| {name} | {c.seeds} | {ours} | {paper} | {exact} | {VERDICTS[c.verdict][0]} |")
    return "\n".join(lines) + "\n"


def _mean(mean: float, sd: float) -> str:
    return number(mean, sd or 1.0) + (f"±{number(sd, sd)}" if sd else "")


if __name__ == "__main__":
    print(publish(Path(sys.argv[1])))
