"""Other work inside the waits.

When a waiting policy commits to N steps, the longest unfinished auxiliary task that is predicted to take at most N is
done in them; what remains of the N steps is waited out, and the policy goes on as if it had waited all along. An
auxiliary task starts where it is called and comes back to the same position and orientation. That is the paper's rule
and the default. Three options go further:

- `pack`: several tasks in one wait, those that fill most of it;
- `requery`: the policy is queried again right after the work, so that a task need not come back (`returns = False`);
- `strict=False`: a task that breaks its word is noted in the episode's fills instead of ending it with an error.

Under all of them the policy is queried again after N steps at the latest: other work never delays it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import gymnasium as gym
import numpy as np

from letitcook.core.decisions import Episode, Policy
from letitcook.errors import ErrandError, SettingError
from letitcook.tasks.task import AuxiliaryTask
from letitcook.wrappers.waiting import WaitingEnv, waiting_env_of


@dataclass(frozen=True)
class Errand:
    """An auxiliary task from plain functions of the observation.

    >>> push = Errand(
    ...     name="push twice",
    ...     do=lambda observation: [2, 2],
    ...     duration=lambda observation: 2,
    ...     finished=lambda observation: observation[1] > 0,
    ...     undisturbed=lambda before, after: abs(after[0] - before[0]) < 0.1,
    ... )
    >>> push.actions([-0.5, 0.0]), push.duration([-0.5, 0.0]), push.finished([-0.5, 0.01]), push.returns
    ([2, 2], 2, True, True)
    """

    name: str
    do: Policy | Callable[[Any], Sequence[Any]]
    """The primitive actions from here; or a policy, followed until it is `finished` and all is `undisturbed`."""
    duration: Callable[[Any], int]
    """Predicted steps from here."""
    finished: Callable[[Any], bool]
    """Whether there is nothing to do here."""
    undisturbed: Callable[[Any, Any], bool]
    """Whether the waiting task is left alone, of the observations before and after; checked whenever it was done."""
    returns: bool = True
    """Whether it ends where it began; if not, it needs `requery`."""

    def actions(self, observation: Any) -> Sequence[Any] | Policy:
        """Return the actions from here, or the policy that chooses them."""
        return self.do if isinstance(self.do, Policy) else self.do(observation)


@runtime_checkable
class Resumable(Protocol):
    """A policy whose state counts on the whole of a wait, and can be told that it ended early."""

    def ended_early(self, state: Any, steps: int) -> Any:
        """Return the state that `state` becomes when the wait ended `steps` before its time."""
        ...


@dataclass(frozen=True)
class Fill:
    """A piece of other work in a wait; a wait with several has as many fills of the same `time`."""

    time: int
    """Primitive step at which the wait began."""
    wait: int
    """Steps that the policy had committed to."""
    task: str
    """Name of the auxiliary task."""
    steps: int
    """Steps that it took."""
    begun: int
    """Primitive step at which the work began."""
    predicted: int
    """Steps that it was predicted to take."""
    late: bool
    """Whether it was not over when the predicted steps had passed."""
    finished: bool
    """Whether the task says that it is finished."""
    undisturbed: bool | None
    """Whether the waiting task was left alone; None where the episode ended before the work did, or with it."""


@dataclass
class Interleaved(Episode):
    """An episode with other work in its waits.

    >>> from letitcook import make, plan, task_named
    >>> coffee = make("coffee", mode="wrap")
    >>> episode = interleave(coffee, plan(coffee).policy, task_named("coffee").auxiliary())
    >>> episode.length, [fill.task for fill in episode.fills]
    (45, ['fetch-sugar'])
    """

    fills: list[Fill] = field(default_factory=list)


def interleave(
    waiting_env: gym.Env[Any, Any],
    policy: Policy,
    tasks: Sequence[AuxiliaryTask],
    seed: int | None = None,
    *,
    pack: bool = False,
    requery: bool = False,
    strict: bool = True,
) -> Interleaved:
    """Play one episode of a waiting policy with auxiliary tasks in its waits.

    `pack` does as many tasks in a wait as fill it best, instead of one. `requery` asks the policy again right after
    the work, instead of waiting out the rest of the wait; it must be able to go on from there. `strict` raises
    `ErrandError` where a task overruns its prediction or disturbs the waiting task, else the fill says so.

    >>> from letitcook import make, plan, task_named
    >>> env = make("coffee", mode="wrap")
    >>> episode = interleave(env, plan(env).policy, task_named("coffee").auxiliary())
    >>> episode.length, [(fill.task, fill.wait, fill.steps) for fill in episode.fills]
    (45, [('fetch-sugar', 15, 15)])
    """
    env = waiting_env_of(waiting_env)
    if not requery:
        _check_that_all_return(tasks)
    episode = Interleaved()
    observation, _ = env.reset(seed=seed)
    state, start = None, True
    while not (episode.terminated or episode.truncated):
        decision, state = policy.predict(observation, state, np.array([start]))
        start = False
        wait = _Wait(env, int(env.decisions.durations_of[decision]), observation, episode.length)
        if wait.committed > 1 and env.decisions.actions_of[decision] == env.decisions.wait:
            wait.fill(tasks, pack, strict)
        episode.fills += wait.fills
        if wait.elapsed == 0:
            observation, _, episode.terminated, episode.truncated, info = env.step(decision)
            elapsed, reward, base_queries = info["elapsed"], info["task_reward"], info["base_queries"]
        else:
            if not requery:
                wait.out()
            elif wait.room > 0 and isinstance(policy, Resumable):
                state = policy.ended_early(state, wait.room)
            observation, episode.terminated, episode.truncated = wait.observation, wait.terminated, wait.truncated
            elapsed, reward, base_queries = wait.elapsed, wait.reward, 0
        episode.decisions.append(int(decision))
        episode.elapsed.append(elapsed)
        episode.task_return += reward
        episode.base_queries += base_queries
    return episode


def _check_that_all_return(tasks: Sequence[AuxiliaryTask]) -> None:
    for task in tasks:
        if not task.returns:
            raise SettingError(
                f"{task.name} does not come back to where it began, so the policy cannot go on as if it had waited; "
                "have it queried again after the work: requery=True"
            )


class _Wait:
    """A wait that is spent on other work: where it stands, and what was done in it."""

    def __init__(self, env: WaitingEnv, committed: int, observation: Any, time: int) -> None:
        self.env, self.committed, self.observation, self.time = env, committed, observation, time
        self.elapsed, self.reward = 0, 0.0
        self.terminated = self.truncated = False
        self.fills: list[Fill] = []

    @property
    def room(self) -> int:
        """Steps that are left."""
        return self.committed - self.elapsed

    @property
    def ended(self) -> bool:
        """Whether the episode ended in it."""
        return self.terminated or self.truncated

    def fill(self, tasks: Sequence[AuxiliaryTask], pack: bool, strict: bool) -> None:
        """Do one task, or as many as fit; each of them once."""
        left = list(tasks)
        while not self.ended and (chosen := _chosen(left, self.observation, self.room, pack)) is not None:
            task, predicted = chosen
            left = [other for other in left if other is not task]
            self.fills.append(self._done(task, predicted, strict))
            if not pack or not self.fills[-1].undisturbed:
                break

    def out(self) -> None:
        """Wait for what is left."""
        space: Any = self.env.env.action_space
        while self.room > 0 and not self.ended:
            self._step(self.env.env.step(int(space.start) + self.env.decisions.wait))

    def _done(self, task: AuxiliaryTask, predicted: int, strict: bool) -> Fill:
        """Do a task, to the end of the wait at most, and say how it went."""
        before, begun = deepcopy(self.observation), self.elapsed  # a copy: some environments write into the same array
        work = task.actions(before)
        if isinstance(work, Policy):
            late = self._follow(task, work, before, predicted, strict)
        else:
            late = len(work) > predicted
            if late and strict:
                raise ErrandError(self._overrun(task, predicted, f"has {len(work)} actions"))
            for action in work[: self.room]:
                self._step(self.env.act(action))
                if self.ended:
                    break
        undisturbed = None if self.ended else bool(task.undisturbed(before, self.observation))
        if strict and undisturbed is False:
            raise ErrandError(
                f"{task.name} disturbed the waiting task: begun at step {self.time + begun}, it led from {before} to "
                f"{self.observation}; correct the work or its undisturbed(before, after), or note it with strict=False"
            )
        return Fill(
            time=self.time,
            wait=self.committed,
            task=task.name,
            steps=self.elapsed - begun,
            begun=self.time + begun,
            predicted=predicted,
            late=late,
            finished=bool(task.finished(self.observation)),
            undisturbed=undisturbed,
        )

    def _follow(self, task: AuxiliaryTask, policy: Policy, before: Any, predicted: int, strict: bool) -> bool:
        """Follow a task's policy until the work is over or the wait is, and return whether it was late."""
        state = None
        for step in range(self.room):
            action, state = policy.predict(self.observation, state, np.array([step == 0]))
            self._step(self.env.act(action))
            finished = bool(task.finished(self.observation))
            if self.ended or (finished and task.undisturbed(before, self.observation)):
                return step >= predicted
            if strict and step + 1 == predicted:
                why = "the other task is disturbed still" if finished else "it is not finished"
                raise ErrandError(self._overrun(task, predicted, f"is not over then: {why}"))
        return True

    def _step(self, result: tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]) -> None:
        self.observation, reward, self.terminated, self.truncated, _ = result
        self.reward += float(reward)
        self.elapsed += 1

    def _overrun(self, task: AuxiliaryTask, predicted: int, fact: str) -> str:
        return (
            f"{task.name} was predicted to take {predicted} steps in the wait of {self.committed} at step {self.time}, "
            f"and {fact}; correct its duration(observation), or note it with strict=False"
        )


def _chosen(
    tasks: Sequence[AuxiliaryTask], observation: Any, room: int, pack: bool
) -> tuple[AuxiliaryTask, int] | None:
    """Return the task to do next in `room` steps and its predicted duration, None if nothing fits."""
    fitting = [
        (task, steps)
        for task in tasks
        if not task.finished(observation) and 0 < (steps := _predicted(task, observation)) <= room
    ]
    if pack:
        fitting = [fitting[i] for i in fullest([steps for _, steps in fitting], room)]
    return max(fitting, key=lambda pair: pair[1], default=None)


def _predicted(task: AuxiliaryTask, observation: Any) -> int:
    steps = task.duration(observation)
    if not isinstance(steps, int | np.integer):
        raise ErrandError(f"{task.name} predicts a duration of {steps!r}; give a whole number of primitive steps")
    return int(steps)


def fullest(durations: Sequence[int], room: int) -> list[int]:
    """Return the indices of the durations, each at least 1, that add up to the most within `room`.

    Exact, by dynamic programming over the sums; ties go to those that come first.

    >>> fullest([6, 5, 5], room=10)
    [1, 2]
    >>> fullest([11], room=10)
    []
    """
    reached: dict[int, list[int]] = {0: []}
    for i, steps in enumerate(durations):
        for total, chosen in list(reached.items()):
            if total + steps <= room:
                reached.setdefault(total + steps, [*chosen, i])
    return reached[max(reached)]
