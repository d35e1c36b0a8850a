"""Commands about sweeps: reproduce, status, report."""

from __future__ import annotations

import os
import shlex
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from letitcook.cli.options import JsonOption, out, print_json
from letitcook.cli.terminal.live import Board, live_view
from letitcook.cli.terminal.status import status_lines, status_of
from letitcook.cli.terminal.tables import LEGEND, comparison_tables
from letitcook.cli.zoo import reproduce_zoo
from letitcook.core.decisions import read_timesteps
from letitcook.errors import SettingError
from letitcook.experiments import sweep as sweeps
from letitcook.experiments.engine import Engine
from letitcook.experiments.engines import engine_named
from letitcook.experiments.jobs import warm_up
from letitcook.experiments.results import Results, read_results
from letitcook.experiments.suite_file import read_suite
from letitcook.experiments.suites import Suite, suite
from letitcook.report.compare import Comparison
from letitcook.storage import folders
from letitcook.training.progress import working

SweepArgument = Annotated[Path, typer.Argument(help="A folder that reproduce wrote", metavar="DIR")]
ReportArgument = Annotated[Path, typer.Argument(help="A folder that reproduce or wrap wrote", metavar="DIR")]


def reproduce(
    suite_name: Annotated[
        str,
        typer.Option(
            "--suite", help="smoke, discrete, continuous, paper, limit, ablation, zoo, or a TOML file of yours"
        ),
    ] = "discrete",
    rows: Annotated[
        str | None,
        typer.Option(help="Choose rows: methods, tasks or patterns, such as lexicographic,vanilla or pong/*"),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="At most that many seeds a row; the suite's if not given")] = None,
    steps: Annotated[int | None, typer.Option(help="Primitive steps a run; the suite's length if not given")] = None,
    decisions: Annotated[int | None, typer.Option(help="Decisions a run, in place of --steps")] = None,
    engine_name: Annotated[str, typer.Option("--engine", help="processes, serial or ray")] = "processes",
    address: Annotated[
        str | None, typer.Option(help="Ray cluster: auto or HOST:PORT; a local one if not given")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores if not given")] = None,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints of a run: what a kill costs at most")
    ] = sweeps.CHECKPOINT_SECONDS,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on with the sweep in --out, or refuse to")
    ] = True,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Folder for the results")] = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper's rows: train every run, compare with the paper and the exact optimum, write a report.

    A sweep that was stopped, killed or cut off goes on where it was when it is started again with the same options.

    Example: letitcook reproduce --suite discrete --out results/discrete

    Example: letitcook reproduce --suite zoo --rows 'pendulum/*' --out results/zoo
    """
    patterns = None if rows is None else [part.strip() for part in rows.split(",")]
    if suite_name == "zoo":
        given = {"steps": steps, "decisions": decisions, "address": address}
        refused = [f"--{name}" for name, value in given.items() if value is not None]
        refused += ["--engine ray"] * (engine_name == "ray")
        if refused:
            raise SettingError(f"{refused[0]} does not go with the suite zoo; leave it out")
        folder = _folder_for("zoo", out_dir, resume)
        reproduce_zoo(patterns, seeds, 1 if engine_name == "serial" else workers, folder, as_json)
        return
    chosen = _suite(suite_name).only(seeds, read_timesteps(steps, decisions), patterns)
    folder = _folder_for(chosen.name, out_dir, resume)
    engine = engine_named(engine_name, os.cpu_count() or 1 if workers is None else workers, address)
    with closing(engine), sweeps.opened(folder, chosen, _command(suite_name, rows, seeds, steps, decisions)):
        board = _carry_out(chosen, folder, engine, checkpoint_every)
        results = read_results(folder)
        facts: dict[str, Any] = {"suite": chosen.name, "runs": len(results.runs), "out": str(folder)}
        if len(results.runs):
            page, comparisons = _write_report(results)
            facts.update(rows=len(comparisons), report=str(page))
    failures = {run.id: reason for run, reason in board.failures.items()}
    if as_json:
        print_json({**facts, "failures": failures})
    elif len(results.runs):
        for table in comparison_tables(comparisons):
            out.print(table)
        out.print(LEGEND)
        out.print(
            f"{len(comparisons)} rows, {len(results.runs)} runs: {folder}/comparison.csv, {folder}/runs.csv",
            markup=False,
        )
    if failures:
        _say_failures(board)
        raise typer.Exit(1)
    if not as_json:
        out.print(str(page), highlight=False, markup=False)


def _folder_for(name: str, given: Path | None, resume: bool) -> Path:
    """Return the folder for a suite's results; where nothing is to go on, it must not be there yet."""
    folder = given or Path("results") / name
    if not resume and folder.exists():
        raise SettingError(
            f"{folder} is there already; leave out --no-resume to go on with it, or choose another --out"
        )
    return folder


def _command(suite_name: str, rows: str | None, seeds: int | None, steps: int | None, decisions: int | None) -> str:
    """Return the command that carries out the same runs, wherever and however fast."""
    said = {"suite": suite_name, "rows": rows, "seeds": seeds, "steps": steps, "decisions": decisions}
    options = [part for name, value in said.items() if value is not None for part in (f"--{name}", str(value))]
    return shlex.join(["letitcook", "reproduce", *options])


def _suite(name: str) -> Suite:
    return read_suite(Path(name)) if name.endswith(".toml") else suite(name)


def _carry_out(chosen: Suite, folder: Path, engine: Engine, checkpoint_every: float) -> Board:
    """Carry out what is not done yet, with a live view."""
    board = Board(chosen, folder, engine.slots)
    todo = [run for run in board.runs if run not in board.done]
    if todo:
        with working("preparing (the first run compiles its kernels)"):
            warm_up(todo)
    try:
        with live_view(board) as tell:
            for run, message in sweeps.sweep(chosen, folder, engine, checkpoint_every):
                tell(run, message)
    except KeyboardInterrupt:
        kept = f"stopped; {folder} keeps {len(board.done)} of {len(board.runs)} runs"
        Console(stderr=True, soft_wrap=True).print(
            f"{kept}, and the same command goes on from there", highlight=False, markup=False
        )
        raise typer.Exit(130) from None
    return board


def _write_report(results: Results) -> tuple[Path, list[Comparison]]:
    from letitcook.report.write import write_report  # its figures take long to load, and most commands do without

    with working("comparing, drawing and writing the report"):
        return write_report(results)


def _say_failures(board: Board) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"{len(board.failures)} of {len(board.runs)} runs failed; the same command tries them again:")
    for run, reason in board.failures.items():
        console.print(f"  {run.id}: {reason}", markup=False)
        console.print(f"    log: {sweeps.failure_log(board.out, run)}", markup=False)


def status(folder: SweepArgument, as_json: JsonOption = False) -> None:
    """Show how far a sweep is: rows and runs done, runs under way, failures.

    Example: letitcook status results/discrete
    """
    facts = status_of(folder)
    if as_json:
        print_json(facts)
        return
    for line in status_lines(facts):
        out.print(line, highlight=False, markup=False)


def report(folder: ReportArgument, as_json: JsonOption = False) -> None:
    """Write the report of a sweep or of a wrapper's certificate: one page that opens from disk.

    Of a sweep, what is not finished yet is left out; figures are written as PDF and PNG too. Of a wrapper, the page
    says whether it is certified, with margin, bound and episodes, how every candidate did, and what was spent.

    Example: letitcook report results/discrete
    """
    if folders.kind_of(folder) == "run":
        from letitcook.report.run_page import write_run_page

        written = write_run_page(folder)
        if as_json:
            print_json({"report": str(written), "runs": 1})
        else:
            out.print(str(written), highlight=False, markup=False)
        return
    results = read_results(folder)
    if not len(results.runs):
        raise SettingError(f"{folder} has no finished run yet; see: letitcook status {folder}")
    page, comparisons = _write_report(results)
    if as_json:
        print_json({"report": str(page), "rows": len(comparisons), "runs": len(results.runs)})
    else:
        out.print(str(page), highlight=False, markup=False)
