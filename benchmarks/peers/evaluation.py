"""One judge for all contenders: NumPy's forward pass, and Gymnasium's CartPole for many episodes side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers.schedule import HORIZON, Layers

EPISODES = 20


def hidden(layers: Layers, x: NDArray[Any]) -> NDArray[Any]:
    """Return the activations of the last hidden layer."""
    for weights, bias in layers[:-1]:
        x = np.maximum(x @ weights.T + bias, 0.0)
    return x


def greedy_return(layers: Layers, seed: int, episodes: int = EPISODES) -> float:
    """Return the mean length of greedy episodes."""
    state = np.random.default_rng(seed).uniform(-0.05, 0.05, (episodes, 4))
    weights, bias = layers[-1]
    alive, lengths = np.ones(episodes, dtype=bool), np.zeros(episodes)
    for _ in range(HORIZON):
        action = np.argmax(hidden(layers, state.astype(np.float32)) @ weights.T + bias, axis=1)
        state = step(state, action)
        lengths += alive
        alive &= (np.abs(state[:, 0]) <= 2.4) & (np.abs(state[:, 2]) <= 12 * 2 * np.pi / 360)
    return float(lengths.mean())


def step(state: NDArray[Any], action: NDArray[Any]) -> NDArray[Any]:
    """Push all carts for 20 ms, as Gymnasium does."""
    x, speed, angle, turning = state.T
    force = np.where(action == 1, 10.0, -10.0)
    cos, sin = np.cos(angle), np.sin(angle)
    push = (force + 0.05 * turning**2 * sin) / 1.1
    angular = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    linear = push - 0.05 * angular * cos / 1.1
    return np.stack([x + 0.02 * speed, speed + 0.02 * linear, angle + 0.02 * turning, turning + 0.02 * angular], axis=1)


def silent_share(layers: Layers, observations: NDArray[np.float32], batch: int) -> tuple[float, float]:
    """Return the share of the last hidden layer's units that are silent in a batch, and that of dead units.

    A dead unit is silent on all of 4,096 observations of the replay.
    """
    rows = np.random.default_rng(0).integers(len(observations), size=4_096)
    active = hidden(layers, observations[rows]) > 0
    in_batch = active.reshape(-1, batch, active.shape[1]).any(axis=1)
    return float(1 - in_batch.mean()), float(1 - active.any(axis=0).mean())
