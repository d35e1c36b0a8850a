"""Networks conditioned on λ: which λ to train on, and the policy of one λ.

`z = log10 λ` is an input of the networks. Each episode is run with a λ of its own, and each remembered row is learned
from with one. A λ that ruins the task teaches little, so most are drawn where the returns of training episodes are near
the best: the range is divided into bins, each with a running mean of the return, and most draws go to the bins within a
tolerance of the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.jit import compiled, random_below, random_float
from letitcook.core.struct import Struct
from letitcook.deep.network import layers

BINS = 8
NEAR = 0.8
"""Share of the draws that goes to bins whose return is near the best."""
TOLERANCE = 0.05
"""How near, as a share of the span of returns that were seen."""
MEMORY = 0.1
"""Weight of the newest episode in a bin's mean."""
MOST_PARTS = 8
"""Networks that are looked for in one."""
LOWEST, HIGHEST = 0, 1
"""Places in `LambdaBins.seen`."""


class LambdaBins(Struct):
    """The range of log10 λ, and how episodes went in its bins."""

    low: float
    high: float
    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    seen: NDArray[np.float64]
    """Lowest and highest return of an episode."""


def new_lambda_bins(span: tuple[float, float] | None) -> LambdaBins:
    """Return the range before any episode."""
    low, high = span or (0.0, 0.0)
    return LambdaBins(low, high, np.zeros(BINS, dtype=np.int64), np.zeros(BINS), np.zeros(2))


@compiled
def draw_log_lambda(of: LambdaBins, rng: NDArray[np.uint64]) -> float:
    """Return a log10 λ, mostly from the bins whose return is near the best."""
    bin = random_below(rng, BINS)
    if random_float(rng) < NEAR:
        best = -np.inf
        for b in range(BINS):
            if of.counts[b] > 0:
                best = max(best, of.means[b])
        least = best - TOLERANCE * (of.seen[HIGHEST] - of.seen[LOWEST])
        near = 0
        for b in range(BINS):
            near += of.counts[b] == 0 or of.means[b] >= least
        chosen = random_below(rng, near)
        for b in range(BINS):
            if of.counts[b] == 0 or of.means[b] >= least:
                if chosen == 0:
                    bin = b
                chosen -= 1
    return of.low + (of.high - of.low) * (bin + random_float(rng)) / BINS


@compiled
def note_episode(of: LambdaBins, z: float, task_return: float) -> None:
    """Take in the return of a training episode that was run with log10 λ = z."""
    bin = min(max(int((z - of.low) / (of.high - of.low) * BINS), 0), BINS - 1)
    first = of.counts.sum() == 0
    of.counts[bin] += 1
    of.means[bin] += (task_return - of.means[bin]) * max(MEMORY, 1.0 / of.counts[bin])
    of.seen[LOWEST] = task_return if first else min(of.seen[LOWEST], task_return)
    of.seen[HIGHEST] = task_return if first else max(of.seen[HIGHEST], task_return)


def policy_network(
    networks: NDArray[np.float32],
    sizes: list[int],
    z: float,
    wait_margin: float = 0.0,
    acting: int = 1,
    highest: float = 0.0,
) -> tuple[NDArray[np.float32], tuple[int, ...]]:
    """Return one network for `Q0 + λ Q1` at log10 λ = z, `(1, parameters)`, and its sizes.

    `networks` are Q0, Q1 and any further ones of the task, `(N, parameters)`; Q0 is the mean of the task's. The
    trade-off goes into the first layer's biases, the networks side by side into one of N times the width, and λ into
    the last layer's weights; so does the `wait_margin` of the decisions behind the first, `acting` ones.
    """
    N, last = len(networks), len(sizes) - 2
    shares = np.full(N, 1.0 / (N - 1))
    shares[1] = 10.0**z
    cut = [layers(row.astype(np.float64), sizes) for row in networks]
    parts: list[NDArray[np.float64]] = []
    for layer in range(last + 1):
        weights, biases = [net[layer][0] for net in cut], [net[layer][1] for net in cut]
        if layer == 0:
            biases = [b + z * w[:, -1] for w, b in zip(weights, biases, strict=True)]
            weights = [w[:, :-1] for w in weights]
        if layer == last:
            shared = [share * w for share, w in zip(shares, weights, strict=True)]
            weight = np.sum(shared, axis=0) if last == 0 else np.hstack(shared)
            bias = np.sum([share * b for share, b in zip(shares, biases, strict=True)], axis=0)
            if wait_margin > 0.0:
                weight[acting:] += wait_margin * weight[:acting].mean(axis=0)
                bias[acting:] += wait_margin * (bias[:acting].mean() - highest)
            parts += [weight.ravel(), bias]
        else:
            parts.append((np.vstack(weights) if layer == 0 else _side_by_side(weights)).ravel())
            parts.append(np.concatenate(biases))
    return np.concatenate(parts)[None].astype(np.float32), (sizes[0] - 1, *(N * w for w in sizes[1:-1]), sizes[-1])


def _side_by_side(weights: Sequence[NDArray[np.floating[Any]]]) -> NDArray[np.float64]:
    """Return one layer that holds several, each with inputs and outputs of its own."""
    rows, columns = weights[0].shape
    out = np.zeros((len(weights) * rows, len(weights) * columns))
    for i, each in enumerate(weights):
        out[i * rows : (i + 1) * rows, i * columns : (i + 1) * columns] = each
    return out


def split_networks(network: NDArray[np.float32], sizes: list[int]) -> tuple[NDArray[np.float32], list[int]]:
    """Return the networks that stand side by side in one, `(parts, parameters)`, and their sizes.

    Their values add up to its values, for less work: between its hidden layers, most of its weights are 0.
    """
    cut, hidden = layers(network, sizes), sizes[1:-1]
    parts = next((m for m in range(MOST_PARTS, 1, -1) if _are_separate(cut, hidden, m)), 1)
    split = []
    for i in range(parts):
        part: list[NDArray[np.float32]] = []
        for layer, (weight, bias) in enumerate(cut):
            last = layer == len(cut) - 1
            rows = slice(None) if last else _share(hidden[layer], i, parts)
            columns = slice(None) if layer == 0 else _share(hidden[layer - 1], i, parts)
            part += [weight[rows, columns].ravel(), bias[rows] if i == 0 or not last else np.zeros_like(bias)]
        split.append(np.concatenate(part))
    return np.stack(split), [sizes[0], *(width // parts for width in hidden), sizes[-1]]


def _are_separate(cut: list[tuple[NDArray[np.float32], NDArray[np.float32]]], hidden: list[int], parts: int) -> bool:
    """Return whether no weight leads from one part of the hidden layers to another."""
    if len(hidden) < 2 or any(width % parts for width in hidden):
        return False
    for weight, _ in cut[1:-1]:
        rows, columns = weight.shape
        blocks = [weight[_share(rows, i, parts), _share(columns, i, parts)] for i in range(parts)]
        if not np.array_equal(_side_by_side(blocks), weight):
            return False
    return True


def _share(width: int, i: int, parts: int) -> slice:
    return slice(width // parts * i, width // parts * (i + 1))
