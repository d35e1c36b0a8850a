"""The network kernels against an obvious NumPy twin."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from letitcook.core.objective import lex_argmax
from letitcook.deep.network import (
    adam,
    best_decision,
    forward,
    forward_row,
    gradient,
    gradient_of_all,
    initial_parameters,
    new_scratch,
    parameter_count,
)

SHAPES = [(4, 256, 256, 13), (2, 32, 5), (8, 24, 40, 16, 3), (30, 20, 20, 4), (5, 3)]


def layers(parameters: Any, sizes: Any) -> Any:
    """The weights `(in, out)` and biases of each layer."""
    result, at = [], 0
    for n_in, n_out in pairwise(sizes):
        weights = parameters[at : at + n_in * n_out].reshape(n_out, n_in).T
        result.append((weights, parameters[at + n_in * n_out : at + n_in * n_out + n_out]))
        at += n_in * n_out + n_out
    return result


def naive_forward(parameters: Any, sizes: Any, x: Any) -> Any:
    activations = [x]
    *hidden, (weights, bias) = layers(parameters, sizes)
    for w, b in hidden:
        activations.append(np.maximum(activations[-1] @ w + b, 0.0))
    return activations, activations[-1] @ weights + bias


def naive_gradient(parameters: Any, sizes: Any, x: Any, taken: Any, target: Any, huber: Any) -> Any:
    activations, q = naive_forward(parameters, sizes, x)
    rows = np.arange(len(x))
    error = q[rows, taken] - target
    delta = np.zeros_like(q)
    delta[rows, taken] = np.clip(error, -1, 1) / len(x) if huber else 2 * error / len(x)
    parts: list[Any] = []
    for i, (w, _) in reversed(list(enumerate(layers(parameters, sizes)))):
        parts = [(delta.T @ activations[i]).ravel(), delta.sum(axis=0), *parts]
        delta = (delta @ w.T) * (activations[i] > 0)
    return np.concatenate(parts)


def batch(sizes: Any, rows: Any = 64, seed: int = 0) -> Any:
    dice = np.random.default_rng(seed)
    x = dice.normal(size=(rows, sizes[0])).astype(np.float32)
    return x, dice.integers(sizes[-1], size=rows), dice.normal(size=rows).astype(np.float32) * 3


@pytest.mark.parametrize("sizes", SHAPES)
def test_forward_equals_the_twin(sizes: Any) -> None:
    x, _, _ = batch(sizes)
    parameters = initial_parameters(sizes, 1, np.random.default_rng(1))[0]
    scratch, q = new_scratch(sizes, 1, 64), np.zeros((64, sizes[-1]), dtype=np.float32)
    forward(parameters, np.array(sizes), x, scratch, q)
    np.testing.assert_allclose(q, naive_forward(parameters.astype(float), sizes, x)[1], rtol=1e-4, atol=1e-5)
    single = np.zeros(sizes[-1])
    for i in range(5):
        forward_row(parameters, np.array(sizes), x[i], scratch.row, single)
        np.testing.assert_allclose(single, q[i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("huber", [False, True])
@pytest.mark.parametrize("sizes", SHAPES)
def test_gradient_equals_the_twin(sizes: Any, huber: Any) -> None:
    x, taken, target = batch(sizes)
    parameters = initial_parameters(sizes, 1, np.random.default_rng(1))[0]
    scratch = new_scratch(sizes, 1, 64)
    gradient(parameters, np.array(sizes), x, taken, target, huber, scratch)
    expected = naive_gradient(parameters.astype(float), sizes, x, taken, target, huber)
    np.testing.assert_allclose(scratch.gradient, expected, rtol=1e-3, atol=2e-6)


@pytest.mark.parametrize("share", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("silent_layers", [(0,), (1,), (0, 1)])
def test_silent_units_change_nothing_but_the_work(share: float, silent_layers: Any) -> None:
    sizes = (8, 64, 48, 5)
    x, taken, target = batch(sizes)
    parameters = initial_parameters(sizes, 1, np.random.default_rng(1))[0]
    for layer in silent_layers:
        bias = layers(parameters, sizes)[layer][1]
        bias[: int(share * len(bias))] = -100.0
    scratch, q = new_scratch(sizes, 1, 64), np.zeros((64, 5), dtype=np.float32)
    scratch.layers.delta[:] = scratch.layers.delta_below[:] = scratch.gradient[:] = np.nan
    forward(parameters, np.array(sizes), x, scratch, q)
    np.testing.assert_allclose(q, naive_forward(parameters.astype(float), sizes, x)[1], rtol=1e-4, atol=1e-5)
    gradient(parameters, np.array(sizes), x, taken, target, False, scratch)
    expected = naive_gradient(parameters.astype(float), sizes, x, taken, target, False)
    np.testing.assert_allclose(scratch.gradient, expected, rtol=1e-3, atol=2e-6)


@pytest.mark.parametrize("sizes", SHAPES)
def test_gradient_of_all_outputs_is_the_sum_over_them(sizes: Any) -> None:
    x, _, _ = batch(sizes)
    target = np.random.default_rng(4).normal(size=(64, sizes[-1])).astype(np.float32)
    parameters = initial_parameters(sizes, 1, np.random.default_rng(1))[0]
    scratch, out = new_scratch(sizes, 1, 64), np.zeros((64, sizes[-1]), dtype=np.float32)
    gradient_of_all(parameters, np.array(sizes), x, target, out, scratch)
    np.testing.assert_allclose(out, naive_forward(parameters.astype(float), sizes, x)[1], rtol=1e-4, atol=1e-5)
    every = [np.full(64, u) for u in range(sizes[-1])]
    expected = sum(naive_gradient(parameters.astype(float), sizes, x, u, target[:, u[0]], False) for u in every)
    np.testing.assert_allclose(scratch.gradient, expected, rtol=1e-3, atol=1e-5)


def test_adam_equals_the_twin() -> None:
    dice = np.random.default_rng(0)
    p = dice.normal(size=1000).astype(np.float32)
    m, v = np.zeros_like(p), np.zeros_like(p)
    P, M, V = p.astype(float), m.astype(float), v.astype(float)
    for t in range(1, 50):
        g = dice.normal(size=1000).astype(np.float32)
        adam(p, g, m, v, 2e-3, t)
        M, V = 0.9 * M + 0.1 * g, 0.999 * V + 0.001 * g.astype(float) ** 2
        P -= 2e-3 * (M / (1 - 0.9**t)) / (np.sqrt(V / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(p, P, rtol=1e-4, atol=1e-5)


def test_adam_flushes_tiny_moments() -> None:
    p, m, v = (np.full(8, value, dtype=np.float32) for value in (1.0, 1e-29, 1e-30))
    for t in range(1, 100):
        adam(p, np.zeros(8, dtype=np.float32), m, v, 1e-3, t)
    assert (m == 0).all()
    assert (v == 0).all()
    assert np.isfinite(p).all()


def test_best_decision_is_the_lexicographic_one() -> None:
    sizes = (3, 16, 6)
    networks = initial_parameters(sizes, 2, np.random.default_rng(2))
    scratch = new_scratch(sizes, 2, 1)
    for x in np.random.default_rng(3).normal(size=(20, 3)).astype(np.float32):
        q = [naive_forward(network.astype(float), sizes, x[None])[1][0] for network in networks]
        assert best_decision(networks, np.array(sizes), x, 0.1, scratch.row, scratch.q) == lex_argmax(q, 0.1)


def test_initial_parameters_are_bounded_by_the_inputs() -> None:
    sizes = (4, 100, 2)
    networks = initial_parameters(sizes, 2, np.random.default_rng(0))
    assert networks.shape == (2, parameter_count(sizes))
    assert 0.45 < np.abs(networks[0, :500]).max() <= 0.5
    assert np.abs(networks[0, 500:]).max() <= 0.1
    assert (networks[0] != networks[1]).any()
