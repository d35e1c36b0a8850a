"""The paper's protocol: advance, evaluate greedily, keep the best.

Every 10,000 primitive steps the greedy policy is evaluated; the best one by the method's own objective is the result.
The loop yields after each evaluation, so that progress, logs and checkpoints stay out of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from letitcook import files
from letitcook.envs import task_of
from letitcook.errors import FileFormatError, SettingError, UnknownNameError
from letitcook.finite.q_learning import PRESETS, QLearner, TablePolicy
from letitcook.finite.tables import Tables, enumerate_env
from letitcook.lexicographic import Objective
from letitcook.progress import training_line
from letitcook.waiting import horizon_of, waiting_env_of
from letitcook.wmdp import Decisions, Policy
from letitcook.wrapping import BasePolicyEnv

METHODS = ("lexicographic", "scalar", "vanilla")
EVERY = 10_000
"""Primitive steps between two evaluations."""
EPISODES = 20
"""Greedy episodes of an evaluation."""
STEPS = 10_000_000
"""Primitive steps of a tabular run in the paper."""


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
        """Return task return, length, queries and base queries of greedy episodes."""
        ...

    def policy(self) -> Any:
        """Return the greedy policy as it is now."""
        ...


class Point(NamedTuple):
    """One evaluation on the learning curve: means over its episodes."""

    step: int
    task_return: float
    length: float
    queries: float
    base_queries: float


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
    every: int = EVERY
    episodes: int = EPISODES
    curve: list[Point] = field(default_factory=list)
    best: Point | None = None
    policy: Any = None

    def run(self, steps: int) -> Iterator[Point]:
        """Train up to that many primitive steps in all, and yield each evaluation."""
        while self.learner.steps < steps:
            due = (self.learner.steps // self.every + 1) * self.every
            self.learner.advance(min(due, steps) - self.learner.steps)
            point = self.evaluated()
            self.curve.append(point)
            if self.best is None or self._better(point, self.best):
                self.best, self.policy = point, self.learner.policy()
            yield point

    def evaluated(self) -> Point:
        """Evaluate the greedy policy as it is now."""
        results = self.learner.greedy_episodes(self.episodes, seed=1_000_003 * (self.seed + 1) + self.learner.steps)
        task_return, length, queries, base_queries = results.mean(axis=0).tolist()
        return Point(self.learner.steps, task_return, length, queries, base_queries)

    def _better(self, a: Point, b: Point) -> bool:
        return self.objective.better((a.task_return, -a.queries), (b.task_return, -b.queries))


@dataclass(frozen=True)
class Learned:
    """What came of a run: the best policy, its numbers, and the curve."""

    policy: Policy
    best: Point
    curve: list[Point]
    steps: int
    seconds: float
    about: dict[str, Any]
    """Method, λ, seed, preset, settings and decisions, as plain data."""

    @property
    def length(self) -> float:
        """Mean primitive steps of the best policy's episodes."""
        return self.best.length

    @property
    def queries(self) -> float:
        """Mean queries of the best policy."""
        return self.best.queries

    @property
    def task_return(self) -> float:
        """Mean task return of the best policy."""
        return self.best.task_return

    def save(self, path: str | Path) -> Path:
        """Write the run as a folder: manifest, policy, learning curve."""
        folder = files.check_output(Path(path))
        files.write_folder(folder, self._write)
        return folder

    def _write(self, folder: Path) -> None:
        files.write_arrays(folder / "policy.safetensors", self.policy.arrays())  # type: ignore[attr-defined]
        curve = np.array(self.curve, dtype=np.float64)
        files.write_arrays(folder / "curve.safetensors", {n: curve[:, i] for i, n in enumerate(Point._fields)})
        content = {"about": self.about, "best": self.best._asdict(), "steps": self.steps, "seconds": self.seconds}
        files.write_manifest(folder, "run", content)


def load(path: str | Path) -> Learned:
    """Read a run that was saved.

    >>> import tempfile
    >>> from letitcook import learn, make
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = learn(make("cook", mode="wrap"), steps=20_000, progress=False).save(place + "/run")
    ...     run = load(folder)
    >>> run.about["method"], len(run.curve)
    ('lexicographic', 2)
    """
    folder = Path(path)
    manifest = files.read_manifest(folder, "run")
    curve = files.read_arrays(folder / "curve.safetensors")
    arrays = files.read_arrays(folder / "policy.safetensors")
    try:
        points = [Point(int(row[0]), *row[1:]) for row in zip(*(curve[n].tolist() for n in Point._fields), strict=True)]
        return Learned(
            policy=POLICIES[manifest["about"]["policy"]].from_arrays(arrays),
            best=Point(**manifest["best"]),
            curve=points,
            steps=manifest["steps"],
            seconds=manifest["seconds"],
            about=manifest["about"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{folder} is damaged or incomplete ({error!r}); train it anew") from error


POLICIES: dict[str, Any] = {"table": TablePolicy}
"""Policies that can be saved, by the name in the manifest."""


def learn(
    waiting_env: gym.Env[Any, Any],
    method: str = "lexicographic",
    lam: float | None = None,
    steps: int = STEPS,
    seed: int = 0,
    preset: str = "paper",
    progress: bool = True,
) -> Learned:
    """Learn where and how long to wait in a finite environment, from scratch or around a base policy.

    `method` is `"lexicographic"`, `"scalar"` (with λ = `lam`) or `"vanilla"` (no waits). `preset` is `"paper"` (its
    hyperparameters) or `"exact"` (beyond the paper: reaches the exact optimum in a fraction of the steps).

    >>> from letitcook import make
    >>> result = learn(make("cook"), steps=800_000, seed=0, preset="exact", progress=False)
    >>> result.length, result.queries
    (33.0, 25.0)
    """
    env = waiting_env_of(waiting_env)
    horizon = horizon_of(env)
    if horizon is None:
        raise SettingError("this environment has no time limit; make it with max_episode_steps=...")
    learned = learn_tables(
        enumerate_env(env), env.decisions, horizon, method, lam, steps, seed, preset, env.gamma, progress
    )
    task = task_of(env)
    mode = "wrap" if isinstance(env.env, BasePolicyEnv) else "scratch"
    learned.about.update(task=None if task is None else task.name, mode=mode)
    return learned


def learn_tables(
    tables: Tables,
    decisions: Decisions,
    horizon: int,
    method: str,
    lam: float | None,
    steps: int,
    seed: int,
    preset: str,
    gamma: float = 1.0,
    progress: bool = False,
) -> Learned:
    """Run the paper's protocol on transition tables."""
    if steps < 1:
        raise SettingError(f"steps = {steps} is not allowed; train for at least 1 primitive step")
    if seed < 0:
        raise SettingError(f"seed = {seed} is not allowed; give a whole number of at least 0")
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    objective = objective_of(method, lam)
    settings = PRESETS[preset](tables.deterministic, gamma)
    learner = QLearner(tables, decisions_of(method, decisions), horizon, objective, settings, seed)
    training = Training(learner, objective, seed)
    begun = time.perf_counter()
    with training_line(steps, progress) as show:
        for point in training.run(steps):
            show(point.step, point, training.best or point)
    assert training.best is not None
    about = {
        "method": method,
        "lambda": lam,
        "seed": seed,
        "preset": preset,
        "settings": asdict(settings),
        "horizon": horizon,
        "decisions": asdict(decisions),
        "policy": "table",
    }
    seconds = time.perf_counter() - begun
    return Learned(training.policy, training.best, training.curve, learner.steps, seconds, about)
