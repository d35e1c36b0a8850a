"""The model of the passive world: what it learns, when it is trusted, and the waits that are imagined with it."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from letitcook.core.decisions import Decisions
from letitcook.core.jit import seeded
from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN
from letitcook.deep.network import initial_parameters, layers
from letitcook.deep.normalisation import plain_inputs
from letitcook.deep.replay import FILLED, new_replay
from letitcook.deep.settings import BEST
from letitcook.deep.state import new_learner, record_wait_steps
from letitcook.deep.update import learn
from letitcook.deep.wait_model import (
    HIDDEN,
    PATIENCE,
    TRIALS,
    TRIED,
    UPDATES,
    assess_step,
    fit_wait_model,
    is_trusted,
    new_wait_model,
    new_wait_model_workspace,
    roll_out,
)
from letitcook.errors import NotFiniteError
from letitcook.tasks import cartpole, pong
from letitcook.tasks.task import Task
from letitcook.wrappers.waiting import WaitingEnv
from naive import network_values
from transitions import remember

LEXICOGRAPHIC = Objective.named("lexicographic")
SMALL = replace(BEST, hidden=(16, 16), batch_size=16, buffer_size=5_000, learning_starts=100, fourier_features=4)
WAITS, DURATIONS, GAMMA = np.array([1, 2, 3]), np.array([1, 1, 3, 6]), 0.9


def falls(x: Any, dice: Any = None) -> Any:
    """A ball: height and speed; it ends on the ground, and each step is paid with its height."""
    noise = 0.0 if dice is None else dice.normal(0.0, 0.05)
    after = np.array([x[0] + x[1], x[1] - 0.02 + noise], dtype=np.float32)
    return after, float(x[0]), bool(after[0] < 0.0)


def lived(steps: int, dice: Any, noisy: Any) -> Any:
    """Live passive steps of the ball."""
    x = np.array([1.0, 0.0], dtype=np.float32)
    for _ in range(steps):
        after, reward, ended = falls(x, dice if noisy else None)
        yield x, after, reward, ended
        x = after
        if ended:
            x = np.array([dice.uniform(0.2, 1.0), dice.uniform(-0.2, 0.1)], dtype=np.float32)


def trained(noisy: Any, rounds: Any = 3_000) -> Any:
    ring, wait_model = new_replay(4_000, 2), new_wait_model(2, 0)
    workspace, rng, inputs = new_wait_model_workspace(wait_model, 64), seeded(0), plain_inputs(2)
    inputs.mean[:], inputs.scale[:] = (0.5, 0.0), (4.0, 8.0)
    for x, after, reward, ended in lived(rounds, np.random.default_rng(0), noisy):
        row = remember(ring, x, 1, reward, -1.0, GAMMA, after, ended, False)
        assess_step(wait_model, ring, row, inputs, 0.5, workspace)
        fit_wait_model(wait_model, ring, inputs, 0.5, 2, 2e-3, workspace, rng)
    return wait_model, inputs, workspace


def test_a_predictable_world_is_known_and_a_random_one_is_not() -> None:
    known, _, _ = trained(noisy=False)
    assert is_trusted(known)
    guessed, _, _ = trained(noisy=True)
    assert guessed.counters[TRIED] > TRIALS
    assert not is_trusted(guessed)


def test_nothing_is_trusted_before_it_was_tried() -> None:
    wait_model = new_wait_model(2, 0)
    wait_model.counters[TRIED] = TRIALS - 1
    assert not is_trusted(wait_model)
    wait_model.counters[TRIED] = TRIALS
    assert is_trusted(wait_model)
    wait_model.errors[1] = np.nan
    assert not is_trusted(wait_model)


@pytest.mark.parametrize(
    ("tried", "error", "updates"), [(PATIENCE - 1, 1.0, 7), (PATIENCE, 1.0, 1), (PATIENCE, 0.0, 7)]
)
def test_a_model_that_is_wrong_for_long_costs_little(tried: Any, error: Any, updates: Any) -> None:
    wait_model, ring = new_wait_model(2, 0), new_replay(100, 2)
    workspace, inputs = new_wait_model_workspace(wait_model, 8), plain_inputs(2)
    for x, after, reward, ended in lived(100, np.random.default_rng(0), False):
        remember(ring, x, 1, reward, -1.0, GAMMA, after, ended, False)
    wait_model.squares[:], wait_model.counters[TRIED], wait_model.errors[0] = 1.0, tried, error
    fit_wait_model(wait_model, ring, inputs, 0.5, 7, 2e-3, workspace, seeded(0))
    assert wait_model.counters[UPDATES] == updates


def model_rollouts(
    wait_model: Any, inputs: Any, workspace: Any, starts: Any, first: Any = 0, typical: Any = 0.5
) -> Any:
    learner = new_learner(
        2, Decisions(("a", "wait"), 1, (3, 6)), LEXICOGRAPHIC.weights, replace(SMALL, fourier_features=0), 0
    )
    batch, n = learner.workspace.batch, len(starts)
    for i, x in enumerate(starts):
        batch.observation[first + i] = x
    roll_out(wait_model, inputs, typical, batch, first, n, WAITS, DURATIONS, GAMMA, workspace, seeded(3))
    return batch


def test_what_is_imagined_is_what_would_have_been_lived() -> None:
    wait_model, inputs, workspace = trained(noisy=False, rounds=6_000)
    dice = np.random.default_rng(5)
    starts = np.stack([dice.uniform(0.2, 1.0, 60), dice.uniform(-0.2, 0.1, 60)], axis=1).astype(np.float32)
    batch, endings = model_rollouts(wait_model, inputs, workspace, starts), 0
    assert set(batch.decision[:60]) == {1, 2, 3}
    for i, start in enumerate(starts):
        x, total, discount, ended = start, 0.0, 1.0, False
        for _ in range(DURATIONS[batch.decision[i]]):
            x, reward, ended = falls(x)
            total, discount = total + discount * reward, discount * GAMMA
            if ended:
                break
        if abs(x[0]) < 0.03:
            continue  # too near the ground to tell
        endings += ended
        assert batch.reward[i, 1] == -1.0
        np.testing.assert_allclose(batch.reward[i, 0], total, atol=0.05)
        np.testing.assert_allclose(batch.next_observation[i], x, atol=0.03)
        assert np.isclose(batch.discount[i], 0.0 if ended else discount)
        assert np.isclose(batch.past[i], 1.0 if ended else 1.0 - discount)
    assert 3 < endings < 50


def test_imagined_waits_equal_the_slow_twin_also_as_they_run_out() -> None:
    """Any network will do: the model applied step by step to one row at a time."""
    inputs, wait_model = plain_inputs(2), new_wait_model(2, 0)
    inputs.mean[:], inputs.scale[:] = (0.2, -0.1), (2.0, 0.5)
    sizes = [2, *HIDDEN, 4]
    wait_model.parameters[:] = initial_parameters(sizes, 1, np.random.default_rng(8))[0]
    _, bias = layers(wait_model.parameters, sizes)[-1]
    bias[-1] = 0.45  # so that some of them end on the way
    wait_model.squares[:] = 0.04, 0.09
    units = np.sqrt(wait_model.squares) * inputs.scale
    starts = np.random.default_rng(9).normal(0, 1, (40, 2)).astype(np.float32)
    batch = model_rollouts(wait_model, inputs, new_wait_model_workspace(wait_model, 64), starts, first=7)
    ends = 0
    for i, start in enumerate(starts, start=7):
        x, total, discount, ended = (start - inputs.mean) * inputs.scale, 0.0, 1.0, False
        for _ in range(DURATIONS[batch.decision[i]]):
            out = network_values(wait_model.parameters, sizes, x.astype(np.float32))
            x, total, discount = x + out[:2] * units, total + discount * out[2] * 0.5, discount * GAMMA
            x, ended = np.clip(x, -4.0, 4.0), out[3] > 0.5
            if ended:
                break
        ends += ended
        np.testing.assert_allclose(batch.next_observation[i], x / inputs.scale + inputs.mean, atol=1e-4)
        np.testing.assert_allclose(batch.reward[i, 0], total, atol=1e-4)
        np.testing.assert_allclose(batch.discount[i], 0.0 if ended else discount, atol=1e-5)
    assert 0 < ends < 40


@pytest.mark.parametrize(("task", "known"), [(cartpole.TASK, True), (pong.TASK, False)])
def test_the_tasks_are_told_apart(task: Task, known: bool) -> None:
    """While waiting, a pole falls by its laws; Pong's sticky actions may still move the paddle."""
    learner = LDQN(task, task.decisions, LEXICOGRAPHIC, replace(SMALL, batch_size=64), seed=0)
    learner.advance(8_000)
    assert bool(is_trusted(learner._learner.wait_model)) is known


@pytest.mark.parametrize("known", [True, False])
def test_batches_are_imagined_only_where_the_world_is_known_and_else_look_ahead_as_lived(known: bool) -> None:
    decisions = Decisions(("a", "wait"), 1, (3, 6))
    learner = new_learner(2, decisions, LEXICOGRAPHIC.weights, replace(SMALL, model_rollouts=0.5), 0)
    x = np.zeros(2, dtype=np.float32)
    for _ in range(4):
        remember(learner.replay, x, 0, -1.0, -1.0, 0.99, x, False, False)
    learner.replay.z[:] = 0.25
    learner.wait_model.counters[TRIED] = TRIALS * known
    learn(learner, 1)
    taken, z = learner.workspace.batch.decision[:16], learner.workspace.x[:16, -1]
    assert (taken[:8] != 0).all() == known
    assert (taken[8:] == 0).all()
    assert (z == np.float32(0.25)).all() != known


def test_the_steps_inside_a_wait_are_seen_in_the_python_loop() -> None:
    def advanced(intermediate: Any) -> Any:
        env = gym.make("CartPole-v1", max_episode_steps=200)
        env = WaitingEnv(env, wait=0, durations=(2, 4), gamma=SMALL.gamma, intermediate=intermediate)
        learner = LDQN(env, env.decisions, LEXICOGRAPHIC, SMALL, 0)
        learner.advance(300)
        return learner._learner

    inside, outside = advanced(True), advanced(False)
    waited = inside.replay.decision[: inside.replay.cursor[FILLED]] != 1
    assert inside.wait_steps.cursor[FILLED] > waited.sum()
    assert 0 < outside.wait_steps.cursor[FILLED] < inside.wait_steps.cursor[FILLED]  # only waits of a single step
    ring, n = inside.wait_steps, inside.wait_steps.cursor[FILLED]
    moved = ring.observation[:n, 0] + 0.02 * ring.observation[:n, 1]
    np.testing.assert_allclose(ring.next_observation[:n, 0], moved, atol=1e-6)


class Blind(gym.Env):
    """Shows nothing that is a number in its third step."""

    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        seen = np.nan if self.t == 3 else 0.0
        return np.full(1, seen, dtype=np.float32), 0.0, False, self.t == 4, {}


def test_what_is_not_finite_inside_a_wait_is_said() -> None:
    env = WaitingEnv(Blind(), wait=1, durations=(4,), gamma=SMALL.gamma, intermediate=True)
    learner = LDQN(env, env.decisions, LEXICOGRAPHIC, SMALL, 0)
    with pytest.raises(NotFiniteError, match="nan"):
        learner.advance(200)
    assert np.isfinite(learner._learner.wait_steps.next_observation).all()


def test_a_wait_that_is_cut_does_not_end_anything() -> None:
    learner = new_learner(2, Decisions(("a", "wait"), 1, (3,)), LEXICOGRAPHIC.weights, SMALL, 0)
    path, rewards = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([1.0, 2.0, 3.0])
    record_wait_steps(learner, path, rewards, 3, False)
    record_wait_steps(learner, path, rewards, 2, True)
    ring = learner.wait_steps
    assert ring.terminated[:5].tolist() == [False, False, False, False, True]
    assert ring.reward[:5, 0].tolist() == [1.0, 2.0, 3.0, 1.0, 2.0]
    assert ring.next_observation[:5].tolist() == [[2, 3], [4, 5], [6, 7], [2, 3], [4, 5]]
