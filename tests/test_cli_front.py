"""The front of trade-offs that one run leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from letitcook import learn, load, make
from letitcook.core.decisions import Timesteps
from letitcook.training.learn import prepare
from letitcook.training.selection import front
from letitcook.training.spec import RunSpec

CHANGES = {"hidden": (16, 16), "batch_size": 16, "learning_starts": 200, "fourier_features": 4, "ema_steps": 50}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    training = prepare(make("cartpole"), RunSpec(preset="best", length=Timesteps(4_000), settings=CHANGES))
    training.plan = replace(training.plan, every=1_000, episodes=6, looks=(6, 6), fresh_episodes=10)
    list(training.run())
    return training.result().save(tmp_path_factory.mktemp("front") / "run")


def test_a_run_keeps_the_policies_that_no_other_one_beats(family: Path) -> None:
    kept = load(family).front
    assert len(kept) >= 2
    assert [c.queries for c in kept] == sorted(c.queries for c in kept)
    assert [c.task_return for c in kept] == sorted(c.task_return for c in kept)
    assert front(kept) == list(kept)


def test_the_front_is_shown_and_a_tolerance_chooses(call: Any, family: Path) -> None:
    code, out, _ = call("front", family, "--episodes", 10, "--json")
    assert code == 0
    strict = json.loads(out)
    assert len(strict["front"]) == len(load(family).front)
    for fact in strict["front"]:
        assert fact["task_return"]["low"] <= fact["task_return"]["value"] <= fact["task_return"]["high"]
        assert fact["queries"]["value"] <= fact["length"]
    assert min(fact["loss"]["value"] for fact in strict["front"]) == 0.0
    code, out, _ = call("front", family, "--episodes", 10, "--tolerance", 1_000, "--json")
    generous = json.loads(out)
    queries = [fact["queries"]["value"] for fact in generous["front"]]
    assert queries[generous["chosen"]] == min(queries)
    assert queries[strict["chosen"]] >= queries[generous["chosen"]]


def test_the_table_marks_the_choice_and_it_can_be_written(call: Any, family: Path, tmp_path: Path) -> None:
    code, out, _ = call("front", family, "--episodes", 5, "--tolerance", 1_000, "--out", "fewest")
    assert code == 0
    assert sum("*" in line for line in out.splitlines()) == 2  # in the table, and below it
    written = load(tmp_path / "fewest")
    assert written.choice is not None
    assert written.choice["tolerance"] == {"amount": 1_000.0, "share": 0.0}
    code, out, _ = call("evaluate", "fewest", "--episodes", 5)
    assert code == 0


def test_mistakes(call: Any, family: Path, tmp_path: Path) -> None:
    learn(make("cook", mode="wrap"), steps=10_000, progress=False).save(tmp_path / "table")
    for arguments, message in (
        (("front", "table"), "holds one policy and no others"),
        (("front", "nothing"), "nothing"),
        (("front", family, "--tolerance", "some"), "tolerance = some"),
        (("front", family, "--tolerance", "nan"), "tolerance = nan"),
        (("front", family, "--episodes", 0), "episodes = 0"),
        (("front", family, "--out", "table"), "table"),
    ):
        code, _, err = call(*arguments)
        assert code == 2, arguments
        assert message in err
