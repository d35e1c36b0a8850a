"""Kernels that are called by address."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError
from numpy.typing import NDArray

from letitcook.core.jit import compiled
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct


@compiled
def step(state: NDArray[np.float64], by: float) -> tuple[float, bool]:
    """Move the state on."""
    state[0] += by
    return state[0], state[0] > 2.0


@compiled
def back(state: NDArray[np.float64], by: float) -> tuple[float, bool]:
    """Move it back."""
    state[0] -= by
    return state[0], state[0] < -99.0


@compiled
def fails(state: NDArray[np.float64], by: float) -> tuple[float, bool]:
    """Raise."""
    if by > 0.0:
        raise ValueError("no further")
    return state[0], by > 1.0


class World(Struct):
    """A pointer in a struct."""

    step: Pointer
    state: NDArray[np.float64]


@compiled
def run(world: World, steps: int) -> float:
    """Call it until it says that it is over."""
    value = 0.0
    for _ in range(steps):
        value, over = call(world.step, (world.state, 1))
        if over:
            break
    return value


@compiled
def pass_on(kernel: Any, arguments: Any) -> None:
    """Call a kernel with any arguments."""
    call(kernel, arguments)


def pointer(kernel: Any) -> Pointer:
    return Pointer(kernel, types.float64[::1], types.float64)


def test_the_kernel_is_chosen_while_the_program_runs() -> None:
    assert run(World(pointer(step), np.zeros(1)), 10) == 3.0
    assert run(World(pointer(back), np.zeros(1)), 10) == -10.0
    assert len(run.signatures) == 1  # type: ignore[attr-defined]


def test_errors_of_the_kernel_reach_python() -> None:
    with pytest.raises(ValueError, match="no further"):
        run(World(pointer(fails), np.zeros(1)), 10)


def test_arguments_that_do_not_fit_are_refused() -> None:
    for kernel, arguments in ((pointer(step), (1.0,)), (pointer(step), (np.zeros((2, 2)), 1.0)), (1, (1.0,))):
        with pytest.raises(TypingError):
            pass_on(kernel, arguments)


PROGRAM = """
from letitcook.core.jit import compiled
from letitcook.core.jit import compiled
from letitcook.core.pointer import Pointer, call
from numba import types

@compiled
def {name}(x):
    return x + {number}

@compiled
def caller(kernel, x):
    return call(kernel, (x,))

print(caller(Pointer({name}, types.int64), 1), sum(caller.stats.cache_hits.values()))
"""


def test_a_cached_caller_calls_what_it_is_given(tmp_path: Path) -> None:
    """The address differs in each process, and the caller is loaded from the cache of another."""
    said = []
    for number in (10, 20):
        script = tmp_path / "script.py"
        script.write_text(PROGRAM.format(name="add", number=10) if number == 10 else script.read_text())
        run_ = subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            check=True,
            env={"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(Path(__file__).parents[1] / "src")},
        )
        said.append(run_.stdout.split())
    assert said == [["11", "0"], ["11", "1"]]


@compiled
def steps_if(world: World, wanted: bool) -> float:
    """Call it only if it is wanted."""
    return call(world.step, (world.state, 1.0))[0] if wanted else -1.0


def test_what_is_turned_off_is_not_compiled_and_has_the_same_type() -> None:
    used = Pointer(step, types.float64[::1], types.float64)
    unused = Pointer.unused(used.type.result, *used.type.arguments)
    assert unused.type == used.type and unused.address == 0
    for wanted, same in ((True, used), (False, unused)):
        found = Pointer.where(wanted, step, used.type.result, *used.type.arguments)
        assert (found.type, found.address) == (same.type, same.address)
    assert steps_if(World(used, np.zeros(1)), True) == 1.0
    assert steps_if(World(unused, np.zeros(1)), False) == -1.0
    assert len(steps_if.signatures) == 1  # type: ignore[attr-defined]
