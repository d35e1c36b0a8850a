"""The suite `zoo` of the command reproduce."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from letitcook.cli.options import out, print_json
from letitcook.errors import SettingError
from letitcook.experiments import zoo
from letitcook.experiments.zoo import ZooRow
from letitcook.report.zoo_table import zoo_csv, zoo_tables
from letitcook.storage import folders
from letitcook.training.progress import phases


def reproduce_zoo(
    patterns: Sequence[str] | None, seeds: int | None, workers: int | None, folder: Path, as_json: bool
) -> None:
    """Carry out the rows of the zoo that can be run here, and write and print their table."""
    for name, number in (("seeds", seeds), ("workers", workers)):
        if number is not None and number < 1:
            raise SettingError(f"{name} = {number} is not allowed; give at least 1")
    rows = zoo.chosen_rows(patterns)
    zoo.opened(folder)
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    with folders.claimed(folder, "zoo"):
        missing = {row.name: reason for row in rows if (reason := row.lacks(folder)) is not None}
        for name, reason in missing.items():
            console.print(f"{name} is left out: {reason}", markup=False)
        rows = [row for row in rows if row.name not in missing]
        failures = _carry_out(rows, seeds or zoo.SEEDS, folder, workers or os.cpu_count() or 1)
        runs = zoo.finished_runs(folder)
        table = "\n".join(zoo_tables(runs)) + "\n"
        folders.write_file(folder / "zoo.csv", zoo_csv(runs).encode())
        folders.write_file(folder / "zoo.md", table.encode())
    if as_json:
        print_json({"suite": "zoo", "runs": len(runs), "out": str(folder), "left_out": missing, "failures": failures})
    else:
        out.print(table, highlight=False, markup=False, soft_wrap=True, end="")
        out.print(f"{len(runs)} runs: {folder}/zoo.csv, {folder}/zoo.md", highlight=False, markup=False)
    if failures:
        console.print(f"{len(failures)} runs failed; the same command tries them again:")
        for name, reason in failures.items():
            console.print(f"  {name}: {reason}", markup=False)
        raise typer.Exit(1)


def _carry_out(rows: Sequence[ZooRow], seeds: int, folder: Path, workers: int) -> dict[str, str]:
    """Carry out what is not done yet, with a progress line; returns what failed, and why."""
    failures: dict[str, str] = {}
    todo = zoo.unfinished(rows, seeds, folder)
    try:
        with phases() as show:
            show("runs", 0, len(todo))
            for ended, (name, reason) in enumerate(zoo.run_zoo(todo, folder, workers), 1):
                show("runs", ended, len(todo))
                if reason is not None:
                    failures[name] = reason
    except KeyboardInterrupt:
        said = f"stopped; {folder} keeps what is finished, and the same command goes on from there"
        Console(stderr=True, soft_wrap=True).print(said, highlight=False, markup=False)
        raise typer.Exit(130) from None
    return failures
