"""What a run around a base policy may cost, and what it has cost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from letitcook.errors import SettingError
from letitcook.wrappers.base_policy import BasePolicyEnv

QUERIES_FOR_TRAINING = 100_000
"""Queries of the base below which a budget leaves no room for training: its own episodes teach more."""
TRAINING_SHARE = 0.4
"""Share of a budget that training may spend; the rest is for choosing and certifying."""


@dataclass(frozen=True)
class Budget:
    """Limits of training, choosing and certifying together; None does not limit.

    The last episode under way is played to its end, so a run can exceed them by one episode.

    >>> Budget(base_queries=5_000).said()
    'at most 5,000 queries of the base policy'
    """

    episodes: int | None = None
    base_queries: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("episodes", "base_queries", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise SettingError(f"a budget of {name} = {value} is not allowed; give a number above 0")

    @property
    def limited(self) -> bool:
        """Whether anything is limited."""
        return any(limit is not None for limit in (self.episodes, self.base_queries, self.seconds))

    def said(self) -> str:
        """Return the limits for people."""
        parts = [] if self.base_queries is None else [f"{self.base_queries:,} queries of the base policy"]
        parts += [] if self.episodes is None else [f"{self.episodes:,} episodes"]
        parts += [] if self.seconds is None else [f"{self.seconds:,.0f} seconds"]
        return f"at most {', '.join(parts)}" if parts else "no limit"

    def training_steps(self, wanted: int) -> int:
        """Return how many steps of training fit, each of which may query the base; 0 if it is not worth beginning.

        >>> Budget().training_steps(200_000), Budget(base_queries=5_000).training_steps(200_000)
        (200000, 0)
        """
        if self.base_queries is None:
            return wanted
        if self.base_queries < QUERIES_FOR_TRAINING:
            return 0
        return min(wanted, int(TRAINING_SHARE * self.base_queries / 2))  # evaluations cost about as much again


@dataclass
class Spending:
    """What was spent since it began, beside a budget."""

    envs: Sequence[BasePolicyEnv]
    """Where the base policy is queried: the environment of the training, and another one of the evaluation."""
    budget: Budget
    begun: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.envs = list({id(env): env for env in self.envs}.values())  # one that serves for both counts once
        self._students: list[BasePolicyEnv] = []
        self._queries, self._episodes = 0, 0
        self._queries, self._episodes = self.queries, self.episodes

    @property
    def queries(self) -> int:
        """Queries of the base policy."""
        return sum(env.base_queries for env in self.envs) - self._queries

    @property
    def episodes(self) -> int:
        """Episodes that were begun, around the base policy and around its students."""
        return sum(env.episodes for env in self.envs) + self.student_episodes - self._episodes

    @property
    def student_episodes(self) -> int:
        """Episodes of them around students of the base policy, which do not query it."""
        return sum(env.episodes for env in self._students)

    def count_student(self, env: BasePolicyEnv) -> None:
        """Count the episodes of a new environment around a student; its queries are none of the base policy."""
        self._students.append(env)

    @property
    def seconds(self) -> float:
        """Time that has passed."""
        return time.monotonic() - self.begun

    def resume(self, spent: Mapping[str, Any]) -> None:
        """Count on from what had been spent when the state of a run was kept, as `summary` told it."""
        self._queries += self.queries - spent["base_queries"]
        self._episodes += self.episodes - spent["episodes"]
        self.begun = time.monotonic() - spent["seconds"]

    def exhausted(self, share: float = 1.0) -> bool:
        """Return whether that share of the budget is spent."""
        limits = (self.budget.base_queries, self.budget.episodes, self.budget.seconds)
        spent = (self.queries, self.episodes, self.seconds)
        return any(limit is not None and used >= share * limit for limit, used in zip(limits, spent, strict=True))

    def summary(self) -> dict[str, Any]:
        """Return what was spent, as data that JSON can hold."""
        return {
            "base_queries": self.queries,
            "episodes": self.episodes,
            "student_episodes": self.student_episodes,
            "seconds": self.seconds,
        }
