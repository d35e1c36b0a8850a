"""Our contenders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions
from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN
from letitcook.deep.network import layers
from letitcook.deep.replay import FILLED
from letitcook.deep.settings import PAPER, LDQNSettings
from letitcook.tasks import cartpole
from letitcook.wrappers.waiting import WaitingEnv
from peers.schedule import Contender, Schedule, gymnasiums_cartpole

PUSHES = Decisions(("left", "right"), wait=0)


def settings_of(schedule: Schedule, random_beginning: bool = False) -> LDQNSettings:
    """Return the paper's settings in the form that every contender can take.

    With a random beginning ε falls from 1 while nothing is learned yet; the PyTorch and JAX Stable-Baselines act at
    random all that time.

    Preset `paper` itself learns from one batch in all 128 gradient steps of a round, as skrl up to 1.3 does. That saves
    most of the targets, and no peer does it; so it is not used here.
    """
    common = ("hidden", "gamma", "batch_size", "buffer_size", "learning_starts", "update_interval", "gradient_steps")
    paper = PAPER["cartpole"]
    for name in (*common, "target_interval"):
        if getattr(schedule, name) != getattr(paper, name):
            raise ValueError(f"the schedule's {name} is {getattr(schedule, name)}, the paper's {getattr(paper, name)}")
    return replace(
        paper,
        learning_rate=schedule.learning_rate,
        timestep="step",
        reuse_batch=False,
        target_rule="gradient_steps",
        epsilon_start=1.0 if random_beginning else schedule.epsilon,
        epsilon_end=schedule.epsilon,
        epsilon_steps=schedule.learning_starts,
        epsilon_decay="linear",
    )


def contender(
    task_or_env: Any, decisions: Decisions, objective: str, schedule: Schedule, random_beginning: bool = False
) -> Contender:
    settings = settings_of(schedule, random_beginning)
    learner = LDQN(task_or_env, decisions, Objective.named(objective), settings, schedule.seed)
    replay, networks, sizes = learner._learner.replay, learner._learner.networks, learner._learner.sizes

    def observations() -> NDArray[np.float32]:
        return replay.observation[: int(replay.cursor[FILLED])].copy()

    return Contender(
        advance=learner.advance,
        layers=lambda: [(w.copy(), b.copy()) for w, b in layers(networks.parameters[0], sizes.tolist())],
        observations=observations,
    )


def compiled_loop(schedule: Schedule) -> Contender:
    return contender(cartpole.TASK, PUSHES, "task", schedule)


def compiled_loop_from_random(schedule: Schedule) -> Contender:
    return contender(cartpole.TASK, PUSHES, "task", schedule, random_beginning=True)


def python_loop(schedule: Schedule) -> Contender:
    return contender(gymnasiums_cartpole(), PUSHES, "task", schedule)


def waiting_compiled_loop(schedule: Schedule) -> Contender:
    return contender(cartpole.TASK, cartpole.TASK.decisions, "lexicographic", schedule)


def waiting_python_loop(schedule: Schedule) -> Contender:
    env = WaitingEnv(gymnasiums_cartpole(), wait=0, durations=tuple(range(2, 21, 2)))
    return contender(env, env.decisions, "lexicographic", schedule)
