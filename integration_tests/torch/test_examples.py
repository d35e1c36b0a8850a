"""The examples with Stable-Baselines3 run: one trains a base policy, the other wraps it."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from quick_choice import choose_quickly

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    choose_quickly(monkeypatch)

    def run(name: str, *arguments: Any) -> Any:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_a_base_is_trained_saved_and_judged(printed: Any, tmp_path: Path) -> None:
    said = printed("train_bases", "dqn-cartpole", "--out", "cartpole.zip", "--steps", "240", "--episodes", "3")
    last = re.fullmatch(r"([\w-]+): mean return ([\d.]+), sd [\d.]+, (\d+) episodes", said.splitlines()[-1])
    assert last is not None
    name, mean, episodes = last.groups()
    assert (name, episodes) == ("dqn-cartpole", "3")
    assert 8.0 <= float(mean) <= 500.0
    assert (tmp_path / "cartpole.zip").is_file()


def test_a_model_is_wrapped(printed: Any) -> None:
    said = printed("wrap_sb3", "--steps", "500", "--episodes", "2")
    found = re.search(r"base queries +([\d.]+) +([\d.]+)", said)
    assert found is not None
    alone = float(found[1])
    assert alone == 200.0  # a model of a moment does not reach the flag, and is asked at every step
    assert "task return          -200.00" in said
