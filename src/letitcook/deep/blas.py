"""Matrix products for kernels, by the BLAS that NumPy brought along.

Numba's own `np.dot` calls SciPy's BLAS; NumPy's is often newer and for the small batches here up to 1.5 times faster.
`cblas_sgemm` is looked up in NumPy's library and given to the compiler as a symbol, which keeps kernels cacheable.
Where NumPy has no such function (another BLAS, another platform), a compiled stand-in on `np.dot` takes its place.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import carray, cfunc, types
from numpy.typing import NDArray

from letitcook.core.jit import compiled

llvm: Any = importlib.import_module("llvmlite.binding")  # has no types

Matrix = NDArray[np.float32]

ROW_MAJOR, AS_IS, TRANSPOSED = 101, 111, 112
"""CBLAS's names for layouts."""

_pointer = types.CPointer(types.float32)
_signature = types.void(
    *[types.int32] * 3,  # layout, transposition of a and b
    *[types.int64] * 3,  # rows, columns, inner size
    *[types.float32, _pointer, types.int64, _pointer, types.int64],  # factor, a, its row length, b, its row length
    *[types.float32, _pointer, types.int64],  # what is kept of out, out, its row length
)


def _numpy_library() -> ctypes.CDLL:
    try:
        module = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        module = importlib.import_module("numpy.core._multiarray_umath")
    return ctypes.CDLL(module.__file__)


def _function(*names: str) -> Any:
    """Return the first of these functions that NumPy's BLAS has, or None (only builds with 64-bit sizes have them)."""
    try:
        library = _numpy_library()
    except OSError:
        return None
    return next((found for name in names if (found := getattr(library, name, None)) is not None), None)


def _stand_in() -> int:
    """Compile the same function on Numba's `np.dot`; returns its address."""

    @cfunc(_signature, cache=True)
    def sgemm(layout, ta, tb, m, n, k, factor, a, a_row, b, b_row, kept, out, out_row):  # type: ignore[no-untyped-def]
        result = carray(out, (m, n))
        if ta == TRANSPOSED:
            np.dot(carray(a, (k, m)).T, carray(b, (k, n)), result)
        elif tb == TRANSPOSED:
            np.dot(carray(a, (m, k)), carray(b, (n, k)).T, result)
        else:
            np.dot(carray(a, (m, k)), carray(b, (k, n)), result)

    return int(sgemm.address)


_found = _function("scipy_cblas_sgemm64_", "cblas_sgemm64_")
llvm.add_symbol("letitcook_sgemm", ctypes.cast(_found, ctypes.c_void_p).value if _found is not None else _stand_in())
_sgemm: Any = types.ExternalFunction("letitcook_sgemm", _signature)
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled
def product(a: Matrix, b: Matrix, out: Matrix) -> None:
    """Write `out = a b`; all three are C-contiguous."""
    m, n = out.shape
    k = a.shape[1]
    _sgemm(ROW_MAJOR, AS_IS, AS_IS, m, n, k, _ONE, a.ctypes, k, b.ctypes, n, _ZERO, out.ctypes, n)


@compiled
def product_ta(a: Matrix, b: Matrix, out: Matrix) -> None:
    """Write `out = aᵀ b`."""
    m, n = out.shape
    _sgemm(ROW_MAJOR, TRANSPOSED, AS_IS, m, n, a.shape[0], _ONE, a.ctypes, m, b.ctypes, n, _ZERO, out.ctypes, n)


@compiled
def product_tb(a: Matrix, b: Matrix, out: Matrix) -> None:
    """Write `out = a bᵀ`."""
    m, n = out.shape
    k = a.shape[1]
    _sgemm(ROW_MAJOR, AS_IS, TRANSPOSED, m, n, k, _ONE, a.ctypes, k, b.ctypes, k, _ZERO, out.ctypes, n)


_get_threads = _function("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_")
_set_threads = _function("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_")
_lock = threading.Lock()
_users = [0, 1]  # how many want one thread now; what to go back to


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the BLAS at one thread: products this small are slower with two, and much slower on a busy machine."""
    if _get_threads is None or _set_threads is None:
        yield
        return
    with _lock:
        if _users[0] == 0:
            _users[1] = _get_threads()
            _set_threads(1)
        _users[0] += 1
    try:
        yield
    finally:
        with _lock:
            _users[0] -= 1
            if _users[0] == 0:
                _set_threads(_users[1])
