"""Structs in kernels: every kind of field, what is refused, and that they are taken by reference."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from numba import njit, typeof
from numpy.typing import NDArray

from letitcook.core.jit import compiled
from letitcook.core.struct import Struct
from letitcook.errors import SettingError


class Inner(Struct):
    """A struct inside another."""

    n: int
    grid: NDArray[np.float32]


class Outer(Struct):
    """One field of every kind."""

    real: float
    truth: bool
    inner: Inner
    values: NDArray[np.float64]
    cube: NDArray[np.int64]
    empty: NDArray[np.uint64]


@compiled
def read(outer: Outer) -> tuple[float, ...]:
    """Read all of it."""
    grid, total = outer.inner.grid, 0
    for i in range(outer.cube.shape[0]):
        for j in range(outer.cube.shape[1]):
            for k in range(outer.cube.shape[2]):
                total = 10 * total + outer.cube[i, j, k]
    middle = outer.cube[1:, 0].sum()
    return outer.real, outer.truth, outer.inner.n, grid[1, 2], outer.values[-1], total, middle, len(outer.empty)


@compiled
def write(outer: Outer) -> None:
    """Change its arrays."""
    for i in range(len(outer.values)):
        outer.values[i] += outer.inner.n
    outer.inner.grid[:] = 7.0


def made(**changes: Any) -> Outer:
    """Return an example."""
    grid, cube = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(1, 9).reshape(2, 2, 2)
    outer = Outer(-2.5, True, Inner(-(2**40), grid), np.arange(3.0), cube, np.zeros(0, dtype=np.uint64))
    return outer._replace(**changes)


def test_kernels_read_every_kind_of_field() -> None:
    assert read(made()) == (-2.5, True, -(2**40), 5.0, 2.0, 12345678, 11, 0)
    assert read(made(truth=False, real=float("inf")))[:2] == (np.inf, False)


def test_kernels_write_into_its_arrays() -> None:
    outer = made(inner=Inner(3, np.zeros((4, 5), dtype=np.float32)))
    write(outer)
    assert outer.values.tolist() == [3.0, 4.0, 5.0]
    assert (outer.inner.grid == 7.0).all()


def test_a_copy_has_arrays_of_its_own() -> None:
    outer = made()
    for other in (copy.deepcopy(outer), pickle.loads(pickle.dumps(outer))):
        write(other)
        assert outer.values.tolist() == [0.0, 1.0, 2.0] != other.values.tolist()
        assert read(other)[3] == 7.0


def test_types_are_equal_where_fields_are() -> None:
    outer = made()
    assert typeof(outer) == typeof(made(real=1.0)) == pickle.loads(pickle.dumps(typeof(outer)))
    assert typeof(outer) != typeof(made(real=1))
    assert typeof(outer) != typeof(made(values=np.zeros((3, 1))))
    assert str(typeof(outer)) != str(typeof(made(inner=Inner(1, np.zeros((1, 1), dtype=np.float32)[0]))))


def test_it_is_one_argument_however_many_arrays_it_has() -> None:
    fresh = njit(write.py_func)  # type: ignore[attr-defined]
    fresh(made())
    (machine_code,) = fresh.overloads.values()
    lines, name = str(machine_code.library.get_llvm_str()).splitlines(), machine_code.fndesc.llvm_func_name
    defined = next(line for line in lines if line.startswith("define") and name in line)
    assert defined.count("%arg.") == 1


def test_fields_cannot_be_set_and_arrays_have_to_be_contiguous() -> None:
    with pytest.raises(AttributeError):
        made().real = 1.0  # type: ignore[misc]
    with pytest.raises(SettingError, match=r"Outer\.values has to be a C-contiguous array"):
        made(values=np.arange(6.0)[::2])
    assert list(Inner(1, np.zeros(2, dtype=np.float32))._asdict()) == ["n", "grid"]
