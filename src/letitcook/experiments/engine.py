"""What an engine is: it carries out jobs in slots and passes their messages on."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Protocol

from letitcook.experiments.jobs import Failed, Job, Message, carry_out
from letitcook.experiments.suites import Run

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that hold a process at one thread."""


class Engine(Protocol):
    """Where jobs are carried out."""

    @property
    def slots(self) -> int:
        """How many jobs can be under way at once."""
        ...

    def start(self, job: Job) -> None:
        """Start a job in a free slot."""
        ...

    def messages(self, seconds: float) -> list[tuple[Run, Message]]:
        """Wait at most that long for messages of the jobs under way."""
        ...

    def close(self) -> None:
        """Leave every job as it is, and free what the engine holds."""
        ...


def attempted(job: Job) -> Iterator[Message]:
    """Carry out a job; an error becomes its last message."""
    try:
        yield from carry_out(job)
    except Exception as error:
        yield Failed(f"{type(error).__name__}: {error}", traceback.format_exc())
