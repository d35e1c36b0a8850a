"""Multilayer perceptrons in machine code: forward, backward and Adam (Kingma and Ba 2015), in float32.

A network is one flat array of parameters, so that Adam is one loop and a checkpoint one array. With
`sizes = (inputs, hidden ..., outputs)` it holds, layer after layer, the weights `(out, in)` and then the biases, as
PyTorch orders them. Hidden layers end in a ReLU. All arrays are C-contiguous; nothing is allocated inside.

Backward, for the mean over a batch of `(q - y)²` or of Huber's loss::

    δ of the last layer    only the decision that was taken has an error, so only its row of weights is touched
    ∂W = δᵀ h_in    ∂b = Σ δ    δ_in = (δ W) ∘ [h_in > 0]

A unit that a ReLU has silenced in the whole batch has no δ, and feeds nothing to the layer above. Often half the units
are silent, and in MountainCar nine of ten, so the products leave them out: the same sums without the zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from letitcook.core.jit import compiled, compiled_fast
from letitcook.core.objective import lex_argmax_kernel
from letitcook.core.pointer import Pointer
from letitcook.core.struct import Struct
from letitcook.deep.blas import product, product_ta, product_tb

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
Sizes = NDArray[np.int64]

BETA_1, BETA_2 = np.float32(0.9), np.float32(0.999)
REST_1, REST_2 = np.float32(1 - 0.9), np.float32(1 - 0.999)
EPSILON = np.float32(1e-8)
TINY = np.float32(1e-30)
"""Adam's moments below this become 0: denormal numbers would make every update up to ten times slower."""
ZERO = np.float32(0.0)
COPY_COST = 32
"""Multiplications that take as long as copying a weight."""


class Scratch(Struct):
    """Arrays to work in, for a number of rows."""

    hidden: Vector
    """Activations of all hidden layers, one after another."""
    delta: Vector
    """Error of a layer's activations."""
    delta_active: Vector
    """Error of its units that are not silent."""
    gradient: Vector
    """Gradient of all parameters."""
    weights: Vector
    """Weights between the units of two layers that are not silent."""
    weights_gradient: Vector
    """Gradient of those weights."""
    below: Vector
    """Activations of the lower layer's units that are not silent."""
    active: NDArray[np.int64]
    """The units that are not silent."""
    active_below: NDArray[np.int64]
    """The units of the lower layer that are not silent."""
    row: Matrix
    """Activations of a single row, `(2, widest)`."""
    q: NDArray[np.float64]
    """Values of a single row, `(K, n)`."""


def parameter_count(sizes: Sequence[int]) -> int:
    """Return how many parameters a network has.

    >>> parameter_count((4, 256, 256, 2))
    67586
    """
    return sum(n_in * n_out + n_out for n_in, n_out in pairwise(sizes))


def initial_parameters(sizes: Sequence[int], K: int, generator: np.random.Generator) -> Matrix:
    """Draw `K` networks, `(K, parameters)`, as PyTorch does: uniform within ±1/√inputs of each layer."""
    bound = np.concatenate([np.full(i * o + o, 1 / math.sqrt(i)) for i, o in pairwise(sizes)])
    drawn: Matrix = (generator.uniform(-1.0, 1.0, (K, len(bound))) * bound).astype(np.float32)
    return drawn


def layers(parameters: NDArray[Any], sizes: Sequence[int]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Cut one network's parameters into the weights `(out, in)` and biases of its layers.

    >>> [weights.shape for weights, _ in layers(np.zeros(parameter_count((4, 8, 2))), (4, 8, 2))]
    [(8, 4), (2, 8)]
    """
    cut, at = [], 0
    for n_in, n_out in pairwise(sizes):
        middle, end = at + n_in * n_out, at + n_in * n_out + n_out
        cut.append((parameters[at:middle].reshape(n_out, n_in), parameters[middle:end]))
        at = end
    return cut


def new_scratch(sizes: Sequence[int], K: int, rows: int) -> Scratch:
    """Make arrays for `K` networks and up to `rows` rows."""
    hidden, widest, largest = sum(sizes[1:-1]), max(sizes), max(i * o for i, o in pairwise(sizes))
    return Scratch(
        hidden=np.zeros(rows * hidden, dtype=np.float32),
        delta=np.zeros(rows * widest, dtype=np.float32),
        delta_active=np.zeros(rows * widest, dtype=np.float32),
        gradient=np.zeros(parameter_count(sizes), dtype=np.float32),
        weights=np.zeros(largest, dtype=np.float32),
        weights_gradient=np.zeros(largest, dtype=np.float32),
        below=np.zeros(rows * widest, dtype=np.float32),
        active=np.zeros(widest, dtype=np.int64),
        active_below=np.zeros(widest, dtype=np.int64),
        row=np.zeros((2, widest), dtype=np.float32),
        q=np.zeros((K, sizes[-1])),
    )


def forward_pointer(scratch: Scratch) -> Pointer:
    """Return `forward` for kernels to call by its address."""
    return _pointer(forward, _VECTOR, _SIZES, _MATRIX, typeof(scratch), _MATRIX)


def gradient_pointer(scratch: Scratch) -> Pointer:
    """Return `gradient` for kernels to call by its address."""
    return _pointer(gradient, _VECTOR, _SIZES, _MATRIX, _SIZES, _VECTOR, types.boolean, typeof(scratch))


_VECTOR, _SIZES, _MATRIX = types.float32[::1], types.int64[::1], types.float32[:, ::1]
_pointer = cache(Pointer)


@compiled
def copy_row(source: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy a row. (`out[:] = source` also compiles the text of an error message, which takes seconds.)"""
    for j in range(len(out)):
        out[j] = source[j]


@compiled_fast
def dense_relu(x: Matrix, weights: Matrix, bias: Vector, out: Matrix) -> None:
    """Write `out = relu(x Wᵀ + b)`, `(rows, out)`."""
    product_tb(x, weights, out)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            value = out[i, j] + bias[j]
            out[i, j] = value if value > ZERO else ZERO


@compiled_fast
def active_units(h: Matrix, total: Vector, active: NDArray[np.int64]) -> int:
    """Write which units are not silent in the whole batch; returns how many. `total` is an array for a row.

    If all are silent the first one counts as active: the BLAS wants at least one.
    """
    rows, n = h.shape
    for j in range(n):
        total[j] = ZERO
    for i in range(rows):
        for j in range(n):
            total[j] += h[i, j]
    units = 0
    for j in range(n):
        if total[j] > ZERO:
            active[units] = j
            units += 1
    if units == 0:
        active[0] = 0
    return max(units, 1)


@compiled
def is_sparse(units: int, of: int, rows: int) -> bool:
    """Return whether so few of a layer's units are active that a product without the others is worth the copies."""
    return rows * (of - units) > COPY_COST * units


@compiled
def columns(matrix: Matrix, chosen: NDArray[np.int64], into: Vector) -> Matrix:
    """Copy the chosen columns of a matrix; returns them as a view of `into`."""
    out = into[: len(matrix) * len(chosen)].reshape(len(matrix), len(chosen))
    for i in range(len(matrix)):
        for c in range(len(chosen)):
            out[i, c] = matrix[i, chosen[c]]
    return out


@compiled_fast
def hidden_layers(parameters: Vector, sizes: Sizes, x: Matrix, scratch: Scratch) -> Matrix:
    """Compute all hidden layers of a batch; returns a view of the last (`x` itself if there is none)."""
    rows = x.shape[0]
    h, at, stored = x, 0, 0
    for layer in range(len(sizes) - 2):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weights = parameters[at : at + n_in * n_out].reshape(n_out, n_in)
        bias = parameters[at + n_in * n_out : at + n_in * n_out + n_out]
        out = scratch.hidden[stored : stored + rows * n_out].reshape(rows, n_out)
        units = n_in if layer == 0 else active_units(h, scratch.weights, scratch.active_below)
        if is_sparse(units, n_in, rows):
            h = columns(h, scratch.active_below[:units], scratch.below)
            weights = columns(weights, scratch.active_below[:units], scratch.weights)
        dense_relu(h, weights, bias, out)
        h = out
        at += n_in * n_out + n_out
        stored += rows * n_out
    return h


@compiled_fast
def forward(parameters: Vector, sizes: Sizes, x: Matrix, scratch: Scratch, q: Matrix) -> None:
    """Write the values `q`, `(rows, n)`, of a batch `x`, `(rows, inputs)`."""
    last_layer(parameters, sizes, hidden_layers(parameters, sizes, x, scratch), q)


@compiled_fast
def last_layer(parameters: Vector, sizes: Sizes, h: Matrix, q: Matrix) -> None:
    """Write the values `q` that follow from the last hidden layer `h`."""
    n_in, n = sizes[-2], sizes[-1]
    at = len(parameters) - n_in * n - n
    product_tb(h, parameters[at : at + n_in * n].reshape(n, n_in), q)
    for i in range(len(h)):
        for u in range(n):
            q[i, u] += parameters[at + n_in * n + u]


@compiled_fast
def neuron(weights: Vector, bias: np.float32, h: Vector) -> np.float32:
    """Return `w h + b` of one unit."""
    total = bias
    for p in range(len(weights)):
        total += h[p] * weights[p]
    return total


@compiled_fast
def forward_row(parameters: Vector, sizes: Sizes, x: Vector, row: Matrix, q: NDArray[np.float64]) -> None:
    """Write the values `q`, `(n,)`, of one observation `x`."""
    h, at, last = x, 0, len(sizes) - 2
    for layer in range(last):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        out = row[layer % 2]
        for j in range(n_out):
            value = neuron(parameters[at + j * n_in : at + (j + 1) * n_in], parameters[at + n_in * n_out + j], h)
            out[j] = value if value > ZERO else ZERO
        h = out
        at += n_in * n_out + n_out
    n_in, n = sizes[last], sizes[last + 1]
    for u in range(n):
        q[u] = neuron(parameters[at + u * n_in : at + (u + 1) * n_in], parameters[at + n_in * n + u], h)


@compiled_fast
def best_decision(
    parameters: Matrix, sizes: Sizes, x: Vector, slack: float, row: Matrix, q: NDArray[np.float64]
) -> int:
    """Return the lexicographically best decision of `K` networks, `(K, parameters)`, at one observation."""
    for k in range(parameters.shape[0]):
        forward_row(parameters[k], sizes, x, row, q[k])
    return lex_argmax_kernel(q, slack)


@compiled_fast
def output_gradient(
    h: Matrix,
    weights: Matrix,
    bias: Vector,
    taken: NDArray[np.int64],
    target: Vector,
    huber: bool,
    weights_gradient: Matrix,
    bias_gradient: Vector,
    delta: Matrix,
) -> None:
    """Backward through the last layer: the taken decision's row of weights, and the error `delta` of `h`."""
    rows, n_in = h.shape
    weights_gradient[:] = ZERO
    bias_gradient[:] = ZERO
    for i in range(rows):
        u = taken[i]
        value = bias[u]
        for j in range(n_in):
            value += h[i, j] * weights[u, j]
        error = value - target[i]
        if huber:
            error = min(max(error, np.float32(-1.0)), np.float32(1.0)) / np.float32(rows)
        else:
            error *= np.float32(2.0) / np.float32(rows)
        bias_gradient[u] += error
        for j in range(n_in):
            weights_gradient[u, j] += error * h[i, j]
            delta[i, j] = error * weights[u, j]


@compiled_fast
def relu_gradient(delta: Matrix, h: Matrix, bias_gradient: Vector) -> None:
    """Backward through a ReLU, in place; its bias's gradient is the sum over the rows."""
    rows, n = delta.shape
    bias_gradient[:] = ZERO
    for i in range(rows):
        for j in range(n):
            value = delta[i, j] if h[i, j] > ZERO else ZERO
            delta[i, j] = value
            bias_gradient[j] += value


@compiled_fast
def gradient(
    parameters: Vector,
    sizes: Sizes,
    x: Matrix,
    taken: NDArray[np.int64],
    target: Vector,
    huber: bool,
    scratch: Scratch,
) -> None:
    """Write into `scratch.gradient` the gradient of the loss between `Q(x, taken)` and `target`, over a batch."""
    out = scratch.gradient
    h = hidden_layers(parameters, sizes, x, scratch)
    n_in, n_out = sizes[-2], sizes[-1]
    at = len(parameters) - n_in * n_out - n_out
    output_gradient(
        h,
        parameters[at : at + n_in * n_out].reshape(n_out, n_in),
        parameters[at + n_in * n_out :],
        taken,
        target,
        huber,
        out[at : at + n_in * n_out].reshape(n_out, n_in),
        out[at + n_in * n_out :],
        scratch.delta[: len(x) * n_in].reshape(len(x), n_in),
    )
    hidden_gradient(parameters, sizes, x, h, scratch)


@compiled_fast
def gradient_of_all(parameters: Vector, sizes: Sizes, x: Matrix, target: Matrix, out: Matrix, scratch: Scratch) -> None:
    """Write into `scratch.gradient` that of the squared error of all outputs, over a batch; `out` gets the outputs."""
    rows, n_in, n = len(x), sizes[-2], sizes[-1]
    h = hidden_layers(parameters, sizes, x, scratch)
    last_layer(parameters, sizes, h, out)
    at = len(parameters) - n_in * n - n
    weights = parameters[at : at + n_in * n].reshape(n, n_in)
    bias_gradient = scratch.gradient[at + n_in * n :]
    error = scratch.delta_active[: rows * n].reshape(rows, n)
    bias_gradient[:] = ZERO
    for i in range(rows):
        for u in range(n):
            error[i, u] = (out[i, u] - target[i, u]) * (np.float32(2.0) / np.float32(rows))
            bias_gradient[u] += error[i, u]
    product_ta(error, h, scratch.gradient[at : at + n_in * n].reshape(n, n_in))
    product(error, weights, scratch.delta[: rows * n_in].reshape(rows, n_in))
    hidden_gradient(parameters, sizes, x, h, scratch)


@compiled_fast
def hidden_gradient(parameters: Vector, sizes: Sizes, x: Matrix, h: Matrix, scratch: Scratch) -> None:
    """Backward through the hidden layers: from the error of the last, `h`, in `scratch.delta`."""
    rows, last = x.shape[0], len(sizes) - 2
    out = scratch.gradient
    n_in, n_out = sizes[last], sizes[last + 1]
    at = len(parameters) - n_in * n_out - n_out
    delta = scratch.delta[: rows * n_in].reshape(rows, n_in)
    stored = 0
    for layer in range(last):
        stored += rows * sizes[layer + 1]
    for layer in range(last - 1, -1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        at -= n_in * n_out + n_out
        stored -= rows * n_out
        relu_gradient(delta, h, out[at + n_in * n_out : at + n_in * n_out + n_out])
        below = x if layer == 0 else scratch.hidden[stored - rows * n_in : stored].reshape(rows, n_in)
        weights_out = out[at : at + n_in * n_out].reshape(n_out, n_in)
        if layer == 0:
            product_ta(delta, below, weights_out)
            return
        active = scratch.active[: active_units(h, scratch.weights, scratch.active)]
        weights = parameters[at : at + n_in * n_out].reshape(n_out, n_in)
        delta_active = columns(delta, active, scratch.delta_active)
        delta = scratch.delta[: rows * n_in].reshape(rows, n_in)
        units = active_units(below, scratch.weights, scratch.active_below)
        if is_sparse(units, n_in, rows):
            sparse_gradient(
                weights, below, active, scratch.active_below[:units], delta_active, weights_out, delta, scratch
            )
        else:
            dense_gradient(weights, below, active, delta_active, weights_out, delta, scratch)
        h = below


@compiled_fast
def dense_gradient(
    weights: Matrix,
    below: Matrix,
    active: NDArray[np.int64],
    delta: Matrix,
    weights_out: Matrix,
    delta_below: Matrix,
    scratch: Scratch,
) -> None:
    """Backward through a layer, where `delta` has its active units only."""
    units, n_in = len(active), below.shape[1]
    product_ta(delta, below, weights_out[:units])
    # Each row to its unit, from the last on: a row moves up or stays.
    c = units - 1
    for j in range(len(weights_out) - 1, -1, -1):
        if c >= 0 and active[c] == j:
            if c < j:
                copy_row(weights_out[c], weights_out[j])
            c -= 1
        else:
            weights_out[j] = ZERO
    chosen = scratch.weights[: units * n_in].reshape(units, n_in)
    for c in range(units):
        copy_row(weights[active[c]], chosen[c])
    product(delta, chosen, delta_below)


@compiled_fast
def sparse_gradient(
    weights: Matrix,
    below: Matrix,
    active: NDArray[np.int64],
    active_below: NDArray[np.int64],
    delta: Matrix,
    weights_out: Matrix,
    delta_below: Matrix,
    scratch: Scratch,
) -> None:
    """Backward through a layer, where `delta` has its active units only, and few units of the layer below are active.

    The error `delta_below` of the others stays what it was: the gradient of their ReLU does not look at it.
    """
    rows, units, n_in = len(delta), len(active), len(active_below)
    part = scratch.weights_gradient[: units * n_in].reshape(units, n_in)
    product_ta(delta, columns(below, active_below, scratch.below), part)
    chosen = scratch.weights[: units * n_in].reshape(units, n_in)
    weights_out[:] = ZERO
    for c in range(units):
        for d in range(n_in):
            weights_out[active[c], active_below[d]] = part[c, d]
            chosen[c, d] = weights[active[c], active_below[d]]
    error = scratch.below[: rows * n_in].reshape(rows, n_in)
    product(delta, chosen, error)
    for i in range(rows):
        for d in range(n_in):
            delta_below[i, active_below[d]] = error[i, d]


@compiled_fast
def adam(parameters: Vector, gradient: Vector, m: Vector, v: Vector, rate: float, t: int) -> None:
    """Move the parameters by Adam's update number `t` (from 1)."""
    step = np.float32(rate / (1.0 - 0.9**t))
    scale = np.float32(1.0 / math.sqrt(1.0 - 0.999**t))
    for i in range(len(parameters)):
        g = gradient[i]
        first = BETA_1 * m[i] + REST_1 * g
        second = BETA_2 * v[i] + REST_2 * g * g
        m[i] = first if abs(first) > TINY else ZERO
        v[i] = second if second > TINY else ZERO
        parameters[i] -= step * m[i] / (math.sqrt(v[i]) * scale + EPSILON)
