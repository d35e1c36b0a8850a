"""One network for all trade-offs: inputs, measured scales, the family of policies."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import letitcook
from letitcook.core.decisions import WRAPPER, Decisions, Timesteps
from letitcook.core.jit import seeded
from letitcook.core.objective import Objective
from letitcook.core.presets import PresetContext
from letitcook.deep.agent import LDQN, LDQNSettings
from letitcook.deep.conditioning import draw_log_lambda, new_lambda_bins, note_episode, policy_network, split_networks
from letitcook.deep.network import initial_parameters
from letitcook.deep.normalisation import (
    input_size,
    new_statistics,
    normalise_observations,
    plain_inputs,
    record,
    set_reward_scale,
    set_target_bounds,
    write_input,
)
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.replay import draw
from letitcook.deep.settings import BEST
from letitcook.deep.state import greedy, new_learner
from letitcook.deep.update import learn, targets, write_inputs
from letitcook.errors import FileFormatError, SettingError
from letitcook.tasks import cartpole, mountain_car, pong
from letitcook.training.learn import prepare
from letitcook.training.loop import always_base, without_longer
from letitcook.training.run import load
from letitcook.training.selection import worse
from letitcook.training.spec import RunSpec
from naive import network_values as values
from transitions import remember

LEXICOGRAPHIC = Objective.named("lexicographic")
SMALL = replace(BEST, hidden=(16, 16), batch_size=16, buffer_size=2_000, learning_starts=100, fourier_features=4)
TASKS = {task.name: task for task in (cartpole.TASK, mountain_car.TASK, pong.TASK)}


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("hidden", [(), (8,), (8, 8), (8, 6, 4)])
def test_the_policy_of_a_trade_off_is_the_networks_at_it(hidden: Any, n: int) -> None:
    sizes, dice = [5, *hidden, 3], np.random.default_rng(0)
    networks = initial_parameters(sizes, n, dice)
    for z in (-2.0, 0.0, 0.7):
        merged, wide = policy_network(networks, sizes, z)
        for x in dice.normal(size=(20, 4)):
            q0, q1, *others = (values(row, sizes, np.append(x, z)) for row in networks)
            task = np.mean([q0, *others], axis=0)
            np.testing.assert_allclose(values(merged[0], wide, x), task + 10**z * q1, atol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("hidden", [(), (7,), (7, 7), (7, 11, 13)])
def test_networks_side_by_side_can_be_taken_apart(hidden: Any, n: int) -> None:
    sizes, dice = [5, *hidden, 3], np.random.default_rng(0)
    merged, wide = policy_network(initial_parameters(sizes, n, dice), sizes, 0.2)
    common_random_numbers, small = split_networks(merged[0], list(wide))
    expected = n if len(hidden) > 1 else 1
    assert len(common_random_numbers) == expected
    assert small == [4, *(n * width // expected for width in hidden), 3]
    for x in dice.normal(size=(20, 4)):
        together = np.sum([values(row, small, x) for row in common_random_numbers], axis=0)
        np.testing.assert_allclose(together, values(merged[0], wide, x), atol=1e-5)


def test_a_network_that_is_one_stays_one() -> None:
    network = initial_parameters([5, 12, 12, 3], 1, np.random.default_rng(0))
    common_random_numbers, small = split_networks(network[0], [5, 12, 12, 3])
    assert small == [5, 12, 12, 3]
    np.testing.assert_array_equal(common_random_numbers, network)


@pytest.mark.parametrize(("actions", "acting"), [(("a", "wait", "b"), 3), (WRAPPER, 1)])
def test_a_wait_has_to_be_better_by_a_share_of_what_is_at_stake(actions: Any, acting: Any) -> None:
    dice, refused = np.random.default_rng(1), 0
    settings = replace(SMALL, fourier_features=0, wait_margin=0.3)
    learner = new_learner(3, Decisions(actions, 1, (2, 4)), LEXICOGRAPHIC.weights, settings, 0)
    sizes, highest = learner.sizes.tolist(), 0.8
    learner.networks.averaged[:] = 2 * initial_parameters(sizes, 3, dice)
    learner.bounds[0, 1] = highest
    for z in (-1.0, 0.3):
        merged, wide = policy_network(learner.networks.averaged, sizes, z, 0.3, acting, highest)
        for x in dice.normal(size=(100, 3)).astype(np.float32):
            q, q1, other = (values(row, sizes, np.append(x, z)) for row in learner.networks.averaged)
            reward_scale = (q + other) / 2 + 10**z * q1
            hesitant = reward_scale.copy()
            hesitant[acting:] -= 0.3 * (highest - reward_scale[:acting].mean())
            u = int(hesitant.argmax())
            refused += u != reward_scale.argmax()
            assert greedy(learner, x, z) == u
            np.testing.assert_allclose(values(merged[0], wide, x), hesitant, atol=1e-5)
    assert 5 < refused < 195


def test_of_two_task_networks_the_mean_decides_and_the_lowest_counts() -> None:
    decisions = Decisions(("a", "b", "wait"), 2, (2, 4))
    settings = replace(SMALL, normalise=False, model_rollouts=0.0, wait_margin=0.0, fourier_features=0, min_weight=1.0)
    learner = new_learner(3, decisions, LEXICOGRAPHIC.weights, settings, 0)
    dice = np.random.default_rng(0)
    learner.networks.target[:] = initial_parameters(learner.sizes.tolist(), 3, dice)
    learner.networks.averaged[:] = learner.networks.target
    for i in range(60):
        x, x2 = dice.normal(size=(2, 3)).astype(np.float32)
        remember(learner.replay, x, i % 5, -float(i), -1.0, 0.9 ** (i % 4), x2, i % 7 == 0, False)
    draw(learner.replay, learner.workspace.batch, 16, 1, True, learner.rng)
    write_inputs(learner, 16, False)
    targets(learner, 16)
    batch, differed = learner.workspace.batch, 0
    for i in range(16):
        x2, z = batch.next_observation[i], learner.workspace.x[i, -1]
        q, q1, other = (values(row, learner.sizes, np.append(x2, z)) for row in learner.networks.target)
        u = int(np.argmax((q + other) / 2 + 10**z * q1))
        assert greedy(learner, x2, float(z)) == u
        low = min(q[u], other[u])
        differed += low != q[u]
        for k, (reward, value) in enumerate(((0, low), (1, q1[u]), (0, low))):
            expected = batch.reward[i, reward] + batch.discount[i] * value
            assert np.isclose(learner.workspace.y[k, i], expected, rtol=1e-4, atol=1e-4)
    assert 0 < differed < 16


@pytest.mark.parametrize("min_weight", [0.0, 0.4, 1.0])
def test_the_minimum_has_its_weight_at_the_beginning(min_weight: Any) -> None:
    settings = replace(
        SMALL, normalise=False, model_rollouts=0.0, wait_margin=0.0, fourier_features=0, n_step=1, min_weight=min_weight
    )
    learner = new_learner(3, Decisions(("a", "wait"), 1, (2,)), LEXICOGRAPHIC.weights, settings, 0)
    dice = np.random.default_rng(0)
    for i in range(60):
        x, x2 = dice.normal(size=(2, 3)).astype(np.float32)
        remember(learner.replay, x, i % 3, -float(i), -1.0, 0.9, x2, False, False)
    learn(learner, 1)
    batch = learner.workspace.batch
    for i in range(16):
        x2, z = batch.next_observation[i], learner.workspace.x[i, -1]
        q, q1, other = (values(row, learner.sizes, np.append(x2, z)) for row in learner.networks.target)
        mean = (q + other) / 2
        u = int(np.argmax(mean + 10**z * q1))
        expected = batch.reward[i, 0] + 0.9 * (min_weight * min(q[u], other[u]) + (1 - min_weight) * mean[u])
        assert np.isclose(learner.workspace.y[0, i], expected, rtol=1e-5, atol=1e-4)


def test_the_minimum_counts_alone_from_the_beginning_only_around_a_base() -> None:
    settings = [
        RunSpec(preset="best").settings_for("network", PresetContext(has_base=has_base)) for has_base in (False, True)
    ]
    assert [made.min_weight for made in settings] == [0.0, 1.0]  # type: ignore[union-attr]


def test_inputs_are_the_definition() -> None:
    inputs, x = plain_inputs(3, fourier_features=5, seed=1), np.array([1.0, -2.0, 0.5], dtype=np.float32)
    inputs.mean[:], inputs.scale[:] = (0.5, 0.0, -1.0), (2.0, 1.0, 0.1)
    out = np.full(input_size(inputs) + 1, 7.0, dtype=np.float32)
    write_input(inputs, x, out)
    scaled = (x - inputs.mean) * inputs.scale
    fourier_features = inputs.frequencies @ scaled
    np.testing.assert_allclose(out, [*scaled, *np.sin(fourier_features), *np.cos(fourier_features), 7.0], atol=1e-6)


def test_what_is_measured() -> None:
    statistics, inputs = new_statistics(2), plain_inputs(2)
    for x, reward, elapsed in (((0.0, 5.0), 1.0, 1.0), ((4.0, 5.0), 3.0, 3.0), ((2.0, 5.0), 0.0, 1.0)):
        record(statistics, np.array(x, dtype=np.float32), reward, elapsed)
    normalise_observations(statistics, inputs)
    assert inputs.mean.tolist() == [2.0, 5.0]
    assert inputs.scale.tolist() == [1.0, 1.0]  # what never changes keeps its scale
    set_reward_scale(statistics, 0.9)
    np.testing.assert_allclose(statistics.reward_scale, [0.8 / 0.1, 0.1 / 0.8, 0.1])
    bounds = np.zeros((2, 2))
    set_target_bounds(statistics, 0.9, LEXICOGRAPHIC.weights, bounds)
    np.testing.assert_allclose(bounds, [[-1.0, 0.125 * (10.0 - 8.0)], [-1.0, 0.0]])


def test_a_reward_for_being_alive_moves_all_values_by_the_same() -> None:
    """With c taken from every step, also from those that an ended episode has no more, targets move by c/(1-γ)."""
    decisions, gamma = Decisions(("a", "wait"), 1, (3,)), 0.9
    settings = replace(SMALL, gamma=gamma, fourier_features=0, log_lambda_range=None, task_networks=1, wait_margin=0.0)
    learner = new_learner(2, decisions, LEXICOGRAPHIC.weights, settings, 0)
    learner.networks.target[:] = 0.0
    learner.bounds[:] = -1e9, 1e9
    learner.statistics.reward_scale[:] = 1.0 / (1 - gamma), 1.0, 1.0
    x = np.zeros(2, dtype=np.float32)
    for decision, elapsed, ends in ((0, 1, False), (2, 3, False), (0, 1, True), (2, 2, True)):
        reward = (1 - gamma**elapsed) / (1 - gamma)  # one a step
        remember(learner.replay, x, decision, reward, -1.0, gamma**elapsed, x, ends, False)
    draw(learner.replay, learner.workspace.batch, 16, 1, True, learner.rng)
    write_inputs(learner, 16, False)
    targets(learner, 16)
    batch = learner.workspace.batch
    for i in range(16):
        gone = batch.discount[i] == 0
        # Alive for ever is worth nothing; an end costs all the steps that do not come: γ^elapsed / (1-γ).
        elapsed = 1 if batch.decision[i] == 0 else 2
        assert np.isclose(learner.workspace.y[0, i], -(gamma**elapsed) / (1 - gamma) if gone else 0.0, atol=1e-4)


def test_most_trade_offs_are_drawn_where_the_task_does_well() -> None:
    of, rng = new_lambda_bins((-2.0, 2.0)), seeded(0)
    for z, task_return in ((-1.5, -90.0), (-0.5, -91.0), (0.5, -150.0), (1.5, -200.0)) * 30:
        note_episode(of, z, task_return)
        note_episode(of, z - 0.3, task_return)
    drawn = np.array([draw_log_lambda(of, rng) for _ in range(4_000)])
    assert drawn.min() >= -2.0
    assert drawn.max() <= 2.0
    assert 0.85 < (drawn < 0.0).mean() < 0.97
    assert (drawn > 1.0).sum() > 50


@pytest.mark.parametrize("name", list(TASKS))
def test_the_same_seed_gives_the_same_bits_and_a_saved_learner_goes_on(name: str) -> None:
    task = TASKS[name]
    runs = [LDQN(task, task.decisions, LEXICOGRAPHIC, SMALL, seed) for seed in (0, 0, 1)]
    for run in runs:
        run.advance(1_500)
    a, b, c = (run.arrays() for run in runs)
    assert all(np.array_equal(a[key], b[key]) for key in a)
    assert not np.array_equal(a["networks.parameters"], c["networks.parameters"])
    again = LDQN(task, task.decisions, LEXICOGRAPHIC, SMALL, 5)
    again.restore(a)
    for run in (runs[0], again):
        run.advance(700)
    for key, array in runs[0].arrays().items():
        assert np.array_equal(array, again.arrays()[key]), key


def test_a_policy_of_the_family_is_saved_with_its_inputs_and_answers_the_same() -> None:
    task = cartpole.TASK
    learner = LDQN(task, task.decisions, LEXICOGRAPHIC, SMALL, 0)
    learner.advance(1_000)
    rows = np.random.default_rng(0).normal(size=(10_000, 4)).astype(np.float32)
    policy = learner.policy(-0.5)
    again = NetworkPolicy.from_arrays(policy.arrays())
    assert np.array_equal(policy.predict(rows)[0], again.predict(rows)[0])
    assert len(np.unique(policy.predict(rows)[0])) > 1
    broken = {**policy.arrays(), "inputs.scale": np.ones(2, dtype=np.float32)}
    with pytest.raises(FileFormatError, match=r"inputs.scale has shape \(2,\)"):
        NetworkPolicy.from_arrays(broken)


def test_episodes_apart_meet_the_same_chances_whatever_the_policy_did_before() -> None:
    learner = LDQN(pong.TASK, pong.TASK.decisions, LEXICOGRAPHIC, SMALL, 0)
    learner.advance(500)
    a, b = learner.policy(-2.0), learner.policy(0.75)
    first = learner.play(a, 6, seed=3, common_random_numbers=True)
    assert np.array_equal(first[:4], learner.play(a, 4, seed=3, common_random_numbers=True))
    car = LDQN(mountain_car.TASK, mountain_car.TASK.decisions, LEXICOGRAPHIC, SMALL, 0)
    left = always_base(car.policy())  # the first decision, here: left
    assert np.array_equal(
        car.play(left, 5, 1, common_random_numbers=True), car.play(left, 5, 1, common_random_numbers=True)
    )
    assert b.predict(np.zeros(8))[0] in range(pong.TASK.decisions.n)


@pytest.mark.parametrize("changes", [{"gamma": 1.0}, {"log_lambda_range": (1.0, 0.0)}, {"learning_rate_end": 0.0}])
def test_settings_that_make_no_sense_are_refused(changes: Any) -> None:
    with pytest.raises(SettingError):
        replace(BEST, **changes)


def test_one_objective_has_no_trade_off() -> None:
    with pytest.raises(SettingError, match="two objectives"):
        LDQN(cartpole.TASK, cartpole.TASK.decisions, Objective.named("task"), BEST, 0)
    assert LDQNSettings().log_lambda_range is None


CHANGES = {"hidden": (16, 16), "batch_size": 16, "learning_starts": 200, "fourier_features": 4, "ema_steps": 50}


def pushing(observation: Any) -> Any:
    return 2 if observation[1] > 0 else 0


def small_training(env: Any, steps: int, **kwargs: Any) -> Any:
    training = prepare(env, RunSpec(length=Timesteps(steps), settings=CHANGES, **kwargs))
    training.plan = replace(training.plan, every=500, episodes=4, looks=(4, 4), fresh_episodes=10)
    return training


def test_around_a_policy_the_result_is_never_measurably_worse_than_the_policy() -> None:
    env = letitcook.wrap(gym.make("MountainCar-v0"), pushing, wait=1, durations=(2, 4, 8))
    training = small_training(env, 1_500)
    training.plan = replace(training.plan, looks=(20, 20))
    assert len(list(training.run())) == 3
    learned = training.result()
    assert learned.info.preset == "best"
    assert learned.choice is not None
    assert learned.choice["candidates"] <= 1 + 3 * 10 + 2 * 16
    assert learned.evaluation_episodes >= 3 * 7 * 4 + 10
    base = letitcook.evaluate(env, lambda_policy(), episodes=20, seed=3)
    played = letitcook.evaluate(env, learned.policy, episodes=20, seed=3)
    # So little training finds nothing good: the answer is the base itself, or something as good.
    paired = [np.array([episode.task_return for episode in each.episodes]) for each in (played, base)]
    assert not worse(paired[0], paired[1], 0.0, 0.005)
    assert learned.choice["base_itself"] == (learned.choice["log10_lambda"] is None)


class lambda_policy:  # noqa: N801
    def predict(self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: Any = True) -> Any:
        return 0, None


def test_a_stopped_run_keeps_its_candidates(tmp_path: Path) -> None:
    def env() -> Any:
        return letitcook.wrap(gym.make("MountainCar-v0"), pushing, wait=1, durations=(2, 4, 8))

    through = small_training(env(), 1_500, seed=3)
    list(through.run())
    first = small_training(env(), 1_500, seed=3)
    for _ in first.run():
        break
    first.stopped().save(tmp_path / "run")
    second = small_training(env(), 1_500, seed=3)
    second.resume(load(tmp_path / "run"))
    assert len(second.candidates) == len(first.candidates) > 0
    list(second.run())
    a, b = through.result(), second.result()
    assert (a.best, a.fresh, a.choice) == (b.best, b.fresh, b.choice)
    assert a.evaluation_episodes == b.evaluation_episodes


@pytest.mark.parametrize("wrapped", [False, True])
def test_vector_environments_are_learned_in(wrapped: Any) -> None:
    envs = gym.make_vec("MountainCar-v0", num_envs=3, vectorization_mode="sync")
    if wrapped:
        env = letitcook.wrap(envs, pushing, wait=1, durations=(2, 8))
    else:
        env = letitcook.WaitingVectorEnv(envs, wait=1, durations=(2, 8))
    training = small_training(env, 1_200)
    training.plan = replace(training.plan, every=1_200)
    list(training.run())
    assert training.learner.totals().episodes >= 3
    learned = training.result()
    assert learned.info.mode == ("wrap" if wrapped else "scratch")
    assert 1_200 <= learned.steps < 1_200 + 3 * 8  # the decisions under way are finished
    single = letitcook.evaluate(env, learned.policy, episodes=4)
    assert single.task_return == -single.length
    rows = training.learner.play(learned.policy, 5, 1)
    assert (rows[:, 4:].sum(axis=1) == rows[:, 1]).all()


def test_a_policy_without_its_longer_waits_never_takes_them_and_is_else_the_same() -> None:
    task = cartpole.TASK
    learner = LDQN(task, task.decisions, LEXICOGRAPHIC, SMALL, 0)
    learner.advance(1_000)
    policy = learner.policy(0.5)
    rows = np.random.default_rng(0).normal(size=(5_000, 4)).astype(np.float32)
    before, after = (p.predict(rows)[0] for p in (policy, without_longer(policy, task.durations, 6)))
    durations = task.decisions.durations_of
    assert durations[before].max() > 6 >= durations[after].max()
    allowed = durations[before] <= 6
    np.testing.assert_array_equal(before[allowed], after[allowed])
