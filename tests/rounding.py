"""Which decisions of networks are clear, and which are so close that rounding may decide."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from letitcook.deep.policy import NetworkPolicy


def values_in_float64(policy: NetworkPolicy, rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the values of a policy's networks, `(K, rows, n)`, with hardly any rounding."""
    values, inputs = [], policy.inputs
    x = (rows.astype(np.float64) - inputs.mean) * inputs.scale
    fourier_features = x @ inputs.frequencies.T.astype(np.float64)
    x = np.hstack([x, np.sin(fourier_features), np.cos(fourier_features)])
    for parameters in policy.networks.astype(np.float64):
        h, at = x, 0
        for n_in, n_out in pairwise(policy.sizes.tolist()):
            weights = parameters[at : at + n_in * n_out].reshape(n_out, n_in)
            bias = parameters[at + n_in * n_out : at + n_in * n_out + n_out]
            z = h @ weights.T + bias
            h = np.maximum(z, 0.0)
            at += n_in * n_out + n_out
        values.append(z)
    return np.array(values)


def possible_decisions(values: NDArray[np.float64], slack: float, rounding: float) -> NDArray[np.bool_]:
    """Say which decisions Lex-Argmax may take, `(rows, n)`, if each value is off by up to `rounding`.

    What is surely admissible bounds the best value from below, what is possibly admissible from above.
    """
    possible = np.ones(values.shape[1:], dtype=bool)
    sure = possible.copy()
    for q in values[:-1]:
        least = np.where(sure, q, -np.inf).max(axis=1, keepdims=True) - rounding
        most = np.where(possible, q, -np.inf).max(axis=1, keepdims=True) + rounding
        possible &= q + rounding >= least - slack
        sure &= q - rounding >= most - slack
    least = np.where(sure, values[-1], -np.inf).max(axis=1, keepdims=True) - rounding
    return np.asarray(possible & (values[-1] + rounding >= least))
