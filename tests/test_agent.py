"""LDQN: what it computes, and that it repeats itself to the bit."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook.core.decisions import Decisions
from letitcook.core.objective import Objective, lex_argmax
from letitcook.deep.agent import LDQN, PAPER, LDQNSettings
from letitcook.deep.network import initial_parameters
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.replay import Batch, draw
from letitcook.deep.state import GRADIENT_STEPS, NEXT_UPDATE, new_learner
from letitcook.deep.update import learn, targets, write_inputs
from letitcook.errors import FileFormatError, NotFiniteError, SettingError, SpaceError
from letitcook.storage.folders import pack_arrays, unpack_arrays
from letitcook.tasks import cartpole, mountain_car, pong
from letitcook.tasks.task import Task
from letitcook.wrappers.waiting import WaitingEnv
from letitcook.wrappers.wrap import wrap
from naive import dqn_round
from naive import network_values as values
from transitions import remember

LEXICOGRAPHIC = Objective.named("lexicographic")
SMALL = LDQNSettings(
    hidden=(16, 16), batch_size=8, buffer_size=300, learning_starts=50, update_interval=20, gradient_steps=6,
    target_interval=4, epsilon_steps=500, learning_rate=3e-3,
)  # fmt: skip
TASKS = {task.name: task for task in (cartpole.TASK, mountain_car.TASK, pong.TASK)}


def small(task: Task = cartpole.TASK, seed: int = 0, objective: Any = LEXICOGRAPHIC, **changes: Any) -> Any:
    return LDQN(task, task.decisions, objective, replace(SMALL, **changes), seed)


def same(a: Any, b: Any) -> None:
    assert set(a) == set(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def waiting_cartpole(**kwargs: Any) -> Any:
    return WaitingEnv(gym.make("CartPole-v1", max_episode_steps=200), wait=0, durations=(2, 4), **kwargs)


# --- the targets ---


@pytest.mark.parametrize("double_q", [False, True])
@pytest.mark.parametrize("objective", [LEXICOGRAPHIC, Objective.named("scalar", 0.5), Objective.named("task")])
def test_targets_are_the_definition(objective: Any, double_q: bool) -> None:
    decisions = Decisions(("a", "b", "wait"), 2, (2, 4))
    settings = replace(SMALL, slack=0.3, double_q=double_q, bootstrap_on_truncation=False)
    learner = new_learner(3, decisions, objective.weights, settings, 0)
    dice = np.random.default_rng(0)
    learner.networks.target[:] = initial_parameters(learner.sizes.tolist(), len(objective.weights), dice)
    for i in range(60):
        x, x2 = dice.normal(size=(2, 3)).astype(np.float32)
        remember(learner.replay, x, i % 5, -float(i), -1.0, 0.9 ** (i % 4), x2, i % 7 == 0, i % 5 == 0)
    draw(learner.replay, learner.workspace.batch, 8, 1, False, learner.rng)
    write_inputs(learner, 8, False)
    targets(learner, 8)
    batch, choosing = learner.workspace.batch, learner.networks.parameters if double_q else learner.networks.target
    for i in range(8):
        x2 = batch.next_observation[i]
        q = np.array([values(network, learner.sizes, x2) for network in learner.networks.target])
        q_choosing = np.array([values(network, learner.sizes, x2) for network in choosing])
        for k, weights in enumerate(objective.weights):
            best = lex_argmax(q_choosing[: k + 1], 0.3)
            expected = weights @ batch.reward[i] + batch.discount[i] * q[k, best]
            assert np.isclose(learner.workspace.y[k, i], expected, rtol=1e-4, atol=1e-4)


def test_targets_are_cut_to_their_range() -> None:
    learner = new_learner(
        1, Decisions(("a", "wait"), 1), LEXICOGRAPHIC.weights, replace(SMALL, clip_targets=((0, 5), (-2, 0))), 0
    )
    x = np.zeros(1, dtype=np.float32)
    remember(learner.replay, x, 0, 100.0, -100.0, 1.0, x, False, False)
    draw(learner.replay, learner.workspace.batch, 8, 1, True, learner.rng)
    write_inputs(learner, 8, False)
    targets(learner, 8)
    assert learner.workspace.y[:, :8].tolist() == [[5.0] * 8, [-2.0] * 8]


def test_target_networks_follow_every_interval() -> None:
    learner = small(target_interval=4, polyak=0.5)._learner
    x = np.ones(4, dtype=np.float32)
    remember(learner.replay, x, 0, 1.0, -1.0, 1.0, x, False, False)
    before = learner.networks.target.copy()
    learn(learner, 3)
    np.testing.assert_array_equal(learner.networks.target, before)
    learn(learner, 1)
    np.testing.assert_allclose(learner.networks.target, (before + learner.networks.parameters) / 2, atol=1e-6)


AS_IN_SKRL = replace(
    SMALL, timestep="decision", reuse_batch=False, target_rule="timesteps", epsilon_decay="exponential",
    target_interval=40, slack=0.3, bootstrap="lexicographic",
)  # fmt: skip


def before_a_round(settings: LDQNSettings, objective: Any, now: int) -> Any:
    """Return a learner that has seen 60 transitions, and whose round at timestep `now` is due."""
    learner = new_learner(3, Decisions(("a", "b", "wait"), 2, (2, 4)), objective.weights, settings, 0)
    dice = np.random.default_rng(1)
    for i in range(60):
        x, x2 = dice.normal(size=(2, 3)).astype(np.float32)
        remember(learner.replay, x, i % 5, -float(i % 9), -1.0, 0.9 ** (i % 4), x2, i % 7 == 0, i % 5 == 0)
    learner.counters[NEXT_UPDATE] = now + settings.update_interval  # as `take_in` leaves it when `now` is due
    return learner


def round_by_definition(learner: Any, settings: LDQNSettings, objective: Any, copy: bool) -> Any:
    """Return networks and target networks after the round, on the batches that the learner is about to draw."""
    rng, batches = learner.rng.copy(), []
    for _ in range(1 if settings.reuse_batch else settings.gradient_steps):
        draw(learner.replay, learner.workspace.batch, 8, 1, settings.bootstrap_on_truncation, rng)
        batches.append(Batch(*(column[:8].copy() for column in learner.workspace.batch)))
    if settings.reuse_batch:
        batches *= settings.gradient_steps
    networks, rate = learner.networks, settings.learning_rate
    return dqn_round(
        networks.parameters, networks.target, learner.sizes, batches, objective.weights, settings.slack, rate, copy
    )


@pytest.mark.parametrize("now", [20, 40])
@pytest.mark.parametrize("objective", [LEXICOGRAPHIC, Objective.named("scalar", 0.5)])
@pytest.mark.parametrize("reuse_batch", [False, True])
def test_a_round_is_that_of_skrl(objective: Any, now: int, reuse_batch: bool) -> None:
    """Timestep 40 is a multiple of the target networks' interval, 20 is not; up to 1.3 a round has one batch."""
    settings = replace(AS_IN_SKRL, reuse_batch=reuse_batch)
    learner = before_a_round(settings, objective, now)
    target = learner.networks.target.copy()
    after, followed = round_by_definition(learner, settings, objective, copy=now == 40)
    learn(learner, settings.gradient_steps)
    assert learner.counters[GRADIENT_STEPS] == settings.gradient_steps == 6
    np.testing.assert_allclose(learner.networks.parameters, after, atol=2e-5)
    np.testing.assert_allclose(learner.networks.target, followed, atol=2e-5)
    assert np.array_equal(learner.networks.target, target) == (now == 20)


@pytest.mark.parametrize(("now", "passed"), [(20, False), (40, True), (60, False), (61, False), (81, True)])
def test_target_networks_follow_once_after_a_round_in_which_a_multiple_has_passed(now: int, passed: bool) -> None:
    """As in Stable-Baselines3, whose target network follows between the rounds: the interval is 40, a round's 20."""
    settings = replace(AS_IN_SKRL, target_rule="rounds")
    learner = before_a_round(settings, LEXICOGRAPHIC, now)
    target = learner.networks.target.copy()
    after, _ = round_by_definition(learner, settings, LEXICOGRAPHIC, copy=False)
    learn(learner, settings.gradient_steps)
    np.testing.assert_allclose(learner.networks.parameters, after, atol=2e-5)
    assert np.array_equal(learner.networks.target, learner.networks.parameters if passed else target)


def test_schedules_count_decisions() -> None:
    task = cartpole.TASK
    learner = LDQN(task, task.decisions, LEXICOGRAPHIC, replace(AS_IN_SKRL, learning_starts=50), seed=0)
    learner.advance(decisions=59)
    assert (learner.decisions_taken, learner.gradient_steps) == (59, 0)
    learner.advance(decisions=1)  # 60 is the first multiple of 20 from 50 on
    assert (learner.decisions_taken, learner.gradient_steps) == (60, 6)
    learner.advance(decisions=140)
    assert (learner.decisions_taken, learner.gradient_steps) == (200, 8 * 6)
    assert learner.steps > 400
    assert learner.rates()["rollout/exploration_rate"] == pytest.approx(0.05 + 0.95 * np.exp(-200 / 500))
    for changes, said in (
        ({"target_rule": "rounds", "model_rollouts": 0.25}, "does not go with model_rollouts"),
        ({"timestep": "tick"}, "'decision'"),
    ):
        with pytest.raises(SettingError, match=said):
            replace(SMALL, **changes)


def test_values_of_a_small_chain_are_learned() -> None:
    """Three states in a row, one step a decision: the values are the returns, of both objectives, with γ^elapsed."""
    gamma = 0.9
    decisions = Decisions(("go", "wait"), 1, (2,))
    settings = replace(SMALL, gamma=gamma, gradient_steps=1, learning_rate=3e-3, hidden=(32,), target_interval=20)
    learner = new_learner(3, decisions, LEXICOGRAPHIC.weights, settings, 0)
    eye = np.eye(3, dtype=np.float32)
    for _ in range(20):
        remember(learner.replay, eye[0], 0, -1.0, -1.0, gamma, eye[1], False, False)
        remember(learner.replay, eye[1], 0, -1.0, -1.0, gamma, eye[2], False, False)
        remember(learner.replay, eye[2], 0, -1.0, -1.0, gamma, eye[0], True, False)
        remember(learner.replay, eye[0], 1, -5.0, -1.0, gamma, eye[1], False, False)
        remember(learner.replay, eye[1], 1, -5.0, -1.0, gamma, eye[2], False, False)
        remember(learner.replay, eye[2], 1, -5.0, -1.0, gamma, eye[0], True, False)
        remember(learner.replay, eye[0], 2, -1.0 - gamma, -1.0, gamma**2, eye[2], False, False)
        remember(learner.replay, eye[1], 2, -9.0, -1.0, gamma**2, eye[2], False, False)
        remember(learner.replay, eye[2], 2, -9.0, -1.0, gamma**2, eye[0], True, False)
    learn(learner, 3000)
    q0 = np.array([values(learner.networks.parameters[0], learner.sizes, x) for x in eye])
    q1 = np.array([values(learner.networks.parameters[1], learner.sizes, x) for x in eye])
    np.testing.assert_allclose(q0[:, 0], [-1 - 0.9 - 0.81, -1.9, -1.0], atol=0.05)
    np.testing.assert_allclose(q0[0, 2], -1 - 0.9 - 0.81, atol=0.05)
    np.testing.assert_allclose(q1[0, 2], -1 - 0.81, atol=0.05)
    policy = NetworkPolicy(learner.networks.parameters, learner.sizes, slack=0.2)
    assert policy.predict(eye)[0].tolist() == [2, 0, 0]


# --- the drivers ---


@pytest.mark.parametrize("name", list(TASKS))
def test_the_same_seed_gives_the_same_bits_and_another_does_not(name: str) -> None:
    runs = [small(TASKS[name], seed) for seed in (0, 0, 1)]
    for run in runs:
        run.advance(1500)
    same(runs[0].arrays(), runs[1].arrays())
    assert (runs[0].arrays()["networks.parameters"] != runs[2].arrays()["networks.parameters"]).any()
    np.testing.assert_array_equal(runs[0].greedy_episodes(3, 5), runs[1].greedy_episodes(3, 5))


def test_advancing_in_pieces_is_advancing_at_once() -> None:
    at_once, pieces = small(), small()
    at_once.advance(1000)
    while pieces.steps < 1000:
        pieces.advance(min(130, 1000 - pieces.steps))
        pieces.greedy_episodes(2, seed=3)
    same(at_once.arrays(), pieces.arrays())


@pytest.mark.parametrize("name", list(TASKS))
def test_a_restored_learner_goes_on_to_the_same_bits(name: str) -> None:
    original = small(TASKS[name], intra_option=2)
    original.advance(700)
    saved = original.arrays()
    other = small(TASKS[name], seed=9, intra_option=2)
    other.advance(100)
    other.restore(saved)
    original.advance(700)
    other.advance(original.steps - other.steps)
    same(original.arrays(), other.arrays())


def test_counts() -> None:
    learner = small()
    learner.advance(1000)
    assert 1000 <= learner.steps < 1020
    assert learner.gradient_steps == 6 * (1 + (learner.steps - 50) // 20)
    assert learner.decisions_taken < learner.steps


def test_greedy_episodes_count_steps_and_queries() -> None:
    learner = small()
    learner.advance(300)
    out = learner.greedy_episodes(50, seed=0)
    np.testing.assert_array_equal(out[:, 0], out[:, 1])
    assert (out[:, 2] <= out[:, 1]).all()
    assert (out[:, 1] <= 200).all()
    assert (out[:, 3] == 0).all()
    out = small(mountain_car.TASK).greedy_episodes(5, seed=0)
    np.testing.assert_array_equal(out[:, 0], -out[:, 1])


def test_vanilla_learns_to_balance() -> None:
    decisions = Decisions(cartpole.TASK.actions, cartpole.TASK.wait)
    # One batch for 128 gradient steps learns or does not, by the last bit; a batch for each learns on every processor.
    settings = replace(PAPER["cartpole"], hidden=(64, 64), reuse_batch=False, target_rule="gradient_steps")
    learner = LDQN(cartpole.TASK, decisions, Objective.named("task"), settings, seed=0)
    best = 0.0
    for _ in range(10):
        learner.advance(2000)
        best = max(best, learner.greedy_episodes(10, seed=1)[:, 0].mean())
    assert best > 150


def test_a_wrapper_asks_its_base() -> None:
    # A base that always pushes right: one network whose bias is largest for decision 1.
    sizes = (4, 3)
    network = np.zeros((1, 15), dtype=np.float32)
    network[0, -2] = 1.0
    decisions = Decisions(("base", "wait"), 1, (2, 4))
    learner = LDQN(cartpole.TASK, decisions, LEXICOGRAPHIC, SMALL, 0, base=NetworkPolicy(network, sizes, 0.0))
    learner.advance(500)
    learner._learner.networks.parameters[:] = 0.0  # all equal: decision 0, the base, is taken
    out = learner.greedy_episodes(20, seed=0)
    np.testing.assert_array_equal(out[:, 3], out[:, 2])
    np.testing.assert_array_equal(out[:, 1], out[:, 2])
    assert out[:, 1].mean() < 12  # pushing one way falls at once


def test_the_python_loop_learns_the_same_as_the_compiled_one_would_see() -> None:
    env = WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4, 8))
    learner = LDQN(env, env.decisions, LEXICOGRAPHIC, SMALL, 0)
    learner.advance(400)
    replay = learner._learner.replay
    filled = int(replay.cursor[1])
    waits = {3: 2, 4: 4, 5: 8}
    for i in range(filled):
        elapsed = waits.get(int(replay.decision[i]), 1)
        if not replay.truncated[i]:
            assert replay.reward[i].tolist() == [-elapsed, -1]


@pytest.mark.parametrize("n_envs", [1, 3])
def test_the_python_loop_repeats_itself_and_can_be_restored(n_envs: Any) -> None:
    def new(seed: int) -> Any:
        envs = [waiting_cartpole() for _ in range(n_envs)]
        return LDQN(envs, envs[0].decisions, LEXICOGRAPHIC, SMALL, seed)

    first, second, other = new(0), new(0), new(1)
    first.advance(600)
    second.advance(300)
    second.greedy_episodes(2, seed=0)
    saved = second.arrays()
    second.advance(600 - second.steps)
    other.advance(77)
    other.restore(saved)
    other.advance(600 - other.steps)
    same(first.arrays(), second.arrays())
    same(first.arrays(), other.arrays())


def test_a_plain_environment_is_one_step_a_decision() -> None:
    env = gym.make("CartPole-v1", max_episode_steps=200)
    learner = LDQN(env, Decisions(("left", "right"), 0), Objective.named("task"), SMALL, 0)
    learner.advance(300)
    assert learner.decisions_taken == learner.steps == 300
    assert learner.greedy_episodes(2, 0)[:, 1].min() > 5


def test_a_wrapped_environment_counts_base_queries() -> None:
    env = wrap(gym.make("MountainCar-v0"), lambda x: 2 if x[1] > 0 else 0, wait=1, durations=(2, 4))
    learner = LDQN(env, env.decisions, LEXICOGRAPHIC, SMALL, 0)
    learner.advance(100)
    learner._learner.networks.parameters[:] = 0.0
    out = learner.greedy_episodes(2, seed=0)
    np.testing.assert_array_equal(out[:, 3], out[:, 2])
    assert out[:, 1].max() < 200


def test_intra_option_learning_in_the_python_loop_needs_intermediate_states() -> None:
    settings = replace(SMALL, intra_option=2)
    env = waiting_cartpole(intermediate=True)
    learner = LDQN(env, env.decisions, LEXICOGRAPHIC, settings, 0)
    learner.advance(300)
    assert learner._learner.replay.cursor[1] > learner.decisions_taken
    env = waiting_cartpole()
    with pytest.raises(SettingError, match="intermediate=True"):
        LDQN(env, env.decisions, LEXICOGRAPHIC, settings, 0).advance(300)


class Bad(gym.Env):
    """Counts its steps and spoils one of them."""

    observation_space = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Discrete(3)})
    action_space = spaces.Discrete(2)

    def __init__(self, observation: Any = 0.0, reward: Any = 0.0, at: Any = 70) -> None:
        self.spoilt, self.at, self.t = (observation, reward), at, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return {"a": np.zeros(2, dtype=np.float32), "b": 1}, {}

    def step(self, action: Any) -> Any:
        self.t += 1
        observation, reward = self.spoilt if self.t == self.at else (0.0, 0.0)
        return {"a": np.full(2, observation, dtype=np.float32), "b": 1}, reward, False, self.t % 10 == 0, {}


@pytest.mark.parametrize(("spoilt", "said"), [({"observation": np.nan}, "nan"), ({"reward": -np.inf}, "-inf")])
def test_what_is_not_finite_stops_the_training_and_spoils_nothing(spoilt: Any, said: Any) -> None:
    learner = LDQN(Bad(**spoilt), Decisions(("a", "wait"), 1), LEXICOGRAPHIC, SMALL, 0)
    with pytest.raises(NotFiniteError, match=f"{said}.* at primitive step 70"):
        learner.advance(200)
    assert learner.steps == 69
    saved = learner.arrays()
    assert all(np.isfinite(array).all() for array in saved.values())
    learner.advance(50)
    assert learner.steps == 119


def test_divergence_is_reported() -> None:
    learner = small(learning_rate=1e30)
    with pytest.raises(NotFiniteError, match="lower learning_rate"):
        learner.advance(500)


# --- policies and mistakes ---


def test_a_policy_survives_its_arrays() -> None:
    learner = small()
    learner.advance(300)
    policy = learner.policy()
    again = NetworkPolicy.from_arrays(policy.arrays())
    x = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    np.testing.assert_array_equal(policy.predict(x)[0], again.predict(x)[0])
    assert [policy.predict(row)[0] for row in x] == policy.predict(x)[0].tolist()
    with pytest.raises(SpaceError, match=r"\(4,\)"):
        policy.predict(np.zeros(5))
    with pytest.raises(NotFiniteError):
        policy.predict(np.full(4, np.nan))
    with pytest.raises(FileFormatError, match="sizes"):
        NetworkPolicy.from_arrays({"networks": policy.networks})


def test_a_policy_keeps_its_space() -> None:
    learner = LDQN(Bad(at=0), Decisions(("a", "wait"), 1), LEXICOGRAPHIC, SMALL, 0)
    policy = learner.policy()
    one = {"a": np.zeros(2, dtype=np.float32), "b": 1}
    assert policy.predict([one, one])[0].tolist() == [policy.predict(one)[0]] * 2
    again = NetworkPolicy.from_arrays(unpack_arrays(pack_arrays(policy.arrays()), Path("policy")))
    assert again.space == policy.space
    assert again.predict([one, one])[0].tolist() == policy.predict([one, one])[0].tolist()


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-np.inf, 1.0, (2, 3)),
        spaces.Discrete(6, start=2),
        spaces.MultiDiscrete([2, 4]),
        spaces.MultiBinary(6),
        spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 9, (3,), dtype=np.int64)]),
        spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Box(-1.0, 1.0, (4,)))]),
    ],
    ids=lambda space: type(space).__name__,
)
def test_every_space_is_saved_with_its_policy(space: Any) -> None:
    networks = initial_parameters((6, 16, 5), 2, np.random.default_rng(0))
    policy = NetworkPolicy(networks, (6, 16, 5), 0.1, space)
    again = NetworkPolicy.from_arrays(unpack_arrays(pack_arrays(policy.arrays()), Path("policy")))
    assert again.space == space
    space.seed(0)
    samples = [space.sample() for _ in range(20)]
    assert [again.predict(sample)[0] for sample in samples] == [policy.predict(sample)[0] for sample in samples]


def test_a_space_that_cannot_be_saved_does_not_lose_the_policy() -> None:
    networks = initial_parameters((3, 4, 2), 1, np.random.default_rng(0))
    arrays = NetworkPolicy(networks, (3, 4, 2), 0.0, spaces.Text(3)).arrays()
    assert "space" not in arrays
    assert NetworkPolicy.from_arrays(arrays).space is None
    for damaged in (b"{", b'{"type": "Sphere"}'):
        with pytest.raises(FileFormatError, match="space"):
            NetworkPolicy.from_arrays({**arrays, "space": np.frombuffer(damaged, dtype=np.uint8)})


def test_restoring_something_else_is_refused() -> None:
    learner = small()
    saved = learner.arrays()
    with pytest.raises(FileFormatError, match="lacks rng"):
        small().restore({name: array for name, array in saved.items() if name != "rng"})
    with pytest.raises(FileFormatError, match="other settings"):
        small(hidden=(8,)).restore(saved)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.0}, {"learning_rate": -1.0}, {"batch_size": 0}, {"slack": -0.1}, {"loss": "l1"}, {"polyak": 2.0},
        {"epsilon_end": 1.5}, {"hidden": (0,)}, {"clip_targets": ((1.0, 0.0), (0.0, 1.0))}, {"intra_option": -1},
        {"model_rollouts": 1.0, "normalise": True, "gamma": 0.9}, {"model_rollouts": 0.5},
        {"wait_margin": 1.0, "log_lambda_range": (-1, 1), "normalise": True, "gamma": 0.9}, {"wait_margin": 0.1},
        {"task_networks": 2}, {"task_networks": 0}, {"min_weight": 1.5},
        {"wait_margin": 0.1, "log_lambda_range": (-1, 1)},
    ],
)  # fmt: skip
def test_settings_outside_what_is_allowed(wrong: Any) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        LDQNSettings(**wrong)


def test_things_that_do_not_fit() -> None:
    env = waiting_cartpole()
    with pytest.raises(SpaceError, match="13 decisions"):
        LDQN(env, cartpole.TASK.decisions, LEXICOGRAPHIC, SMALL, 0)
    with pytest.raises(SettingError, match="same gamma"):
        LDQN(env, env.decisions, LEXICOGRAPHIC, replace(SMALL, gamma=0.9), 0)
    with pytest.raises(SettingError, match="empty"):
        LDQN([], env.decisions, LEXICOGRAPHIC, SMALL, 0)
    base = small(mountain_car.TASK).policy()
    with pytest.raises(SettingError, match="base, wait"):
        LDQN(cartpole.TASK, cartpole.TASK.decisions, LEXICOGRAPHIC, SMALL, 0, base=base)
    with pytest.raises(SpaceError, match="another task"):
        LDQN(cartpole.TASK, Decisions(("base", "wait"), 1, (2,)), LEXICOGRAPHIC, SMALL, 0, base=base)


def test_the_papers_table() -> None:
    assert PAPER["cartpole"].gradient_steps == 128
    assert PAPER["mountain-car"].target_interval == 600
    assert PAPER["pong"].epsilon_steps == 100_000
    assert all(s.gamma == 1.0 and s.hidden == (256, 256) and s.clip_targets is None for s in PAPER.values())


FINGERPRINT = """
import hashlib
from letitcook.deep.agent import LDQN, LDQNSettings
from letitcook.tasks.cartpole import TASK
from letitcook.core.objective import Objective
settings = LDQNSettings(hidden=(32, 32), learning_starts=50)
learner = LDQN(TASK, TASK.decisions, Objective.named("lexicographic"), settings, seed=3)
learner.advance(2000)
print(hashlib.sha256(b"".join(a.tobytes() for a in learner.arrays().values())).hexdigest())
"""


def test_another_process_gives_the_same_bits() -> None:
    prints = {
        subprocess.run([sys.executable, "-c", FINGERPRINT], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(prints) == 1


@pytest.mark.parametrize("sizes", [(-1_000_000, 64, 64, 4), (2, 1_000_000, 64, 4), (2, 64, 64, 3)])
def test_a_saved_wait_model_of_other_sizes_is_refused(sizes: tuple[int, ...]) -> None:
    """Kernels cut its parameters by these, and would read past their end."""
    learner = LDQN(mountain_car.TASK, Decisions(("left", "stay", "right"), 1, (2, 4)), LEXICOGRAPHIC, SMALL, seed=0)
    saved = learner.arrays()
    learner.restore(saved)
    with pytest.raises(FileFormatError, match="do not fit together"):
        learner.restore({**saved, "wait_model.sizes": np.array(sizes)})
