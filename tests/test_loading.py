"""What is loaded when: `import letitcook` and `letitcook --help` do without the heavy packages."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import letitcook
from letitcook.cli import COMMANDS

HEAVY = ("numba", "llvmlite", "scipy", "polars", "matplotlib", "torch", "pandas")


def loaded(program: str) -> set[str]:
    """Return the top-level modules that a program in a new process has loaded at its end."""
    program += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ended.stderr.split()}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded("import letitcook") & {*HEAVY, "typer", "rich"}


def test_the_list_of_commands_loads_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv[1:] = ['--help']\nfrom letitcook.cli import main\ntry: main()\nexcept SystemExit: pass"
    )
    names = loaded(program)
    assert "typer" in names
    assert not names & set(HEAVY)


def test_environments_are_registered_by_the_import_alone() -> None:
    assert "gymnasium" in loaded("import letitcook, gymnasium; gymnasium.make('letitcook/Cook-v0')")


def test_public_names_are_those_of_their_modules() -> None:
    for name in letitcook.__all__:
        assert getattr(letitcook, name) is getattr(import_module(f"letitcook.{letitcook._HOMES[name]}"), name)
    assert set(letitcook.__all__) == set(letitcook._HOMES)
    assert {*letitcook.__all__, "poll", "__version__"} <= set(dir(letitcook))
    assert letitcook.poll is import_module("letitcook.poll")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        letitcook.nonsense  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(letitcook.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found = {
        alias.name: node.module.removeprefix("letitcook.")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module != "letitcook"
        for alias in node.names
    }
    assert found == letitcook._HOMES


def test_the_list_of_commands_says_what_their_docstrings_say() -> None:
    for name, (module, summary) in COMMANDS.items():
        command = getattr(import_module(f"letitcook.cli.{module}"), name)
        first = (inspect.getdoc(command) or "").partition("\n\n")[0]
        assert " ".join(first.split()) == summary
