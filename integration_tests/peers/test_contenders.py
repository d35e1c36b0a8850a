"""The contenders of the deep benchmark do the same: one CartPole, one loss, one schedule."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

from letitcook.deep.network import gradient, initial_parameters, layers, new_scratch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import deep
from peers import evaluation, jax_loop
from peers.schedule import Schedule, pieces_to_copies

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
SIZES = (4, 256, 256, 2)


def test_both_cartpoles_are_gymnasiums() -> None:
    dice, env = np.random.default_rng(0), gym.make("CartPole-v1")
    for seed in range(5):
        state, _ = env.reset(seed=seed)
        in_jax, in_numpy, fell = np.array(state), state[None].astype(np.float64), False
        while not fell:
            action = int(dice.integers(2))
            state, _, fell, _, _ = env.step(action)
            in_jax, fell_in_jax = jax_loop.step(in_jax, action)
            in_numpy = evaluation.step(in_numpy, np.array([action]))
            np.testing.assert_allclose(in_jax, state, atol=1e-5)
            np.testing.assert_allclose(in_numpy[0], state, atol=1e-5)
            assert bool(fell_in_jax) == fell


def test_the_judge_runs_episodes_as_gymnasium_does() -> None:
    always_left = [(np.zeros((2, 4)), np.zeros(2)), (np.zeros((2, 2)), np.array([1.0, 0.0]))]
    assert 8 <= evaluation.greedy_return(always_left, seed=0) <= 11


def test_the_jax_loop_has_our_gradient() -> None:
    dice = np.random.default_rng(0)
    online, target = initial_parameters(SIZES, 2, dice)
    x, following = dice.normal(size=(2, 64, 4)).astype(np.float32)
    action, ended = dice.integers(2, size=64), dice.random(64) < 0.3
    of_jax = [[(w.T, b) for w, b in layers(each, SIZES)] for each in (online, target)]
    found: Any = jax.grad(jax_loop.loss)(*of_jax, (x, action, following, ended), 0.9)
    y = 1.0 + 0.9 * np.where(ended, 0.0, np.asarray(jax_loop.values(of_jax[1], following)).max(axis=1))
    scratch = new_scratch(SIZES, 1, 64)
    gradient(online, np.array(SIZES), x, action, y.astype(np.float32), False, scratch)
    for (w, b), (w_ours, b_ours) in zip(found, layers(scratch.gradient, SIZES), strict=True):
        np.testing.assert_allclose(np.asarray(w).T, w_ours, atol=1e-5)
        np.testing.assert_allclose(b, b_ours, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in deep.CONTENDERS if not name.startswith("LDQN")])
def test_a_contender_keeps_to_the_schedule(name: str) -> None:
    contender = deep.maker(name)(Schedule())
    assert contender.layers is not None
    before = contender.layers()
    assert [weights.shape for weights, _ in before] == [(256, 4), (256, 256), (2, 256)]
    contender.advance(768)  # the first round of learning comes after 1,000 steps
    assert all(np.array_equal(a, b) for a, b in zip(flat(before), flat(contender.layers()), strict=True))
    contender.advance(512)
    assert not any(np.array_equal(a, b) for a, b in zip(flat(before), flat(contender.layers()), strict=True))


def test_gradient_steps_are_divided_at_copies() -> None:
    assert pieces_to_copies(done=128, steps=24, interval=10) == [2, 10, 10, 2]


def test_where_two_curves_cross() -> None:
    piece = deep.COLD_PIECE
    assert deep.crossing([10.0, 11.0], [4.0, 12.0]) == 2 * piece
    assert deep.crossing([10.0, 11.0], [4.0, 8.0]) == 3 * piece
    assert deep.crossing([1.0, 2.0], [4.0, 8.0]) == piece
    assert deep.crossing([10.0, 14.0], [4.0, 8.0]) == float("inf")


def flat(found: Any) -> list[Any]:
    return [array for pair in found for array in pair]
