"""Matrix products against NumPy's."""

from typing import Any

import numpy as np
import pytest

from letitcook.deep.products import ALIGNMENT, LANES, NARROW, ROWS, WIDE, aligned_zeros, product, product_ta, transposed

SIZES = sorted({1, 2, NARROW - 1, NARROW, NARROW + 1, LANES - 1, LANES, LANES + 1, 2 * LANES + 3, WIDE, WIDE + 1, 100})


def matrices(m: int, n: int, k: int) -> Any:
    dice = np.random.default_rng([m, n, k])
    return dice.normal(size=(m, k)).astype(np.float32), dice.normal(size=(k, n)).astype(np.float32)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", [1, 2, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 2])
def test_products_equal_numpys(m: int, n: int) -> None:
    for k in (1, 2, 7, 65):
        a, b = matrices(m, n, k)
        out, rows, inner = np.full((m, n), np.nan, dtype=np.float32), np.arange(m), np.arange(k)
        product(a, b, out, rows, inner)
        np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)
        out[:] = np.nan
        product_ta(np.ascontiguousarray(a.T), b, out, rows, inner)
        np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


def test_only_the_listed_rows_and_inner_indices_count() -> None:
    m, n, k = 13, 70, 20
    a, b = matrices(m, n, k)
    rows, inner = np.array([1, 2, 5, 7, 8, 12]), np.array([0, 3, 4, 19])
    a[:, [1, 2]], b[[1, 2]] = np.nan, np.nan  # nobody looks at what is not listed
    for multiply, of in ((product, a), (product_ta, np.ascontiguousarray(a.T))):
        out = np.full((m, n), 7.0, dtype=np.float32)
        multiply(of, b, out, rows, inner)
        np.testing.assert_allclose(out[rows], (a[:, inner] @ b[inner])[rows], rtol=1e-4, atol=1e-5)
        assert (np.delete(out, rows, axis=0) == 7.0).all()


def test_nothing_is_written_beside_the_product() -> None:
    for n in SIZES:
        a, b = matrices(6, n, 9)
        around = np.full(6 * n + 2 * LANES, 7.0, dtype=np.float32)
        product(a, b, around[LANES:-LANES].reshape(6, n), np.arange(6), np.arange(9))
        assert (around[:LANES] == 7.0).all()
        assert (around[-LANES:] == 7.0).all()


def test_a_column_does_not_depend_on_the_batch() -> None:
    a, b = matrices(40, 150, 64)
    whole, rows, inner = np.zeros((40, 150), dtype=np.float32), np.arange(40), np.arange(64)
    product(a, b, whole, rows, inner)
    for begin, end in ((0, 150), (3, 90), (60, 60 + WIDE), (11, 11 + LANES), (70, 76)):
        part = np.zeros((40, end - begin), dtype=np.float32)
        product(a, np.ascontiguousarray(b[:, begin:end]), part, rows, inner)
        np.testing.assert_array_equal(part, whole[:, begin:end])


@pytest.mark.parametrize("m", SIZES)
def test_transposed_equals_numpys(m: int) -> None:
    for n in SIZES:
        a, _ = matrices(m, 1, n)
        np.testing.assert_array_equal(transposed(a, aligned_zeros(m * n)), a.T)


def test_arrays_are_aligned() -> None:
    for n in range(1, 40):
        held = aligned_zeros(n)
        assert len(held) == n
        assert held.ctypes.data % ALIGNMENT == 0
