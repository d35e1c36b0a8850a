"""The house's rules: imports point one way, what is exported is what is meant, files stay readable."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import letitcook

SOURCE = Path(letitcook.__file__).parent
FLOORS = [
    ["errors", "typed", "numpy_policy"],
    ["kernels", "space_data", "importing"],
    ["wmdp", "lexicographic", "progress", "totals"],
    ["envs"],
    ["waiting"],
    ["added_wait"],
    ["foreign"],
    ["wrapping"],
    ["waiting_vector"],
    ["interleaving", "runtime", "finite", "deep"],
    ["evaluate", "files", "choice"],
    ["runs", "origin", "savings"],
    ["tracking", "export"],
    ["training"],
    ["train"],
    ["experiments"],
    ["report"],
    ["cli"],
    ["__main__"],
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    """Return the rooms of the house that a file imports when it is loaded."""
    rooms = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("letitcook"):
            parts = (node.module or "").split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
            rooms.update(name for name in names if name in FLOOR_OF)
        elif isinstance(node, ast.Import):
            rooms.update(a.name.split(".")[1] for a in node.names if a.name.startswith("letitcook."))
    return rooms - {room_of(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    here = FLOOR_OF[room_of(path)]
    above = sorted(room for room in imported_rooms(path) if FLOOR_OF[room] >= here)
    assert not above, f"{path.name} imports from its own floor or above: {above}"


def test_the_finite_and_the_deep_engine_do_not_know_each_other() -> None:
    for path in FILES:
        if room_of(path) in ("finite", "deep"):
            assert not imported_rooms(path) & {"finite", "deep"}


def test_what_is_exported_is_what_is_meant() -> None:
    public = {name for name in vars(letitcook) if not name.startswith("_")}
    modules = {path.stem for path in SOURCE.glob("*.py")} | {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert len(set(letitcook.__all__)) == len(letitcook.__all__)
    assert set(letitcook.__all__) <= public
    assert public - modules - set(letitcook.__all__) <= {"version"}
    for name in letitcook.__all__:
        assert getattr(letitcook, name) is not None


def test_public_functions_show_an_example() -> None:
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
