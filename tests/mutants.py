"""Mutation testing: change one thing in a module, run its tests, and see whether any of them fails.

    python tests/mutants.py                          every mutant of the five modules; hours
    python tests/mutants.py --modules objective --sample 20 --seed 1

A mutant replaces one operator, comparison, number, boolean or name of a method, or turns a condition round. It is
killed if a test fails, if it does not end in time, or if it cannot be imported. Each is tried in a process that is
forked from one with the heavy packages loaded; the files themselves are never changed. Kernels run as plain Python, so
that nothing is compiled anew, with tests on worlds that are small enough for that. Survivors are printed with their
line: each is a missing test, or a change that changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent


class Module(NamedTuple):
    """A module and the tests that hold it."""

    name: str
    tests: tuple[str, ...]


MODULES = {
    "objective": Module(
        "letitcook.core.objective", ("test_objective.py", "test_properties.py::test_better_is_an_order")
    ),
    "waiting": Module(
        "letitcook.wrappers.waiting",
        (
            "test_waiting.py",
            "test_env_returns.py::test_odd_returns_name_the_step_and_the_cause",
            "test_properties.py::test_waits_end_at_the_goal_and_at_the_horizon",
        ),
    ),
    "selection": Module("letitcook.training.selection", ("test_selection.py",)),
    "plan": Module(
        "letitcook.finite.plan",
        tuple(
            f"test_plan.py::{name}"
            for name in (
                "test_limits",
                "test_states_that_look_the_same_and_are_the_same_change_nothing",
                "test_the_likeliest_episode_and_the_policys_clock",
                "test_a_plan_is_what_its_policy_gives",
                "test_plan_equals_plain_recursion",
                "test_slippery_frozen_lake_equals_value_iteration",
            )
        ),
    ),
    "q_learning": Module(
        "letitcook.finite.q_learning",
        (
            "test_q_learning.py::test_a_few_steps_of_every_variant",
            "test_q_learning.py::test_three_objectives_follow_the_same_rule",
            "test_q_learning.py::test_task_values_are_written_before_waiting_values_bootstrap",
            "test_q_learning.py::test_stopping_and_going_on_gives_the_same_bits",
            "test_recall.py::test_to_remember_the_time_is_to_see_it",
        ),
    ),
}
HEAVY = (
    "numpy",
    "scipy.special",
    "scipy.stats",
    "numba",
    "gymnasium",
    "hypothesis",
    "polars",
    "pytest",
    "rich.progress",
)
"""Packages that are loaded once, before mutants are forked."""
SECONDS = 15
"""Seconds of the processor that a mutant may take."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
    ast.Pow: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "nanmin": "nanmax", "sorted": "list"}


class Mutant(NamedTuple):
    """A changed module."""

    line: int
    change: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a source."""
    tree = ast.parse(source)
    types = {id(inner) for node in ast.walk(tree) for part in annotations_of(node) for inner in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in types:  # nothing is done with them
            continue
        for change in changes_of(node):
            changed = copy.deepcopy(tree)
            at = next(n for i, n in enumerate(ast.walk(changed)) if i == number)
            before = ast.unparse(at) if not isinstance(at, ast.operator | ast.cmpop | ast.boolop) else type(at).__name__
            change(at)
            after = ast.unparse(at) if not isinstance(at, ast.operator | ast.cmpop | ast.boolop) else type(at).__name__
            if before != after or isinstance(at, ast.stmt):
                line = getattr(node, "lineno", 0)
                yield Mutant(line, f"{before[:60]} → {after[:60]}", ast.fix_missing_locations(changed))


def annotations_of(node: ast.AST) -> list[ast.AST]:
    """Return the types that a node is annotated with."""
    found = [getattr(node, name, None) for name in ("annotation", "returns")]
    return [part for part in found if isinstance(part, ast.AST)]


def changes_of(node: ast.AST) -> list[Any]:
    """Return functions that change a node in place."""
    found: list[Any] = []
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in SWAPS:
        found.append(lambda at: setattr(at, "op", SWAPS[type(at.op)]()))
    if isinstance(node, ast.BoolOp):
        found.append(lambda at: setattr(at, "op", SWAPS[type(at.op)]()))
    if isinstance(node, ast.Compare):
        found += [
            (lambda at, i=i: at.ops.__setitem__(i, SWAPS[type(at.ops[i])]()))
            for i, op in enumerate(node.ops)
            if type(op) in SWAPS
        ]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        found.append(lambda at: setattr(at, "value", at.value + 1))
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        found.append(lambda at: setattr(at, "value", not at.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found.append(lambda at: setattr(at, "operand", ast.UnaryOp(ast.Not(), at.operand)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found.append(lambda at: setattr(at, "op", ast.UAdd()))
    if isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        found.append(lambda at: setattr(at, "id", NAMES[at.id]))
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        found.append(lambda at: setattr(at, "test", ast.UnaryOp(ast.Not(), at.test)))
    return found


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, with another content than its file has."""

    def __init__(self, name: str, tree: ast.Module, path: str) -> None:
        self.name, self.tree, self.path = name, tree, path

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find the module, and no other."""
        return importlib.util.spec_from_loader(name, self, origin=self.path) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the changed module."""
        module.__file__ = self.path
        exec(compile(self.tree, self.path, "exec"), module.__dict__)


def outcome(module: Module, tree: ast.Module | None, skipped: Sequence[str], report: int | None = None) -> int:
    """Run the tests in a process of its own, with the module changed; returns pytest's exit code, or a signal's."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setpgrp()
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            code = _tested(module, tree, skipped, report)
        finally:
            os._exit(code)
    began = time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - began > 10 * SECONDS:  # it sleeps
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.05)


def _tested(module: Module, tree: ast.Module | None, skipped: Sequence[str], report: int | None) -> int:
    import pytest

    if tree is not None:
        path = str(ROOT / "src" / Path(*module.name.split("."))) + ".py"
        sys.meta_path.insert(0, Changed(module.name, tree, path))
    os.chdir(ROOT)
    tests = [f"tests/{name}" for name in module.tests]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-W", "default"]
    options += [f"--deselect={name}" for name in skipped]
    if report is None:
        return int(pytest.main([*options, "-x", *tests]))

    class Failing:
        """Writes down the tests that fail as things are."""

        def __init__(self, to: int) -> None:
            self.to = to

        def pytest_runtest_logreport(self, report: Any) -> None:
            """Take note of a test."""
            if report.failed:
                os.write(self.to, f"{report.nodeid}\n".encode())

    return int(pytest.main([*options, *tests], plugins=[Failing(report)]))


def tried(name: str, sample: int | None, seed: int) -> dict[str, Any]:
    """Try the mutants of a module; returns how many were killed, and the survivors."""
    module = MODULES[name]
    source = (ROOT / "src" / Path(*module.name.split("."))).with_suffix(".py").read_text(encoding="utf-8")
    found = list(mutants(source))
    chosen = found if sample is None else random.Random(seed).sample(found, min(sample, len(found)))
    read, write = os.pipe()
    outcome(module, None, (), report=write)  # tests that need compiled kernels fail as plain Python
    os.close(write)
    with os.fdopen(read) as lines:
        skipped = sorted({line.strip() for line in lines})
    survivors = []
    for n, mutant in enumerate(chosen):
        if outcome(module, mutant.tree, skipped) == 0:
            survivors.append(f"line {mutant.line}: {mutant.change}")
            print(f"{name}: survived at {survivors[-1]}", flush=True)
        if n % 10 == 9:
            print(f"{name}: {n + 1} tried, {n + 1 - len(survivors)} killed", flush=True)
    return {
        "module": name,
        "mutants": len(found),
        "tried": len(chosen),
        "killed": len(chosen) - len(survivors),
        "left out": skipped,
        "survivors": survivors,
    }


def main() -> None:
    """Try mutants from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="+", default=list(MODULES), choices=list(MODULES))
    parser.add_argument("--sample", type=int, help="at most that many mutants of each module, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    for package in HEAVY:
        importlib.import_module(package)
    for name in asked.modules:
        print(json.dumps(tried(name, asked.sample, asked.seed), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    main()
