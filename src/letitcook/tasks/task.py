"""What a task is: a registered Gymnasium environment with its wait action, durations and horizon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from letitcook.core.decisions import Decisions, Policy


class AuxiliaryTask(Protocol):
    """Other work to do inside a wait: it predicts how long it takes, and promises to leave the waiting task alone.

    >>> from letitcook import task_named
    >>> [task.name for task in task_named("coffee").auxiliary()]
    ['fetch-sugar', 'fetch-cream']
    """

    @property
    def name(self) -> str:
        """Name of the work, as in errors and episodes."""
        ...

    @property
    def returns(self) -> bool:
        """Whether the work ends where it began, so that a policy can go on as if it had waited."""
        ...

    def finished(self, observation: Any, /) -> bool:
        """Return whether there is nothing to do here, most often because it was done already."""
        ...

    def duration(self, observation: Any, /) -> int:
        """Predict how many steps the work takes from here, the way back included if it returns."""
        ...

    def actions(self, observation: Any, /) -> Sequence[Any] | Policy:
        """Return the primitive actions that do the work from here, or a policy to ask for each of them."""
        ...

    def undisturbed(self, before: Any, after: Any, /) -> bool:
        """Return whether the waiting task is left alone, seen before the work and after it."""
        ...


@dataclass(frozen=True)
class Task:
    """A task, most of them the paper's; a new one is a file that ends in `TASK = Task(...)` and a line in `TASKS`.

    >>> from letitcook import task_named
    >>> cook = task_named("cook")
    >>> cook.actions[cook.wait], cook.durations, cook.horizon
    ('stay', (5, 15), 200)
    """

    name: str
    """Short name, as on the command line."""
    env_id: str
    """Gymnasium id."""
    entry_point: str
    """Where Gymnasium finds the class, `module:Class`."""
    summary: str
    """One line for people."""
    actions: tuple[str, ...]
    """Names of the primitive actions."""
    wait: int
    """Index of the wait action."""
    durations: tuple[int, ...]
    """Durations of the waits, in primitive steps."""
    horizon: int
    """Primitive steps after which an episode is truncated."""
    finite: bool
    """Whether it can be enumerated: tables and exact optima, or networks."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment's class."""
    base_policy: Callable[[], Policy] | None = None
    """Handwritten policy over the primitive actions, where there is one (else a trained one is wrapped)."""
    auxiliary: Callable[[], tuple[AuxiliaryTask, ...]] | None = None
    """Other work that fits into this task's waits."""
    return_per_step: float = -1.0
    """Task reward of a primitive step, so that `length = J0 / return_per_step`."""

    @property
    def title(self) -> str:
        """The name as the paper writes it, such as CookLonger."""
        return self.env_id.partition("/")[2].partition("-v")[0]

    @property
    def decisions(self) -> Decisions:
        """The decisions of the waiting MDP from scratch."""
        return Decisions(self.actions, self.wait, self.durations)


HIDDEN = "-hidden"
"""Ends the name of a task whose clocks are hidden."""


def with_hidden_clock(task: Task) -> Task:
    """Return a task whose clocks are not seen: what happens is, how long it still takes is not.

    >>> example = Task("tea", "letitcook/Tea-v0", "tea:TeaEnv", "make tea", ("stay",), 0, (5,), 100, finite=True)
    >>> hidden = with_hidden_clock(example)
    >>> hidden.name, hidden.env_id, dict(hidden.kwargs)
    ('tea-hidden', 'letitcook/TeaHidden-v0', {'hidden': True})
    """
    name, version = task.env_id.rsplit("-", 1)
    return replace(
        task,
        name=task.name + HIDDEN,
        env_id=f"{name}Hidden-{version}",
        summary=f"{task.summary}; the clock is hidden",
        kwargs={**task.kwargs, "hidden": True},
    )
