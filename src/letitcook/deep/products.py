"""Matrix products for kernels, in float32: small enough that how a library prepares one costs as much as the product.

A product is cut into tiles of four rows and up to four vector registers, each as wide as the processor has. A tile's
sums stay in registers while the inner index runs: per step one row of `b` is loaded and four numbers of `a` are spread
over a register (Goto and van de Geijn 2008). A general BLAS first copies both matrices into an order of its own, which
pays for large ones only. The last tile of a row or column overlaps the one before it, and computes the same sums again.

Which rows are computed, and over which inner indices, are lists: what is known to be zero is left out without a copy.

The order of every sum is fixed: in a product along the inner indices, in `dot` and `sum_of` by 32 partial sums. Left to
the compiler, it would depend on the width of the registers. So all processors with fused multiply-adds get the same
bits, and a column of a product does not depend on what else is in the batch.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from letitcook.core.jit import compiled, is_cached

llvm: Any = importlib.import_module("llvmlite.binding")  # has no types

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
Indices = NDArray[np.int64]


def _lanes(features: str) -> int:
    """Return how many numbers a vector register holds, by what the compiler knows of the processor.

    >>> _lanes("+avx,+avx2,+avx512f"), _lanes("+avx,-avx512f"), _lanes("")
    (16, 8, 4)
    """
    known = features.split(",")
    return 16 if "+avx512f" in known else 8 if "+avx" in known else 4


LANES = _lanes(cpu_target.target_context.codegen().magic_tuple()[2])
"""Numbers in a vector register."""
ROWS = 4
"""Rows of a tile."""
WIDE = {16: 4, 8: 3, 4: 2}[LANES] * LANES
"""Columns of the widest tile: what the processor has registers for."""
NARROW = 4
"""Columns of the narrowest tile that is not a single one."""
ALIGNMENT = 64
"""Bytes that arrays should begin at a multiple of; a load then never touches two cache lines."""

_FLOAT, _LONG = ir.FloatType(), ir.IntType(64)
_floats, _indices, _long = types.CPointer(types.float32), types.CPointer(types.int64), types.int64


def aligned_zeros(n: int) -> Vector:
    """Return zeros that begin at a multiple of `ALIGNMENT` bytes.

    >>> aligned_zeros(5).ctypes.data % ALIGNMENT
    0
    """
    held = np.zeros(n + ALIGNMENT // 4, dtype=np.float32)
    start = -held.ctypes.data % ALIGNMENT // 4
    return held[start : start + n]


def _tile(rows: int, width: int) -> Any:
    """Return what writes a tile: `c[i, :width] = Σ a[i, p] b[p, :width]` for the next `rows` indices `i` of a list.

    It takes addresses, and how far apart rows are (and columns of `a`, so that it can be read as transposed). `inner`
    lists the `k` indices `p`, at least one.
    """
    lanes = min(width, LANES)
    vector = ir.VectorType(_FLOAT, lanes) if lanes > 1 else _FLOAT
    zero = ir.Constant(vector, None if lanes > 1 else 0.0)
    pieces = range(width // lanes)

    def at(builder: Any, pointer: Any, i: Any) -> Any:
        return builder.bitcast(builder.gep(pointer, [i]), vector.as_pointer())

    def spread(builder: Any, number: Any) -> Any:
        if lanes == 1:
            return number
        undefined, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
        return builder.shuffle_vector(builder.insert_element(undefined, number, first), undefined, everywhere)

    def generate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        listed, inner, k, a, a_row, a_column, b, b_row, c, c_row = values
        chosen = [builder.load(builder.gep(listed, [_LONG(r)])) for r in range(rows)]
        of_a = [builder.gep(a, [builder.mul(i, a_row)]) for i in chosen]
        of_c = [builder.gep(c, [builder.mul(i, c_row)]) for i in chosen]
        before, body, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(body)

        builder.position_at_end(body)
        step = builder.phi(_LONG)
        sums = [[builder.phi(vector) for _ in pieces] for _ in range(rows)]
        p = builder.load(builder.gep(inner, [step]))
        column, row = builder.mul(p, a_column), builder.gep(b, [builder.mul(p, b_row)])
        of_b = [builder.load(at(builder, row, _LONG(v * lanes)), align=4) for v in pieces]
        added = []
        for r in range(rows):
            x = spread(builder, builder.load(builder.gep(of_a[r], [column]), align=4))
            terms = [builder.fmul(x, of_b[v], flags=("contract",)) for v in pieces]
            added.append([builder.fadd(terms[v], sums[r][v], flags=("contract",)) for v in pieces])
        following = builder.add(step, _LONG(1))
        step.add_incoming(_LONG(0), before)
        step.add_incoming(following, body)
        for r in range(rows):
            for v in pieces:
                sums[r][v].add_incoming(zero, before)
                sums[r][v].add_incoming(added[r][v], body)
        builder.cbranch(builder.icmp_signed("<", following, k), body, after)

        builder.position_at_end(after)
        for r in range(rows):
            for v in pieces:
                builder.store(added[r][v], at(builder, of_c[r], _LONG(v * lanes)), align=4)
        return context.get_dummy_value()

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(
        typing: Any,
        listed: Any,
        inner: Any,
        k: Any,
        a: Any,
        a_row: Any,
        a_column: Any,
        b: Any,
        b_row: Any,
        c: Any,
        c_row: Any,
    ) -> Any:
        kinds = _indices, _indices, _long, _floats, _long, _long, _floats, _long, _floats, _long
        return types.void(*kinds), generate

    return tile


@intrinsic  # type: ignore[untyped-decorator]
def _moved(typing: Any, pointer: Any, by: Any) -> Any:
    """Return a pointer that many numbers further on."""

    def generate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return builder.gep(values[0], [values[1]])

    return pointer(pointer, _long), generate


@intrinsic  # type: ignore[untyped-decorator]
def _transpose_tile(typing: Any, a: Any, a_row: Any, out: Any, out_row: Any) -> Any:
    """Write a tile of `LANES` rows and columns transposed, by exchanging halves, then quarters, down to numbers."""

    def generate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        a, a_row, out, out_row = values
        vector = ir.VectorType(_FLOAT, LANES)

        def at(pointer: Any, row: Any, r: int) -> Any:
            return builder.bitcast(builder.gep(pointer, [builder.mul(row, _LONG(r))]), vector.as_pointer())

        def choice(first: Any, second: Any, lanes: list[int]) -> Any:
            which = ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes)
            return builder.shuffle_vector(first, second, which)

        held = [builder.load(at(a, a_row, r), align=4) for r in range(LANES)]
        apart = LANES // 2
        while apart:
            low = [j if not j & apart else LANES + j - apart for j in range(LANES)]
            high = [j + apart if not j & apart else LANES + j for j in range(LANES)]
            for r in range(LANES):
                if not r & apart:
                    first, second = held[r], held[r + apart]
                    held[r], held[r + apart] = choice(first, second, low), choice(first, second, high)
            apart //= 2
        for r in range(LANES):
            builder.store(held[r], at(out, out_row, r), align=4)
        return context.get_dummy_value()

    return types.void(_floats, _long, _floats, _long), generate


SUM_LANES = 16
"""Numbers that a sum takes at once, twice: registers of another width are taken together, or in parts."""


def _add_up(builder: Any, pointers: list[Any], n: Any) -> Any:
    """Write the sum of `n` numbers, or of the products of two times `n`: 32 partial sums, and then these in pairs."""
    vector = ir.VectorType(_FLOAT, SUM_LANES)
    zeros = ir.Constant(vector, None)
    partial, rest = [cgutils.alloca_once(builder, vector) for _ in range(2)], cgutils.alloca_once(builder, _FLOAT)
    for held in partial:
        builder.store(zeros, held)
    builder.store(ir.Constant(_FLOAT, 0.0), rest)

    def add(to: Any, kind: Any, i: Any) -> None:
        numbers = [
            builder.load(builder.bitcast(builder.gep(pointer, [i]), kind.as_pointer()), align=4) for pointer in pointers
        ]
        term = builder.fmul(*numbers, flags=("contract",)) if len(numbers) > 1 else numbers[0]
        builder.store(builder.fadd(term, builder.load(to), flags=("contract",)), to)

    whole = builder.sdiv(n, _LONG(2 * SUM_LANES))
    with cgutils.for_range(builder, whole) as loop:
        i = builder.mul(loop.index, _LONG(2 * SUM_LANES))
        for part, to in enumerate(partial):
            add(to, vector, builder.add(i, _LONG(part * SUM_LANES)))
    begin = builder.mul(whole, _LONG(2 * SUM_LANES))
    with cgutils.for_range(builder, builder.sub(n, begin)) as loop:
        add(rest, _FLOAT, builder.add(begin, loop.index))
    total, half = builder.fadd(*[builder.load(held) for held in partial]), SUM_LANES // 2
    while half:
        other = [(j + half) % SUM_LANES for j in range(SUM_LANES)]
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), SUM_LANES), other)
        total = builder.fadd(total, builder.shuffle_vector(total, zeros, lanes))
        half //= 2
    return builder.fadd(builder.extract_element(total, ir.Constant(ir.IntType(32), 0)), builder.load(rest))


@intrinsic  # type: ignore[untyped-decorator]
def dot(typing: Any, a: Any, at: Any, b: Any) -> Any:
    """Return the sum of the products of `b`, a vector, and as many numbers of `a` from `at` on."""

    def generate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        first, second = (make_array(kind)(context, builder, values[i]) for kind, i in ((a, 0), (b, 2)))
        pointers = [builder.gep(first.data, [values[1]]), second.data]
        return _add_up(builder, pointers, builder.extract_value(second.shape, 0))

    return types.float32(a, _long, b), generate


@intrinsic  # type: ignore[untyped-decorator]
def sum_of(typing: Any, values: Any) -> Any:
    """Return the sum of a vector."""

    def generate(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        vector = make_array(values)(context, builder, given[0])
        return _add_up(builder, [vector.data], builder.extract_value(vector.shape, 0))

    return types.float32(values), generate


_tile_wide, _tile_double, _tile_lanes = _tile(ROWS, WIDE), _tile(ROWS, 2 * LANES), _tile(ROWS, LANES)
_tile_narrow, _tile_column = _tile(ROWS, NARROW), _tile(ROWS, 1)
_row_wide, _row_narrow, _row_column = _tile(1, WIDE), _tile(1, NARROW), _tile(1, 1)


def _multiply(rows, m, n, inner, k, a, a_row, a_column, b, b_row, c, c_row):  # type: ignore[no-untyped-def]
    """Write the `m` listed rows of `c = a b`, `n` columns, with sums over the `k` listed inner indices."""
    few = m < ROWS
    j = 0
    while j < n:
        left, width = n - j, 1
        if left > 2 * LANES and n >= WIDE:
            width = WIDE
        elif left > LANES and n >= 2 * LANES and not few:
            width = 2 * LANES
        elif left > NARROW and n >= LANES and not few:
            width = LANES
        elif n >= NARROW:
            width = NARROW
        j, i = min(j, n - width), 0
        of_b, of_c = _moved(b, j), _moved(c, j)
        while i < m:
            if few:
                listed = _moved(rows, i)
                if width == WIDE:
                    _row_wide(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
                elif width == NARROW:
                    _row_narrow(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
                else:
                    _row_column(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
                i += 1
                continue
            i = min(i, m - ROWS)
            listed = _moved(rows, i)
            if width == WIDE:
                _tile_wide(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
            elif width == 2 * LANES:
                _tile_double(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
            elif width == LANES:
                _tile_lanes(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
            elif width == NARROW:
                _tile_narrow(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
            else:
                _tile_column(listed, inner, k, a, a_row, a_column, of_b, b_row, of_c, c_row)
            i += ROWS
        j += width


def _transpose(m, n, a, out):  # type: ignore[no-untyped-def]
    """Write `out = aᵀ`, `(n, m)`, of `a`, `(m, n)`."""
    if m < LANES or n < LANES:
        for i in range(m):
            for j in range(n):
                out[j * m + i] = a[i * n + j]
        return
    i = 0
    while i < m:
        i = min(i, m - LANES)
        j = 0
        while j < n:
            j = min(j, n - LANES)
            _transpose_tile(_moved(a, i * n + j), n, _moved(out, j * m + i), m)
            j += LANES
        i += LANES


def _symbol(name: str, function: Any, *kinds: Any) -> Any:
    """Compile a function once and for all, under a name that kernels link to: a call would copy it into each caller."""
    signature = types.void(*kinds)
    machine_code = cfunc(signature, cache=is_cached())(function)
    llvm.add_symbol(name, ctypes.cast(machine_code.ctypes, ctypes.c_void_p).value)
    return machine_code, types.ExternalFunction(name, signature)


_machine_code, multiply = _symbol(
    "letitcook_multiply",
    _multiply,
    *(_indices, _long, _long, _indices, _long),  # rows, how many; columns; inner indices, how many
    *(_floats, _long, _long),  # a, from row to row, from column to column
    *(_floats, _long, _floats, _long),  # b, from row to row; c, from row to row
)
_more_machine_code, transpose = _symbol("letitcook_transpose", _transpose, _long, _long, _floats, _floats)


@compiled
def product(a: Matrix, b: Matrix, out: Matrix, rows: Indices, inner: Indices) -> None:
    """Write the listed rows of `out = a b`, with sums over the listed inner indices, at least one."""
    n, k = out.shape[1], a.shape[1]
    multiply(rows.ctypes, len(rows), n, inner.ctypes, len(inner), a.ctypes, k, 1, b.ctypes, n, out.ctypes, n)


@compiled
def product_ta(a: Matrix, b: Matrix, out: Matrix, rows: Indices, inner: Indices) -> None:
    """Write the listed rows of `out = aᵀ b`, with sums over the listed inner indices, at least one."""
    n, m = out.shape[1], a.shape[1]
    multiply(rows.ctypes, len(rows), n, inner.ctypes, len(inner), a.ctypes, 1, m, b.ctypes, n, out.ctypes, n)


@compiled
def transposed(a: Matrix, into: Vector) -> Matrix:
    """Write `aᵀ` into a vector; returns it as a matrix."""
    m, n = a.shape
    transpose(m, n, a.ctypes, into.ctypes)
    return into[: m * n].reshape(n, m)
