"""A sweep while it runs: rows and runs done, runs going, timesteps per second, time left, failures and their logs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from letitcook.experiments.jobs import Checkpoint, Failed, Finished, Lost, Message, Progress, Started
from letitcook.experiments.suites import Row, Run, Suite
from letitcook.experiments.sweep import failure_log, finished
from letitcook.tasks import task_named
from letitcook.training.progress import short

FIRST_GUESS = {True: 1e-7, False: 4e-4}
"""Seconds a step, with tables and with networks, until some were measured."""
PLAIN_SECONDS = 30.0
"""Least time between two lines where the output is not a terminal."""
SHOWN_FAILURES = 5


@dataclass
class Going:
    """A run under way."""

    begun: float
    first_step: int
    steps: int
    numbers: str = ""


@dataclass
class Board:
    """What is known of a sweep: fed with its messages, read by the view and at the end."""

    suite: Suite
    out: Path
    slots: int
    done: set[Run] = field(default_factory=set)
    going: dict[Run, Going] = field(default_factory=dict)
    failures: dict[Run, str] = field(default_factory=dict)
    _begun: float = field(init=False)
    _spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    """Seconds and timesteps of the runs that ended here, by task."""

    def __post_init__(self) -> None:
        self._begun = time.monotonic()
        self.runs = self.suite.all_runs
        self.done.update(run for run in self.runs if finished(self.out, run))

    def take(self, run: Run, message: Message) -> None:
        """Take in a message of the sweep."""
        if isinstance(message, Failed):
            self.failures[run] = message.reason
        elif isinstance(message, Finished):
            self.done.add(run)
            self.failures.pop(run, None)
        if isinstance(message, Started):
            self.going[run] = Going(time.monotonic(), message.steps, message.steps)
        if isinstance(message, Progress | Checkpoint | Finished):
            self.going[run].steps = message.steps
        if isinstance(message, Progress):
            self.going[run].numbers = f"{message.length:.4g}/{message.queries:.4g}"
        if isinstance(message, Finished | Failed | Lost) and (ended := self.going.pop(run, None)):
            spent = self._spent[run.row.task]
            spent[0] += time.monotonic() - ended.begun
            spent[1] += ended.steps - ended.first_step

    @property
    def rows(self) -> tuple[int, int]:
        """Rows whose runs are all done, and rows in all."""
        rows: dict[Row, bool] = {}
        for run in self.suite.runs:
            rows[run.row] = rows.get(run.row, True) and run in self.done
        return sum(rows.values()), len(rows)

    @property
    def steps_per_second(self) -> float:
        """Timesteps a second of everything that was carried out here."""
        steps = sum(s for _, s in self._spent.values()) + sum(g.steps - g.first_step for g in self.going.values())
        return steps / max(time.monotonic() - self._begun, 1e-9)

    @property
    def seconds_left(self) -> float:
        """How long the rest will take, by the seconds a step of each task so far."""
        total = 0.0
        for run in self.runs:
            if run not in self.done and run not in self.failures:
                steps = run.steps - (self.going[run].steps if run in self.going else 0)
                total += max(steps, 0) * self._seconds_per_step(run.row.task)
        return total / self.slots

    def _seconds_per_step(self, task: str) -> float:
        seconds, steps = self._spent.get(task, (0.0, 0.0))
        for run, going in self.going.items():
            if run.row.task == task:
                seconds += time.monotonic() - going.begun
                steps += going.steps - going.first_step
        return seconds / steps if steps > 0 else FIRST_GUESS[task_named(task).finite]


@contextmanager
def live_view(board: Board) -> Iterator[Callable[[Run, Message], None]]:
    """Show a board on stderr while a sweep runs, live on a terminal, else a line now and then; yields what to tell."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if console.is_terminal:
        with Live(get_renderable=lambda: view(board), console=console, refresh_per_second=4, transient=True):
            yield board.take
        return
    last = time.monotonic()

    def tell(run: Run, message: Message) -> None:
        nonlocal last
        board.take(run, message)
        if isinstance(message, Failed):
            console.print(f"failed: {run.id}: {message.reason}", markup=False)
        if time.monotonic() - last >= PLAIN_SECONDS:
            last = time.monotonic()
            console.print(headline(board), markup=False)

    yield tell


def headline(board: Board) -> str:
    """Return the sweep in one line."""
    rows, all_rows = board.rows
    text = (
        f"{len(board.done)}/{len(board.runs)} runs  {rows}/{all_rows} rows  {short(board.steps_per_second)} timesteps/s"
    )
    if board.going:
        text += f"  {clock(board.seconds_left)} left"
    return text + (f"  {len(board.failures)} failed" if board.failures else "")


def view(board: Board) -> RenderableType:
    """Return the sweep as it is shown on a terminal."""
    top = Table.grid(padding=(0, 1))
    top.add_row(
        Text(f"sweep {board.suite.name}", style="bold"),
        ProgressBar(total=len(board.runs), completed=len(board.done), width=12),
        Text(headline(board)),
    )
    lines: list[RenderableType] = [top]
    for run, going in list(board.going.items()):
        share = min(1.0, going.steps / run.steps)
        lines.append(Text(f"  going   {run.id}  {share:4.0%}  {going.numbers}", no_wrap=True, overflow="ellipsis"))
    for run, reason in list(board.failures.items())[-SHOWN_FAILURES:]:
        text = f"  failed  {run.id}: {reason}\n          log: {failure_log(board.out, run)}"
        lines.append(Text(text, style="red", overflow="fold"))
    return Group(*lines)


def clock(seconds: float) -> str:
    """Return a time for people.

    >>> clock(75), clock(3 * 3600 + 120)
    ('1:15', '3:02:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
