"""The commands audit and record, and what wrap says of budgets and certificates."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from letitcook import SchedulePolicy, load
from letitcook.evaluation.persistence import Recording

CODE = """
import numpy as np

def push(observation):
    return np.array([1.0 if observation[1] >= 0 else -1.0], dtype=np.float32)
"""
CAR = ("--env", "MountainCarContinuous-v0", "--policy", "my_code:push")
SHORT = ("--env-arg", "max_episode_steps=60")


@pytest.fixture(name="here")
def call_beside_my_code(call: Any, tmp_path: Path) -> Any:
    (tmp_path / "my_code.py").write_text(CODE)
    importlib.invalidate_caches()
    yield call
    sys.modules.pop("my_code", None)


def test_a_policy_is_recorded_and_audited(here: Any, tmp_path: Path) -> None:
    code, out, err = here("record", *CAR, *SHORT, "--episodes", "3", "--out", "car.safetensors")
    assert code == 0, err
    assert "180 queries in 3 episodes" in out
    assert Recording.load(tmp_path / "car.safetensors").count == 3
    code, out, _ = here("audit", "--recording", "car.safetensors")
    assert code == 0
    assert "exactly" in out and "could be saved" in out
    facts = json.loads(here("audit", *CAR, *SHORT, "--episodes", "3", "--wait", "1", "--json")[1])
    assert (facts["queries"], facts["episodes"]) == (180, 3)
    assert 0.9 < facts["audit"][0]["saved_by_holding"] < 1.0
    assert 0.0 < facts["audit"][1]["as_the_wait"] < 1.0
    code, out, _ = here("audit", *CAR, *SHORT, "--episodes", "2", "--wait", "1")
    assert "as the action that waits" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audit",), "--env"),
        (("audit", "--recording", "none"), "letitcook record"),
        (("audit", *CAR, "--recording", "x"), "not both"),
        (("record", *CAR, "--episodes", "0", "--out", "x"), "episodes = 0"),
        (("record", *CAR, "--out", "my_code.py"), "my_code.py"),
        (("audit", *CAR, "--wait", "7"), "outside the action space"),
        (("wrap", *CAR, "--wait", "hold", "--durations", "2", "--out", "x", "--margin", "-1"), "margin"),
        (("wrap", *CAR, "--wait", "hold", "--durations", "2", "--out", "x", "--budget-queries", "0"), "budget"),
    ],
)
def test_mistakes_are_one_line(here: Any, arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    code, _, err = here(*arguments)
    assert code == 2
    assert said in err and len(err.strip().splitlines()) == 1, err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["my_code.py"]


def test_a_budget_is_announced_and_its_spending_reported(here: Any, tmp_path: Path) -> None:
    wrap = ("wrap", *CAR, *SHORT, "--wait", "hold", "--durations", "2,4", "--budget-queries", "3000")
    code, out, err = here(*wrap, "--out", "run")
    assert code == 0, err
    assert "planned: at most 3,000 queries of the base policy (" in err and "no training" in err
    assert "nothing could be certified" in out  # a few episodes are too few for a margin of 1%
    assert "spent:" in out and "best schedule" in out
    run = load(tmp_path / "run")
    assert isinstance(run.policy, SchedulePolicy) and run.policy.period == 1
    assert run.certificate is not None and run.certificate["spent"]["base_queries"] <= 3_060
    facts = json.loads(here("evaluate", "run", "--episodes", "2", "--json")[1])
    assert facts["savings"]["certificate"]["certified"] is False
    facts = json.loads(here(*wrap, "--out", "again", "--json")[1])
    assert facts["certificate"]["certified"] is False
    assert {row["kind"] for row in facts["choice"]["candidates"]} == {"schedule", "persistence"}
