"""Publish the results of a sweep in `docs/results`, beside those that were published before.

    python docs/publish.py results/paper

A sweep over many rows may take several sittings, or several machines: the runs of this folder take the place of
published ones with the same id, and the others stay. Written are the tables, the figures and the report; the runs'
own folders are not needed afterwards.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from letitcook.experiments.results import joined, read_results, read_tables
from letitcook.report.traces import episodes_of, traces_as_data, traces_of_data
from letitcook.report.write import write_report

PUBLISHED = Path(__file__).parent / "results"
EPISODES = "episodes.json"
COMMAND = "letitcook reproduce --suite paper"


def publish(folder: Path, published: Path = PUBLISHED) -> Path:
    """Write what is finished in a sweep's folder, and what was published before; return the report's path."""
    results, kept = read_results(folder), []
    if (published / EPISODES).is_file():
        results = joined(read_tables(published, results.suite), results)
        kept = traces_of_data(json.loads((published / EPISODES).read_text(encoding="utf-8")))
    episodes = episodes_of(results, kept)
    published.mkdir(exist_ok=True)
    page, _ = write_report(
        replace(results, folder=published, suite="paper", made=replace(results.made, command=COMMAND)), episodes
    )
    (published / EPISODES).write_text(json.dumps(traces_as_data(episodes)), encoding="utf-8")
    for unused in (published / "curves.csv", *published.glob("figures/*.pdf")):  # large, and in the Parquet and PNG
        unused.unlink(missing_ok=True)
    return page


if __name__ == "__main__":
    print(publish(Path(sys.argv[1])))
