"""The house's rules: imports point one way, what is exported is what is meant, files stay readable."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import letitcook

SOURCE = Path(letitcook.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def house() -> ModuleType:
    """Return the script that knows the rooms."""
    path = Path(__file__).parent.parent / "docs" / "house.py"
    spec = importlib.util.spec_from_file_location("house", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_imports_point_one_way() -> None:
    rooms = house()
    assert {rooms.room_of(name) for name in rooms.modules()} == set(rooms.ROOMS)
    assert rooms.wrong_way() == []


def test_no_module_imports_itself_by_any_way() -> None:
    assert house().cycles() == []


def test_imports_inside_functions_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        "def f():\n    if True:\n        from letitcook.cli import main\n    import letitcook.report.page\n"
    )
    assert house().imported(file) == {"cli", "report.page"}


def test_contributing_draws_the_rooms_and_the_walks_as_they_are() -> None:
    rooms = house()
    text = (rooms.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = text.partition(rooms.BEGIN)[2].partition(rooms.END)[0]
    # In a process of its own: what other tests left in caches would shorten the walks.
    made = subprocess.run([sys.executable, str(rooms.__file__)], check=True, capture_output=True, text=True).stdout
    assert drawn.strip() == made.strip(), "CONTRIBUTING.md is out of date; run: make house"


def test_the_finite_and_the_deep_engine_do_not_know_each_other() -> None:
    rooms = house()
    for name, path in rooms.modules().items():
        if rooms.room_of(name) in ("finite", "deep"):
            others = {rooms.room_of(other) for other in rooms.imported(path)} - {rooms.room_of(name)}
            assert not others & {"finite", "deep"}


def test_what_is_exported_is_what_is_meant() -> None:
    public = {name for name in vars(letitcook) if not name.startswith("_")}
    modules = {path.stem for path in SOURCE.glob("*.py")} | {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert len(set(letitcook.__all__)) == len(letitcook.__all__)
    assert set(letitcook.__all__) <= public
    assert public - modules - set(letitcook.__all__) <= {"version"}
    assert not modules & set(letitcook.__all__), "a public name hides a module"


def test_what_is_public_shows_an_example() -> None:
    for name in letitcook.__all__:
        thing = getattr(letitcook, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in (thing.__doc__ or ""), f"{name} has no example"


def test_nothing_is_unpickled() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not {a.name for a in node.names} & {"pickle", "cloudpickle", "dill", "joblib"}, path
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("pickle", "cloudpickle", "dill", "joblib"), path
