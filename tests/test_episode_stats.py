"""The counts of the training episodes, beside counting by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from letitcook import WaitingEnv, learn, make
from letitcook.core.decisions import Timesteps
from letitcook.core.episode_stats import Totals
from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN
from letitcook.finite.learner import QLearner
from letitcook.finite.q_learning import DECISIONS, EPISODES, STEPS, TAKEN, TIME
from letitcook.finite.settings import EXACT, PAPER
from letitcook.finite.tables import enumerate_env
from letitcook.tasks import task_named
from letitcook.training.callbacks import scalars
from letitcook.training.learn import prepare
from letitcook.training.loop import EvaluationPlan, Training
from letitcook.training.spec import RunSpec
from test_network import layers


def finite_learner(preset: Any = PAPER) -> QLearner:
    env = make("cook")
    return QLearner(enumerate_env(env), env.decisions, 200, Objective.named("lexicographic"), preset, seed=0)


@pytest.mark.parametrize("preset", [PAPER, EXACT])
def test_tables_count_as_by_hand(preset: Any) -> None:
    learner = finite_learner(preset)
    learner.advance(1_234)  # before the counting begins, and into the middle of an episode
    assert learner.totals() == Totals(0, 0, 0, 0, 0)
    memory, decisions = learner._memory, learner.decisions
    ended, under_way = np.zeros(5), np.zeros(5)
    assert (memory.clock[TAKEN] > 0) == (preset is EXACT)  # the paper's learner keeps no record that is not asked for
    counts_first = preset is EXACT
    for n in range(int(memory.clock[TAKEN])):
        until = int(memory.taken[1, n + 1]) if n + 1 < memory.clock[TAKEN] else int(memory.clock[TIME])
        elapsed, u = until - int(memory.taken[1, n]), int(memory.taken[0, n])
        under_way += 0, elapsed, 1, -elapsed, elapsed * (decisions.actions_of[u] == decisions.wait)
    for _ in range(3_000):
        before = memory.clock.copy()
        learner.advance(1)
        elapsed, u = int(memory.clock[STEPS] - before[STEPS]), int(memory.taken[0, before[TAKEN]])
        assert memory.clock[DECISIONS] == before[DECISIONS] + 1
        under_way += 0, elapsed, 1, -elapsed, elapsed * (decisions.actions_of[u] == decisions.wait)
        if memory.clock[EPISODES] > before[EPISODES]:
            under_way[0] = 1
            ended, under_way = ended + under_way * counts_first, np.zeros(5)
            counts_first = True
        assert learner.totals() == Totals(*ended)
    assert ended[0] > 10


def test_counting_changes_no_bits() -> None:
    counted, plain = finite_learner(), finite_learner()
    counted.totals()
    for learner in (counted, plain):
        learner.advance(50_000)
    record = {"path", "rewards", "taken"}
    for name, array in plain.arrays().items():
        same = array == counted.arrays()[name]
        assert name in record or same.all() or (name == "clock" and np.flatnonzero(~same).tolist() == [TAKEN]), name


class Noting(gym.Wrapper[Any, Any, Any, Any]):
    """Counts what goes through a waiting environment."""

    def __init__(self, env: WaitingEnv) -> None:
        super().__init__(env)
        self.decisions = env.decisions
        self.ended, self.under_way = np.zeros(5), np.zeros(5)

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        self.under_way[:] = 0
        return super().reset(**settings)

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        waits = self.decisions.actions_of[action] == self.decisions.wait
        self.under_way += 0, info["elapsed"], 1, info["task_reward"], info["elapsed"] * waits
        if terminated or truncated:
            self.under_way[0] = 1
            self.ended += self.under_way
        return observation, reward, terminated, truncated, info


@pytest.mark.parametrize("at_once", [1, 3])
def test_environments_in_python_are_counted_as_by_hand(at_once: int) -> None:
    envs = [Noting(WaitingEnv(gym.make("CartPole-v1"), wait=0, durations=(2, 4))) for _ in range(at_once)]
    training = prepare(envs[0].env, RunSpec(preset="paper"))
    learner = LDQN(envs, envs[0].decisions, Objective.named("lexicographic"), training.learner.settings, seed=0)  # type: ignore[attr-defined]
    learner.advance(900)
    assert learner.totals() == Totals(*sum(env.ended for env in envs))  # type: ignore[misc]
    assert learner.totals().episodes > 10


def test_the_compiled_loop_counts_as_by_hand() -> None:
    task, training = task_named("cartpole"), prepare(make("cartpole"), RunSpec())
    learner = LDQN(task, task.decisions, Objective.named("lexicographic"), training.learner.settings, seed=0)  # type: ignore[attr-defined]
    inside, decisions = learner._learner, task.decisions
    ended, under_way = np.zeros(5), np.zeros(5)
    for n in range(400):
        steps = learner.steps
        learner.advance(1)
        elapsed, u = learner.steps - steps, int(inside.replay.decision[n])
        under_way += 0, elapsed, 1, elapsed, elapsed * (decisions.actions_of[u] == decisions.wait)
        if inside.replay.terminated[n] or inside.replay.truncated[n]:
            under_way[0] = 1
            ended, under_way = ended + under_way, np.zeros(5)
        assert learner.totals() == Totals(*ended)
    assert ended[0] > 10


def rollouts(training: Training) -> list[Totals]:
    seen: list[Totals] = []

    def callback(point: Any, training: Any) -> None:
        assert point == training.curve[-1]
        seen.append(training.rollout)

    for _ in training.run(callback):
        pass
    return seen


@pytest.mark.parametrize("kind", ["tables", "compiled"])
def test_a_callback_sees_the_episodes_since_the_evaluation_before(kind: str) -> None:
    env = make("cook" if kind == "tables" else "cartpole")
    counted, plain = (
        prepare(env, RunSpec(seed=1, settings={"timestep": "step"}, length=Timesteps(3_000))) for _ in range(2)
    )
    counted.plan = plain.plan = EvaluationPlan(every=1_000)
    seen = rollouts(counted)
    assert len(seen) == len(counted.curve) == 3
    total = Totals(*np.sum(seen, axis=0))
    assert total == counted.learner.totals()
    assert 3_000 - 200 < total.length <= counted.learner.steps
    assert list(plain.run()) == counted.curve
    assert plain.rollout is None


def test_learn_calls_back_after_each_evaluation() -> None:
    seen: list[dict[str, float]] = []
    learned = learn(
        make("cook", mode="wrap"),
        steps=30_000,
        progress=False,
        callback=lambda point, training: seen.append(scalars(point, training)),
    )
    assert [numbers["time/total_timesteps"] for numbers in seen] == [point.step for point in learned.curve]
    assert [numbers["eval/mean_queries"] for numbers in seen] == [point.queries for point in learned.curve]
    assert all(numbers["rollout/ep_rew_mean"] == -numbers["rollout/ep_len_mean"] for numbers in seen)
    assert all(0.0 < numbers["rollout/wait_fraction"] < 1.0 for numbers in seen)
    assert (seen[-1]["rollout/exploration_rate"], seen[-1]["train/learning_rate"]) == (0.05, 0.1)


def test_the_loss_is_that_of_the_last_batch() -> None:
    training = prepare(make("cartpole"), RunSpec(seed=1))
    learner: Any = training.learner
    assert "train/loss" not in learner.rates()
    learner.advance(decisions=1_500)
    inside, rows = learner._learner, learner.settings.batch_size
    batch, expected = inside.workspace.batch, 0.0
    for k, parameters in enumerate(inside.networks.parameters):
        h = batch.observation[:rows]
        *hidden, (w, b) = layers(parameters, tuple(inside.sizes))
        for weights, bias in hidden:
            h = np.maximum(h @ weights + bias, 0.0)
        q = (h @ w + b)[np.arange(rows), batch.decision[:rows]]
        expected += float(np.mean((q - inside.workspace.y[k, :rows]) ** 2))
    assert learner.rates()["train/loss"] == pytest.approx(expected, rel=1e-4)
    assert learner.rates()["train/n_updates"] == learner.gradient_steps > 0


@pytest.mark.parametrize(
    ("decay", "left"), [("linear", lambda t: 1.0 - t / 8_000), ("exponential", lambda t: np.exp(-t / 8_000))]
)
def test_the_exploration_rate_falls_with_decisions(decay: str, left: Callable[[int], float]) -> None:
    learner: Any = prepare(make("cartpole"), RunSpec(seed=1, settings={"epsilon_decay": decay})).learner
    learner.advance(decisions=700)
    assert learner.rates()["rollout/exploration_rate"] == pytest.approx(0.04 + 0.96 * left(learner.decisions_taken))
