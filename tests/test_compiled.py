"""Episodes side by side are the episodes one after another."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from letitcook.core.decisions import Decisions
from letitcook.core.jit import random_bits, seeded
from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN
from letitcook.deep.drivers.compiled import SIDE_BY_SIDE, new_world, run_policy
from letitcook.deep.settings import BEST, PAPER
from letitcook.tasks import cartpole, mountain_car, pong
from letitcook.tasks.task import Task

LEXICOGRAPHIC = Objective.named("lexicographic")
SMALL = replace(BEST, hidden=(16, 16), batch_size=16, buffer_size=2_000, learning_starts=100, fourier_features=4)


def one_by_one(learner: Any, policy: Any, base: Any, task: Task, episodes: Any, seed: int) -> Any:
    """Live each episode alone, with the random numbers that are its own."""
    world, seeds = new_world(task, learner.decisions, base, False), seeded(seed)
    out = np.zeros((episodes, 4 + learner.decisions.n))
    for episode in range(episodes):
        rng = np.array([random_bits(seeds)], dtype=np.uint64)
        run_policy(policy.chooser, learner.decisions.durations_of, world, rng, out[episode : episode + 1])
    return out


@pytest.mark.parametrize("task", [cartpole.TASK, mountain_car.TASK, pong.TASK], ids=lambda task: task.name)
@pytest.mark.parametrize("mode", ["scratch", "wrap"])
def test_side_by_side(task: Task, mode: str) -> None:
    base, decisions = None, task.decisions
    if mode == "wrap":
        alone = LDQN(task, Decisions(task.actions, task.wait), Objective.named("task"), PAPER[task.name], 3)
        alone.advance(1_500)
        base, decisions = alone.policy(), Decisions(("base", "wait"), 1, task.durations)
    learner = LDQN(task, decisions, LEXICOGRAPHIC, SMALL, 0, base)
    learner.advance(1_500)
    policy, episodes = learner.policy(-1.0), SIDE_BY_SIDE + 20
    together = learner.play(policy, episodes, 5, common_random_numbers=True)
    common_random_numbers = one_by_one(learner, policy, base, task, episodes, 5)
    same = (together == common_random_numbers).all(axis=1)
    assert same.mean() > 0.9  # matrix products round otherwise, which may turn a decision that hangs in the balance
    np.testing.assert_array_equal(together[:, 4:].sum(axis=1), together[:, 1])
    assert (together[:, 3] == together[:, 4]).all() if mode == "wrap" else (together[:, 3] == 0).all()
    assert (learner.play(policy, 7, 5, common_random_numbers=True) == together[:7]).all(axis=1).mean() > 0.5
    np.testing.assert_array_equal(
        learner.play(policy, 7, 5, common_random_numbers=True), learner.play(policy, 7, 5, common_random_numbers=True)
    )


def test_a_policy_of_two_networks_with_slack_answers_a_batch_as_it_answers_one() -> None:
    task = pong.TASK
    learner = LDQN(task, task.decisions, LEXICOGRAPHIC, replace(PAPER["pong"], slack=0.2), 0)
    learner.advance(1_200)
    together = learner.play(learner.policy(), 30, 1, common_random_numbers=True)
    common_random_numbers = one_by_one(learner, learner.policy(), None, task, 30, 1)
    assert (together == common_random_numbers).all(axis=1).mean() > 0.9
