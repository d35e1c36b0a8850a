"""What the commands share: options, and how facts are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from letitcook.errors import SettingError
from letitcook.evaluation.savings import duration
from letitcook.training.progress import short
from letitcook.training.run import Learned

out = Console(soft_wrap=True)

TaskArgument = Annotated[str, typer.Argument(help="A task, see: letitcook tasks", metavar="TASK")]
EnvArgOption = Annotated[
    list[str] | None, typer.Option(help="An argument of the environment; may be repeated", metavar="KEY=VALUE")
]
WaitOption = Annotated[
    str | None,
    typer.Option(
        help="The action that waits: 1, 0.0,0.0 (one number for all: 0), or hold: the last one again",
        metavar="ACTION",
    ),
]
PassiveOption = Annotated[
    str | None, typer.Option(help="Adds a wait action: module:function, or a method of the environment")
]
ModeOption = Annotated[str, typer.Option("--mode", help="scratch, or wrap: around the task's handwritten base policy")]
LambdaOption = Annotated[float | None, typer.Option("--lambda", help="λ of the scalarised reward r0 + λ r1")]
DurationsOption = Annotated[str | None, typer.Option("--durations", help="Waits in steps, such as 5,15")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else")]
ToleranceOption = Annotated[
    str, typer.Option("--tolerance", help="Task return you would give for fewer queries, such as 0.5 or 1%")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with the unfinished run in --out")]
CheckpointOption = Annotated[
    float, typer.Option("--checkpoint-every", help="Seconds between checkpoints in --out: what a kill costs at most")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed; the same seed gives the same bits")]


def check_wait_given(wait: str | None, passive: str | None) -> None:
    """Raise unless there is an action that waits, or one to be added."""
    if (wait is None) == (passive is None):
        raise SettingError("give the action that waits with --wait, or one to add with --passive, and not both")


def print_json(facts: dict[str, Any]) -> None:
    """Print one JSON object."""
    sys.stdout.write(json.dumps(facts) + "\n")


def certified_line(certificate: Mapping[str, Any]) -> str:
    """Return what a run says of its certificate: whether there is one, margin, bound and episodes.

    >>> certified_line({"certified": False, "margin": 2.0})
    'nothing could be certified to lose less than 2'
    """
    if not certificate["certified"]:
        return f"nothing could be certified to lose less than {certificate['margin']:.3g}"
    numbers = f"bound {certificate['bound']:.3g}, {certificate['episodes']:,} episodes"
    return f"certified to lose less than {certificate['margin']:.3g} ({numbers})"


def spent_line(spent: Mapping[str, Any]) -> str:
    """Return what training, choosing and certifying cost.

    >>> spent_line({"base_queries": 3_005, "episodes": 3_214, "student_episodes": 3_200, "seconds": 101.3})
    'spent: 3,005 queries of the policy, 3,214 episodes (3,200 of them around a student of it), 101 s'
    """
    queries, around = f"{spent['base_queries']:,} queries of the policy", spent.get("student_episodes", 0)
    student = f" ({around:,} of them around a student of it)" if around else ""
    return f"spent: {queries}, {spent['episodes']:,} episodes{student}, {duration(spent['seconds'])}"


def read_durations(text: str | None) -> tuple[Any, ...] | None:
    """Read `5,15`; what is not a number is left for the check of durations to name."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    return tuple(int(part) if part.lstrip("+-").isdigit() else _number(part) for part in parts)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def training_facts(learned: Learned) -> str:
    """Return one line on how long a run was, how fast, and where its best policy was met."""
    if learned.steps == 0:
        return f"nothing was trained; {learned.evaluation_episodes:,} episodes to record, to choose and to certify"
    rate = short(learned.steps / learned.seconds)
    length = f"{learned.steps:,} steps, {learned.decisions_taken:,} decisions ({rate} steps/s)"
    return f"best at step {learned.best.step:,} of {length}, {learned.evaluation_episodes:,} evaluation episodes"
