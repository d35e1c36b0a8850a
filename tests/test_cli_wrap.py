from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from letitcook import load
from letitcook.cli.options import certified_line
from letitcook.errors import FileFormatError, SettingError
from letitcook.training.env_spec import WrappedEnvSpec, env_arguments, fingerprint, read_action
from letitcook.training.loop import Training
from signing import sign

CODE = """
from pathlib import Path

Path("loaded").touch()

def push(observation):
    return 2 if observation[1] > 0 else 0

def outside(observation):
    return 7

def not_a_number(observation):
    return float("nan")

def broken(observation):
    return {}["nothing"]

def force(observation):
    return [0.5]

def wild(observation):
    return [float("nan")]

def right(observation):
    return 2

def drift(car):
    return car.step(1)

class Push:
    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return push(observation), state

number = 3
"""
"""A policy's module; it leaves a mark when it is loaded."""
WRAP = ("--env", "MountainCar-v0", "--policy", "my_code:push", "--wait", "1", "--durations", "2,4", "--steps", "300")
QUICK = (*WRAP, "--env-arg", "max_episode_steps=40", "--episodes", "3")


@pytest.fixture(name="call")
def call_beside_my_code(call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run the command line in a folder with `my_code.py`, which every call loads anew."""
    (tmp_path / "my_code.py").write_text(CODE)
    importlib.invalidate_caches()

    def run(*arguments: str) -> tuple[int, str, str]:
        sys.modules.pop("my_code", None)
        result: tuple[int, str, str] = call(*arguments)
        return result

    yield run
    sys.modules.pop("my_code", None)


def as_json(result: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = result
    assert code == 0, err
    facts: dict[str, Any] = json.loads(out)
    return facts


def swap(arguments: tuple[str, ...], **changes: str | None) -> tuple[str, ...]:
    """Return the arguments with others in place of some; None leaves one out."""
    pairs = dict(zip(arguments[::2], arguments[1::2], strict=True))
    pairs.update({f"--{name.replace('_', '-')}": value for name, value in changes.items()})  # type: ignore[misc]
    return tuple(part for pair in pairs.items() if pair[1] is not None for part in pair)


def test_a_policy_is_wrapped_saved_and_played_again(call: Any, tmp_path: Path) -> None:
    facts = as_json(call("wrap", *QUICK, "--seed", "1", "--out", "run", "--query-ms", "200", "--json"))
    assert (facts["env"], facts["env_args"], facts["policy"]) == (
        "MountainCar-v0",
        {"max_episode_steps": 40},
        "my_code:push",
    )
    assert (facts["wait"], facts["durations"], facts["finished"]) == ("1", [2, 4], True)
    savings = facts["savings"]
    assert (savings["episodes"], savings["base_length"], savings["base_queries_alone"]) == (3, 40, 40)
    assert savings["return_difference"] == {"value": 0.0, "low": 0.0, "high": 0.0}  # 40 steps never reach the goal
    assert savings["seconds_alone"] == 40 * 0.2
    assert savings["queries_saved"]["value"] == 1 - savings["base_queries"] / 40
    run = load(tmp_path / "run")
    assert run.info.env_spec is not None
    assert run.info.env_spec.data() == {name: facts[name] for name in run.info.env_spec.data()}
    assert run.info.env_spec.policy_sha256 == fingerprint("my_code:push")
    assert (run.info.task, run.info.mode) == (None, "wrap")
    played = as_json(call("evaluate", "run", "--episodes", "3", "--seed", "1", "--query-ms", "200", "--json"))
    timed = ("policy_seconds", "seconds_wrapped", "seconds_saved")
    for name in set(savings) - set(timed):
        assert played["savings"][name] == savings[name], name
    code, out, _ = call("evaluate", "run", "--episodes", "2")
    assert code == 0
    assert "MountainCar-v0, wrap, lexicographic, 2 episodes" in out
    assert "base alone   wrapper" in out
    assert run.certificate is not None and played["certified_before"] == run.certificate
    assert f"when it was chosen: {certified_line(run.certificate)}" in out
    assert f"{100 * savings['queries_saved']['value']:.1f}%" in out
    code, out, _ = call("wrap", *QUICK, "--out", "other")
    assert code == 0
    assert "saved an episode" in out or "lost an episode" in out
    assert out.endswith("saved in other; see: letitcook evaluate other\n")


def test_policies_waits_and_environments_of_other_kinds(call: Any, tmp_path: Path) -> None:
    quick = ("--durations", "2", "--steps", "60", "--episodes", "2", "--env-arg", "max_episode_steps=10")
    box = ("--env", "MountainCarContinuous-v0", "--policy", "my_code:force")
    facts = as_json(call("wrap", *box, "--wait", "0", *quick, "--out", "box", "--json"))
    assert facts["savings"]["base_queries_alone"] == 10
    assert as_json(call("evaluate", "box", "--episodes", "2", "--json"))["savings"][
        "base_task_return"
    ] == pytest.approx(facts["savings"]["base_task_return"])
    added = ("--env", "MountainCar-v0", "--policy", "my_code:Push.predict", "--passive", "my_code:drift")
    code, _, err = call("wrap", *added, *quick, "--out", "added")
    assert (code, "missing" in err) == (2, True), err
    with (tmp_path / "my_code.py").open("a") as file:
        file.write("\npolicy = Push()\n")
    added = ("--env", "MountainCar-v0", "--policy", "my_code:policy", "--passive", "my_code:drift")
    facts = as_json(call("wrap", *added, *quick, "--out", "added", "--json"))
    assert (facts["wait"], facts["passive"]) == (None, "my_code:drift")
    assert as_json(call("evaluate", "added", "--episodes", "2", "--json"))["savings"]["base_length"] == 10


def test_a_task_of_ours_with_a_base_of_ones_own_is_not_taken_for_the_task(call: Any, tmp_path: Path) -> None:
    (tmp_path / "my_code.py").write_text("def north(observation):\n    return 0\n")
    cook = ("--env", "letitcook/Cook-v0", "--policy", "my_code:north", "--wait", "4", "--durations", "5")
    facts = as_json(call("wrap", *cook, "--steps", "500", "--episodes", "2", "--out", "run", "--json"))
    assert facts["savings"]["base_length"] == 200  # the handwritten base is done after 53 steps
    assert as_json(call("evaluate", "run", "--episodes", "2", "--json"))["savings"]["base_length"] == 200


def test_savings_of_our_own_wrapped_tasks(call: Any) -> None:
    train = (
        "train",
        "coffee",
        "--mode",
        "wrap",
        "--preset",
        "exact",
        "--steps",
        "50000",
        "--seed",
        "1",
        "--out",
        "run",
    )
    as_json(call(*train, "--json"))
    played = as_json(call("evaluate", "run", "--episodes", "2", "--json"))
    assert (played["task"], played["mode"], played["length"], played["queries"]) == ("coffee", "wrap", 54, 36)
    assert played["savings"]["return_difference"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert (played["savings"]["base_queries_alone"], played["savings"]["longest_wait"]) == (54, 15)
    code, out, _ = call("evaluate", "run", "--episodes", "1")
    assert code == 0
    assert "longest wait 15 steps" in out


def test_ctrl_c_keeps_a_run_that_can_be_resumed(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = ("--env", "FrozenLake-v1", "--policy", "my_code:right", "--wait", "0", "--durations", "2,4")
    long = (*lake, "--steps", "50000", "--episodes", "3")
    whole = as_json(call("wrap", *long, "--out", "whole", "--json"))
    run = Training.run

    def interrupted(self: Training, *arguments: Any) -> Any:
        for point in run(self, *arguments):
            if point.step <= 10_010:
                os.kill(os.getpid(), signal.SIGINT)
            yield point

    monkeypatch.setattr(Training, "run", interrupted)
    stopped = as_json(call("wrap", *long, "--out", "run", "--json"))
    assert (stopped["finished"], stopped["savings"]) == (False, None)
    monkeypatch.setattr(Training, "run", run)
    code, _, err = call("wrap", *long, "--out", "run")
    assert (code, "already holds other files" in err) == (2, True)
    other = swap(long, durations="2,8")
    code, _, err = call("wrap", *other, "--out", "run", "--resume")
    assert (code, "other settings (decisions, env_spec)" in err) == (2, True), err
    done = as_json(call("wrap", *long, "--out", "run", "--resume", "--json"))
    for name in ("finished", "steps", "best_step"):
        assert done[name] == whole[name], name
    assert done["savings"]["base_queries"] == whole["savings"]["base_queries"]
    code, _, err = call("wrap", *long, "--out", "run", "--resume")
    assert (code, "this run is finished" in err) == (2, True)


BAD = {
    "unknown env": ({"env": "MountainCra-v0"}, "Did you mean: `MountainCar`"),
    "unknown version": ({"env": "MountainCar-v9"}, "MountainCar-v9"),
    "unknown env module": ({"env": "no_such_module:Env-v0"}, "No module named 'no_such_module'"),
    "unknown env argument": ({"env_arg": "colour=red"}, "unexpected keyword argument 'colour'"),
    "env argument without value": ({"env_arg": "colour"}, "is not KEY=VALUE"),
    "env argument not finite": ({"env_arg": "goal_velocity=1e999"}, "not finite"),
    "policy of no form": ({"policy": "my_code"}, "MODULE:NAME"),
    "policy module missing": ({"policy": "no_such_module:push"}, "no module named 'no_such_module'"),
    "policy function missing": ({"policy": "my_code:pusch"}, "Did you mean 'push'?"),
    "policy not callable": ({"policy": "my_code:number"}, "is not a policy"),
    "policy is a class": ({"policy": "my_code:Push"}, "is a class, not a policy"),
    "policy file missing": ({"policy": "sb3:dqn:model.zip"}, "model.zip cannot be read: No such file"),
    "action outside": ({"policy": "my_code:outside"}, "answered 7"),
    "action not a number": ({"policy": "my_code:not_a_number"}, "nan"),
    "policy fails": ({"policy": "my_code:broken"}, "KeyError: 'nothing' (my_code.py:16)"),
    "wait outside": ({"wait": "9"}, "outside the action space"),
    "wait negative": ({"wait": "-1"}, "outside the action space"),
    "wait not a number": ({"wait": "noop"}, "wait action 'noop' is not a number"),
    "wait too many": ({"wait": "1,1"}, "outside the action space Discrete(3)"),
    "no wait": ({"wait": None}, "--wait, or one to add with --passive"),
    "wait twice": ({"passive": "my_code:drift"}, "--wait, or one to add with --passive"),
    "passive missing": ({"wait": None, "passive": "idle"}, "'idle' is not a method"),
    "durations empty": ({"durations": ""}, "durations are empty"),
    "durations unsorted": ({"durations": "8,4"}, "write them as 4,8"),
    "durations too short": ({"durations": "1,4"}, "below 2"),
    "durations not numbers": ({"durations": "two"}, "not a whole number"),
    "no steps": ({"steps": "-1"}, "steps = -1"),
    "no episodes": ({"episodes": "0"}, "episodes = 0"),
    "negative seed": ({"seed": "-1"}, "seed = -1"),
    "negative cost": ({"query_ms": "-5"}, "cannot take -0.005 seconds"),
    "unknown preset": ({"preset": "fast"}, "'fast'"),
    "out below a file": ({"out": "my_code.py/run"}, "is not a folder"),
    "continuous wait outside": (
        {"env": "MountainCarContinuous-v0", "policy": "my_code:force", "wait": "2.5"},
        "outside the action space",
    ),
    "continuous wait not finite": (
        {"env": "MountainCarContinuous-v0", "policy": "my_code:force", "wait": "nan"},
        "outside the action space",
    ),
    "continuous wait too many": (
        {"env": "MountainCarContinuous-v0", "policy": "my_code:force", "wait": "0,0"},
        "its shape is (2,), not (1,)",
    ),
    "continuous action not a number": (
        {"env": "MountainCarContinuous-v0", "policy": "my_code:wild", "wait": "0"},
        "nan",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_and_nothing_is_written(call: Any, tmp_path: Path, case: str) -> None:
    changes, message = BAD[case]
    code, out, err = call("wrap", *swap((*WRAP, "--out", "run"), **changes))  # type: ignore[arg-type]
    assert code == 2, err
    assert message in err
    assert len(err.strip().splitlines()) == 1, err
    assert "Traceback" not in err
    assert out == ""
    assert {path.name for path in tmp_path.iterdir()} <= {"my_code.py", "loaded", "__pycache__"}


LATER = {"policy", "env", "preset"}
"""What is only known to be wrong once it was loaded."""


@pytest.mark.parametrize("case", [case for case in BAD if LATER.isdisjoint(BAD[case][0])])  # type: ignore[arg-type]
def test_other_mistakes_are_found_before_the_policy_is_loaded(call: Any, tmp_path: Path, case: str) -> None:
    assert call("wrap", *swap((*WRAP, "--out", "run"), **BAD[case][0]))[0] == 2  # type: ignore[arg-type]
    assert not (tmp_path / "loaded").exists()


def test_files_of_stable_baselines3(call: Any, tmp_path: Path) -> None:
    (tmp_path / "model.zip").write_bytes(b"PK")
    for policy, message in (
        ("sb3:dqm:model.zip", "no algorithm named 'dqm'. Did you mean 'dqn'?"),
        ("sb3:model.zip", "cannot be read"),
        ("sb3:dqn:model", "is damaged" if find_spec("torch") else "pip install 'letitcook[torch]'"),
    ):
        code, _, err = call("wrap", *swap((*WRAP, "--out", "run"), policy=policy))
        assert (code, message in err) == (2, True), err
    assert not (tmp_path / "run").exists()


def test_an_output_that_holds_other_things_is_left_alone(call: Any, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("notes")
    code, _, err = call("wrap", *WRAP, "--out", "run")
    assert (code, "already holds other files" in err) == (2, True)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]
    assert not (tmp_path / "loaded").exists()


@pytest.fixture
def saved(call: Any, tmp_path: Path) -> Any:
    """A saved run, and how to change what its manifest says of itself."""
    as_json(call("wrap", *swap(QUICK, steps="60", episodes="2"), "--out", "run", "--json"))
    (tmp_path / "loaded").unlink()
    path = tmp_path / "run" / "manifest.json"

    def change(**changes: Any) -> None:
        manifest = json.loads(path.read_text())
        manifest["run"]["env_spec"].update(changes)
        path.write_text(json.dumps(manifest))
        sign(path.parent)

    return change


def test_a_policy_that_has_changed_is_refused_before_it_is_loaded(call: Any, saved: Any, tmp_path: Path) -> None:
    source = tmp_path / "my_code.py"
    source.write_text(source.read_text() + "\n")
    code, _, err = call("evaluate", "run")
    assert (code, "my_code:push is not the one that was wrapped: its file has changed" in err) == (2, True), err
    source.unlink()
    importlib.invalidate_caches()
    code, _, err = call("evaluate", "run")
    assert (code, "no module named 'my_code'" in err) == (2, True), err
    assert not (tmp_path / "loaded").exists()


TAMPERED = {
    "another module": ({"policy": "json:loads"}, "is not the one that was wrapped"),
    "no fingerprint": ({"policy_sha256": None}, "policy_sha256 = None"),
    "another environment": ({"env": "NoSuch-v0"}, "cannot be made"),
    "environment not text": ({"env": 3}, "env = 3"),
    "arguments not a table": ({"env_args": "x"}, "does not name an environment"),
    "something more": ({"command": "x"}, "does not name an environment"),
    "other durations": ({"durations": [2, 8]}, "does not have the decisions of MountainCar-v0"),
    "durations not whole": ({"durations": [2, "4"]}, "durations = [2, '4']"),
    "durations out of order": ({"durations": [4, 2]}, "write them as 2,4"),
    "no wait": ({"wait": None}, "wait action ''"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_run_is_refused(call: Any, saved: Any, tmp_path: Path, case: str) -> None:
    changes, message = TAMPERED[case]
    saved(**changes)  # type: ignore[arg-type]
    before = sorted(path.name for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    code, out, err = call("evaluate", "run", "--episodes", "2")
    assert (code, out) == (2, ""), err
    assert message in err
    assert "Traceback" not in err
    if case != "other durations":
        assert sorted(path.name for path in tmp_path.rglob("*") if "__pycache__" not in path.parts) == before


def test_a_damaged_run_is_refused(call: Any, saved: Any, tmp_path: Path) -> None:
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    for name in ("decisions", "env_spec", "settings"):
        info = {key: value for key, value in manifest["run"].items() if key != name}
        path.write_text(json.dumps({**manifest, "run": info}))
        sign(path.parent)
        code, _, err = call("evaluate", "run", "--episodes", "2")
        assert (code, "Traceback" in err) == (2, False)
    path.write_text(json.dumps(manifest)[:-100])
    code, _, err = call("evaluate", "run")
    assert (code, "is damaged" in err) == (2, True)
    path.write_text(json.dumps(manifest))
    (tmp_path / "run" / "policy.safetensors").write_bytes(b"x")
    sign(path.parent)
    code, _, err = call("evaluate", "run")
    assert (code, "policy.safetensors is damaged" in err) == (2, True)
    assert not (tmp_path / "loaded").exists()


def test_read_actions() -> None:
    assert read_action("3", spaces.Discrete(5)) == 3
    assert read_action("1,0", spaces.MultiDiscrete([3, 2])).tolist() == [1, 0]
    assert read_action("0", spaces.MultiBinary(3)).tolist() == [0, 0, 0]
    box = spaces.Box(-1.0, 1.0, (2, 2))
    action = read_action("0,0.5,-0.5,1", box)
    assert (action.tolist(), action.dtype) == ([[0.0, 0.5], [-0.5, 1.0]], np.float32)
    assert box.contains(action)
    for bad, space in (("-1", spaces.MultiBinary(2)), ("9" * 30, spaces.MultiDiscrete([2, 2])), ("inf", box)):
        with pytest.raises(SettingError, match="outside the action space"):
            read_action(bad, space)
    with pytest.raises(SettingError, match="outside the action space"):
        read_action("300", spaces.Box(0, 255, (1,), np.uint8))
    with pytest.raises(SettingError, match="outside the action space Dict"):
        read_action("0", spaces.Dict({"a": spaces.Discrete(2)}))
    with pytest.raises(SettingError, match="whole numbers"):
        read_action("0.5", spaces.Discrete(2))


def test_arguments_of_environments() -> None:
    given = ["a=1", "b=0.5", "c=text", 'd=[1, {"x": null}]', "e=None", "f==", "g="]
    assert env_arguments(given) == {"a": 1, "b": 0.5, "c": "text", "d": [1, {"x": None}], "e": None, "f": "=", "g": ""}
    for bad in (["a=1", "a=2"], ["=1"], ["a b=1"], ["a=NaN"], ["a=[Infinity]"]):
        with pytest.raises(SettingError):
            env_arguments(bad)


def test_an_origin_comes_back_from_its_data() -> None:
    origin = WrappedEnvSpec("FrozenLake-v1", "m:f", "0" * 64, (2, 4), wait="0", env_args={"is_slippery": False})
    assert WrappedEnvSpec.of_data(json.loads(json.dumps(origin.data()))) == origin
    for damaged in (None, [], {}, {**origin.data(), "wait": 3}):  # type: ignore[var-annotated]
        with pytest.raises(FileFormatError):
            WrappedEnvSpec.of_data(damaged)


def test_a_module_is_found_without_loading_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    inner = tmp_path / "some_package"
    inner.mkdir()
    (inner / "__init__.py").write_text("raise SystemExit\n")
    (inner / "policy.py").write_text("raise SystemExit\n")
    importlib.invalidate_caches()
    assert len(fingerprint("some_package.policy:act")) == 64
    assert fingerprint("some_package.policy:act") == fingerprint("some_package:act")
    for missing in ("some_package.other:act", "some_package.policy.more:act", "policy.py:act", ".:act", "model.zip"):
        with pytest.raises(SettingError, match="no module named"):
            fingerprint(missing)


def test_the_help_shows_an_example(call: Any) -> None:
    code, out, _ = call("wrap", "--help")
    assert code == 0
    assert "Example: letitcook wrap --env MountainCar-v0" in " ".join(out.split())
