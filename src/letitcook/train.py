"""Making runs ready: which learner with which settings for which environment; and running them with a progress line."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_type_hints

import gymnasium as gym

from letitcook import files
from letitcook.choice import Tolerance
from letitcook.deep.ldqn import LDQN
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.settings import PRESETS as DEEP_PRESETS
from letitcook.deep.settings import LDQNSettings
from letitcook.envs import Task, task_of
from letitcook.errors import NotFiniteError, SettingError, UnknownNameError
from letitcook.evaluate import check_seed
from letitcook.finite.q_learning import QLearner
from letitcook.finite.settings import PRESETS as FINITE_PRESETS
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import Tables, can_be_enumerated, enumerate_env
from letitcook.lexicographic import Objective
from letitcook.progress import training_line
from letitcook.runs import Learned, Point
from letitcook.tracking import Callback
from letitcook.training import (
    FRESH_EPISODES_IN_PYTHON,
    LOOKS,
    LOOKS_IN_PYTHON,
    SCREENING,
    SCREENING_IN_PYTHON,
    Training,
)
from letitcook.typed import converted, said
from letitcook.waiting import WaitingEnv, horizon_of, waiting_env_of
from letitcook.waiting_vector import WaitingVectorEnv
from letitcook.wmdp import Decisions
from letitcook.wrapping import BasePolicyEnv

METHODS = ("lexicographic", "scalar", "vanilla")
FINITE_STEPS, DEEP_STEPS, BEST_STEPS = 10_000_000, 1_000_000, 200_000
"""Primitive steps of a run in the paper, with tables and with networks, and of one with preset `"best"`."""


def objective_of(method: str, lam: float | None = None) -> Objective:
    """Return what a method optimises.

    >>> objective_of("vanilla").name, objective_of("scalar", 0.1).lam
    ('task', 0.1)
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    return Objective.named("task" if method == "vanilla" else method, lam)


def decisions_of(method: str, decisions: Decisions) -> Decisions:
    """Return the decisions that a method has: vanilla has no waits."""
    return Decisions(decisions.actions, decisions.wait) if method == "vanilla" else decisions


def learn(
    waiting_env: gym.Env[Any, Any] | WaitingVectorEnv,
    method: str = "lexicographic",
    lam: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    preset: str | None = None,
    progress: bool = True,
    out: str | Path | None = None,
    callback: Callback | None = None,
    tolerance: float | str = 0.0,
) -> Learned:
    """Learn where and how long to wait, from scratch or around a base policy.

    `method` is `"lexicographic"`, `"scalar"` (with λ = `lam`) or `"vanilla"` (no waits). An environment that can be
    enumerated is learned with tables, every other with networks; the progress line and `about["policy"]` say which.
    `preset` is `"paper"` (its hyperparameters; the default for its tasks) or `"best"` (beyond the paper; the default
    for every other environment). With tables, `"best"` reaches the exact optimum in a fraction of the steps; with
    networks one run learns policies of many trade-offs, and playing them decides which one is the result. `steps`
    counts primitive steps; by default they are the paper's, or 200,000 with networks and `"best"`. With `out`, what was
    good so far is kept there if training has to stop because the environment gives something that is not a number.
    `callback` is called after each evaluation, see `tracking`. `tolerance` is how much mean task return you would give
    for fewer queries, as an amount or a share such as `"1%"`, where the result is chosen among several policies.

    >>> from letitcook import make
    >>> result = learn(make("cook"), steps=800_000, seed=0, preset="exact", progress=False)
    >>> result.length, result.queries
    (33.0, 25.0)
    """
    if out is not None:
        files.check_output(Path(out))
    training = begin(waiting_env, method, lam, seed, preset, steps=steps)
    training.callback, training.tolerance = callback, Tolerance.read(tolerance)
    for _ in shown(training, training.steps, progress, None if out is None else Path(out)):
        pass
    return training.result()


def run_until_stopped(training: Training, steps: int, keep: Path) -> bool:
    """Train with a progress line to the end, or until ctrl-C; returns whether the end was reached.

    The first ctrl-C stops after the next evaluation, a second one at once.
    """
    asked = False

    def ask(signum: int, frame: Any) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        for _ in shown(training, steps, progress=True, keep=keep):
            if asked:
                break
    finally:
        signal.signal(signal.SIGINT, before)
    return training.learner.steps >= steps


def shown(training: Training, steps: int, progress: bool, keep: Path | None) -> Iterator[Point]:
    """Train with a progress line; if the world gives something that is not a number, `keep` what was good so far."""
    try:
        using = {"table": "tables", "network": "networks"}.get(training.about.get("policy", ""), "training")
        with training_line(steps, progress, training.learner.steps, using) as show:
            for point in training.run(steps):
                show(point.step, point, training.best or point)
                yield point
    except NotFiniteError:
        if keep is not None and training.best is not None:
            training.stopped().save(keep, replace=True)
        raise


def check_steps(steps: int) -> int:
    """Return a number of steps, or say what is wrong with it."""
    if steps < 1:
        raise SettingError(f"steps = {steps} is not allowed; train for at least 1 primitive step")
    return steps


def begin(
    waiting_env: gym.Env[Any, Any] | WaitingVectorEnv,
    method: str = "lexicographic",
    lam: float | None = None,
    seed: int = 0,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    steps: int | None = None,
) -> Training:
    """Make a run ready: with tables if the environment can be enumerated, else with networks.

    Without a preset, a task of the paper is learned with `"paper"`, every other environment with `"best"`. A run with
    networks may depend on the number of steps that it is to have.
    """
    if isinstance(waiting_env, WaitingVectorEnv):
        return begin_networks(waiting_env, method, lam, seed, preset or "best", changes, steps)
    env = waiting_env_of(waiting_env)
    if preset is None:
        preset = "best" if task_of(env) is None else "paper"
    if can_be_enumerated(env):
        horizon = horizon_of(env)
        if horizon is None:
            raise SettingError("this environment has no time limit; make it with max_episode_steps=...")
        training = begin_tables(
            enumerate_env(env), env.decisions, horizon, method, lam, seed, preset, env.gamma, changes
        )
    else:
        training = begin_networks(env, method, lam, seed, preset, changes, steps)
    training.steps = check_steps(training.steps if steps is None else steps)
    task = task_of(env)
    mode = "scratch" if _base_of(env) is None else "wrap"
    training.about.update(task=None if task is None else task.name, mode=mode)
    return training


def begin_tables(
    tables: Tables,
    decisions: Decisions,
    horizon: int,
    method: str,
    lam: float | None,
    seed: int,
    preset: str,
    gamma: float = 1.0,
    changes: Mapping[str, Any] | None = None,
) -> Training:
    """Make a run with tables ready."""
    objective = objective_of(method, lam)
    settings = preset_settings("table", preset, None, method, changes, gamma, tables.deterministic)
    assert isinstance(settings, QSettings)
    learner = QLearner(tables, decisions_of(method, decisions), horizon, objective, settings, check_seed(seed))
    about = _about("table", method, lam, seed, preset, asdict(settings), decisions)
    training = Training(learner, objective, seed, about, steps=FINITE_STEPS)
    if preset != "paper" and not tables.deterministic:  # else one episode tells all; here many cost next to nothing
        training.choosing, training.episodes = True, 10 * SCREENING
        training.looks = tuple(10 * look for look in LOOKS)
    return training


def begin_networks(
    env: WaitingEnv | WaitingVectorEnv,
    method: str,
    lam: float | None,
    seed: int,
    preset: str,
    changes: Mapping[str, Any] | None = None,
    steps: int | None = None,
) -> Training:
    """Make a run with networks ready: in the compiled loop if it knows the task, else in Python."""
    task, asked = (None, env.base) if isinstance(env, WaitingVectorEnv) else (task_of(env), _base_of(env))
    base = asked if isinstance(asked, NetworkPolicy) else None
    objective, decisions = objective_of(method, lam), decisions_of(method, env.decisions)
    goal = check_steps((BEST_STEPS if preset == "best" else DEEP_STEPS) if steps is None else steps)
    name = None if task is None else task.name
    mode = "scratch" if asked is None else "wrap"
    settings = preset_settings("network", preset, name, method, changes, env.gamma, steps=goal, mode=mode)
    assert isinstance(settings, LDQNSettings)
    compiled = task is not None and (asked is None or base is not None)
    world: Task | WaitingEnv | WaitingVectorEnv
    if compiled and task is not None:
        world = task
    # Else an environment of its own around the same world: the learner may discount where the user does not.
    elif isinstance(env, WaitingVectorEnv):
        world = env.with_discount(settings.gamma)
    else:
        world = env.with_discount(settings.gamma, settings.looks_inside)
    learner = LDQN(world, decisions, objective, settings, check_seed(seed), base if compiled else None)
    about = _about("network", method, lam, seed, preset, asdict(settings), decisions)
    about.update(task=name, mode=mode)
    choosing = preset != "paper"
    return _protocol(Training(learner, objective, seed, about, base, steps=goal, choosing=choosing), compiled)


def _base_of(env: WaitingEnv) -> Any:
    """Return the base policy that is wrapped, None if there is none."""
    return env.env.base if isinstance(env.env, BasePolicyEnv) else None


def _protocol(training: Training, compiled: bool) -> Training:
    """Set how many episodes evaluations have: fewer where each step goes through Python."""
    if training.choosing:
        training.episodes = SCREENING if compiled else SCREENING_IN_PYTHON
    if not compiled:
        training.fresh_episodes, training.looks = FRESH_EPISODES_IN_PYTHON, LOOKS_IN_PYTHON
    return training


def preset_settings(
    kind: str,
    preset: str,
    task: str | None,
    method: str,
    changes: Mapping[str, Any] | None = None,
    gamma: float = 1.0,
    deterministic: bool = True,
    steps: int = DEEP_STEPS,
    mode: str = "scratch",
) -> QSettings | LDQNSettings:
    """Return the settings of a preset for `"table"` or `"network"`, with `changes` in place of what it says.

    >>> preset_settings("network", "paper", "pong", "lexicographic", {"slack": 1.0}).slack
    1.0
    """
    settings: QSettings | LDQNSettings
    if kind == "table":
        if preset not in FINITE_PRESETS:
            raise UnknownNameError("preset", preset, FINITE_PRESETS)
        settings = FINITE_PRESETS[preset](deterministic, gamma)
    else:
        if preset not in DEEP_PRESETS:
            raise UnknownNameError("preset for networks", preset, DEEP_PRESETS)
        settings = DEEP_PRESETS[preset](task, gamma, method, steps, mode)
    return replace(settings, **{name: _setting(settings, name, value) for name, value in (changes or {}).items()})


def _setting(settings: QSettings | LDQNSettings, name: str, value: Any) -> Any:
    """Return a setting's value, or say that there is no such setting or that it is of another type."""
    types = get_type_hints(type(settings))
    if name not in types:
        raise UnknownNameError("setting", name, types)
    try:
        return converted(value, types[name])
    except TypeError:
        raise SettingError(f"{name} = {value!r} is of the wrong type; give {said(types[name])}") from None


def _about(
    policy: str,
    method: str,
    lam: float | None,
    seed: int,
    preset: str,
    settings: dict[str, Any],
    decisions: Decisions,
) -> dict[str, Any]:
    return {
        "policy": policy,
        "method": method,
        "lambda": lam,
        "seed": seed,
        "preset": preset,
        "settings": files.as_plain(settings),
        "decisions": files.as_plain(asdict(decisions)),
    }
