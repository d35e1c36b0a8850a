from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

from letitcook import cli
from letitcook.experiments import jobs
from letitcook.experiments import sweep as sweeps
from letitcook.experiments.jobs import Finished
from letitcook.training.loop import Training


def as_json(result: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = result
    assert code == 0, err
    facts: dict[str, Any] = json.loads(out)
    return facts


def test_tasks(call: Any) -> None:
    code, out, _ = call("tasks")
    assert code == 0
    assert all(name in out for name in ("cook", "cook-longer", "cook-twice", "coffee"))
    assert as_json(call("tasks", "--json"))["tasks"][0]["durations"] == [5, 15]


def test_plan(call: Any) -> None:
    facts = as_json(call("plan", "cook", "--json"))
    assert (facts["task"], facts["mode"], facts["objective"]) == ("cook", "scratch", "lexicographic")
    assert (facts["length"], facts["queries"], facts["states"], len(facts["decisions"])) == (33, 25, 1279, 25)
    facts = as_json(call("plan", "coffee", "--mode", "wrap", "--objective", "scalar", "--lambda", "5", "--json"))
    assert (facts["length"], facts["queries"]) == (60, 34)
    facts = as_json(call("plan", "cook", "--horizon", "7", "--durations", "3,7", "--objective", "task", "--json"))
    assert facts["length"] == 7
    _, out, _ = call("plan", "cook")
    assert "wait 5 ×2" in out


def test_train_evaluate(call: Any, tmp_path: Path) -> None:
    arguments = ("--mode", "wrap", "--preset", "exact", "--steps", "50000", "--seed", "1", "--out", "run", "--json")
    begun = time.perf_counter()
    facts = as_json(call("train", "coffee", *arguments))
    assert (facts["length"], facts["queries"]) == (54, 36)
    assert 10_000 <= facts["best_step"] < 50_000 <= facts["steps"] < 50_015
    assert facts["steps_per_second"] > facts["steps"] / (time.perf_counter() - begun)  # that took longer than training
    played = as_json(call("evaluate", "run", "--episodes", "2", "--json"))
    assert (played["length"], played["queries"], played["episodes"]) == (54, 36, 2)
    assert 31 <= played["base_queries"] <= 34  # the idle steps outside the long waits may be base or wait
    code, out, _ = call("evaluate", "run", "--episodes", "1")
    assert code == 0
    assert "in waits of 15" in out
    inter = as_json(call("interleave", "coffee", "--run", "run", "--json"))
    assert inter["interleaved"]["length"] == 45


def test_export(call: Any, tmp_path: Path) -> None:
    as_json(call("train", "cook", "--mode", "wrap", "--preset", "exact", "--steps", "20000", "--out", "run", "--json"))
    facts = as_json(call("export", "run", "--out", "robot", "--json"))
    assert facts == {"to": "numpy", "out": "robot", "policy": "table", "actions": ["base", "wait"]}
    assert sorted(file.name for file in (tmp_path / "robot").iterdir()) == ["policy.npz", "policy.py"]
    for arguments, message in (
        (("--out", "robot"), "already holds"),
        (("--to", "onnx", "--out", "p.onnx"), "--to numpy"),
        (("--to", "onxx", "--out", "p.onnx"), "Did you mean 'onnx'?"),
    ):
        code, _, err = call("export", "run", *arguments)
        assert (code, message in err) == (2, True), err
    code, out, _ = call("export", "run", "--out", "other")
    assert (code, out) == (0, "other: a policy of actions base, wait\n")


def test_train_prints_for_people(call: Any) -> None:
    code, out, _ = call("train", "cook", "--mode", "wrap", "--method", "scalar", "--lambda", "0.1", "--steps", "20000")
    assert code == 0
    assert "length/queries" in out
    assert "exact optimum 53/39" in out


def test_interleave(call: Any) -> None:
    facts = as_json(call("interleave", "coffee", "--json"))
    assert facts["base"] == {"length": 54, "queries": 54}
    assert facts["wrapper"] == {"length": 54, "queries": 36}
    assert facts["interleaved"]["length"] == 45
    assert facts["fills"] == [{"time": 25, "wait": 15, "task": "fetch-sugar", "steps": 15}]
    code, out, _ = call("interleave", "coffee")
    assert code == 0
    assert "fetch-sugar (15 steps) in a wait of 15" in out
    facts = as_json(call("interleave", "coffee", "--durations", "7,15", "--json"))
    assert facts["interleaved"] == {"length": 41, "queries": 21}


def test_reproduce(call: Any, tmp_path: Path) -> None:
    smoke = ("reproduce", "--suite", "smoke", "--rows", "cook,mountain-car", "--steps", "2000", "--workers", "1")
    code, out, err = call(*smoke, "--out", "res")
    assert code == 0, err
    assert "cook, from scratch" in out
    assert out.strip().splitlines()[-1] == "res/report.html"
    assert (tmp_path / "res" / "figures" / "wait-durations.pdf").is_file()
    runs, table = pl.read_csv(tmp_path / "res" / "runs.csv"), pl.read_csv(tmp_path / "res" / "comparison.csv")
    assert table.height == runs.height == 10
    assert table["exact_length"].null_count() == 5
    before = (tmp_path / "res" / "runs.csv").read_bytes()
    facts = as_json(call(*smoke, "--out", "res", "--json"))
    assert facts["runs"] == runs.height
    assert facts["failures"] == {}
    assert (tmp_path / "res" / "runs.csv").read_bytes() == before
    (tmp_path / "res" / "report.html").unlink()
    assert as_json(call("report", "res", "--json")) == {"report": "res/report.html", "rows": 10, "runs": 10}
    assert (tmp_path / "res" / "report.html").is_file()
    facts = as_json(call("status", "res", "--json"))
    assert (facts["suite"], facts["runs_done"], facts["runs"], facts["at_work"]) == ("smoke", 11, 11, False)
    assert call("status", "res")[1] == "smoke: 11 of 11 runs, 10 of 10 rows, 100% of the timesteps; finished\n"
    code, _, err = call(*smoke, "--out", "res", "--no-resume")
    assert (code, "res is there already" in err) == (2, True)


def test_a_suite_of_ones_own(call: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'tasks = ["cook"]\nmodes = ["wrap"]\nseeds = [7]\nsteps = 2000\nsettings.alpha = 0.5\n'
    )
    facts = as_json(call("reproduce", "--suite", "mine.toml", "--engine", "serial", "--json"))
    assert (facts["suite"], facts["runs"], facts["out"]) == ("mine", 1, "results/mine")
    assert (tmp_path / "results/mine/runs/cook/lexicographic+alpha=0.5/wrap/seed7/manifest.json").is_file()
    (tmp_path / "mine.toml").write_text('tasks = ["cook"]\nmethods = [\n  "lexicographic",\n  "dqn",\n]\n')
    code, _, err = call("reproduce", "--suite", "mine.toml", "--out", "new")
    assert code == 2
    assert "mine.toml:4: no method named 'dqn'; use lexicographic, scalar, vanilla" in err
    assert not (tmp_path / "new").exists()


def test_a_failed_run_is_named_at_the_end(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run: Any, *others: Any) -> Any:
        if run.row.method == "vanilla" and run.steps > 1:  # not while the kernels are compiled
            raise ZeroDivisionError("by nothing")
        return whole(run, *others)

    whole = jobs.training_of
    monkeypatch.setattr(jobs, "training_of", broken)
    code, out, err = call(
        "reproduce", "--suite", "smoke", "--rows", "cook", "--steps", "500", "--workers", "1", "--out", "res"
    )
    assert code == 1
    last = err.strip().splitlines()[-3:]
    assert last[0] == "1 of 5 runs failed; the same command tries them again:"
    assert last[1] == "  cook/vanilla/scratch/seed0: ZeroDivisionError: by nothing"
    assert last[2] == "    log: res/failures/cook/vanilla/scratch/seed0.log"
    assert "4 rows, 4 runs" in out
    monkeypatch.setattr(jobs, "training_of", whole)
    code, out, _ = call(
        "reproduce", "--suite", "smoke", "--rows", "cook", "--steps", "500", "--workers", "1", "--out", "res"
    )
    assert (code, "5 rows, 5 runs" in out) == (0, True)


def test_train_with_networks_around_a_base_that_is_kept(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETITCOOK_CACHE", str(tmp_path / "cache"))
    wrapper = ("train", "cartpole", "--mode", "wrap", "--steps", "1500", "--json")
    facts = as_json(call(*wrapper, "--out", "run"))
    assert facts["finished"]
    bases = list((tmp_path / "cache").rglob("manifest.json"))
    assert len(bases) == 1
    again = as_json(call(*wrapper, "--base", str(bases[0].parent)))
    assert (again["length"], again["queries"]) == (facts["length"], facts["queries"])
    played = as_json(call("evaluate", "run", "--episodes", "3", "--json"))
    assert played["episodes"] == 3


def test_ctrl_c_keeps_the_best_and_a_resumable_state(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", "cook", "--steps", "60000", "--seed", "1", "--json")
    whole = as_json(call(*command))
    run = Training.run

    def interrupted(self: Training, *arguments: Any) -> Any:
        for n, point in enumerate(run(self, *arguments)):
            if n == 1:
                os.kill(os.getpid(), signal.SIGINT)
            yield point

    monkeypatch.setattr(Training, "run", interrupted)
    stopped = as_json(call(*command))
    assert (stopped["finished"], stopped["out"]) == (False, "cook-lexicographic-scratch-seed1-stopped")
    assert 20_000 <= stopped["steps"] < 30_000
    assert (tmp_path / stopped["out"] / "checkpoint.safetensors").is_file()
    again = as_json(call(*command))
    assert again["out"] == "cook-lexicographic-scratch-seed1-stopped-2"
    monkeypatch.setattr(Training, "run", run)
    done = as_json(call(*command, "--out", stopped["out"], "--resume"))
    assert not (tmp_path / stopped["out"] / "checkpoint.safetensors").exists()
    for name in ("finished", "length", "queries", "best_step", "steps"):
        assert done[name] == whole[name], name


BAD = {
    "resume without out": (("train", "cook", "--resume"), "needs the folder"),
    "resume nothing": (("train", "cook", "--resume", "--out", "nowhere"), "manifest.json is missing"),
    "base of a finite task": (("train", "cook", "--mode", "wrap", "--base", "x"), "--base goes with"),
    "unknown rows": (("reproduce", "--rows", "sarsa"), "no row of the suite 'discrete' is 'sarsa'"),
    "exact with networks": (("train", "pong", "--preset", "exact"), "no preset for networks named 'exact'"),
    "planning with networks": (("plan", "pong"), "cannot be enumerated"),
    "unknown task": (("plan", "cofee"), "Did you mean 'coffee'"),
    "unknown task, train": (("train", "coook"), "Did you mean 'cook'"),
    "empty durations": (("plan", "cook", "--durations", ""), "durations are empty"),
    "unsorted durations": (("plan", "cook", "--durations", "15,5"), "write them as 5,15"),
    "durations below two": (("plan", "cook", "--durations", "1,5"), "below 2"),
    "durations not whole": (("plan", "cook", "--durations", "2.5"), "not a whole number"),
    "durations not numbers": (("train", "cook", "--durations", "two"), "not a whole number"),
    "negative λ": (("plan", "cook", "--objective", "scalar", "--lambda", "-1"), "λ = -1 is not allowed"),
    "λ missing": (("train", "cook", "--method", "scalar"), "needs a λ"),
    "λ without scalar": (("train", "cook", "--lambda", "1"), "leave it out"),
    "unknown objective": (("plan", "cook", "--objective", "lex"), "no objective named 'lex'"),
    "unknown method": (("train", "cook", "--method", "dqn"), "no method named 'dqn'"),
    "unknown mode": (("train", "cook", "--mode", "wrapped"), "no mode named 'wrapped'"),
    "unknown preset": (("train", "cook", "--preset", "fast"), "no preset named 'fast'"),
    "wrapped vanilla": (("train", "cook", "--mode", "wrap", "--method", "vanilla"), "base policy itself"),
    "no horizon": (("plan", "cook", "--horizon", "0"), "at least 1 primitive step"),
    "horizon too long": (("plan", "cook", "--horizon", "1000000000"), "shorter horizon"),
    "no steps": (("train", "cook", "--steps", "0"), "steps = 0"),
    "no decisions": (("reproduce", "--decisions", "0"), "decisions = 0"),
    "steps and decisions": (("train", "cook", "--steps", "9", "--decisions", "9"), "both given"),
    "no seeds": (("reproduce", "--seeds", "0"), "seeds = 0"),
    "no workers": (("reproduce", "--workers", "0"), "workers = 0"),
    "unknown suite": (("reproduce", "--suite", "all"), "no suite named 'all'"),
    "unknown engine": (("reproduce", "--engine", "spark"), "no engine named 'spark'"),
    "no suite file": (("reproduce", "--suite", "mine.toml"), "mine.toml cannot be read"),
    "no sweep": (("status", "nowhere"), "manifest.json is missing"),
    "no report": (("report", "nowhere"), "manifest.json is missing"),
    "no run to watch": (("watch", "nowhere"), "manifest.json is missing"),
    "no run": (("evaluate", "nowhere"), "manifest.json is missing"),
    "no episodes": (("evaluate", "nowhere", "--episodes", "0"), "nowhere"),
    "durations of a run": (("interleave", "coffee", "--run", "x", "--durations", "5"), "leave out --durations"),
    "nothing to interleave": (("interleave", "cook"), "tasks that have: coffee"),
    "unwritable out": (("train", "cook", "--steps", "100", "--out", "/proc/run"), "cannot be written"),
    "unwritable out, sweep": (("reproduce", "--suite", "smoke", "--out", "/proc/run"), "cannot be written"),
    "out below a file": (("train", "cook", "--steps", "100", "--out", "/dev/null/run"), "is not a folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_and_exit_code_two(call: Any, tmp_path: Path, case: str) -> None:
    arguments, message = BAD[case]
    code, out, err = call(*arguments)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1, err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_holds_other_results_is_left_alone(call: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("notes")
    for arguments in (("train", "cook", "--steps", "100"), ("reproduce", "--suite", "smoke")):
        code, _, err = call(*arguments, "--out", "mine")
        assert code == 2
        assert "already holds other files" in err
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_every_command_shows_an_example(call: Any) -> None:
    for command in sorted(typer.main.get_command(cli.app).commands):  # type: ignore[attr-defined]
        code, out, _ = call(command, "--help")
        assert code == 0
        assert f"Example: letitcook {command}" in " ".join(out.split())


def test_the_installed_command_and_its_version(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("letitcook")
    result = subprocess.run(
        [command, "--version"], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"}
    )
    assert result.stdout.strip()
    again = subprocess.run(
        [sys.executable, "-m", "letitcook", "plan", "nope"], capture_output=True, text=True, check=False
    )
    assert (again.returncode, again.stdout) == (2, "")
    assert "no task named 'nope'" in again.stderr


def test_ctrl_c_in_a_sweep_says_what_is_kept(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sweeps.sweep

    def interrupted(*arguments: Any) -> Any:
        done = 0
        for run, message in whole(*arguments):
            yield run, message
            done += isinstance(message, Finished)
            if done == 2:
                raise KeyboardInterrupt

    smoke = ("reproduce", "--suite", "smoke", "--rows", "cook", "--steps", "500", "--workers", "1", "--out", "res")
    monkeypatch.setattr(sweeps, "sweep", interrupted)
    code, _, err = call(*smoke)
    assert code == 130
    assert "keeps 2 of 5 runs, and the same command goes on from there" in err
    monkeypatch.setattr(sweeps, "sweep", whole)
    assert as_json(call(*smoke, "--json"))["runs"] == 5


def test_any_environment_of_gymnasium_is_trained_and_played_again(call: Any) -> None:
    lake = ("--env", "FrozenLake-v1", "--env-arg", "is_slippery=False", "--wait", "0", "--durations", "2")
    code, out, _ = call("train", *lake, "--steps", "20000", "--preset", "exact", "--out", "lake")
    assert code == 0 and "FrozenLake-v1, scratch, lexicographic" in out
    facts = as_json(call("evaluate", "lake", "--episodes", "2", "--json"))
    assert facts["episodes"] == 2 and facts["mode"] == "scratch"
    for arguments, problem in (
        ((), "name a task"),
        (("cook", *lake), "name a task"),
        (lake[:4], "--wait"),
        (lake[:6], "--durations"),
        ((*lake, "--mode", "wrap"), "letitcook wrap"),
        (("cook", "--wait", "0"), "go with --env"),
    ):
        code, _, err = call("train", *arguments)
        assert code == 2 and problem in err
