"""The result of a run around a base policy: the certified wrapper, with what was spent on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console

from letitcook.core.decisions import Episode, Timesteps
from letitcook.core.presets import PresetContext
from letitcook.errors import SettingError
from letitcook.evaluation.certificate import Margin
from letitcook.evaluation.persistence import Recording
from letitcook.evaluation.rollout import Evaluation, check_seed
from letitcook.evaluation.savings import Savings, duration
from letitcook.training.budget import Spending
from letitcook.training.by_student import FEW_QUERIES, choose_by_student, suits_a_student
from letitcook.training.certified import CertifiedChoice, choose_certified
from letitcook.training.loop import Training
from letitcook.training.progress import phases
from letitcook.training.run import Learned, Point, RunInfo
from letitcook.training.spec import RunSpec
from letitcook.wrappers.waiting import WaitingEnv

OFFERED = 8
"""Learned policies that take part in the choice."""


def announce(training: Timesteps, spending: Spending) -> None:
    """Say what a budget is spent on, before anything is; and how long that takes, if the base was queried before."""
    budget = spending.budget
    learn = f"{training} of training" if training.count else "no training, only schedules and persistence"
    queries, seconds = (sum(getattr(env, name) for env in spending.envs) for name in ("base_queries", "base_seconds"))
    takes = ""
    if budget.base_queries is not None and queries:
        each = seconds / queries
        takes = f" ({duration(budget.base_queries * each)} in it, at {duration(each)} a query)"
    Console(stderr=True, soft_wrap=True).print(
        f"planned: {budget.said()}{takes}; {learn}, then choosing and certifying", highlight=False
    )


def certified_result(
    training: Training, env: WaitingEnv, margin: Margin, spending: Spending, progress: bool
) -> Learned:
    """Return the certified wrapper among what was learned, schedules and persistence."""
    learned = training.unchosen()
    offered = [(f"learned, step {c.step:,}", c.policy) for c in training.offered(OFFERED)]
    if not offered:
        offered = [("learned", learned.policy)]
    with phases(progress) as phase:
        choice = choose_certified(env, offered, margin, spending, training.info.seed, phase=phase)
    return _with_choice(learned, choice, env, spending)


def untrained(
    env: WaitingEnv,
    spec: RunSpec,
    margin: Margin,
    spending: Spending,
    progress: bool,
    recording: Recording | None = None,
) -> Learned:
    """Return the certified wrapper among schedules and persistence alone: a budget left no room for training."""
    preset = spec.preset or "best"
    context = PresetContext(spec.method, None, True, env.gamma)
    settings = replace(spec, preset=preset).settings_for("network", context)
    info = RunInfo("network", spec.method, spec.lam, check_seed(spec.seed), preset, settings, env.decisions)
    info = replace(info, env_spec=env.env_spec)
    with phases(progress) as phase:
        if suits_a_student(env, spending.budget):
            choice = choose_by_student(env, margin, spending, spec.seed, phase=phase, recording=recording)
        elif recording is not None:
            raise SettingError(
                "a recording is for an expensive base policy, whose wrapper is found around a student: give a budget "
                f"of fewer than {FEW_QUERIES:,} queries of it (and none of episodes), and a base with actions in a Box "
                "or a Discrete space"
            )
        else:
            choice = choose_certified(env, [], margin, spending, spec.seed, phase=phase)
    point = _point(choice.fresh)
    bare = Learned(choice.chosen.policy, point, point, [point], 0, 0, spending.seconds, info)
    return _with_choice(bare, choice, env, spending)


def _with_choice(learned: Learned, choice: CertifiedChoice, env: WaitingEnv, spending: Spending) -> Learned:
    fresh = _point(choice.fresh)._replace(step=learned.best.step, decision=learned.best.decision)
    played = Evaluation(choice.fresh, env.decisions)
    alone = float(np.mean([episode.base_queries for episode in choice.fresh_base]))
    certificate = {
        "certified": choice.certificate is not None,
        "margin": choice.margin,
        "at_stake": choice.at_stake,
        **({} if choice.certificate is None else choice.certificate.summary()),
        "paired": choice.paired,
        "nearest": None if choice.certificate is not None else choice.nearest(),
        "queries_saved": 1.0 - played.base_queries / alone,
        "spent": spending.summary(),
    }
    return replace(
        learned,
        policy=choice.chosen.policy,
        fresh=fresh,
        time=tuple(played.rows()[:, 4:].mean(axis=0).tolist()),
        evaluation_episodes=spending.episodes,
        seconds=spending.seconds,
        choice={"name": choice.chosen.name, "base_itself": choice.chosen is choice.base, "candidates": choice.table()},
        certificate=certificate,
        savings=Savings(played, Evaluation(choice.fresh_base, env.decisions), choice.certificate)
        if choice.paired
        else None,
    )


def _point(episodes: list[Episode]) -> Point:
    names = ("task_return", "length", "queries", "base_queries")
    means: list[Any] = [float(np.mean([getattr(episode, name) for episode in episodes])) for name in names]
    return Point(0, 0, *means)
