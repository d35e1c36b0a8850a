"""Engines: where runs are carried out. Serial and processes are here, Ray is in `ray_engine.py`.

An engine has slots. The sweep starts a job in a free slot and waits for messages; which slot, process or machine it is
stays inside. A job whose process or machine is gone comes back as `Lost`, one that raised an error as `Failed`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from letitcook.errors import SettingError, UnknownNameError
from letitcook.experiments.engine import THREAD_SETTINGS, Engine, attempted
from letitcook.experiments.jobs import Failed, Finished, Job, Lost, Message
from letitcook.experiments.suites import Run

ENGINES = ("serial", "processes", "ray")


def engine_named(name: str, workers: int, address: str | None = None) -> Engine:
    """Return an engine; `address` is that of a Ray cluster."""
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if workers < 1:
        raise SettingError(f"workers = {workers} is not allowed; give at least 1")
    if address is not None and name != "ray":
        raise SettingError("--address goes with --engine ray")
    if name == "ray":
        from letitcook.experiments.ray_engine import OnRay

        return OnRay(address, workers)
    return Serial() if name == "serial" or workers == 1 else Processes(workers)


class Serial:
    """One job at a time, in this process."""

    slots = 1

    def __init__(self) -> None:
        self._going: list[tuple[Run, Iterator[Message]]] = []

    def start(self, job: Job) -> None:
        """Begin the job."""
        self._going.append((job.run, attempted(job)))

    def messages(self, seconds: float) -> list[tuple[Run, Message]]:
        """Go on with the job to its next message."""
        if not self._going:
            return []
        run, going = self._going[0]
        message = next(going)
        if isinstance(message, Finished | Failed):
            self._going.clear()
        return [(run, message)]

    def close(self) -> None:
        """Forget the job."""
        self._going.clear()


class Processes:
    """Several processes of one thread each on this machine, which end with this one whatever ends it."""

    def __init__(self, workers: int) -> None:
        for name in THREAD_SETTINGS:
            os.environ.setdefault(name, "1")
        self.slots = workers
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[tuple[Connection, BaseProcess]] = []
        self._going: dict[Connection, tuple[BaseProcess, Run]] = {}

    def start(self, job: Job) -> None:
        """Give the job to an idle process, or to a new one."""
        pipe, process = self._idle.pop() if self._idle else self._new_process()
        self._going[pipe] = (process, job.run)
        with suppress(BrokenPipeError):  # `messages` finds that the process is gone
            pipe.send(job)

    def _new_process(self) -> tuple[Connection, BaseProcess]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return ours, process

    def messages(self, seconds: float) -> list[tuple[Run, Message]]:
        """Wait for what the processes have to tell."""
        found: list[tuple[Run, Message]] = []
        for ready in wait(list(self._going), seconds):
            assert isinstance(ready, Connection)
            process, run = self._going[ready]
            message: Message
            try:
                message = ready.recv()
            except (EOFError, OSError):  # also one that was killed in the middle of a message
                process.join()
                message = Lost(_how_it_ended(process.exitcode or 0))
                ready.close()
            if isinstance(message, Finished | Failed):
                self._idle.append((ready, process))
            if isinstance(message, Finished | Failed | Lost):
                del self._going[ready]
            found.append((run, message))
        return found

    def close(self) -> None:
        """End the processes."""
        workers = [*self._idle, *((pipe, process) for pipe, (process, _) in self._going.items())]
        for pipe, process in workers:
            process.terminate()
            process.join()
            pipe.close()
        self._idle.clear()
        self._going.clear()


def _work(pipe: Connection) -> None:
    """Carry out jobs until the pipe closes; the body of a worker process."""
    become_worker()
    while True:
        try:
            job = pipe.recv()
            for message in attempted(job):
                pipe.send(message)
        except (EOFError, BrokenPipeError):
            return


def become_worker() -> None:
    """Leave ctrl-C to the process that started this one, which then ends it; end with that process, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _how_it_ended(code: int) -> str:
    if code < 0:
        return f"its process was ended by signal {-code} ({signal.Signals(-code).name}); is there enough memory?"
    return f"its process ended with exit code {code}"
