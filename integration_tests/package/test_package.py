"""The package as users get it: everything is in it, and the README's lines run in an environment that has just it.

`make test-package` runs this in the unpacked sdist, with the wheel installed.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import letitcook

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
STEPS = re.compile(r"steps=([\d_]+)")
QUICK = ("letitcook tasks", "letitcook plan", "letitcook interleave")
"""Commands of the README that need no run that was trained before."""


def test_what_is_installed_is_the_wheel_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "site-packages" in Path(letitcook.__file__).parts
    assert letitcook.__version__ == project["version"]


def test_what_is_not_python_is_installed_too() -> None:
    source = ROOT / "src" / "letitcook"
    others = [path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".py"]
    assert any(path.name == "py.typed" for path in others)
    for path in others:
        assert resources.files("letitcook").joinpath(*path.parts).is_file(), path


def test_the_lines_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a few steps of each training; what comes of all of them is compared by the unit tests."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    examples = doctest.DocTestParser().get_examples(README)
    assert len(examples) > 15
    for example in examples:
        source = STEPS.sub(lambda found: f"steps={min(int(found[1]), 1_100)}", example.source)
        exec(compile(source, "README.md", "single"), names)
    assert letitcook.load("car").certified


def test_the_commands_of_the_readme_run() -> None:
    commands = [line.partition("#")[0] for line in README.splitlines() if line.startswith(QUICK)]
    assert all(any(command.startswith(quick) for command in commands) for quick in QUICK)
    for command in commands:
        program = Path(sys.executable).parent / "letitcook"
        done = subprocess.run([program, *shlex.split(command)[1:]], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout
