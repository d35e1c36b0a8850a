"""Runs in a folder: claimed first, kept whatever ends them, and resumed to the same bits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from letitcook import Budget, Learned, learn, load, make, wrap
from letitcook.errors import FileFormatError, OutputError, SettingError
from letitcook.storage import folders
from letitcook.training.keeping import kept_in
from letitcook.training.loop import Training

STEPS = 60_000


def run(out: Path, resume: bool = False, callback: Any = None, steps: int = STEPS) -> Learned:
    env = make("cook", mode="wrap")
    return learn(
        env, steps=steps, seed=1, progress=False, out=out, resume=resume, callback=callback, checkpoint_seconds=0.0
    )


def content(folder: Path) -> dict[str, Any]:
    """Return what a run's folder holds, without times."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("seconds", "provenance", "sha256"):
        del manifest[name]
    return {**found, "manifest": manifest}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    run(out)
    return out


def at(evaluation: int, do: Callable[[], None]) -> Callable[[Any, Any], None]:
    """Return a callback that does something at one of the evaluations."""
    seen = []

    def call(point: Any, training: Any) -> None:
        seen.append(point)
        if len(seen) == evaluation:
            do()

    return call


def fail(error: BaseException) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), MemoryError(), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_ends_a_run_it_is_kept_and_goes_on(tmp_path: Path, whole: Path, error: BaseException) -> None:
    out = tmp_path / "run"
    with pytest.raises(type(error)):
        run(out, callback=at(3, fail(error)))
    state = load(out)
    assert (state.finished, len(state.curve)) == (False, 3)
    assert sorted(path.name for path in out.iterdir()) == ["checkpoints"]
    assert len(list((out / "checkpoints").iterdir())) == 2, "the last two are kept"
    with pytest.raises(OutputError, match=r"not finished; go on with it \(--resume\)"):
        run(out)
    assert run(out, resume=True).finished
    assert content(out) == content(whole)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in whole.iterdir())


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_a_run_and_keep_it(tmp_path: Path, whole: Path, which: signal.Signals) -> None:
    before = signal.getsignal(which)
    handler = signal.signal(which, signal.SIG_DFL if which != signal.SIGINT else signal.default_int_handler)
    try:
        stopped = run(tmp_path / "run", callback=at(2, lambda: os.kill(os.getpid(), which)))
    finally:
        signal.signal(which, handler)
    assert signal.getsignal(which) == before
    assert (stopped.finished, len(stopped.curve)) == (False, 2)
    assert run(tmp_path / "run", resume=True).finished
    assert content(tmp_path / "run") == content(whole)


def test_a_budget_counts_what_was_spent_before_the_stop(tmp_path: Path) -> None:
    small = {"hidden": (4, 4), "buffer_size": 500, "learning_starts": 200, "fourier_features": 1, "gradient_steps": 1}

    def wrapper(name: str, resume: bool = False, callback: Any = None) -> dict[str, Any]:
        env = wrap(gym.make("MountainCar-v0"), lambda o: 2 if o[1] > 0 else 0, wait=1, durations=(2, 4))
        budget, out = Budget(episodes=250), tmp_path / name
        options = {"settings": small, "budget": budget, "out": out, "resume": resume, "callback": callback}
        learn(env, steps=12_000, seed=1, progress=False, checkpoint_seconds=0.0, **options)
        found = content(out)
        del found["manifest"]["certificate"]["spent"]["seconds"]
        return found

    whole = wrapper("whole")
    with pytest.raises(KeyError):
        wrapper("stopped", callback=at(1, fail(KeyError())))
    assert 0 < load(tmp_path / "stopped").spent["episodes"] < 250  # type: ignore[index]
    assert wrapper("stopped", resume=True) == whole


def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyError):
        run(out, callback=at(4, fail(KeyError())))
    older, newest = sorted((out / "checkpoints").iterdir())
    data = bytearray((newest / "checkpoint.safetensors").read_bytes())
    data[-1] ^= 1
    (newest / "checkpoint.safetensors").write_bytes(data)
    assert len(load(out).curve) < 4
    assert run(out, resume=True).finished
    assert content(out) == content(whole)
    assert older.name != newest.name


def test_nothing_whole_is_left(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyError):
        run(out, callback=at(2, fail(KeyError())))
    for path in out.rglob("manifest.json"):
        path.write_text("{}")
    with pytest.raises(FileFormatError, match="not the manifest of a run"):
        run(out, resume=True)


def test_a_kill_before_the_first_checkpoint(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / folders.LOCK).touch()
    assert run(out, resume=True).finished
    assert content(out) == content(whole)
    with pytest.raises(SettingError, match="finished, there is nothing to resume"):
        run(out, resume=True)


def test_a_run_that_was_stopped_and_saved_elsewhere(tmp_path: Path, whole: Path) -> None:
    def stopped_after_two(self: Training, *arguments: Any) -> Any:
        for n, point in enumerate(original(self, *arguments)):
            yield point
            if n == 1:
                return

    original = Training.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "run", stopped_after_two)
        stopped = learn(make("cook", mode="wrap"), steps=STEPS, seed=1, progress=False)
    out = stopped.save(tmp_path / "run")
    assert (out / "checkpoint.safetensors").exists()
    assert run(out, resume=True).finished
    assert content(out) == content(whole)


def test_a_second_process_is_refused_before_it_begins(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code = f"""
from letitcook.storage import folders
from pathlib import Path
with folders.claimed(Path({str(out)!r}), "run"):
    print("claimed", flush=True)
    input()
"""
    out.mkdir()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"claimed\n"
        began: list[int] = []
        for resume in (False, True):
            with pytest.raises(OutputError, match="another run is at work"):
                run(out, resume=resume, callback=at(1, lambda: began.append(1)))
        assert not began
        other.kill()
    assert run(out, steps=10_000).finished, "the claim goes with the process"


def test_where_nothing_comes_of_it_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        learn(make("cook"), steps=10, settings={"alpha": 7.0}, out=tmp_path / "run", progress=False)
    with pytest.raises(SettingError, match="seconds of at least 0"), kept_in(tmp_path / "run", False, -1.0):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_for_a_while_does_not_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, left = folders._write_through, [1]

    def full(path: Path, data: bytes) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(28, "No space left on device")
        write(path, data)

    monkeypatch.setattr(folders, "_write_through", full)
    assert run(tmp_path / "run").finished
    assert left[0] < 0


def test_a_full_disk_at_the_end_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    out, write = tmp_path / "run", folders._write_through

    def full(path: Path, data: bytes) -> None:
        if path.parent == out:
            raise OSError(28, "No space left on device")
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "_write_through", full)
        with pytest.raises(OutputError, match="make room and start the same command again"):
            run(out)
    assert not load(out).finished
    assert run(out, resume=True).finished
    assert content(out) == content(whole)


def test_a_kill_while_the_result_is_written(tmp_path: Path, whole: Path) -> None:
    """The result's files are there but its manifest is not: the last state stands for the run."""
    out = tmp_path / "run"
    with pytest.raises(KeyError):
        run(out, callback=at(5, fail(KeyError())))
    shutil.copy(whole / "policy.safetensors", out)
    assert len(load(out).curve) == 5
    assert run(out, resume=True).finished
    assert content(out) == content(whole)
