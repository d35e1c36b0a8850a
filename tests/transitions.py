"""Transitions for the tests of the deep learner."""

from __future__ import annotations

from typing import Any

import numpy as np

from letitcook.core.decisions import Transition
from letitcook.deep import replay as ring


def remember(
    replay: ring.Replay,
    x: Any,
    decision: int,
    task: float,
    waiting: float,
    discount: float,
    after: Any,
    terminated: bool,
    truncated: bool,
) -> int:
    """Write a transition, given part by part, into a replay; returns its row."""
    reward = np.array([task, waiting], dtype=float)
    return ring.remember(replay, Transition(x, decision, reward, 1, float(discount), after, terminated, truncated))
