from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest

from letitcook.errors import SettingError
from letitcook.poll import JobTimeoutError, back_off, every, schedule, wait_for, wait_for_async


class FakeTime:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0.0
        self.seconds += seconds


def test_checks_are_made_at_the_times_of_the_schedule() -> None:
    clock, seen = FakeTime(), []

    def check() -> Any:
        seen.append(clock.now() - 100.0)
        return "ready" if clock.now() >= 108.0 else None

    waited = wait_for(check, back_off(1.0, 2.0), now=clock.now, sleep=clock.sleep)
    assert seen == [1.0, 3.0, 7.0, 15.0]
    assert waited == ("ready", 4, 15.0)


def test_slow_checks_leave_others_out_and_a_running_job_is_taken_up() -> None:
    clock, seen = FakeTime(), []

    def check() -> bool:
        seen.append(clock.now() - 100.0)
        clock.seconds += 2.5
        return len(seen) == 3

    wait_for(check, every(1.0), now=clock.now, sleep=clock.sleep, elapsed=10.0)
    assert seen == [0.0, 3.0, 6.0]


def test_a_timeout_checks_once_more() -> None:
    clock, seen = FakeTime(), []
    with pytest.raises(JobTimeoutError, match="3 checks") as error:
        wait_for(lambda: seen.append(clock.now()), every(4.0), timeout=10.0, now=clock.now, sleep=clock.sleep)
    assert seen == [104.0, 108.0, 110.0]
    assert error.value.checks == 3
    with pytest.raises(SettingError, match="come to its end"):
        wait_for(lambda: False, [1.0], now=clock.now, sleep=clock.sleep)
    answers = iter([True])
    late = wait_for(lambda: next(answers), [1.0, 1.2, 2.0], elapsed=1.5, now=clock.now, sleep=clock.sleep)
    assert late.seconds == 2.0
    with pytest.raises(SettingError, match="negative"):
        wait_for(lambda: True, every(1.0), elapsed=-1.0)


def test_what_a_check_raises_is_raised() -> None:
    def check() -> bool:
        raise OSError("no such job")

    with pytest.raises(OSError, match="no such job"):
        wait_for(check, every(0.001))


def sleeper(seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep({seconds})"])


def ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def test_real_processes_are_waited_for() -> None:
    past = []
    for _ in range(3):
        began = time.monotonic()
        sleeper(0.2).wait()
        past.append(time.monotonic() - began)
    chosen = schedule(past, check_cost=1.0, lateness_cost=20.0)
    process = sleeper(0.2)
    waited = wait_for(lambda: ended(process), chosen, timeout=60.0)
    assert process.returncode == 0
    assert waited.seconds >= 0.2
    process = sleeper(0.2)
    often = wait_for(lambda: ended(process), every(0.005), timeout=60.0)
    assert waited.checks < often.checks


def test_real_processes_are_waited_for_side_by_side() -> None:
    async def one() -> Any:
        process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "import time; time.sleep(0.2)")

        async def check() -> bool:
            await asyncio.sleep(0)
            return process.returncode is not None

        return await wait_for_async(check, every(0.05), timeout=60.0)

    async def several() -> Any:
        return await asyncio.gather(one(), one())

    for waited in asyncio.run(several()):
        assert waited.result is True
        assert waited.checks >= 2
