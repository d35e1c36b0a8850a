"""Small random finite worlds."""

from __future__ import annotations

import numpy as np

from letitcook.core.decisions import Decisions
from letitcook.finite.tables import Tables


def random_tables(seed: int, states: int, actions: int, branching: int = 1, starts: int = 1) -> Tables:
    """Return a world in which action 0 always leads one state further, so that the end can be reached from everywhere.

    Rewards are -1, -2 or -3; with `branching` above 1 the other actions have that many outcomes.
    """
    rng = np.random.default_rng(seed)
    probability: list[float] = []
    target: list[int] = []
    reward: list[float] = []
    offsets = [0]
    for s in range(states):
        for a in range(actions):
            n = 1 if a == 0 else branching
            weights = rng.integers(1, 5, n)
            probability += (weights / weights.sum()).tolist()
            target += [s + 1] if a == 0 else rng.integers(0, states + 1, n).tolist()
            reward += [float(-rng.integers(1, 4)) if a > 0 else -3.0 for _ in range(n)]
            offsets.append(len(target))
    return Tables(
        n_states=states,
        n_terminal=1,
        n_actions=actions,
        offsets=np.array(offsets, dtype=np.int64),
        probability=np.array(probability),
        next_state=np.array(target, dtype=np.int64),
        reward=np.array(reward),
        start_state=np.arange(starts, dtype=np.int64),
        start_probability=np.full(starts, 1.0 / starts),
        observations=list(range(states)),
    )


def random_decisions(actions: int, durations: tuple[int, ...]) -> Decisions:
    """Return decisions over `actions` actions, the last of which waits."""
    return Decisions(tuple(f"a{i}" for i in range(actions)), actions - 1, durations)
