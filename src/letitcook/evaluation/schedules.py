"""The simplest wrappers: query the base policy every k-th step, and wait in between, or on while networks say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, check_durations
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import SettingError
from letitcook.storage.array_checks import Expected, checked

PERIODS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
"""Periods that are tried, in steps."""
LONGEST = 1_000_000
"""The longest period that is allowed, in steps."""


class SchedulePolicy:
    """Query the base every `period` steps; a period of 1 is the base policy itself.

    The steps in between are made of as few waits as there are durations for. Where it stands in its period is the
    policy's state.

    >>> decisions = Decisions(("base", "wait"), wait=1, durations=(2, 4))
    >>> policy = SchedulePolicy(8, decisions.durations)
    >>> [decisions.label(u) for u in policy.cycle]
    ['base', 'wait 4', 'wait 2', 'wait']
    >>> decision, state = policy.predict(None)
    >>> decision, policy.predict(None, state)
    (0, (3, 2))
    """

    def __init__(self, period: int, durations: tuple[int, ...]) -> None:
        if not 1 <= period <= LONGEST:
            raise SettingError(f"period = {period} is not allowed; query the base every 1 to {LONGEST:,} steps")
        self.period = int(period)
        self.durations = tuple(int(d) for d in durations)
        cycle, left = [0], self.period - 1
        for place in range(len(self.durations), -1, -1):
            steps = 1 if place == 0 else self.durations[place - 1]
            cycle += [1 + place] * (left // steps)
            left %= steps
        self.cycle = tuple(cycle)
        """Decisions of one period."""

    @property
    def name(self) -> str:
        """What it does, for people."""
        return "the base itself" if self.period == 1 else f"every {self.period} steps"

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, int]:
        """Return the next decision of the period, and the place of the one after it."""
        place = 0 if state is None else int(state)
        return self.cycle[place], (place + 1) % len(self.cycle)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the policy as arrays, to be saved."""
        return {"period": np.array([self.period]), "durations": np.array(self.durations, dtype=np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SchedulePolicy:
        """Return the policy that `arrays()` described.

        >>> SchedulePolicy.from_arrays(SchedulePolicy(3, (2,)).arrays()).cycle
        (0, 2)
        """
        period = checked(arrays, "period", Expected((1,), "whole", 1, LONGEST))
        durations = checked(arrays, "durations", Expected((None,), "whole", 2))
        return cls(int(period[0]), check_durations(durations.tolist()) if durations.size else ())


class PacedPolicy:
    """A schedule that waits on: after each query `period - 1` steps in any case, then for as long as networks say.

    Those networks may be cautious, as they are asked only where the schedule would query the base again.

    >>> decisions = Decisions(("base", "wait"), wait=1, durations=(2, 4))
    >>> like = NetworkPolicy(np.array([[0.0, 0.0, 1.0, 0.0] * 2], dtype=np.float32), (1, 4), 0.0)  # waits 2
    >>> policy = PacedPolicy(like, 3, decisions.durations)
    >>> first, state = policy.predict([0.5])
    >>> second, state = policy.predict([0.5], state)
    >>> [decisions.label(u) for u in (first, second, policy.predict([0.5], state)[0])]
    ['base', 'wait 2', 'wait 2']
    """

    def __init__(self, policy: NetworkPolicy, period: int, durations: tuple[int, ...]) -> None:
        self.policy = policy
        self.schedule = SchedulePolicy(period, durations)

    @property
    def durations(self) -> tuple[int, ...]:
        """The waits that it has."""
        return self.schedule.durations

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, int]:
        """Return the next decision, and the place in the period of the one after it."""
        decision, after = self.schedule.predict(observation, state)
        if state == 0:  # the period is over; at the beginning of an episode there is no answer yet
            decision = int(self.policy.predict(observation)[0])
        return decision, after if decision == 0 or state != 0 else 0

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the policy as arrays, to be saved."""
        return {**self.policy.arrays(), **self.schedule.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PacedPolicy:
        """Return the policy that `arrays()` described."""
        schedule = SchedulePolicy.from_arrays(arrays)
        return cls(NetworkPolicy.from_arrays(arrays), schedule.period, schedule.durations)


def schedules(decisions: Decisions, horizon: int | None = None) -> list[SchedulePolicy]:
    """Return the schedules that are tried: up to a few of the longest waits, and a third of an episode.

    >>> [s.period for s in schedules(Decisions(("base", "wait"), wait=1, durations=(2, 4)))]
    [2, 3, 4, 5, 6, 8]
    """
    longest = 2 * decisions.durations[-1] if decisions.durations else 1
    most = longest if horizon is None else min(longest, horizon // 3)
    return [SchedulePolicy(period, decisions.durations) for period in PERIODS if period <= most]
