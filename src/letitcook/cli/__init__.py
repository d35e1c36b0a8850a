"""The command line: parses, calls, prints."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import letitcook
from letitcook.errors import LetItCookError

LOST_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EPIPE)
"""What keeps text from being written: a full disk, a closed pipe."""
COMMANDS = {
    "tasks": ("tasks", "List the tasks."),
    "plan": ("tasks", "Compute the exact optimum of a finite task, with or without seeing its clock."),
    "train": ("train", "Learn where and how long to wait in a task, or with --env in any environment of Gymnasium."),
    "wrap": (
        "wrap",
        "Learn when a policy need not be queried, certify that no more than a margin is lost, "
        "and report what is saved.",
    ),
    "audit": ("recordings", "Estimate how many of a policy's queries could be saved, before anything is learned."),
    "record": ("recordings", "Play a policy and write down what it sees and answers, for letitcook audit."),
    "evaluate": (
        "evaluate",
        "Play a saved policy in the real environment; of a wrapper, say what it costs and saves beside its base.",
    ),
    "front": (
        "front",
        "Show task return against queries for the policies that one run learned, and choose among them.",
    ),
    "watch": ("runs", "Watch one episode of a saved policy, step by step, also inside its waits."),
    "interleave": ("tasks", "Do other work inside the waits of a wrapped policy."),
    "poll": ("poll", "Compute when to check a job, from how long such jobs took before."),
    "export": ("runs", "Write a saved policy for another machine."),
    "reproduce": (
        "sweeps",
        "Reproduce the paper's rows: train every run, compare with the paper and the exact optimum, write a report.",
    ),
    "status": ("sweeps", "Show how far a sweep is: rows and runs done, runs under way, failures."),
    "report": ("sweeps", "Write the report of a sweep or of a wrapper's certificate: one page that opens from disk."),
}
"""The commands in their order: the module of each, and what it does as its docstring begins."""
LOOKS: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": "rich"}


class Commands(TyperGroup):
    """Commands that are loaded when they are called; the list of them is shown without."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called."""
        if args and args[0] in COMMANDS:
            name = args[0]
            single = typer.Typer(**LOOKS)
            single.command(name)(getattr(import_module(f"letitcook.cli.{COMMANDS[name][0]}"), name))
            self.commands[name] = typer.main.get_command(single)
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Commands, no_args_is_help=True, **LOOKS)
for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop")] = False,
) -> None:
    """Agents that know when not to act: learn where and how long to wait without losing task performance."""
    if version:
        typer.echo(letitcook.__version__)
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
