"""The network kernels against PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch

from letitcook.deep.network import adam, forward, gradient, initial_parameters, new_scratch
from test_network import batch, layers


@pytest.mark.parametrize("loss", ["mse", "huber"])
def test_a_hundred_updates_equal_pytorchs(loss: Any) -> None:
    sizes, rows = (4, 256, 256, 13), 64
    parameters = initial_parameters(sizes, 1, np.random.default_rng(1))[0]
    modules = []
    for w, b in layers(parameters, sizes):
        linear = torch.nn.Linear(*w.shape)
        linear.weight.data, linear.bias.data = torch.tensor(w.T.copy()), torch.tensor(b.copy())
        modules += [linear, torch.nn.ReLU()]
    theirs = torch.nn.Sequential(*modules[:-1])
    optimizer = torch.optim.Adam(theirs.parameters(), lr=2e-3)
    distance = torch.nn.MSELoss() if loss == "mse" else torch.nn.SmoothL1Loss()

    scratch = new_scratch(sizes, 1, rows)
    m, v = np.zeros_like(parameters), np.zeros_like(parameters)
    for t in range(1, 101):
        x, taken, target = batch(sizes, rows, seed=t)
        gradient(parameters, np.array(sizes), x, taken, target, loss == "huber", scratch)
        adam(parameters, scratch.gradient, m, v, 2e-3, t)
        optimizer.zero_grad()
        value = theirs(torch.tensor(x))[torch.arange(rows), torch.tensor(taken)]
        distance(value, torch.tensor(target)).backward()
        optimizer.step()
        if t == 1:
            flat = np.concatenate([p.grad.numpy().ravel() for p in theirs.parameters()])
            np.testing.assert_allclose(scratch.gradient, flat, rtol=1e-3, atol=1e-6)
    x, _, _ = batch(sizes, rows, seed=1000)
    q = np.zeros((rows, sizes[-1]), dtype=np.float32)
    forward(parameters, np.array(sizes), x, scratch, q)
    with torch.no_grad():
        expected = theirs(torch.tensor(x)).numpy()
    error = np.abs(q - expected).max() / np.abs(expected).max()
    assert error < 1e-5
