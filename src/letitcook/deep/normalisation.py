"""What the networks see, on scales that are measured, so that one setting suits every task.

**Observations** are brought to the range [-2, 2] of those seen so far: `x̂ = (x - mean) · scale`. A network learns
slowly what depends on small differences of an observation, so its input holds random Fourier features of `x̂` beside it
(Rahimi and Recht 2007; Tancik et al. 2020). The input is `[x̂, sin(F x̂), cos(F x̂), z]`; `z` is log10 λ, for networks
that are conditioned on it. Without all that the input is the observation itself.

**Rewards** are measured in the first timesteps, before learning begins:

- a survival baseline is subtracted: `c = max(0, mean reward of a step)`, from every step's reward and from every step
  that an ended episode no longer has. With γ < 1 this moves all values by the same `c / (1 - γ)` and changes no
  decision, but values then begin where they are optimistic;
- a step's typical reward, `mean |r|`, becomes 1, and values are learned in tens;
- targets are clipped to what the rewards seen so far can add up to, `[low, high] / (1 - γ)`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from letitcook.core.jit import compiled
from letitcook.core.struct import Struct

BANDWIDTH = 3.0
"""Standard deviation of the Fourier features' frequencies, divided by the number of dimensions."""
TENS = 0.1
"""Values are learned in tens of typical rewards and of queries."""
REACH = 2.0
"""The inputs that stand for the lowest and the highest number seen are -REACH and REACH."""
STEPS, TOTAL, MAGNITUDE, LOW, HIGH = range(5)
"""Places in `Statistics.rewards`."""
SURVIVAL, TASK, WAITING = range(3)
"""Places in `Statistics.reward_scale`."""


class Inputs(Struct):
    """How an observation becomes a network's input."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    frequencies: NDArray[np.float32]
    """Directions of the Fourier features, `(features, observation size)`."""


class Statistics(Struct):
    """What was measured, and what follows from it; the arrays change in place."""

    seen: NDArray[np.int64]
    """How many observations, `(1,)`."""
    lowest: NDArray[np.float64]
    """The lowest number seen in each place of an observation."""
    highest: NDArray[np.float64]
    rewards: NDArray[np.float64]
    """Steps, their rewards' sum and sum of magnitudes, the lowest and highest reward of a step."""
    reward_scale: NDArray[np.float64]
    """The survival baseline, `c / (1 - γ)`; what a task reward and a query count in the values."""


def plain_inputs(observation_size: int, fourier_features: int = 0, seed: int = 0) -> Inputs:
    """Return inputs on the observation's own scale, with that many Fourier features in random directions.

    >>> inputs = plain_inputs(2, fourier_features=1)
    >>> x, out = np.zeros(2, dtype=np.float32), np.zeros(4, dtype=np.float32)
    >>> write_input(inputs, x, out)
    >>> out.tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    shape, spread = (fourier_features, observation_size), BANDWIDTH / observation_size
    return Inputs(
        mean=np.zeros(observation_size, dtype=np.float32),
        scale=np.ones(observation_size, dtype=np.float32),
        frequencies=np.random.default_rng([seed, 2]).normal(0.0, spread, shape).astype(np.float32),
    )


def input_size(inputs: Inputs) -> int:
    """Return how many numbers an observation becomes."""
    return len(inputs.mean) + 2 * len(inputs.frequencies)


def new_statistics(observation_size: int) -> Statistics:
    """Return statistics of nothing: rewards count as they are."""
    return Statistics(
        seen=np.zeros(1, dtype=np.int64),
        lowest=np.zeros(observation_size),
        highest=np.zeros(observation_size),
        rewards=np.zeros(5),
        reward_scale=np.array([0.0, 1.0, 1.0]),
    )


@compiled
def write_scaled(inputs: Inputs, x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Write one observation on the common scale; places of `out` behind it are left alone."""
    for j in range(len(inputs.mean)):
        out[j] = (x[j] - inputs.mean[j]) * inputs.scale[j]


@compiled
def write_input(inputs: Inputs, x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Write the input of one observation; places of `out` behind it are left alone."""
    size, features = len(inputs.mean), len(inputs.frequencies)
    write_scaled(inputs, x, out)
    for i in range(features):
        angle = np.float32(0.0)
        for j in range(size):
            angle += inputs.frequencies[i, j] * out[j]
        out[size + i] = math.sin(angle)
        out[size + features + i] = math.cos(angle)


@compiled
def record(statistics: Statistics, x: NDArray[np.float32], reward: float, elapsed: float) -> None:
    """Count an observation and the reward of the `elapsed` steps before it (both of them discounted alike)."""
    first = statistics.seen[0] == 0
    statistics.seen[0] += 1
    for j in range(len(x)):
        statistics.lowest[j] = x[j] if first else min(statistics.lowest[j], x[j])
        statistics.highest[j] = x[j] if first else max(statistics.highest[j], x[j])
    rewards, each = statistics.rewards, reward / elapsed
    rewards[STEPS] += elapsed
    rewards[TOTAL] += reward
    rewards[MAGNITUDE] += abs(reward)
    rewards[LOW] = min(rewards[LOW], each)
    rewards[HIGH] = max(rewards[HIGH], each)


@compiled
def normalise_observations(statistics: Statistics, inputs: Inputs) -> None:
    """Bring the range of observations that were seen to [-REACH, REACH]."""
    for j in range(len(inputs.mean)):
        half = (statistics.highest[j] - statistics.lowest[j]) / 2.0
        inputs.mean[j] = statistics.lowest[j] + half
        inputs.scale[j] = REACH / half if half > 0.0 else 1.0


@compiled
def set_reward_scale(statistics: Statistics, gamma: float) -> None:
    """Set the survival baseline, and what rewards and queries count."""
    rewards, steps = statistics.rewards, max(statistics.rewards[STEPS], 1.0)
    typical = rewards[MAGNITUDE] / steps
    statistics.reward_scale[SURVIVAL] = max(0.0, rewards[TOTAL] / steps) / (1.0 - gamma)
    statistics.reward_scale[TASK] = TENS / typical if typical > 0.0 else TENS
    statistics.reward_scale[WAITING] = TENS


@compiled
def typical_reward(statistics: Statistics) -> float:
    """Return the reward of a step that counts as 1."""
    return float(TENS / statistics.reward_scale[TASK])


@compiled
def set_target_bounds(
    statistics: Statistics, gamma: float, weights: NDArray[np.float64], bounds: NDArray[np.float64]
) -> None:
    """Set the range of targets, `(N, 2)`, to what the rewards seen so far can add up to."""
    scale, endless = statistics.reward_scale, 1.0 / (1.0 - gamma)
    low = scale[TASK] * (statistics.rewards[LOW] * endless - scale[SURVIVAL])
    high = scale[TASK] * max(0.0, statistics.rewards[HIGH] * endless - scale[SURVIVAL])
    for k in range(len(weights)):
        bounds[k, 0] = weights[k, 0] * low - weights[k, 1] * scale[WAITING] * endless
        bounds[k, 1] = weights[k, 0] * high
