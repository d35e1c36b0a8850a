"""The Ray engine: runs on this machine, or on the nodes of a cluster.

A job is a task that streams its messages, checkpoints among them, to the sweep; the sweep alone writes, so nodes share
no disk. A node that dies costs what its runs did since their last checkpoint. Ray itself tries nothing again: it only
knows the checkpoint that a task began with, the sweep knows the newest.
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from letitcook.errors import SettingError
from letitcook.experiments.engine import THREAD_SETTINGS, attempted
from letitcook.experiments.jobs import Failed, Finished, Job, Lost, Message
from letitcook.experiments.suites import Run
from letitcook.training.run import VERSION

SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
"""Environment variables: nothing is reported to Ray's makers, and no log of a node is printed among the results."""
QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
TASK = {
    "num_cpus": 1,
    "num_returns": "streaming",
    "max_retries": 0,
    "runtime_env": {"env_vars": dict.fromkeys(THREAD_SETTINGS, "1")},
    "_generator_backpressure_num_objects": 8,  # a run waits while the sweep has that many messages still to take
}
CONNECT_SECONDS = 30.0
"""How long a cluster may take to answer."""
LAST_PORT = 65_535
_PROBE = f"""
import sys, ray
try:
    ray.init(sys.argv[1], **{QUIET})
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""


class OnRay:
    """A task of one CPU and one thread for each job, on a Ray of its own or on the cluster at `address`."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """Connect to a cluster (`auto` or `HOST:PORT`), or start a Ray on this machine with `workers` CPUs.

        A connection that the caller has made already is used as it is, and stays.
        """
        self._ray = _imported(local=address is None)
        self._ours = not self._ray.is_initialized()
        if self._ours and address is None:
            _start(self._ray, workers)
        elif self._ours:
            _connect(self._ray, str(address))
        self._task = self._ray.remote(**TASK)(_carried_out)
        self._going: dict[Any, Run] = {}

    @property
    def slots(self) -> int:
        """CPUs of the nodes that are alive now; where there are none, a job waits for the first."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 0)))

    def start(self, job: Job) -> None:
        """Hand the job to Ray, which finds a node with a free CPU."""
        self._going[self._task.remote(job, VERSION)] = job.run

    def messages(self, seconds: float) -> list[tuple[Run, Message]]:
        """Wait for what the tasks have to tell; one message of each."""
        first, others = self._ray.wait(list(self._going), timeout=seconds)
        more, _ = self._ray.wait(others, num_returns=len(others), timeout=0)
        found: list[tuple[Run, Message]] = []
        for task in (*first, *more):
            run = self._going[task]
            message = self._received(task, run)
            if isinstance(message, Finished | Failed | Lost):
                del self._going[task]
            found.append((run, message))
        return found

    def _received(self, task: Any, run: Run) -> Message:
        errors = self._ray.exceptions
        try:
            message: Message = self._ray.get(next(task))
        except StopIteration:
            return Lost("its task ended without a result")
        except errors.RayTaskError as error:  # whatever the run itself raises is a message
            raise SettingError(
                f"a node cannot carry out {run.id}: {_sentence(error.cause or error)}; install letitcook {VERSION} on "
                "every node and start the sweep again, which goes on from what is there"
            ) from error
        except errors.RayError as error:
            return Lost(f"{type(error).__name__}: {_sentence(error)}")
        return message

    def close(self) -> None:
        """Cancel what is under way, and leave the cluster, or end the Ray that was started here."""
        for task in self._going:
            self._ray.cancel(task, force=True)
        self._going.clear()
        if self._ours:
            self._ray.shutdown()


def _carried_out(job: Job, version: str) -> Iterator[Message]:
    """Carry out a job; the body of a task."""
    if version != VERSION:
        raise SettingError(f"{platform.node()} has letitcook {VERSION}, and the sweep has {version}")
    yield from attempted(job)


def _imported(local: bool) -> Any:
    """Return Ray's module; settings that Ray reads as it is imported come first."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if local:  # its ports listen on the loopback address alone; Ray does so by itself on Windows and macOS
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise SettingError('the engine "ray" needs Ray: pip install "letitcook[ray]"') from error
    return ray


def _start(ray: Any, workers: int | None) -> None:
    try:
        ray.init("local", num_cpus=workers, include_dashboard=False, **QUIET)
    except (OSError, RuntimeError) as error:
        raise SettingError(f"Ray does not start on this machine: {_sentence(error)}; use --engine processes") from error


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster; one that is not there is found out in seconds, where Ray alone goes on trying."""
    address = (os.environ.get("RAY_ADDRESS") or address) if address == "auto" else address
    place = None if address == "auto" else _host_and_port(address)
    try:
        if place is not None:
            socket.create_connection(place, CONNECT_SECONDS / 3).close()
        trial = [sys.executable, "-c", _PROBE, address]  # in a process of its own, since Ray cannot be interrupted
        subprocess.run(trial, capture_output=True, check=True, timeout=CONNECT_SECONDS, encoding="utf-8")
        ray.init(address, **QUIET)
    except subprocess.TimeoutExpired:
        raise SettingError(_unreachable(address, f"no answer in {CONNECT_SECONDS:g} seconds")) from None
    except subprocess.CalledProcessError as error:
        raise SettingError(_unreachable(address, error.stderr.strip().rpartition("\n")[2])) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingError(_unreachable(address, _sentence(error))) from error


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > LAST_PORT:
        raise SettingError(
            f"the address {address!r} is not allowed; give auto, or HOST:PORT of the cluster's head node"
        )
    return host.strip("[]"), int(port)


def _unreachable(address: str, reason: str) -> str:
    where = "on this machine" if address == "auto" else f"at {address}"
    return (
        f"no Ray cluster answers {where} ({reason}); start one with `ray start --head`, join it from this machine "
        "with `ray start --address HOST:PORT`, or leave --address out for a Ray of this sweep's own"
    )


def _sentence(error: object) -> str:
    """Return the first sentence of an error's text."""
    return str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".")
