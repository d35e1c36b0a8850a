"""Multilayer perceptrons in machine code: forward, backward and Adam (Kingma and Ba 2015), in float32.

A network is one flat array of parameters, so that Adam is one loop and a checkpoint one array. With
`sizes = (inputs, hidden ..., outputs)` it holds, layer after layer, the weights `(out, in)` and then the biases, as
PyTorch orders them. Hidden layers end in a ReLU. All arrays are C-contiguous; nothing is allocated inside.

Backward, for the mean over a batch of `(q - y)²` or of Huber's loss::

    δ of the last layer: the error of the decision that was taken, and 0 for the others
    ∂W = δᵀ h_in    ∂b = Σ δ    δ_in = (δ W) ∘ [h_in > 0]

Inside, a layer's activations are `(units, rows)`: then no product needs a matrix of weights in another order than the
one it is stored in, a ReLU's silent unit is a row, and what is left out needs no copy. A unit that is silent in the
whole batch has no δ, and feeds nothing to the layer above. Often half the units are silent, and in MountainCar most, so
the products leave them out: the same sums without the zeros.
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
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct
from letitcook.deep.products import NARROW, aligned_zeros, dot, product, product_ta, sum_of, transposed

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
Sizes = NDArray[np.int64]

BETA_1, BETA_2 = np.float32(0.9), np.float32(0.999)
REST_1, REST_2 = np.float32(1 - 0.9), np.float32(1 - 0.999)
EPSILON = np.float32(1e-8)
TINY = np.float32(1e-30)
"""Adam's moments below this become 0: denormal numbers would make every update up to ten times slower."""
ZERO = np.float32(0.0)
CHUNK = 128
"""Rows of a batch that go through a network together: with more, a layer's activations leave the cache."""
SPARSE = 0.8
"""Share of a layer's units; if no more of them are active, its weights' gradient is computed without the others."""
SEGMENT = 256
"""Parameters that Adam looks at together."""


class Layers(Struct):
    """Arrays in which the layers work, for a number of rows."""

    activations: Vector
    """What the layers see, one after another: the inputs, then the activations of each hidden layer."""
    active: NDArray[np.int64]
    """The units of each of these layers that are not silent, `(layers, widest)`; of the inputs, all."""
    active_count: NDArray[np.int64]
    """How many they are."""
    every: NDArray[np.int64]
    """All indices."""
    outputs: Vector
    """Values of a batch, and then their errors."""
    delta: Vector
    """Errors of a layer's units."""
    delta_below: Vector
    """Errors of the layer below."""
    by_row: Vector
    """What the layer below has for each row of the batch."""
    part: Vector
    """Gradient of the weights between units that are not silent."""
    gradient: Vector
    """Gradient of all parameters."""


class Scratch(Struct):
    """What a network works in, and the kernels that go through its layers, called by address."""

    layers: Layers
    hidden_layers: Pointer
    backward: Pointer
    adam: Pointer
    gradient: Vector
    """Gradient of all parameters."""
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
    columns, widest, largest = max(rows, NARROW), max(sizes), max(i * o for i, o in pairwise(sizes))
    active = np.tile(np.arange(widest), (len(sizes) - 1, 1))
    layers = Layers(
        activations=aligned_zeros(columns * sum(sizes[:-1])),
        active=active,
        active_count=np.array(sizes[:-1], dtype=np.int64),
        every=np.arange(max(widest, columns)),
        outputs=aligned_zeros(columns * sizes[-1]),
        delta=aligned_zeros(columns * widest),
        delta_below=aligned_zeros(columns * widest),
        by_row=aligned_zeros(columns * widest),
        part=aligned_zeros(max(largest, columns * widest)),
        gradient=aligned_zeros(parameter_count(sizes)),
    )
    return Scratch(
        layers=layers,
        hidden_layers=_pointer(hidden_layers, _VECTOR, _SIZES, _MATRIX, typeof(layers)),
        backward=_pointer(backward, _VECTOR, _SIZES, _MATRIX, _MATRIX, typeof(layers)),
        adam=_pointer(adam, _VECTOR, _VECTOR, _VECTOR, _VECTOR, types.float64, types.int64),
        gradient=layers.gradient,
        row=np.zeros((2, widest), dtype=np.float32),
        q=np.zeros((K, sizes[-1])),
    )


def forward_pointer(scratch: Scratch) -> Pointer:
    """Return `forward` for kernels to call by its address."""
    return _pointer(forward, _VECTOR, _SIZES, _MATRIX, typeof(scratch), _MATRIX)


def gradient_pointer(scratch: Scratch) -> Pointer:
    """Return `gradient` for kernels to call by its address."""
    return _pointer(gradient, _VECTOR, _SIZES, _MATRIX, _SIZES, _VECTOR, types.boolean, typeof(scratch))


def gradient_of_all_pointer(scratch: Scratch) -> Pointer:
    """Return `gradient_of_all` for kernels to call by its address."""
    return _pointer(gradient_of_all, _VECTOR, _SIZES, _MATRIX, _MATRIX, _MATRIX, typeof(scratch))


_VECTOR, _SIZES, _MATRIX = types.float32[::1], types.int64[::1], types.float32[:, ::1]
_pointer = cache(Pointer)


@compiled
def copy_row(source: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy a row. (`out[:] = source` also compiles the text of an error message, which takes seconds.)"""
    for j in range(len(out)):
        out[j] = source[j]


@compiled_fast
def relu(h: Matrix, bias: Vector, active: NDArray[np.int64]) -> int:
    """Add the biases and apply a ReLU, in place; writes which units are not silent in the whole batch.

    Returns how many they are. If all are silent the first one counts as active: a product wants at least one.
    """
    units = 0
    for j in range(len(h)):
        total = ZERO
        for i in range(h.shape[1]):
            value = h[j, i] + bias[j]
            value = value if value > ZERO else ZERO
            h[j, i] = value
            total += value
        if total > ZERO:
            active[units] = j
            units += 1
    if units == 0:
        active[0] = 0
    return max(units, 1)


@compiled_fast
def hidden_layers(parameters: Vector, sizes: Sizes, x: Matrix, layers: Layers) -> int:
    """Compute the activations of a batch, layer by layer; returns how many columns they have.

    There is a column for each row of the batch, and as many more, of zeros, as make `NARROW`.
    """
    rows, n_in = x.shape
    columns = int(max(rows, NARROW))
    below = layers.activations[: n_in * columns].reshape(n_in, columns)
    for j in range(n_in):
        for i in range(columns):
            below[j, i] = x[i, j] if i < rows else ZERO
    at, stored = 0, n_in * columns
    for layer in range(len(sizes) - 2):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weights = parameters[at : at + n_in * n_out].reshape(n_out, n_in)
        bias = parameters[at + n_in * n_out : at + n_in * n_out + n_out]
        out = layers.activations[stored : stored + n_out * columns].reshape(n_out, columns)
        active = layers.active[layer, : layers.active_count[layer]]
        product(weights, below, out, layers.every[:n_out], active)
        layers.active_count[layer + 1] = relu(out, bias, layers.active[layer + 1])
        below = out
        at += n_in * n_out + n_out
        stored += n_out * columns
    return columns


@compiled_fast
def output_layer(parameters: Vector, sizes: Sizes, columns: int, layers: Layers) -> Matrix:
    """Compute the values that follow from the last hidden layer, `(n, columns)`."""
    last = len(sizes) - 2
    n_in, n = sizes[last], sizes[last + 1]
    at, stored = len(parameters) - n_in * n - n, units_below_layer(sizes, last) * columns
    below = layers.activations[stored : stored + n_in * columns].reshape(n_in, columns)
    out = layers.outputs[: n * columns].reshape(n, columns)
    active = layers.active[last, : layers.active_count[last]]
    product(parameters[at : at + n_in * n].reshape(n, n_in), below, out, layers.every[:n], active)
    for u in range(n):
        for i in range(columns):
            out[u, i] += parameters[at + n_in * n + u]
    return out


@compiled_fast
def forward(parameters: Vector, sizes: Sizes, x: Matrix, scratch: Scratch, q: Matrix) -> None:
    """Write the values `q`, `(rows, n)`, of a batch `x`, `(rows, inputs)`."""
    for begin in range(0, len(x), CHUNK):
        part = x[begin : begin + CHUNK]
        columns = call(scratch.hidden_layers, (parameters, sizes, part, scratch.layers))
        out = output_layer(parameters, sizes, columns, scratch.layers)
        for i in range(len(part)):
            for u in range(len(out)):
                q[begin + i, u] = out[u, i]


@compiled_fast
def forward_row(parameters: Vector, sizes: Sizes, x: Vector, row: Matrix, q: NDArray[np.float64]) -> None:
    """Write the values `q`, `(n,)`, of one observation `x`."""
    h, at, last = x, 0, len(sizes) - 2
    for layer in range(last):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        out = row[layer % 2, :n_out]
        for j in range(n_out):
            value = parameters[at + n_in * n_out + j] + dot(parameters, at + j * n_in, h)
            out[j] = value if value > ZERO else ZERO
        h = out
        at += n_in * n_out + n_out
    n_in, n = sizes[last], sizes[last + 1]
    for u in range(n):
        q[u] = parameters[at + n_in * n + u] + dot(parameters, at + u * n_in, h)


@compiled_fast
def best_decision(
    parameters: Matrix, sizes: Sizes, x: Vector, slack: float, row: Matrix, q: NDArray[np.float64]
) -> int:
    """Return the lexicographically best decision of `K` networks, `(K, parameters)`, at one observation."""
    for k in range(parameters.shape[0]):
        forward_row(parameters[k], sizes, x, row, q[k])
    return lex_argmax_kernel(q, slack)


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
    rows = len(x)
    columns = call(scratch.hidden_layers, (parameters, sizes, x, scratch.layers))
    out = output_layer(parameters, sizes, columns, scratch.layers)
    for i in range(columns):
        u = taken[i] if i < rows else 0
        error = out[u, i] - target[i] if i < rows else ZERO
        if huber:
            error = min(max(error, np.float32(-1.0)), np.float32(1.0)) / np.float32(rows)
        else:
            error *= np.float32(2.0) / np.float32(rows)
        for other in range(len(out)):
            out[other, i] = ZERO
        out[u, i] = error
    call(scratch.backward, (parameters, sizes, x, out, scratch.layers))


@compiled_fast
def gradient_of_all(parameters: Vector, sizes: Sizes, x: Matrix, target: Matrix, out: Matrix, scratch: Scratch) -> None:
    """Write into `scratch.gradient` that of the squared error of all outputs, over a batch; `out` gets the outputs."""
    rows = len(x)
    columns = call(scratch.hidden_layers, (parameters, sizes, x, scratch.layers))
    error = output_layer(parameters, sizes, columns, scratch.layers)
    for u in range(len(error)):
        for i in range(columns):
            if i < rows:
                out[i, u] = error[u, i]
                error[u, i] = (out[i, u] - target[i, u]) * (np.float32(2.0) / np.float32(rows))
            else:
                error[u, i] = ZERO
    call(scratch.backward, (parameters, sizes, x, error, scratch.layers))


@compiled_fast
def backward(parameters: Vector, sizes: Sizes, x: Matrix, error: Matrix, layers: Layers) -> None:
    """Write the gradient that the error of the outputs, `(n, columns)`, makes."""
    rows, columns = len(x), error.shape[1]
    delta, units = error, layers.every[: len(error)]
    at, stored = len(parameters), units_below_layer(sizes, len(sizes) - 1) * columns
    for layer in range(len(sizes) - 2, -1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        at -= n_in * n_out + n_out
        stored -= n_in * columns
        bias_gradient = layers.gradient[at + n_in * n_out : at + n_in * n_out + n_out]
        bias_gradient[:] = ZERO
        for j in units:
            bias_gradient[j] = sum_of(delta[j])
        weights_gradient = layers.gradient[at : at + n_in * n_out].reshape(n_out, n_in)
        if layer == 0:
            if len(units) < n_out:
                weights_gradient[:] = ZERO
            product(delta, x, weights_gradient, units, layers.every[:rows])
            return
        below = layers.activations[stored : stored + n_in * columns].reshape(n_in, columns)
        units_below = layers.active[layer, : layers.active_count[layer]]
        write_weights_gradient(delta, units, below, units_below, weights_gradient, layers)
        weights = parameters[at : at + n_in * n_out].reshape(n_out, n_in)
        into = layers.delta_below if layer % 2 == 0 else layers.delta
        delta_below = into[: n_in * columns].reshape(n_in, columns)
        product_ta(weights, delta, delta_below, units_below, units)
        for j in units_below:
            for i in range(columns):
                if not below[j, i] > ZERO:
                    delta_below[j, i] = ZERO
        delta, units = delta_below, units_below


@compiled_fast
def write_weights_gradient(
    delta: Matrix,
    units: NDArray[np.int64],
    below: Matrix,
    units_below: NDArray[np.int64],
    out: Matrix,
    layers: Layers,
) -> None:
    """Write the gradient of a layer's weights, in the rows of the listed units."""
    n_in, columns = below.shape
    if len(units_below) > SPARSE * n_in:
        if len(units) < len(out):
            out[:] = ZERO
        product(delta, transposed(below, layers.by_row), out, units, layers.every[:columns])
        return
    # Where many units below are silent, the others are put together first.
    n = len(units_below)
    together = layers.part[: n * columns].reshape(n, columns)
    for c in range(n):
        copy_row(below[units_below[c]], together[c])
    by_row = transposed(together, layers.by_row)
    part = layers.part[: len(out) * n].reshape(len(out), n)
    product(delta, by_row, part, units, layers.every[:columns])
    out[:] = ZERO
    for j in units:
        for c in range(n):
            out[j, units_below[c]] = part[j, c]


@compiled
def units_below_layer(sizes: Sizes, layer: int) -> int:
    """Return how many inputs and units there are in the layers below."""
    total = 0
    for size in sizes[:layer]:
        total += int(size)
    return total


@compiled_fast
def adam(parameters: Vector, gradient: Vector, m: Vector, v: Vector, rate: float, t: int) -> None:
    """Move the parameters by Adam's update number `t` (from 1).

    Where neither the gradient nor its mean is left, as with units that stay silent, only `v` changes.
    """
    step = np.float32(rate / (1.0 - 0.9**t))
    scale = np.float32(1.0 / math.sqrt(1.0 - 0.999**t))
    for begin in range(0, len(parameters), SEGMENT):
        now = slice(begin, min(begin + SEGMENT, len(parameters)))
        if is_zero(gradient[now], m[now]):
            decay(v[now])
        else:
            move(parameters[now], gradient[now], m[now], v[now], step, scale)


@compiled_fast
def is_zero(gradient: Vector, m: Vector) -> bool:
    """Return whether both are zero; NaN is not."""
    total = ZERO
    for i in range(len(gradient)):
        total += abs(gradient[i]) + abs(m[i])
    return bool(total == ZERO)


@compiled_fast
def decay(v: Vector) -> None:
    """Move the mean of the squared gradient on by a gradient of zero."""
    for i in range(len(v)):
        second = BETA_2 * v[i]
        v[i] = second if second > TINY else ZERO


@compiled_fast
def move(parameters: Vector, gradient: Vector, m: Vector, v: Vector, step: np.float32, scale: np.float32) -> None:
    """Move some of the parameters."""
    for i in range(len(parameters)):
        g = gradient[i]
        first = BETA_1 * m[i] + REST_1 * g
        second = BETA_2 * v[i] + REST_2 * g * g
        m[i] = first if abs(first) > TINY else ZERO
        v[i] = second if second > TINY else ZERO
        parameters[i] -= step * m[i] / (math.sqrt(v[i]) * scale + EPSILON)
