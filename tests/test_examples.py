"""The examples run, and what they print is so."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import letitcook
from quick_choice import choose_quickly

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = ("--steps", "1000", "--episodes", "3")
WITH_TORCH = {"train_bases", "wrap_sb3"}
"""Those are run by integration_tests/torch."""


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    choose_quickly(monkeypatch)

    def run(name: str, *arguments: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(EXAMPLES)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def row(text: str, name: str) -> list[float]:
    """The first two numbers of a row of the savings report: of the base alone, and of the wrapper."""
    return numbers(next(line for line in text.splitlines() if line.strip().startswith(name)))[:2]


def test_every_example_is_run_by_a_test() -> None:
    here = Path(__file__).read_text()
    run = set(re.findall(r'printed\("(\w+)"', here)) | WITH_TORCH
    assert run == {script.stem for script in EXAMPLES.glob("*.py")}


def test_five_lines(printed: Any, tmp_path: Path) -> None:
    said = printed("five_lines", *SMALL, "--out", str(tmp_path / "run"))
    task_return, length, queries = numbers(next(line for line in said.splitlines() if "queries" in line))
    assert -200.0 <= task_return == -length
    assert length / 8 <= queries <= length
    assert letitcook.load(tmp_path / "run").steps >= 1000


def test_wrap_a_callable(printed: Any) -> None:
    said = printed("wrap_a_callable", *SMALL)
    length, base_queries = row(said, "length"), row(said, "base queries")
    assert base_queries[0] == length[0]  # the base alone is asked at every step
    assert row(said, "task return")[0] == pytest.approx(-length[0], abs=0.06)  # as rounded as they are printed
    assert base_queries[1] <= length[1] <= 200.0
    assert row(said, "time in policies")[0] == pytest.approx(0.2 * length[0], rel=0.01)  # 200 ms a query


def test_continuous_control(printed: Any) -> None:
    said = printed("continuous_control", *SMALL)
    assert row(said, "length") == [200.0, 200.0]
    assert row(said, "base queries")[0] == 200.0
    assert -400.0 < row(said, "task return")[0] < 0.0  # the controller swings up; doing nothing is below -1,000


def test_added_wait(printed: Any) -> None:
    said = printed("added_wait", *SMALL)
    assert "decisions: action 0, action 1, wait, wait 2, wait 4, wait 8" in said
    length, queries = numbers(said.splitlines()[-1])
    assert length / 8 <= queries <= length <= 500.0


def test_deploy_loop(printed: Any) -> None:
    assert printed("deploy_loop").splitlines() == [
        "60 periods, sensed 22 times, waited 44, ended by max_steps",
        "lowest level 3, valve open in 16 periods",
    ]


def test_interleave_tasks(printed: Any) -> None:
    assert printed("interleave_tasks").splitlines() == [
        "waiting: 54 steps, 36 queries",
        "with errands: 45 steps, 27 queries",
        "  step 25: fetch-sugar, 15 steps in a wait of 15",
        "looking around 2 times: 54 steps, as without",
    ]


def test_plan_frozen_lake(printed: Any) -> None:
    assert printed("plan_frozen_lake").splitlines() == [
        "dry: reaches the goal with probability 1.0000, as without waits: 1.0000",
        "dry: 6.00 steps, 6.00 queries",
        "slippery: reaches the goal with probability 0.7442, as without waits: 0.7442",
        "slippery: 43.94 steps, 35.76 queries",
    ]


def test_wait_for_a_job(printed: Any) -> None:
    said = printed("wait_for_a_job", "--jobs", "6", "--steps", "200000", "--episodes", "200")
    often, seldom = numbers(next(line for line in said.splitlines() if line.startswith("checks a job")))
    assert seldom < often
    exact, learned = numbers(next(line for line in said.splitlines() if line.startswith("the task job")))
    assert learned > 1.3 * exact
