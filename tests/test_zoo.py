"""The suite `zoo`: rows, runs, their table, and the command."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from letitcook.errors import SettingError
from letitcook.experiments import zoo
from letitcook.report.zoo_table import fresh_verdict, zoo_csv, zoo_tables

CLIFF = replace(next(row for row in zoo.ROWS if row.name == "cliff/scratch"), steps=50_000, fresh=3)
CAR = replace(next(row for row in zoo.ROWS if row.name == "car/wrap"), fresh=3, budget=3_000, margin="60%")


def wrapped_run(low: float, high: float, seed: int = 0, saved: float = 0.8) -> dict[str, Any]:
    difference = {"value": (low + high) / 2, "low": low, "high": high}
    savings = {
        "return_difference": difference,
        "queries_saved": {"value": saved},
        "base_task_return": 90.0,
        "certificate": {"failed": seed},
    }
    certificate = {"certified": True, "margin": 1.0, "bound": -0.5, "episodes": 40, "spent": {"base_queries": 1000}}
    fresh = {"result": savings, "schedule": {**savings, "queries_saved": {"value": 0.5}}}
    run = {"row": "car/wrap", "env": "Car-v0", "seed": seed, "seconds": 1.0, "chosen": "persistence"}
    return {**run, "best_schedule": "every 2 steps", "certificate": certificate, "fresh": fresh}


def test_rows_have_names_of_their_own_and_name_what_they_wrap(tmp_path: Path) -> None:
    assert len({row.name for row in zoo.ROWS}) == len(zoo.ROWS)
    hopper = next(row for row in zoo.ROWS if row.name == "ppo-hopper/wrap")
    assert hopper.lacks(tmp_path) == f"{tmp_path}/bases/ppo-hopper.zip is missing; examples/train_bases.py makes it"
    assert CAR.lacks(tmp_path) is None
    assert "cannot be made" in (replace(CLIFF, env="NoSuchEnv-v0").lacks(tmp_path) or "")


def test_an_unknown_row_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(SettingError, match="no row of the zoo matches 'landre/wrap'; known: lander/wrap, "):
        zoo.chosen_rows(["landre/wrap"])


def test_a_row_from_scratch_finds_the_optimum_of_the_cliff(tmp_path: Path) -> None:
    run = zoo.run_row(CLIFF, 0, tmp_path)
    assert (run["task_return"], run["length"], run["queries"]) == (-13.0, 13.0, 5.0)


def test_a_wrapped_row_is_compared_with_its_base_and_the_best_schedule(tmp_path: Path) -> None:
    run = zoo.run_row(CAR, 0, tmp_path)
    assert run["certificate"]["spent"]["base_queries"] <= 3_000 + 999  # up to the end of an episode under way
    assert run["fresh"]["result"]["base_task_return"] > 80.0
    assert set(run["fresh"]) == {"result", "schedule"} or run["best_schedule"] is None
    (line,) = csv.DictReader(io.StringIO(zoo_csv([run])))
    assert float(line["result_saved"]) == run["fresh"]["result"]["queries_saved"]["value"]


@pytest.mark.parametrize(("low", "high", "verdict"), [(-0.9, 3.0, "yes"), (-3.0, 3.0, "open"), (-3.0, -1.1, "no")])
def test_fresh_episodes_show_that_the_margin_is_kept_or_not(low: float, high: float, verdict: str) -> None:
    assert fresh_verdict(wrapped_run(low, high)) == verdict


def test_the_table_has_the_median_and_the_range_over_seeds() -> None:
    lines = zoo_tables(
        [wrapped_run(-0.5, 0.5, 0, 0.8), wrapped_run(-3.0, 3.0, 1, 0.9), wrapped_run(-3.0, -2.0, 2, 0.7)]
    )
    cells = [cell.strip() for cell in lines[-1].split("|")[1:-1]]
    assert cells[:5] == ["car/wrap", "3", "3 of 3", "80.0% (70.0% to 90.0%)", "50.0%"]
    assert cells[7:9] == ["1, 1, 1", "3"]


def test_the_command_writes_a_table_and_goes_on_where_it_was(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(zoo, "ROWS", (CLIFF, *(row for row in zoo.ROWS if row.name == "ppo-hopper/wrap")))
    command = ("reproduce", "--suite", "zoo", "--seeds", "2", "--workers", "1", "--out", str(tmp_path / "zoo"))
    code, out, err = call(*command)
    assert code == 0, err
    assert "| cliff/scratch | 2 | -13.0 | 13.0 | 5.0 | 38.5% |" in out
    assert "ppo-hopper/wrap is left out" in err
    assert (tmp_path / "zoo" / "zoo.md").read_text() in out
    kept = tmp_path / "zoo" / "runs" / "cliff" / "scratch" / "seed0.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "queries": 6.0}))
    assert "(5.0 to 6.0)" in call(*command)[1]  # it is read, not learned again


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--steps", "10"), "--steps does not go with the suite zoo"),
        (("--engine", "ray"), "--engine ray does not go with the suite zoo"),
        (("--rows", "nothing"), "no row of the zoo matches 'nothing'"),
        (("--seeds", "0"), "seeds = 0 is not allowed"),
    ],
)
def test_what_the_zoo_does_not_take_is_refused(call: Any, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    code, _, err = call("reproduce", "--suite", "zoo", *options, "--out", str(tmp_path / "zoo"))
    assert code == 2
    assert said in " ".join(err.split())
    assert not (tmp_path / "zoo").exists()


def test_a_folder_of_other_things_is_refused(call: Any, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir")
    code, _, err = call("reproduce", "--suite", "zoo", "--rows", "cliff/*", "--out", str(tmp_path))
    assert (code, "already holds other files" in " ".join(err.split())) == (2, True)


def test_a_run_that_fails_is_told_and_the_others_are_kept(tmp_path: Path) -> None:
    zoo.opened(tmp_path / "zoo")
    broken = replace(CLIFF, name="broken/scratch", durations=())
    ended = dict(zoo.run_zoo([(broken, 0), (CLIFF, 0)], tmp_path / "zoo", 1))
    assert ended["cliff/scratch/seed0"] is None
    assert "Error" in (ended["broken/scratch/seed0"] or "")
    assert [run["row"] for run in zoo.finished_runs(tmp_path / "zoo", [broken, CLIFF])] == ["cliff/scratch"]


def test_ctrl_c_ends_the_workers_too(tmp_path: Path) -> None:
    arguments = ["--suite", "zoo", "--rows", "acrobot/scratch", "--seeds", "1", "--out", str(tmp_path / "zoo")]
    command = [sys.executable, "-m", "letitcook", "reproduce", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while len(children := workers_of(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "the same command goes on from there" in " ".join(said.split())
    while any(is_there(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(is_there(child) for child in children)


def workers_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def is_there(pid: int) -> bool:
    """Return whether a process is alive; one that has ended may stay in the list until somebody asks for its code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
