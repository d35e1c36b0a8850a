"""The nouns of a waiting MDP: decisions, transitions, episodes, policies.

A waiting MDP adds to the primitive actions A the commitments W to wait a number of steps without sensing. A policy
chooses among the decisions `U = A ∪ W`: index `0..|A|-1` is a primitive action, `|A|+i` is "wait `W[i]` steps".
Rewards are pairs `(task, waiting)`: the sum of the primitive rewards, and -1 for each query of the policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from letitcook.errors import SettingError, UnknownNameError

Cost = Literal["decisions", "base"]
"""What the second objective counts: decisions, or queries of a base policy."""
Unit = Literal["step", "decision"]
"""What a timestep of training is: a primitive step, or a decision, however long it waits."""
WITHOUT_BASE = 0.01
"""What a decision costs that does not query the base policy, where a query of the base costs 1.

Not 0: a wait for nothing would otherwise be as good as one that leads somewhere, and a learner without a clock would
put its task off for ever.
"""
FOREVER = 2**62
"""Stands for a number of steps or decisions that is not limited."""
WRAPPER = ("base", "wait")
"""The actions around a base policy: to ask it, and to wait one step."""


@dataclass(frozen=True)
class Decisions:
    """The decision set `U = A ∪ W`.

    >>> U = Decisions(actions=("left", "stay", "right"), wait=1, durations=(2, 4))
    >>> U.n, U.durations_of.tolist(), U.actions_of.tolist()
    (5, [1, 1, 1, 2, 4], [0, 1, 2, 1, 1])
    >>> U.label(0), U.label(4)
    ('left', 'wait 4')
    """

    actions: tuple[str, ...]
    """Names of the primitive actions."""
    wait: int
    """Index of the primitive action that waits one step."""
    durations: tuple[int, ...] = ()
    """Lengths of the waits in steps: whole numbers of at least 2, strictly increasing."""
    hold: bool = False
    """Whether a wait sends the last action again."""
    cost: Cost = "decisions"
    """What is to be few: decisions, or queries of the base policy, beside which other decisions hardly count."""
    repeat: int = 1
    """Steps that a primitive action lasts: it is sent that often, without sensing in between."""

    def __post_init__(self) -> None:
        if self.cost not in ("decisions", "base"):
            raise UnknownNameError("cost", self.cost, ("decisions", "base"))
        if self.cost == "base" and not self.has_base:
            raise SettingError(
                "cost='base' counts the queries of a base policy, and there is none here; "
                "leave it out, or wrap a policy: letitcook.wrap(env, base, wait=..., durations=...)"
            )
        if self.repeat != 1:
            self._check_repeat()
        if not 0 <= self.wait < len(self.actions):
            raise SettingError(
                f"wait action {self.wait} is outside the action space 0..{len(self.actions) - 1}; "
                "give the index of the action that does nothing"
            )

    def _check_repeat(self) -> None:
        if isinstance(self.repeat, bool) or not isinstance(self.repeat, int) or self.repeat < 1:
            raise SettingError(f"action_repeat = {self.repeat!r} is not allowed; give a whole number of at least 1")
        if self.has_base:
            raise SettingError(
                "action_repeat goes with learning from scratch; around a policy, wait='hold' repeats its answers"
            )
        if any(duration <= self.repeat for duration in self.durations):
            raise SettingError(
                f"a wait of {self.durations[0]} steps is no longer than an action that is sent {self.repeat} times; "
                f"give longer waits, such as {2 * self.repeat},{4 * self.repeat}"
            )

    @property
    def n(self) -> int:
        """How many decisions there are."""
        return len(self.actions) + len(self.durations)

    @property
    def has_base(self) -> bool:
        """Whether these are the decisions around a base policy, `{base, wait} ∪ W`.

        >>> Decisions(WRAPPER, wait=1, durations=(2,)).has_base, Decisions(("left", "stay"), wait=1).has_base
        (True, False)
        """
        return self.actions == WRAPPER

    @property
    def acting(self) -> int:
        """How many come before the waits: the primitive actions, or the base policy alone.

        >>> Decisions(("left", "stay"), wait=1, durations=(2,)).acting, Decisions(WRAPPER, wait=1).acting
        (2, 1)
        """
        return 1 if self.has_base else len(self.actions)

    @cached_property
    def durations_of(self) -> NDArray[np.int64]:
        """Steps that each decision asks for, `(n,)`: 1 for the primitive actions, unless they are repeated."""
        return np.array([self.repeat] * len(self.actions) + list(self.durations), dtype=np.int64)

    @cached_property
    def actions_of(self) -> NDArray[np.int64]:
        """Primitive action that each decision applies, `(n,)`."""
        return np.array([*range(len(self.actions)), *[self.wait] * len(self.durations)], dtype=np.int64)

    @cached_property
    def costs_of(self) -> NDArray[np.float64]:
        """What each decision costs in the second objective, `(n,)`: 1, or next to nothing without the base.

        >>> Decisions(WRAPPER, wait=1, durations=(2,), cost="base").costs_of.tolist()
        [1.0, 0.01, 0.01]
        """
        costs = np.ones(self.n)
        if self.cost == "base":
            costs[1:] = WITHOUT_BASE
        return costs

    def cost_of(self, base_queries: int) -> float:
        """Return what a decision has cost that queried the base that often."""
        return 1.0 if self.cost == "decisions" else float(base_queries) or WITHOUT_BASE

    def label(self, decision: int) -> str:
        """Name a decision for people."""
        a = len(self.actions)
        return self.actions[decision] if decision < a else f"wait {self.durations[decision - a]}"


def check_durations(durations: Iterable[Any]) -> tuple[int, ...]:
    """Return the durations as a tuple of ints, or raise if something is wrong with them.

    >>> check_durations([2, 4, 8])
    (2, 4, 8)
    >>> check_durations([4, 2])
    Traceback (most recent call last):
    ...
    letitcook.errors.SettingError: durations [4, 2] must be strictly increasing; write them as 2,4
    """
    given = list(durations)
    if not given:
        raise SettingError("durations are empty; give at least one number of steps to wait, such as 2,4,8")
    for d in given:
        if isinstance(d, bool) or not isinstance(d, int | np.integer | float | np.floating) or d % 1 != 0:
            raise SettingError(f"duration {d!r} is not a whole number; durations count primitive steps, such as 2,4,8")
        if d < 2:
            raise SettingError(f"duration {d} is below 2; a wait of one step is the primitive wait action already")
    whole = [int(d) for d in given]
    if any(b <= a for a, b in pairwise(whole)):
        better = ",".join(str(d) for d in sorted(set(whole)))
        raise SettingError(f"durations {whole} must be strictly increasing; write them as {better}")
    return tuple(whole)


@dataclass(frozen=True)
class Timesteps:
    """How long a run trains: that many primitive steps, or that many decisions.

    >>> str(Timesteps(1_000_000, "decision"))
    '1,000,000 decisions'
    """

    count: int
    unit: Unit = "step"

    def __str__(self) -> str:
        return f"{self.count:,} {self.unit}{'' if self.count == 1 else 's'}"


def read_timesteps(steps: int | None, decisions: int | None) -> Timesteps | None:
    """Return how long to train, given in one of the two units; None if neither is given.

    >>> read_timesteps(None, 500)
    Timesteps(count=500, unit='decision')
    """
    if steps is not None and decisions is not None:
        raise SettingError("steps and decisions are both given; say in one of them how long to train")
    for count, unit in ((steps, "step"), (decisions, "decision")):
        if count is not None and count < 1:
            raise SettingError(f"{unit}s = {count} is not allowed; train for at least 1 {unit}")
    if steps is not None:
        return Timesteps(steps, "step")
    return None if decisions is None else Timesteps(decisions, "decision")


class Transition(NamedTuple):
    """One decision carried out, from the state where it was taken to the state where the next one is due.

    This is what environments give to learners; the deep learner's kernels take it as it is, with observations as
    vectors of float32.

    >>> waited = Transition([0.0], 3, np.array([-4.0, -1.0]), 4, 1.0, [0.5], terminated=False, truncated=False)
    >>> waited.elapsed, waited.reward.tolist()
    (4, [-4.0, -1.0])
    """

    observation: Any
    decision: int
    reward: NDArray[np.float64]
    """`(task, waiting)`; the task part is discounted inside the wait, `Σ γ^i r_i`."""
    elapsed: int
    """Primitive steps that passed; fewer than requested where the episode ended first."""
    discount: float
    """`γ^elapsed`, what the value of the next state is worth here."""
    next_observation: Any
    terminated: bool
    truncated: bool


@dataclass
class Episode:
    """An episode as it was run: its decisions and what came of them.

    >>> e = Episode(decisions=[0, 4], elapsed=[1, 4], task_return=-5.0, terminated=True)
    >>> e.length, e.queries
    (5, 2)
    """

    decisions: list[int] = field(default_factory=list)
    elapsed: list[int] = field(default_factory=list)
    task_return: float = 0.0
    """`J0`, undiscounted."""
    base_queries: int = 0
    """Queries of a wrapped base policy, where there is one."""
    policy_seconds: float = 0.0
    """Time inside the policy's `predict`."""
    base_seconds: float = 0.0
    """Time inside the base policy's `predict`."""
    terminated: bool = False
    truncated: bool = False

    @property
    def length(self) -> int:
        """Primitive steps."""
        return sum(self.elapsed)

    @property
    def queries(self) -> int:
        """Queries of the policy, `-J1`."""
        return len(self.decisions)


@runtime_checkable
class Policy(Protocol):
    """What chooses decisions, in Stable-Baselines3's manner.

    >>> from letitcook import as_policy
    >>> policy = as_policy(lambda observation: 1)
    >>> isinstance(policy, Policy), int(policy.predict(0.0)[0])
    (True, 1)
    """

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Return the decision at `observation` and the policy's own next state (None if it keeps none)."""
        ...
