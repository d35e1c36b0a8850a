"""Promises of docs/reliability.md that belong to no single module: bit flips, fuzzing, the command line's own ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba
import pytest

from fuzzing import targets, tried, unnoticed_flips
from letitcook.cli import COMMANDS
from letitcook.core import jit


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "letitcook", *arguments], text=True, capture_output=True, check=False, **options
    )


def test_mutated_files_are_refused_with_declared_errors() -> None:
    found = tried(600, seed=20261117)
    worse = {outcome: n for outcome, n in found.items() if outcome not in ("loaded", "refused", "files")}
    assert not worse
    assert found["refused"] > 300


def test_a_bit_flip_in_a_saved_run_is_noticed() -> None:
    corpus = targets()
    for name in ("run table", "run family", "stopped network"):
        files = corpus[name].files
        assert unnoticed_flips(files, corpus[name].use, random.Random(1), 100) == 0
        manifest = {name: data for name, data in files.items() if name == "manifest.json"}
        flips = random.Random(2).sample(range(8 * len(manifest["manifest.json"])), 100)
        for bit in flips:
            data = bytearray(files["manifest.json"])
            data[bit // 8] ^= 1 << bit % 8
            with pytest.raises(ValueError, match=r"damaged|not the manifest|format"):
                corpus[name].use({**files, "manifest.json": bytes(data)})


def test_a_locale_that_knows_only_ascii() -> None:
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    for arguments in (["--help"], ["tasks"], ["train", "--help"]):
        done = command(*arguments, env=environment)
        assert (done.returncode, "UnicodeEncodeError" in done.stderr) == (0, False), done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_cannot_be_written() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "letitcook", "tasks"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.strip() == "error: the output cannot be written: No space left on device"


def test_markup_in_paths_is_text(tmp_path: Path) -> None:
    out = "a[/b] [red]"
    done = command("train", "cook", "--steps", "20000", "--out", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"saved in {out}; see: letitcook evaluate {out}" in done.stdout
    again = command("train", "cook", "--steps", "20000", "--out", out, cwd=tmp_path)
    assert (again.returncode, f"error: {out} already holds other files" in again.stderr) == (2, True)


def test_ctrl_c_while_the_command_line_is_loading() -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "letitcook", "tasks"], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stderr is not None
    for line in process.stderr:  # one of the first imports, many follow
        if line.rstrip().endswith(b" numpy"):
            break
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert b"Traceback" not in said
    assert process.returncode in (-signal.SIGINT, 1, 130, 0)


def test_machine_code_without_a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writable = jit._is_writable
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert jit._cache_place() is None, "beside the source it can be kept"
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(jit, "_is_writable", lambda folder: tmp_path in folder.parents and writable(folder))
    place = jit._cache_place()
    assert place is not None
    assert Path(place).parent == tmp_path
    assert Path(place).stat().st_mode & 0o077 == 0, "others could write machine code there"
    Path(place).chmod(0o777)
    assert jit._cache_place() == "", "a folder that others can write is not used"
    monkeypatch.setattr(jit, "_is_writable", lambda folder: False)
    assert jit._cache_place() == ""


NO_NETWORK = """
import json, socket, sys
def refused(*arguments, **options):
    raise AssertionError(f"a command opened a socket: {arguments}")
class Refused(socket.socket):
    def __init__(self, family=-1, *arguments, **options):
        if family != getattr(socket, "AF_UNIX", None):
            refused(family)
        super().__init__(family, *arguments, **options)
socket.socket = Refused
socket.create_connection = socket.getaddrinfo = refused
from letitcook.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["letitcook", *arguments]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    print("ENDED", arguments[0], code, file=sys.stderr)
"""


def test_no_command_opens_a_socket(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def push(observation):\n    return 2 if observation[1] > 0 else 0\n")
    (tmp_path / "durations.csv").write_text("118\n121\n120\n119\n125\n117\n122\n")
    (tmp_path / "tiny.toml").write_text('tasks = ["cook"]\nsteps = 20_000\nseeds = 1\n')
    wrap = ["--env", "MountainCar-v0", "--policy", "mine:push", "--wait", "1", "--durations", "2,4"]
    commands = {
        "tasks": [],
        "plan": ["cook"],
        "poll": ["durations.csv"],
        "train": ["cook", "--steps", "20000", "--out", "run"],
        "wrap": [*wrap, "--steps", "100", "--episodes", "2", "--out", "wrapped"],
        "evaluate": ["run", "--episodes", "1"],
        "front": ["wrapped", "--episodes", "2"],
        "watch": ["run", "--gif", "run.gif"],
        "export": ["run", "--out", "robot"],
        "interleave": ["coffee"],
        "record": [*wrap[:4], "--episodes", "1", "--out", "recording.safetensors"],
        "audit": ["--recording", "recording.safetensors"],
        "reproduce": ["--suite", "tiny.toml", "--engine", "serial", "--out", "sweep"],
        "status": ["sweep"],
        "report": ["sweep"],
    }
    known = set(COMMANDS)
    assert known == set(commands) | OTHERS, "a command is not tried here"
    asked = json.dumps([[name, *arguments] for name, arguments in commands.items()])
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK, asked], cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    ended = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("ENDED")]
    assert ended == [[name, "0"] for name in commands], done.stderr


OTHERS: set[str] = set()
"""Commands that need what is not installed here."""
