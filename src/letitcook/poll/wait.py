"""Wait for a job by a schedule: check when it is time, sleep otherwise."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from letitcook.errors import SettingError


class Waited(NamedTuple):
    """How a job was waited for."""

    result: Any
    """What the last check returned."""
    checks: int
    seconds: float
    """From the job's begin to the check that found it done."""


class JobTimeoutError(TimeoutError):
    """The job was not done in time; `checks` is how often it was looked at."""

    def __init__(self, seconds: float, checks: int) -> None:
        super().__init__(f"the job was not done after {seconds:g} seconds and {checks} checks")
        self.checks = checks


def wait_for(
    check: Callable[[], Any],
    schedule: Iterable[float],
    *,
    elapsed: float = 0.0,
    timeout: float | None = None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> Waited:
    """Call `check()` at the times of a schedule until it returns something true, and return that.

    `elapsed` is for how long the job has been running already. Checks that are due while another one takes its time
    are left out. After `timeout` seconds of the job there is a last check, then a `TimeoutError`. What `check`
    raises is raised.

    >>> answers = iter([None, None, "done"])
    >>> wait_for(lambda: next(answers), [0.01, 0.02, 0.03]).result
    'done'
    """
    waiting = _Waiting(schedule, elapsed, timeout, now)
    while True:
        sleep(waiting.until_next())
        result = check()
        if result:
            return waiting.done(result)


async def wait_for_async(
    check: Callable[[], Any],
    schedule: Iterable[float],
    *,
    elapsed: float = 0.0,
    timeout: float | None = None,
) -> Waited:
    """Do the same in an event loop; `check` may be a coroutine function.

    >>> answers = iter([None, "done"])
    >>> asyncio.run(wait_for_async(lambda: next(answers), [0.01, 0.02])).result
    'done'
    """
    waiting = _Waiting(schedule, elapsed, timeout, time.monotonic)
    while True:
        await asyncio.sleep(waiting.until_next())
        result = check()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return waiting.done(result)


class _Waiting:
    """Where in its schedule a wait is."""

    def __init__(
        self, schedule: Iterable[float], elapsed: float, timeout: float | None, now: Callable[[], float]
    ) -> None:
        if elapsed < 0.0 or (timeout is not None and timeout <= 0.0):
            raise SettingError(f"elapsed = {elapsed} and timeout = {timeout} must not be negative, nor a timeout 0")
        self._times = iter(schedule)
        self._timeout = timeout
        self._now = now
        self._began = now() - elapsed
        self._last = False
        self.checks = 0

    def until_next(self) -> float:
        """Return how long to sleep before the next check."""
        passed = self._now() - self._began
        if self._last:
            raise JobTimeoutError(passed, self.checks)
        due, missed = None, False
        for time_of_check in self._times:
            if time_of_check >= passed:
                due = time_of_check
                break
            missed = True
        if due is None and missed:
            due = passed
        if due is None and self._timeout is None:
            raise SettingError("the schedule has come to its end, and there is no timeout; give one that goes on")
        if self._timeout is not None and (due is None or due >= self._timeout):
            due, self._last = max(self._timeout, passed), True
        self.checks += 1
        assert due is not None
        return due - passed

    def done(self, result: Any) -> Waited:
        """Return how it went."""
        return Waited(result, self.checks, self._now() - self._began)
