"""Episodes to look at: every primitive step of an episode as plain data, also the steps inside waits.

A waiting environment shows the states between two decisions to nobody; a recorder inside it keeps them. `scene` is
what never changes in a task, `trace` is an episode, `episodes_of` are the episodes of a sweep that are worth seeing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
import polars as pl
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, Episode, Policy
from letitcook.errors import SettingError
from letitcook.evaluation.interleaving import Interleaved, interleave
from letitcook.evaluation.rollout import rollout
from letitcook.experiments.jobs import world_of
from letitcook.experiments.results import Results
from letitcook.finite.plan import plan_tables
from letitcook.tasks import Task, coffee, coffee_objects, job, kitchen, mountain_car, pong, task_named, task_names
from letitcook.training.run import load
from letitcook.training.spec import objective_of
from letitcook.wrappers.waiting import WaitingEnv
from letitcook.wrappers.wrap import wrap


@dataclass(frozen=True)
class Query:
    """One decision of the policy."""

    time: int
    """Primitive steps before it."""
    label: str
    """What was decided: `north`, `wait 15`, or `base → north` where a base policy was queried."""
    steps: int
    """Primitive steps that it took; fewer than a wait requested where the episode ended first."""
    wait: bool
    """Whether it was a wait, of one step or of more."""
    work: str = ""
    """Other work that was done in the wait, where there was any."""


@dataclass(frozen=True)
class Trace:
    """An episode, step by step."""

    task: str
    mode: str
    states: list[dict[str, Any]]
    """Drawings of the world as JSON-able data, one before the first step and one after each."""
    queries: list[Query]
    task_return: float
    length: int
    frames: list[NDArray[np.uint8]]
    """Pictures `(height, width, 3)`, one for each state; empty unless they were requested."""
    terminated: bool


@dataclass(frozen=True)
class NamedTrace:
    """An episode and whose it is.

    The names: `exact`, `lexicographic`, `vanilla`, `exact wrapped`, `wrapped`, `interleaved`, `base`.
    """

    name: str
    source: str
    """Where the policy comes from: a run's id, `plan`, or `handwritten`."""
    trace: Trace


def trace(
    task: str,
    mode: str,
    policy: Policy,
    base: Policy | None = None,
    seed: int = 0,
    frames: bool = False,
    durations: Sequence[int] | None = None,
) -> Trace:
    """Play one episode of a task and keep every primitive step of it.

    `mode` is `"scratch"`, or `"wrap"` around `base` (the task's handwritten policy if None). `durations` replaces the
    task's own. The same policy and seed give the same trace.

    >>> from letitcook import make, plan
    >>> episode = trace("cook", "scratch", plan(make("cook")).policy)
    >>> episode.length, len(episode.queries), len(episode.states)
    (33, 25, 34)
    >>> [query.label for query in episode.queries if query.wait]
    ['wait 5', 'wait 5']
    """
    return _recorded(task, mode, lambda env: rollout(env, policy, seed), base, frames, durations)


def interleaved_trace(task: str, policy: Policy, seed: int = 0, frames: bool = False) -> Trace:
    """Play one episode around a task's handwritten base policy, with the task's other work in the waits.

    >>> episode = interleaved_trace("coffee", exact_policy("coffee", "wrap"))
    >>> episode.length, [query.work for query in episode.queries if query.work]
    (45, ['fetch-sugar'])
    """
    auxiliary = task_named(task).auxiliary
    if auxiliary is None:
        raise SettingError(f"{task} has no other work for its waits")
    return _recorded(task, "wrap", lambda env: interleave(env, policy, auxiliary(), seed), None, frames, None)


def _recorded(
    task: str,
    mode: str,
    play: Callable[[WaitingEnv], Episode],
    base: Policy | None,
    frames: bool,
    durations: Sequence[int] | None,
) -> Trace:
    about = task_named(task)
    recorder = _Recorder(gym.make(about.env_id, render_mode="rgb_array" if frames else None), about, frames)
    env = _waiting(recorder, about, mode, base, about.durations if durations is None else durations)
    episode = play(env)
    env.close()
    actions = [about.actions[a] for a in recorder.actions]
    return Trace(
        task=task,
        mode=mode,
        states=recorder.states,
        queries=list(_queries(episode, env.decisions, mode, actions)),
        task_return=episode.task_return,
        length=episode.length,
        frames=recorder.frames,
        terminated=episode.terminated,
    )


def _waiting(
    env: gym.Env[Any, Any], task: Task, mode: str, base: Policy | None, durations: Sequence[int]
) -> WaitingEnv:
    if mode == "scratch":
        return WaitingEnv(env, task.wait, durations)
    if mode != "wrap":
        raise SettingError(f"mode {mode!r} is not known; use 'scratch' or 'wrap'")
    if base is None and task.base_policy is not None:
        base = task.base_policy()
    if base is None:
        raise SettingError(f"{task.name} has no handwritten base policy; give the one that was wrapped")
    return wrap(env, base, task.wait, durations, cost="decisions")


def _queries(episode: Episode, decisions: Decisions, mode: str, actions: Sequence[str]) -> Iterator[Query]:
    """Yield the decisions with the times at which they were due; `actions` are those done in each step."""
    fills: dict[int, str] = {}
    for fill in episode.fills if isinstance(episode, Interleaved) else ():
        fills[fill.time] = f"{fills[fill.time]}, {fill.task}" if fill.time in fills else fill.task
    time = 0
    for decision, steps in zip(episode.decisions, episode.elapsed, strict=True):
        wait = int(decisions.actions_of[decision]) == decisions.wait
        label = f"wait {decisions.durations_of[decision]}" if wait else decisions.label(decision)
        if mode == "wrap" and not wait:
            label = f"{label} → {actions[time]}"
        yield Query(time, label, steps, wait, fills.get(time, ""))
        time += steps


class _Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps the states, the primitive actions and, if requested, the pictures of an episode."""

    def __init__(self, env: gym.Env[Any, Any], task: Task, pictures: bool) -> None:
        super().__init__(env)
        self._task = task
        self._pictures = pictures
        self.states: list[dict[str, Any]] = []
        self.actions: list[int] = []
        self.frames: list[NDArray[np.uint8]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, and forget the one before."""
        result = self.env.reset(seed=seed, options=options)
        self.states, self.actions, self.frames = [], [], []
        self._keep()
        return result

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one primitive action, and keep what came of it."""
        result = self.env.step(action)
        self.actions.append(int(action))
        self._keep()
        return result

    def _keep(self) -> None:
        inside: Any = self.env.unwrapped
        self.states.append(drawing(self._task.name, inside.state, self.actions[-1] if self.actions else None))
        if self._pictures:
            self.frames.append(np.asarray(self.env.render(), dtype=np.uint8))


def drawing(task: str, state: Any, action: int | None) -> dict[str, Any]:
    """Return what is needed to draw a state: its numbers, and the action that led to it (None at the start).

    In Pong that is the action which was executed; with sticky actions it need not be the one that was chosen.

    >>> drawing("cook", kitchen.START, action=None)
    {'x': 1, 'y': 1, 'facing': 0, 'held': 0, 'onions': 0, 'left': 0, 'delivered': 0, 'action': None}
    >>> drawing("mountain-car", np.array([-0.51, 0.01]), action=2)
    {'x': -0.51, 'action': 2}
    """
    if task == "pong":
        numbers = {"agent": pong.AGENT, "opponent": pong.OPPONENT, "x": pong.X, "y": pong.Y}
        executed = None if action is None else int(state[pong.LAST_ACTION])
        return {**{name: _short(state[i]) for name, i in numbers.items()}, "action": executed}
    if task == "cartpole":
        return {"x": _short(state[0]), "theta": _short(state[2]), "action": action}
    if task == "mountain-car":
        return {"x": _short(state[0]), "action": action}
    return {**{name: int(value) for name, value in state._asdict().items()}, "action": action}


def _short(value: float) -> float:
    """Round to what a picture can show."""
    return round(float(value), 4)


def scene(task: str) -> dict[str, Any]:
    """Return what never changes in a task: its kind of picture, its layout, its clocks, its actions.

    >>> scene("cook-longer")["cook_time"], scene("coffee")["layout"][4]
    (36, 'S........#')
    """
    about = task_named(task)
    same = {"actions": list(about.actions), "wait": about.wait, "horizon": about.horizon, "summary": about.summary}
    if task == "pong":
        size = {"width": pong.WIDTH, "height": pong.HEIGHT, "half_paddle": pong.HALF_PADDLE}
        return {"kind": "pong", **size, **same}
    if task == "cartpole":
        return {"kind": "cartpole", **same}
    if task == "mountain-car":
        ends = {"left_end": mountain_car.LEFT_END, "right_end": mountain_car.RIGHT_END, "goal": mountain_car.GOAL}
        return {"kind": "mountain-car", **ends, **same}
    same["hidden"] = bool(about.kwargs.get("hidden", task == job.TASK.name))
    if task == job.TASK.name:
        return {"kind": "job", **same}
    if about.entry_point == coffee.TASK.entry_point:
        clocks = {"hot": coffee_objects.HOT, "ready": coffee_objects.READY}
        return {"kind": "coffee", "layout": list(coffee.LAYOUT), **clocks, **same}
    settings: Any = gym.make(about.env_id).unwrapped
    clocks = {"cook_time": settings.cook_time, "soups": settings.soups}
    return {"kind": "cook", "layout": list(kitchen.LAYOUT), **clocks, **same}


LEARNED = {
    "lexicographic": ("lexicographic", "scratch"),
    "vanilla": ("vanilla", "scratch"),
    "wrapped": ("lexicographic", "wrap"),
}
"""Names of learned episodes: method and mode of the runs they are taken from."""


def episodes_of(results: Results, kept: Sequence[NamedTrace] = (), seed: int = 0) -> list[NamedTrace]:
    """Return the episodes of a sweep that are worth seeing, task by task.

    Learned ones come from the best run of each method (by task return, then queries); finite tasks add the exact
    optimum, from scratch and around the base policy; handwritten base policies are shown as they are. Of runs that are
    not in the sweep's folder, the episodes are those that were `kept`, if any.
    """
    seen = results.runs["task"].unique().to_list()
    known = {(named.name, named.source): named for named in kept}
    return [named for task in task_names() if task in seen for named in _episodes_of(results, task, known, seed)]


def traces_as_data(traces: Sequence[NamedTrace]) -> list[dict[str, Any]]:
    """Return episodes as plain data, without pictures."""
    return [asdict(replace(named, trace=replace(named.trace, frames=[]))) for named in traces]


def traces_of_data(data: Sequence[dict[str, Any]]) -> list[NamedTrace]:
    """Return the episodes that `traces_as_data` described.

    >>> named = NamedTrace("exact", "plan", trace("cook", "scratch", exact_policy("cook", "scratch")))
    >>> traces_of_data(traces_as_data([named])) == [named]
    True
    """
    return [
        NamedTrace(
            held["name"],
            held["source"],
            Trace(**{**held["trace"], "queries": [Query(**query) for query in held["trace"]["queries"]]}),
        )
        for held in data
    ]


Kept = dict[tuple[str, str], NamedTrace]
"""Episodes by name and source."""


def _episodes_of(results: Results, task: str, kept: Kept, seed: int) -> Iterator[NamedTrace]:
    handwritten = task_named(task).base_policy
    exact = task_named(task).finite
    if exact:
        yield NamedTrace("exact", "plan", trace(task, "scratch", exact_policy(task, "scratch"), seed=seed))
    for name in ("lexicographic", "vanilla"):
        yield from _learned(results, task, name, kept, seed)
    if exact and handwritten is not None:
        yield NamedTrace("exact wrapped", "plan", trace(task, "wrap", exact_policy(task, "wrap"), seed=seed))
    yield from _learned(results, task, "wrapped", kept, seed)
    if exact and task_named(task).auxiliary is not None:
        yield NamedTrace("interleaved", "plan", interleaved_trace(task, exact_policy(task, "wrap"), seed))
    if handwritten is not None:
        yield NamedTrace("base", "handwritten", trace(task, "scratch", handwritten(), seed=seed))


@cache
def exact_policy(task: str, mode: str) -> Policy:
    """Return the lexicographically best policy of a finite task.

    >>> trace("cook", "wrap", exact_policy("cook", "wrap")).length
    53
    """
    return plan_tables(*world_of(task, mode), objective_of("lexicographic")).policy


def _learned(results: Results, task: str, name: str, kept: Kept, seed: int) -> Iterator[NamedTrace]:
    """Yield the episode of the best run of a method whose policy, or an episode of it, is there."""
    method, mode = LEARNED[name]
    chosen = results.runs.filter(
        pl.col("task") == task, pl.col("method") == method, pl.col("mode") == mode, pl.col("variant") == ""
    ).sort("task_return", "queries", "seed", descending=[True, False, False])
    for run_id in chosen["id"]:
        if (name, run_id) in kept:
            yield kept[name, run_id]
            return
        if (results.folder / "runs" / run_id).is_dir():
            run = load(results.folder / "runs" / run_id)
            yield NamedTrace(name, run_id, trace(task, mode, run.policy, run.base, seed))
            return
