"""The command line: parses, calls, prints."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import letitcook
from letitcook.cli import evaluate, front, poll, recordings, runs, sweeps, tasks, train, wrap
from letitcook.cli.options import out
from letitcook.errors import LetItCookError

LOST_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EPIPE)
"""What keeps text from being written: a full disk, a closed pipe."""
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
for command in (
    tasks.tasks,
    tasks.plan,
    train.train,
    wrap.wrap,
    recordings.audit,
    recordings.record,
    evaluate.evaluate,
    front.front,
    runs.watch,
    tasks.interleave,
    poll.poll,
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no λ shows a question mark
    try:
        _run()
    except LetItCookError as error:
        _say_error(str(error))
        sys.exit(2)
    except OSError as error:
        if error.filename is not None or error.errno not in LOST_OUTPUT:
            raise
        # What is still to be written goes nowhere: it would be tried again as the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # a pipe that was closed, as by `head`, needs no word
            _say_error(f"the output cannot be written: {error.strerror}")
        sys.exit(2)


def _run() -> None:
    try:
        app()
    finally:
        sys.stdout.flush()  # while an error can still be said


def _say_error(message: str) -> None:
    with suppress(OSError):  # nobody listens
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text.assemble(("error:", "bold red"), " ", message))
