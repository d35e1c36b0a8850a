"""Other work inside the waits.

When a waiting policy commits to N steps, the longest unfinished auxiliary task that is predicted to take at most N is
done in them; what remains of the N steps is waited out, and the policy goes on as if it had waited all along. An
auxiliary task starts where it is called and comes back to the same position and orientation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from letitcook.envs.task import AuxiliaryTask
from letitcook.waiting import waiting_env_of
from letitcook.wmdp import Episode, Policy


@dataclass(frozen=True)
class Fill:
    """A wait that was filled with other work."""

    time: int
    """Primitive step at which the wait began."""
    wait: int
    """Steps that the policy had committed to."""
    task: str
    """Name of the auxiliary task."""
    steps: int
    """Steps that it took."""


@dataclass
class Interleaved(Episode):
    """An episode with other work in its waits."""

    fills: list[Fill] = field(default_factory=list)


def interleave(
    waiting_env: gym.Env[Any, Any], policy: Policy, tasks: Sequence[AuxiliaryTask], seed: int | None = None
) -> Interleaved:
    """Play one episode of a waiting policy with auxiliary tasks in its waits.

    >>> from letitcook import make, plan, task_named
    >>> env = make("coffee", mode="wrap")
    >>> episode = interleave(env, plan(env).policy, task_named("coffee").auxiliary())
    >>> episode.length, [(fill.task, fill.wait, fill.steps) for fill in episode.fills]
    (45, [('fetch-sugar', 15, 15)])
    """
    env = waiting_env_of(waiting_env)
    episode = Interleaved()
    observation, _ = env.reset(seed=seed)
    state, start = None, True
    while not (episode.terminated or episode.truncated):
        decision, state = policy.predict(observation, state, np.array([start]))
        start = False
        committed = int(env.decisions.durations_of[decision])
        task = _longest_that_fits(tasks, observation, committed) if committed > 1 else None
        if task is None:
            observation, _, episode.terminated, episode.truncated, info = env.step(decision)
            elapsed, reward, base_queries = info["elapsed"], info["task_reward"], info["base_queries"]
        else:
            actions = list(task.actions(observation))
            fill = Fill(time=episode.length, wait=committed, task=task.name, steps=len(actions))
            episode.fills.append(fill)
            elapsed, reward, base_queries = 0, 0.0, 0
            for step in range(committed):
                if step < len(actions):
                    observation, r, episode.terminated, episode.truncated, _ = env.act(actions[step])
                else:
                    observation, r, episode.terminated, episode.truncated, _ = env.env.step(env.decisions.wait)
                elapsed += 1
                reward += float(r)
                if episode.terminated or episode.truncated:
                    break
        episode.decisions.append(int(decision))
        episode.elapsed.append(elapsed)
        episode.task_return += reward
        episode.base_queries += base_queries
    return episode


def _longest_that_fits(tasks: Sequence[AuxiliaryTask], observation: Any, steps: int) -> AuxiliaryTask | None:
    fitting = [
        (duration, task)
        for task in tasks
        if not task.finished(observation) and 0 < (duration := task.duration(observation)) <= steps
    ]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None
