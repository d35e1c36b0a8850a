"""What a network sees of an observation: its numbers on a common scale, waves over them, and the trade-off.

A network learns slowly what depends on small differences of an observation. So the input holds, beside the observation
itself, sines and cosines of random directions in it (random Fourier features; Rahimi and Recht 2007, Tancik et al.
2020). With `x̂ = (x - mean) · scale`, of one size for every task, the input is `[x̂, sin(F x̂), cos(F x̂), z]`;
`z` is the trade-off that a conditioned network decides by, see `learner.py`. Without all that it is `x`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.kernels import compiled

BANDWIDTH = 3.0
"""Standard deviation of the waves' frequencies, divided by the number of dimensions."""


class Inputs(NamedTuple):
    """How an observation becomes a network's input."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    frequencies: NDArray[np.float32]
    """Directions of the waves, `(waves, observation size)`."""


def plain_inputs(observation_size: int, waves: int = 0, seed: int = 0) -> Inputs:
    """Return inputs on the observation's own scale, with that many waves in random directions.

    >>> inputs = plain_inputs(2, waves=1)
    >>> x, out = np.zeros(2, dtype=np.float32), np.zeros(4, dtype=np.float32)
    >>> write_input(inputs, x, out)
    >>> out.tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    drawn = np.random.default_rng([seed, 2]).normal(0.0, BANDWIDTH / observation_size, (waves, observation_size))
    return Inputs(
        mean=np.zeros(observation_size, dtype=np.float32),
        scale=np.ones(observation_size, dtype=np.float32),
        frequencies=drawn.astype(np.float32),
    )


def input_size(inputs: Inputs) -> int:
    """Return how many numbers an observation becomes."""
    return len(inputs.mean) + 2 * len(inputs.frequencies)


@compiled
def write_scaled(inputs: Inputs, x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Write one observation on the common scale; places of `out` behind it are left alone."""
    for j in range(len(inputs.mean)):
        out[j] = (x[j] - inputs.mean[j]) * inputs.scale[j]


@compiled
def write_input(inputs: Inputs, x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Write the input of one observation; places of `out` behind it are left alone."""
    size, waves = len(inputs.mean), len(inputs.frequencies)
    write_scaled(inputs, x, out)
    for i in range(waves):
        angle = np.float32(0.0)
        for j in range(size):
            angle += inputs.frequencies[i, j] * out[j]
        out[size + i] = math.sin(angle)
        out[size + waves + i] = math.cos(angle)
