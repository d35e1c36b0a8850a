"""Waiting for a job whose end nobody announces: when to look, from how long such jobs took before."""

from letitcook.poll.distribution import Distribution, Log, estimate, read_csv
from letitcook.poll.planning import Costs, Expected, Schedule, back_off, every, exact_schedule, expected, schedule
from letitcook.poll.wait import JobTimeoutError, Waited, wait_for, wait_for_async

__all__ = [
    "Costs",
    "Distribution",
    "Expected",
    "JobTimeoutError",
    "Log",
    "Schedule",
    "Waited",
    "back_off",
    "estimate",
    "every",
    "exact_schedule",
    "expected",
    "read_csv",
    "schedule",
    "wait_for",
    "wait_for_async",
]
