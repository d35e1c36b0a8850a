"""The command line: parses, calls, prints."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

import letitcook
from letitcook.cli import evaluate, front, runs, sweeps, tasks, train, wrap
from letitcook.cli.options import out
from letitcook.errors import LetItCookError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
for command in (
    tasks.tasks,
    tasks.plan,
    train.train,
    wrap.wrap,
    evaluate.evaluate,
    front.front,
    runs.watch,
    tasks.interleave,
    runs.export,
    sweeps.reproduce,
    sweeps.status,
    sweeps.report,
):
    app.command()(command)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop")] = False,
) -> None:
    """Agents that know when not to act: learn where and how long to wait without losing task performance."""
    if version:
        out.print(letitcook.__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; a user's mistake is one line and exit code 2."""
    try:
        app()
    except LetItCookError as error:
        Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {_plain(str(error))}", highlight=False)
        sys.exit(2)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
