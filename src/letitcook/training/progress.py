"""Progress lines on stderr: rate, current and best numbers, time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from letitcook.core.decisions import Timesteps


class Numbers(Protocol):
    """Length and queries, of a plan, an evaluation or a run."""

    @property
    def length(self) -> float:
        """Mean length."""
        ...

    @property
    def queries(self) -> float:
        """Mean queries."""
        ...


class Rate(ProgressColumn):
    """Units per second, shortened."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """Return the rate of one progress line."""
        return Text(f"{short(task.finished_speed or task.speed or 0.0)} {self.unit}/s", style="progress.data.speed")


def short(number: float) -> str:
    """Shorten a number for people.

    >>> short(12_345_678), short(9_500), short(31)
    ('12.3M', '9.5k', '31')
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.1f}{suffix}"
    return f"{number:.3g}"


def pair(numbers: Numbers) -> str:
    """Return length and queries as `length/queries`."""
    return f"{numbers.length:.4g}/{numbers.queries:.4g}"


class Show(Protocol):
    """What is called during training, and after each evaluation."""

    def __call__(self, passed: int, now: Numbers | None = None, best: Numbers | None = None) -> None:
        """Show how far the training is; the newest and the best evaluation, where there is a new one."""
        ...


class Phase(Protocol):
    """What is called while episodes are played to choose, to evaluate and to certify."""

    def __call__(self, name: str, done: int = 0, total: int | None = None, /) -> None:
        """Show how far a phase is, of how much at most; the name says in what."""
        ...


def unseen(name: str, done: int = 0, total: int | None = None, /) -> None:
    """Show nothing: the phases of a run without progress lines."""


@contextmanager
def phases(enabled: bool = True) -> Iterator[Phase]:
    """Show which phase is under way: its name, a bar, its count, the time left.

    >>> with phases(enabled=False) as show:
    ...     show("choosing", 3, 10)
    """
    if not enabled:
        yield unseen
        return
    columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        known: dict[str, TaskID] = {}

        def show(name: str, done: int = 0, total: int | None = None, /) -> None:
            if name not in known:
                for before in known.values():
                    bar.stop_task(before)
                known[name] = bar.add_task(escape(name), total=total)
            bar.update(known[name], completed=done, total=total)

        yield show


@contextmanager
def training_line(
    timesteps: Timesteps, enabled: bool = True, begun: int = 0, using: str = "training"
) -> Iterator[Show]:
    """Show a run under way: what it learns with, a bar, its rate, current and best length/queries, time left."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn(f"[bold]{using}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        Rate(f"{timesteps.unit}s"),
        TextColumn("now {task.fields[now]}  best {task.fields[best]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not enabled,
        refresh_per_second=5,
    )
    with bar:
        line = bar.add_task("training", total=timesteps.count, completed=begun, now="-", best="-")

        def show(passed: int, now: Numbers | None = None, best: Numbers | None = None) -> None:
            said: dict[str, Any] = {
                name: pair(numbers) for name, numbers in (("now", now), ("best", best)) if numbers is not None
            }
            bar.update(line, completed=min(passed, timesteps.count), **said)

        yield show


@contextmanager
def working(what: str, enabled: bool = True) -> Iterator[None]:
    """Show that something is under way whose end cannot be told."""
    if not enabled:
        yield
        return
    with Console(stderr=True).status(escape(f"{what} ...")):
        yield
