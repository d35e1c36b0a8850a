"""The paper's protocol: advance, evaluate greedily, keep the best.

Every 10,000 primitive steps the greedy policy is evaluated; the best one by the method's own objective is the result,
evaluated once more on fresh episodes. A learner that offers policies of several trade-offs is asked for all of them;
these are candidates, and the result is chosen among them by `choice.py`. The loop yields after each evaluation, so that
progress, logs and checkpoints stay out of it; it can be left there, saved, and taken up again to the same bits.
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
from letitcook.choice import NONE, Candidate, Tolerance, choose, front, promising
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
from letitcook.runs import Learned, Point, candidate_arrays, candidates_of
from letitcook.totals import Totals
from letitcook.tracking import Callback
from letitcook.typed import converted, said
from letitcook.waiting import WaitingEnv, horizon_of, waiting_env_of
from letitcook.waiting_vector import WaitingVectorEnv
from letitcook.wmdp import Decisions
from letitcook.wrapping import BasePolicyEnv

METHODS = ("lexicographic", "scalar", "vanilla")
EVERY = 10_000
"""Primitive steps between two evaluations."""
EPISODES = 20
"""Greedy episodes of an evaluation."""
FRESH_EPISODES, FRESH_EPISODES_IN_PYTHON = 1_000, 100
"""Fresh episodes on which the best policy is evaluated at the end; fewer where each step goes through Python."""
SCREENING, SCREENING_IN_PYTHON = 50, 10
"""Episodes that every candidate lives, where there are several."""
LOOKS, LOOKS_IN_PYTHON = (100, 100, 200, 400, 800), (20, 20, 40, 80)
"""Episodes of each look at a candidate that may be chosen."""
CANDIDATES = 24
"""Candidates with few queries that are kept."""
FINITE_STEPS, DEEP_STEPS, BEST_STEPS = 10_000_000, 1_000_000, 200_000
"""Primitive steps of a run in the paper, with tables and with networks, and of one with preset `"best"`."""


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

    def play(self, policy: Any, episodes: int, seed: int, apart: bool = False) -> NDArray[np.float64]:
        """Return the same of a policy that was kept; `apart` gives each episode chances of its own."""
        ...

    def family(self) -> list[tuple[float, Any]]:
        """Return log10 λ and the greedy policy of each trade-off that is offered; nothing if there is one policy."""
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
    steps: int = DEEP_STEPS
    """Primitive steps that the run is to have."""
    every: int = EVERY
    episodes: int = EPISODES
    fresh_episodes: int = FRESH_EPISODES
    looks: tuple[int, ...] = LOOKS
    """Episodes of each look at a candidate, where there are several."""
    tolerance: Tolerance = NONE
    """Loss of mean task return that is accepted for fewer queries, beside what cannot be measured."""
    candidates: list[Candidate] = field(default_factory=list)
    evaluation_episodes: int = 0
    """Episodes that were played to evaluate and to choose."""
    curve: list[Point] = field(default_factory=list)
    best: Point | None = None
    policy: Any = None
    seconds: float = 0.0
    callback: Callback | None = None
    """Called after each evaluation; without one, training episodes are not counted."""
    chosen: dict[str, Any] | None = None
    """How the policy was chosen, where there were several candidates."""
    rollout: Totals | None = None
    """The training episodes that ended since the evaluation before the last, where there is a callback."""

    def run(self, steps: int) -> Iterator[Point]:
        """Train up to that many primitive steps in all, and yield each evaluation."""
        while self.learner.steps < steps:
            begun = time.perf_counter()
            before = None if self.callback is None else self.learner.totals()
            due = (self.learner.steps // self.every + 1) * self.every
            self.learner.advance(min(due, steps) - self.learner.steps)
            point = self._evaluation()
            self.curve.append(point)
            self.seconds += time.perf_counter() - begun
            if self.callback is not None and before is not None:
                self.rollout = self.learner.totals().since(before)
                self.callback(point, self)
            yield point

    @property
    def rates(self) -> dict[str, float]:
        """What the learner says of itself, by Stable-Baselines3's names."""
        return self.learner.rates()

    def _evaluation(self) -> Point:
        """Evaluate the greedy policy, or the best of those that are offered, and keep it if it is the best so far."""
        family = self.learner.family()
        if not family:
            point, policy = self._point(self._played(None, self.episodes, self._fresh_seed())), None
        else:
            new = [self._candidate(policy, z) for z, policy in family]
            self.candidates = promising([*self.candidates, *new], CANDIDATES, self.tolerance)
            top = max(new, key=lambda c: self.objective.of(c.task_return, -c.queries).tolist())
            point, policy = self._point(top.screening), top.policy
        if self.best is None or self._better(point, self.best):
            self.best, self.policy = point, policy or self.learner.policy()
        return point

    def _candidate(self, policy: Any, z: float | None, step: int | None = None) -> Candidate:
        rows = self._played(policy, self.episodes, self._common_seed(0), apart=True)
        return Candidate(self.learner.steps if step is None else step, z, policy, rows)

    def _played(self, policy: Any, episodes: int, seed: int, apart: bool = False) -> NDArray[np.float64]:
        self.evaluation_episodes += episodes
        if policy is None:
            return self.learner.greedy_episodes(episodes, seed)
        return self.learner.play(policy, episodes, seed, apart) if apart else self.learner.play(policy, episodes, seed)

    def _choose(self) -> None:
        """Settle on one of the candidates; around a base policy, asking it at every step is one of them."""
        candidates = list(self.candidates)
        if self.about.get("mode") == "wrap":
            candidates.append(self._candidate(always_base(candidates[0].policy), None, step=0))
        choice = choose(
            candidates,
            lambda policy, look, episodes: self._played(policy, episodes, self._common_seed(1 + look), apart=True),
            self.looks,
            self.tolerance,
        )
        chosen = choice.candidate
        rows = np.concatenate([chosen.screening, *chosen.looks])
        self.policy, self.best = chosen.policy, self._point(rows)._replace(step=chosen.step)
        self.chosen = {
            "log10_lambda": chosen.trade_off,
            "candidates": len(candidates),
            "tested": choice.tested,
            "reference_step": choice.reference.step,
            "base_itself": chosen.trade_off is None,
            "tolerance": self.tolerance._asdict(),
        }

    def result(self) -> Learned:
        """Return the best policy, evaluated on fresh episodes."""
        assert self.best is not None, "nothing was evaluated yet"
        begun = time.perf_counter()
        if self.candidates:
            self._choose()
        played = self._played(self.policy, self.fresh_episodes, self._fresh_seed() + 1)
        fresh = self._point(played)._replace(step=self.best.step)
        self.seconds += time.perf_counter() - begun
        return replace(self._learned(self.best, fresh, None), time=tuple(played[:, 4:].mean(axis=0).tolist()))

    def stopped(self) -> Learned:
        """Return the best policy so far, not evaluated again, with all that is needed to go on."""
        assert self.best is not None, "nothing was evaluated yet"
        return self._learned(self.best, self.best, {**self.learner.arrays(), **candidate_arrays(self.candidates)})

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
            evaluation_episodes=self.evaluation_episodes,
            choice=self.chosen,
            front=tuple(front(self.candidates)) if checkpoint is None else (),
        )

    def resume(self, run: Learned) -> None:
        """Go on from a run that was stopped."""
        if run.checkpoint is None:
            raise SettingError("this run is finished, there is nothing to resume; train a new one")
        if run.about != self.about:
            changed = sorted(k for k in self.about if self.about[k] != run.about.get(k))
            raise SettingError(f"the stopped run had other settings ({', '.join(changed)}); give it the same to resume")
        self.learner.restore(run.checkpoint)
        self.candidates = candidates_of(run.checkpoint)
        self.evaluation_episodes = run.evaluation_episodes
        self.curve, self.best, self.policy, self.seconds = list(run.curve), run.best, run.policy, run.seconds

    def _point(self, results: NDArray[np.float64]) -> Point:
        task_return, length, queries, base_queries = results[:, :4].mean(axis=0).tolist()
        return Point(self.learner.steps, task_return, length, queries, base_queries)

    def _fresh_seed(self) -> int:
        """Return a seed for evaluation that no other evaluation of this run has, and training never uses."""
        return 1_000_003 * (self.seed + 1) + 2 * self.learner.steps

    def _common_seed(self, look: int) -> int:
        """Return the seed of episodes that all candidates of this run live: the screening's, and each look's."""
        return 7_000_003 * (self.seed + 1) + look

    def _better(self, a: Point, b: Point) -> bool:
        return self.objective.better((a.task_return, -a.queries), (b.task_return, -b.queries))


def always_base(like: NetworkPolicy) -> NetworkPolicy:
    """Return the policy that asks the base at every step, in the form of another policy."""
    return NetworkPolicy(np.zeros_like(like.networks), like.sizes, 0.0, like.space, like.inputs)


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
        return _begin_vector(waiting_env, method, lam, seed, preset or "best", changes, steps)
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
    return Training(learner, objective, seed, about, steps=FINITE_STEPS)


def begin_networks(
    env: WaitingEnv,
    method: str,
    lam: float | None,
    seed: int,
    preset: str,
    changes: Mapping[str, Any] | None = None,
    steps: int | None = None,
) -> Training:
    """Make a run with networks ready: in the compiled loop if it knows the task, else in Python."""
    task, wrapped = task_of(env), env.env if isinstance(env.env, BasePolicyEnv) else None
    base = wrapped.base if wrapped is not None and isinstance(wrapped.base, NetworkPolicy) else None
    objective, decisions = objective_of(method, lam), decisions_of(method, env.decisions)
    goal = (BEST_STEPS if preset == "best" else DEEP_STEPS) if steps is None else steps
    name = None if task is None else task.name
    mode = "scratch" if wrapped is None else "wrap"
    settings = preset_settings("network", preset, name, method, changes, env.gamma, steps=goal, mode=mode)
    assert isinstance(settings, LDQNSettings)
    compiled = task is not None and (wrapped is None or base is not None)
    # An environment of its own around the same world: the learner may discount where the user does not.
    own = env.with_discount(settings.gamma, settings.sub_waits > 0)
    world: Task | WaitingEnv = task if compiled and task is not None else own
    learner = LDQN(world, decisions, objective, settings, check_seed(seed), base if compiled else None)
    about = _about("network", method, lam, seed, preset, asdict(settings), decisions)
    return _protocol(Training(learner, objective, seed, about, base, steps=goal), settings, compiled)


def _begin_vector(
    env: WaitingVectorEnv,
    method: str,
    lam: float | None,
    seed: int,
    preset: str,
    changes: Mapping[str, Any] | None,
    steps: int | None,
) -> Training:
    """Make a run with networks ready in a vector environment."""
    objective, decisions = objective_of(method, lam), decisions_of(method, env.decisions)
    goal = check_steps(BEST_STEPS if steps is None else steps)
    settings = preset_settings("network", preset, None, method, changes, env.gamma, steps=goal)
    assert isinstance(settings, LDQNSettings)
    learner = LDQN(env.with_discount(settings.gamma), decisions, objective, settings, check_seed(seed))
    about = _about("network", method, lam, seed, preset, asdict(settings), decisions)
    about.update(task=None, mode="scratch" if env.base is None else "wrap")
    return _protocol(Training(learner, objective, seed, about, steps=goal), settings, compiled=False)


def _protocol(training: Training, settings: LDQNSettings, compiled: bool) -> Training:
    """Set how many episodes evaluations have: fewer where each step goes through Python."""
    if settings.trade_offs is not None:
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
