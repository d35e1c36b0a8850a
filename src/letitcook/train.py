"""The paper's protocol: advance, evaluate greedily, keep the best.

Every 10,000 primitive steps the greedy policy is evaluated; the best one by the method's own objective is the result,
evaluated once more on fresh episodes. The loop yields after each evaluation, so that progress, logs and checkpoints
stay out of it; it can be left there, saved, and taken up again to the same bits.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, get_type_hints

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from letitcook import files
from letitcook.deep.ldqn import LDQN
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.settings import PRESETS as DEEP_PRESETS
from letitcook.deep.settings import LDQNSettings
from letitcook.envs import Task, task_of
from letitcook.errors import NotFiniteError, SettingError, UnknownNameError
from letitcook.finite.q_learning import QLearner
from letitcook.finite.settings import PRESETS as FINITE_PRESETS
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import Tables, can_be_enumerated, enumerate_env
from letitcook.lexicographic import Objective
from letitcook.progress import training_line
from letitcook.runs import Learned, Point
from letitcook.totals import Totals
from letitcook.tracking import Callback
from letitcook.typed import converted, said
from letitcook.waiting import WaitingEnv, horizon_of, waiting_env_of
from letitcook.wmdp import Decisions
from letitcook.wrapping import BasePolicyEnv

METHODS = ("lexicographic", "scalar", "vanilla")
EVERY = 10_000
"""Primitive steps between two evaluations."""
EPISODES = 20
"""Greedy episodes of an evaluation."""
FRESH_EPISODES, FRESH_EPISODES_IN_PYTHON = 1_000, 100
"""Fresh episodes on which the best policy is evaluated at the end; fewer where each step goes through Python."""
FINITE_STEPS, DEEP_STEPS = 10_000_000, 1_000_000
"""Primitive steps of a run in the paper, with tables and with networks."""


class Learner(Protocol):
    """What can be trained."""

    @property
    def steps(self) -> int:
        """Primitive steps so far."""
        ...

    def advance(self, steps: int) -> None:
        """Learn for at least that many more primitive steps."""
        ...

    def greedy_episodes(self, episodes: int, seed: int) -> NDArray[np.float64]:
        """Return task return, length, queries, base queries and the steps in each decision of greedy episodes."""
        ...

    def play(self, policy: Any, episodes: int, seed: int) -> NDArray[np.float64]:
        """Return the same of a policy that was kept."""
        ...

    def policy(self) -> Any:
        """Return the greedy policy as it is now."""
        ...

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended, at least since the first call."""
        ...

    def rates(self) -> dict[str, float]:
        """Return how much it explores and learns now, by Stable-Baselines3's names."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is needed to go on later, to the same bits."""
        ...

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` returned."""
        ...


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


@dataclass
class Training:
    """A run under way: its learner, its curve, and the best policy so far."""

    learner: Learner
    objective: Objective
    seed: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    """Method, λ, seed, preset, settings and decisions, as plain data."""
    base: NetworkPolicy | None = None
    """The network that is wrapped, where there is one; it is saved with the run."""
    every: int = EVERY
    episodes: int = EPISODES
    fresh_episodes: int = FRESH_EPISODES
    curve: list[Point] = field(default_factory=list)
    best: Point | None = None
    policy: Any = None
    seconds: float = 0.0
    callback: Callback | None = None
    """Called after each evaluation; without one, training episodes are not counted."""
    rollout: Totals | None = None
    """The training episodes that ended since the evaluation before the last, where there is a callback."""

    def run(self, steps: int) -> Iterator[Point]:
        """Train up to that many primitive steps in all, and yield each evaluation."""
        while self.learner.steps < steps:
            begun = time.perf_counter()
            before = None if self.callback is None else self.learner.totals()
            due = (self.learner.steps // self.every + 1) * self.every
            self.learner.advance(min(due, steps) - self.learner.steps)
            point = self._point(self.learner.greedy_episodes(self.episodes, self._fresh_seed()))
            self.curve.append(point)
            if self.best is None or self._better(point, self.best):
                self.best, self.policy = point, self.learner.policy()
            self.seconds += time.perf_counter() - begun
            if self.callback is not None and before is not None:
                self.rollout = self.learner.totals().since(before)
                self.callback(point, self)
            yield point

    @property
    def rates(self) -> dict[str, float]:
        """What the learner says of itself, by Stable-Baselines3's names."""
        return self.learner.rates()

    def result(self) -> Learned:
        """Return the best policy, evaluated on fresh episodes."""
        assert self.best is not None, "nothing was evaluated yet"
        played = self.learner.play(self.policy, self.fresh_episodes, self._fresh_seed() + 1)
        fresh = self._point(played)._replace(step=self.best.step)
        return replace(self._learned(self.best, fresh, None), time=tuple(played[:, 4:].mean(axis=0).tolist()))

    def stopped(self) -> Learned:
        """Return the best policy so far, not evaluated again, with all that is needed to go on."""
        assert self.best is not None, "nothing was evaluated yet"
        return self._learned(self.best, self.best, self.learner.arrays())

    def _learned(self, best: Point, fresh: Point, checkpoint: dict[str, NDArray[Any]] | None) -> Learned:
        return Learned(
            policy=self.policy,
            best=best,
            fresh=fresh,
            curve=list(self.curve),
            steps=self.learner.steps,
            seconds=self.seconds,
            about=self.about,
            base=self.base,
            checkpoint=checkpoint,
        )

    def resume(self, run: Learned) -> None:
        """Go on from a run that was stopped."""
        if run.checkpoint is None:
            raise SettingError("this run is finished, there is nothing to resume; train a new one")
        if run.about != self.about:
            changed = sorted(k for k in self.about if self.about[k] != run.about.get(k))
            raise SettingError(f"the stopped run had other settings ({', '.join(changed)}); give it the same to resume")
        self.learner.restore(run.checkpoint)
        self.curve, self.best, self.policy, self.seconds = list(run.curve), run.best, run.policy, run.seconds

    def _point(self, results: NDArray[np.float64]) -> Point:
        task_return, length, queries, base_queries = results[:, :4].mean(axis=0).tolist()
        return Point(self.learner.steps, task_return, length, queries, base_queries)

    def _fresh_seed(self) -> int:
        """Return a seed for evaluation that no other evaluation of this run has, and training never uses."""
        return 1_000_003 * (self.seed + 1) + 2 * self.learner.steps

    def _better(self, a: Point, b: Point) -> bool:
        return self.objective.better((a.task_return, -a.queries), (b.task_return, -b.queries))


def learn(
    waiting_env: gym.Env[Any, Any],
    method: str = "lexicographic",
    lam: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    preset: str = "paper",
    progress: bool = True,
    out: str | Path | None = None,
    callback: Callback | None = None,
) -> Learned:
    """Learn where and how long to wait, from scratch or around a base policy.

    `method` is `"lexicographic"`, `"scalar"` (with λ = `lam`) or `"vanilla"` (no waits). An environment that can be
    enumerated is learned with tables, every other with networks. `preset` is `"paper"` (its hyperparameters) or, with
    tables, `"exact"` (beyond the paper: reaches the exact optimum in a fraction of the steps). `steps` counts primitive
    steps and defaults to the paper's. With `out`, what was good so far is kept there if training has to stop because
    the environment gives something that is not a number. `callback` is called after each evaluation, see `tracking`.

    >>> from letitcook import make
    >>> result = learn(make("cook"), steps=800_000, seed=0, preset="exact", progress=False)
    >>> result.length, result.queries
    (33.0, 25.0)
    """
    if out is not None:
        files.check_output(Path(out))
    training = begin(waiting_env, method, lam, seed, preset)
    training.callback = callback
    goal = check_steps(default_steps(training) if steps is None else steps)
    for _ in shown(training, goal, progress, None if out is None else Path(out)):
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
        with training_line(steps, progress, begun=training.learner.steps) as show:
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


def default_steps(training: Training) -> int:
    """Return the paper's number of steps for this kind of learner."""
    return FINITE_STEPS if training.about["policy"] == "table" else DEEP_STEPS


def begin(
    waiting_env: gym.Env[Any, Any],
    method: str = "lexicographic",
    lam: float | None = None,
    seed: int = 0,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> Training:
    """Make a run ready: with tables if the environment can be enumerated, else with networks."""
    env = waiting_env_of(waiting_env)
    if can_be_enumerated(env):
        horizon = horizon_of(env)
        if horizon is None:
            raise SettingError("this environment has no time limit; make it with max_episode_steps=...")
        training = begin_tables(
            enumerate_env(env), env.decisions, horizon, method, lam, seed, preset, env.gamma, changes
        )
    else:
        training = begin_networks(env, method, lam, seed, preset, changes)
    task = task_of(env)
    mode = "wrap" if isinstance(env.env, BasePolicyEnv) else "scratch"
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
    return Training(learner, objective, seed, about)


def begin_networks(
    env: WaitingEnv,
    method: str,
    lam: float | None,
    seed: int,
    preset: str,
    changes: Mapping[str, Any] | None = None,
) -> Training:
    """Make a run with networks ready: in the compiled loop if it knows the task, else in Python."""
    task, wrapped = task_of(env), env.env if isinstance(env.env, BasePolicyEnv) else None
    base = wrapped.base if wrapped is not None and isinstance(wrapped.base, NetworkPolicy) else None
    objective, decisions = objective_of(method, lam), decisions_of(method, env.decisions)
    settings = preset_settings("network", preset, None if task is None else task.name, method, changes, env.gamma)
    assert isinstance(settings, LDQNSettings)
    compiled = task is not None and (wrapped is None or base is not None)
    world: Task | WaitingEnv = task if compiled and task is not None else env
    learner = LDQN(world, decisions, objective, settings, check_seed(seed), base if compiled else None)
    about = _about("network", method, lam, seed, preset, asdict(settings), decisions)
    fresh = FRESH_EPISODES if compiled else FRESH_EPISODES_IN_PYTHON
    return Training(learner, objective, seed, about, base, fresh_episodes=fresh)


def preset_settings(
    kind: str,
    preset: str,
    task: str | None,
    method: str,
    changes: Mapping[str, Any] | None = None,
    gamma: float = 1.0,
    deterministic: bool = True,
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
        settings = DEEP_PRESETS[preset](task, gamma, method)
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


def check_seed(seed: int) -> int:
    """Return a seed, or say what is wrong with it."""
    if seed < 0:
        raise SettingError(f"seed = {seed} is not allowed; give a whole number of at least 0")
    return seed


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
