"""A student of an expensive base policy: a few small networks that answer nearly as it does, and cost nothing to query.

It is fitted to a recording of the base's answers, by regression; whole numbers are one-hot, and the largest wins. Where
its networks disagree it is unsure, and a few real answers there teach it most (DAgger; Ross, Gordon and Bagnell 2011).
Wrappers are learned and chosen around the student. What is certified of them is measured around the base itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.deep.network import layers
from letitcook.deep.normalisation import Inputs, input_size
from letitcook.deep.policy import flat
from letitcook.evaluation.persistence import HIDDEN, fit

MEMBERS = 3
"""Networks of a student."""

Member = tuple[NDArray[np.float32], Inputs]


class Student:
    """Networks that answer as a base policy does, as a `Policy`.

    >>> seen = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 1)).astype(np.float32)
    >>> space, actions = spaces.Box(-1.0, 1.0, (1,)), spaces.Box(-2.0, 2.0, (1,))
    >>> student = Student.of(seen, 2.0 * seen, space, actions)
    >>> float(abs(student.predict(np.array([0.5]))[0][0] - 1.0)) < 0.1
    True
    """

    batched = False

    def __init__(
        self,
        members: Sequence[Member],
        spread: NDArray[np.float64],
        space: spaces.Space[Any],
        action_space: spaces.Space[Any],
    ) -> None:
        self.members, self.spread, self.space, self.taken = list(members), spread, space, action_space
        self.features: Callable[[Any], Any] | None = None
        """What it sees of an observation, where not the whole of it."""
        self.heard: list[Any] | None = None
        """The observations that it was queried at, if it is to keep them."""

    @classmethod
    def of(
        cls,
        observations: NDArray[np.float32],
        answers: NDArray[np.float32],
        space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        seed: int = 0,
    ) -> Student:
        """Return the student of what a base saw, flat, and answered, as vectors."""
        spread = answers.astype(np.float64).std(axis=0)
        spread = np.where(spread > 1e-8, spread, 1.0) if isinstance(action_space, spaces.Box) else np.ones_like(spread)
        scaled = (answers / spread).astype(np.float32)
        members = [fit(observations, scaled, seed + 1_000 * i) for i in range(MEMBERS)]
        return cls(members, spread, space, action_space)

    def values(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what each network says at flat observations, `(members, rows, action size)`, in units of `spread`."""
        said = []
        for parameters, inputs in self.members:
            x = (rows.astype(np.float64) - inputs.mean) * inputs.scale
            waves = x @ inputs.frequencies.T
            h = np.hstack([x, np.sin(waves), np.cos(waves)])
            parts = layers(parameters, (input_size(inputs), *HIDDEN, len(self.spread)))
            for weights, bias in parts[:-1]:
                h = np.maximum(h @ weights.T + bias, 0.0)
            said.append(h @ parts[-1][0].T + parts[-1][1])
        return np.stack(said)

    def doubt(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return how unsure it is at flat observations: how far its networks are apart, or how near the second is."""
        values = self.values(rows)
        if isinstance(self.taken, spaces.Box):
            return np.asarray(values.std(axis=0).max(axis=1))
        ranked = np.sort(values.mean(axis=0), axis=1)
        return np.asarray(ranked[:, -2] - ranked[:, -1])

    def agreement(self, rows: NDArray[np.float32], answers: NDArray[np.float32]) -> float:
        """Return how much of a base's answers it gives: the share that is the same, or of the variance (R²)."""
        said = self.values(rows).mean(axis=0) * self.spread
        if isinstance(self.taken, spaces.Box):
            missed = float(((said - answers) ** 2).sum())
            return 1.0 - missed / max(float(((answers - answers.mean(axis=0)) ** 2).sum()), 1e-12)
        return float((said.argmax(axis=1) == answers.argmax(axis=1)).mean())

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, None]:
        """Return an action near the base's."""
        if self.heard is not None:
            self.heard.append(observation)
        seen = observation if self.features is None else self.features(observation)
        said = self.values(flat(self.space, seen)[None]).mean(axis=0)[0] * self.spread
        if isinstance(self.taken, spaces.Box):
            action = np.clip(said.reshape(self.taken.shape), self.taken.low, self.taken.high)
            return action.astype(self.taken.dtype), None
        assert isinstance(self.taken, spaces.Discrete)
        return int(said.argmax()) + int(self.taken.start), None


def can_be_taught(action_space: spaces.Space[Any]) -> bool:
    """Return whether a student can answer in a space.

    >>> can_be_taught(spaces.Discrete(3)), can_be_taught(spaces.MultiBinary(2))
    (True, False)
    """
    return isinstance(action_space, spaces.Box | spaces.Discrete)
