"""What every contender of the deep benchmark does: DQN on CartPole, with the paper's numbers.

It imports nothing of the library, so that a peer in a process of its own pays for nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Layers = list[tuple[NDArray[Any], NDArray[Any]]]
"""Weights `(out, in)` and biases of each layer."""

HORIZON = 200
"""Steps after which an episode is truncated, which counts as its end."""


@dataclass(frozen=True)
class Schedule:
    """The numbers. The loss is the squared error, every gradient step draws its own batch, and ε does not change."""

    seed: int = 0
    learning_rate: float = 2e-3
    hidden: tuple[int, int] = (256, 256)
    gamma: float = 1.0
    batch_size: int = 64
    buffer_size: int = 100_000
    learning_starts: int = 1_000
    update_interval: int = 256
    gradient_steps: int = 128
    target_interval: int = 10
    """Gradient steps between copies to the target network."""
    epsilon: float = 0.04

    def at(self, learning_rate: float) -> Schedule:
        return replace(self, learning_rate=learning_rate)

    def with_seed(self, seed: int) -> Schedule:
        return replace(self, seed=seed)


@dataclass(frozen=True)
class Contender:
    """A learner that can be advanced by steps, and what can be read from it."""

    advance: Callable[[int], None]
    layers: Callable[[], Layers] | None = None
    observations: Callable[[], NDArray[np.float32]] | None = None
    """Observations in its replay."""


def gymnasiums_cartpole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1", max_episode_steps=HORIZON)


def pieces_to_copies(done: int, steps: int, interval: int) -> list[int]:
    """Return how `steps` gradient steps after `done` divide at the copies to the target network.

    >>> pieces_to_copies(done=128, steps=24, interval=10)
    [2, 10, 10, 2]
    """
    pieces = []
    while steps > 0:
        piece = min(steps, interval - done % interval)
        pieces.append(piece)
        done, steps = done + piece, steps - piece
    return pieces
