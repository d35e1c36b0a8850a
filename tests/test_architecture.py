"""The house's rules: imports point one way, what is exported is what is meant, files stay readable."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import letitcook

SOURCE = Path(letitcook.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


TESTED_ELSEWHERE = {
    "errors": ("test_cli_wrap", "messages, where users meet them"),
    "core.decisions": ("test_waiting", "decisions through the environment that has them"),
    "core.jit": ("test_q_learning", "random numbers and compilation, bit for bit against naive.py"),
    "core.presets": ("test_conditioning", "a record that presets read"),
    "finite.beyond": ("test_q_learning", "bit for bit against naive.py, as all of the algorithm"),
    "storage.imports": ("test_adapters", "objects by name, as policies are named"),
    "storage.setting_values": ("test_suite_file", "settings as a suite file gives them"),
    "adapters.*": ("test_adapters", "one door, `as_policy`; with the real packages in integration_tests/torch"),
    "wrappers.base_policy": ("test_wrap", "only ever used through `wrap`"),
    "training.certified_run": ("test_certified", "the choice, as `learn` makes it"),
    "tasks.coffee_objects": ("test_coffee", "a part of the task"),
    "tasks.kitchen": ("test_cook", "a part of the task"),
    "tasks.kitchen_drawing": ("test_cook", "a part of the task"),
    "tasks.overcooked": ("", "needs its package: integration_tests/overcooked"),
    "tasks.simulated": ("test_compiled", "dispatch of the three simulated tasks"),
    "tasks.simulated_env": ("test_cartpole", "the environment of the three simulated tasks"),
    "tasks.task": ("test_waiting", "a record"),
    "finite.learner": ("test_q_learning", "the kernels through the class that holds them"),
    "finite.policy": ("test_q_learning", "tables that are looked up"),
    "finite.settings": ("test_suite_file", "settings and their limits"),
    "deep.drivers.python": ("test_agent", "drivers through the agent"),
    "deep.normalisation": ("test_conditioning", "with what it makes possible"),
    "deep.policy": ("test_export", "answers beside those of its exported twin"),
    "deep.settings": ("test_agent", "settings and their limits"),
    "deep.state": ("test_agent", "kernels against naive.py, through the agent"),
    "deep.update": ("test_agent", "kernels against naive.py, through the agent"),
    "evaluation.certificate": ("", "its doctests"),
    "training.env_spec": ("test_cli_wrap", "environments by name, as the command line takes them"),
    "training.interruption": ("test_learn", "ctrl-C during `learn`"),
    "training.loop": ("test_learn", "the loop through `learn`"),
    "training.progress": ("test_learn", "what is printed beside `learn`"),
    "training.run": ("test_folders", "runs as folders"),
    "training.spec": ("test_learn", "what `learn` is given"),
    "deploy.numpy_policy": ("test_export", "the policy that is exported"),
    "experiments.ray_engine": ("", "needs Ray: integration_tests/ray"),
    "experiments.toml_source": ("test_suite_file", "lines of a suite file"),
    "experiments.*": ("test_experiments", "sweeps as a whole, on several engines"),
    "report.figures.*": ("test_figures", "figures as a whole"),
    "report.*": ("test_page", "the page as a whole"),
    "cli.terminal.text_worlds": ("test_watch", "what `watch` draws"),
    "cli.*": ("test_cli", "commands as users call them"),
}
"""Modules without a test of their own name: the test that has them, and why."""


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


def test_every_module_has_a_test_or_a_reason() -> None:
    here = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    for name in house().modules():
        if f"test_{name.rpartition('.')[2]}" in here or (SOURCE / name.replace(".", "/")).is_dir():
            continue
        found = [reason for pattern, reason in TESTED_ELSEWHERE.items() if fnmatch(name, pattern)]
        assert found, f"{name} has no test_{name.rpartition('.')[2]}.py; write it, or say in TESTED_ELSEWHERE why not"
        assert found[0][0] in here or not found[0][0], f"{name}: there is no {found[0][0]}.py"


def test_reasons_name_modules_that_are_there() -> None:
    names = list(house().modules())
    for pattern in TESTED_ELSEWHERE:
        assert any(fnmatch(name, pattern) for name in names), f"{pattern} is no module any more"


def test_the_finite_and_the_deep_engine_do_not_know_each_other() -> None:
    rooms = house()
    for name, path in rooms.modules().items():
        if rooms.room_of(name) in ("finite", "deep"):
            others = {rooms.room_of(other) for other in rooms.imported(path)} - {rooms.room_of(name)}
            assert not others & {"finite", "deep"}


def test_what_is_exported_is_what_is_meant() -> None:
    public = {name for name in dir(letitcook) if not name.startswith("_")}
    modules = {path.stem for path in SOURCE.glob("*.py")} | {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert len(set(letitcook.__all__)) == len(letitcook.__all__)
    assert set(letitcook.__all__) <= public
    assert public - modules - set(letitcook.__all__) <= {"quiet_interrupts"}
    assert not modules & set(letitcook.__all__), "a public name hides a module"


def test_what_is_public_shows_an_example() -> None:
    for name in letitcook.__all__:
        thing = getattr(letitcook, name)
        assert not callable(thing) or ">>>" in (thing.__doc__ or ""), f"{name} has no example"


def test_what_is_public_is_in_the_api_reference() -> None:
    pages = " ".join(path.read_text(encoding="utf-8") for path in (house().ROOT / "docs" / "api").glob("*.md"))
    named = {line.rpartition(".")[2] for line in pages.split()}
    assert set(letitcook.__all__) <= named, sorted(set(letitcook.__all__) - named)


def test_nothing_is_unpickled() -> None:
    reader = "sb3_normalise.py"  # reads statistics in a pickle, and looks up nothing at all; see test_adapters
    for path in FILES:
        if path.name == reader:
            text = path.read_text(encoding="utf-8")
            assert set(re.findall(r"\bpickle\.(\w+)", text)) == {"Unpickler"}
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not {a.name for a in node.names} & {"pickle", "cloudpickle", "dill", "joblib"}, path
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("pickle", "cloudpickle", "dill", "joblib"), path
