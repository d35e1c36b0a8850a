"""Scales that are measured, so that one setting suits every task.

Observations are brought to the range [-2, 2] of those seen so far. Rewards are measured in the first steps, before
learning begins:

- a reward for being alive is taken away: `c = max(0, mean reward of a step)` is subtracted from every step's reward,
  and from every step that an ended episode no longer has. With γ < 1 this moves all values by the same `c / (1 - γ)`
  and changes no decision, but values then begin where they are optimistic;
- a step's typical reward, `mean |r|`, becomes 1, and values are learned in tens;
- targets are cut to what rewards as seen can add up to, `[low, high] / (1 - γ)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.deep.inputs import Inputs
from letitcook.kernels import compiled

TENS = 0.1
"""Values are learned in tens of typical rewards and of queries."""
REACH = 2.0
"""The inputs that stand for the lowest and the highest number seen are -REACH and REACH."""
STEPS, TOTAL, MAGNITUDE, LOW, HIGH = range(5)
"""Places in `Measures.rewards`."""
ALIVE, TASK, WAITING = range(3)
"""Places in `Measures.worth`."""


class Measures(NamedTuple):
    """What was measured, and what follows from it; the arrays change in place."""

    seen: NDArray[np.int64]
    """How many observations, `(1,)`."""
    lowest: NDArray[np.float64]
    """The lowest number seen in each place of an observation."""
    highest: NDArray[np.float64]
    rewards: NDArray[np.float64]
    """Steps, their rewards' sum and sum of magnitudes, the lowest and highest reward of a step."""
    worth: NDArray[np.float64]
    """An endless reward for being alive, `c / (1 - γ)`; what a task reward and a query count in the values."""


def new_measures(observation_size: int) -> Measures:
    """Return measures of nothing: rewards count as they are."""
    return Measures(
        seen=np.zeros(1, dtype=np.int64),
        lowest=np.zeros(observation_size),
        highest=np.zeros(observation_size),
        rewards=np.zeros(5),
        worth=np.array([0.0, 1.0, 1.0]),
    )


@compiled
def measure(measures: Measures, x: NDArray[np.float32], reward: float, elapsed: float) -> None:
    """Count an observation and the reward of the `elapsed` steps before it (both of them discounted alike)."""
    first = measures.seen[0] == 0
    measures.seen[0] += 1
    for j in range(len(x)):
        measures.lowest[j] = x[j] if first else min(measures.lowest[j], x[j])
        measures.highest[j] = x[j] if first else max(measures.highest[j], x[j])
    rewards, each = measures.rewards, reward / elapsed
    rewards[STEPS] += elapsed
    rewards[TOTAL] += reward
    rewards[MAGNITUDE] += abs(reward)
    rewards[LOW] = min(rewards[LOW], each)
    rewards[HIGH] = max(rewards[HIGH], each)


@compiled
def adapt_inputs(measures: Measures, inputs: Inputs) -> None:
    """Bring the range of observations that were seen to [-REACH, REACH]."""
    for j in range(len(inputs.mean)):
        half = (measures.highest[j] - measures.lowest[j]) / 2.0
        inputs.mean[j] = measures.lowest[j] + half
        inputs.scale[j] = REACH / half if half > 0.0 else 1.0


@compiled
def adapt_rewards(measures: Measures, gamma: float) -> None:
    """Set what rewards count."""
    rewards, steps = measures.rewards, max(measures.rewards[STEPS], 1.0)
    typical = rewards[MAGNITUDE] / steps
    measures.worth[ALIVE] = max(0.0, rewards[TOTAL] / steps) / (1.0 - gamma)
    measures.worth[TASK] = TENS / typical if typical > 0.0 else TENS
    measures.worth[WAITING] = TENS


@compiled
def typical_reward(measures: Measures) -> float:
    """Return the reward of a step that counts as 1."""
    return float(TENS / measures.worth[TASK])


@compiled
def adapt_bounds(measures: Measures, gamma: float, weights: NDArray[np.float64], bounds: NDArray[np.float64]) -> None:
    """Set the range of targets, `(N, 2)`, to what rewards as seen can add up to."""
    worth, endless = measures.worth, 1.0 / (1.0 - gamma)
    low = worth[TASK] * (measures.rewards[LOW] * endless - worth[ALIVE])
    high = worth[TASK] * max(0.0, measures.rewards[HIGH] * endless - worth[ALIVE])
    for k in range(len(weights)):
        bounds[k, 0] = weights[k, 0] * low - weights[k, 1] * worth[WAITING] * endless
        bounds[k, 1] = weights[k, 0] * high
