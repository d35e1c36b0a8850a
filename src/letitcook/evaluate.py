"""Playing episodes with a policy, and what they say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from letitcook.errors import SettingError
from letitcook.waiting import waiting_env_of
from letitcook.wmdp import Decisions, Episode, Policy


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one policy, and their means."""

    episodes: list[Episode]
    decisions: Decisions

    def of(self, name: str) -> NDArray[np.float64]:
        """Return one number of every episode: `length`, `queries`, `task_return` or `base_queries`."""
        return np.array([getattr(episode, name) for episode in self.episodes], dtype=np.float64)

    @property
    def length(self) -> float:
        """Mean primitive steps."""
        return float(self.of("length").mean())

    @property
    def queries(self) -> float:
        """Mean queries of the policy."""
        return float(self.of("queries").mean())

    @property
    def task_return(self) -> float:
        """Mean undiscounted task return `J0`."""
        return float(self.of("task_return").mean())

    @property
    def base_queries(self) -> float:
        """Mean queries of a wrapped base policy; 0 where there is none."""
        return float(self.of("base_queries").mean())

    @property
    def wait_share(self) -> dict[int, float]:
        """Share of the steps that were spent in waits of each duration; duration 1 is the primitive wait action."""
        spent = dict.fromkeys((1, *self.decisions.durations), 0)
        for episode in self.episodes:
            for u, elapsed in zip(episode.decisions, episode.elapsed, strict=True):
                if self.decisions.actions_of[u] == self.decisions.wait:
                    spent[int(self.decisions.durations_of[u])] += elapsed
        total = sum(episode.length for episode in self.episodes)
        return {duration: steps / total for duration, steps in spent.items()}

    def summary(self) -> dict[str, float | int]:
        """Return the numbers that are reported, standard deviations over episodes included."""
        result: dict[str, float | int] = {"episodes": len(self.episodes)}
        for name in ("length", "queries", "task_return", "base_queries"):
            values = self.of(name)
            result[name] = float(values.mean())
            result[f"{name}_sd"] = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        return result


def rollout(env: gym.Env[Any, Any], policy: Policy, seed: int | None = None, deterministic: bool = True) -> Episode:
    """Play one episode of a waiting environment.

    >>> from letitcook import make, plan
    >>> env = make("cook")
    >>> episode = rollout(env, plan(env).policy)
    >>> episode.length, episode.queries, episode.terminated
    (33, 25, True)
    """
    waiting_env_of(env)
    episode = Episode()
    observation, _ = env.reset(seed=seed)
    state, start = None, True
    while not (episode.terminated or episode.truncated):
        decision, state = policy.predict(observation, state, np.array([start]), deterministic=deterministic)
        start = False
        observation, _, episode.terminated, episode.truncated, info = env.step(decision)
        episode.decisions.append(int(decision))
        episode.elapsed.append(info["elapsed"])
        episode.task_return += info["task_reward"]
        episode.base_queries += info["base_queries"]
    return episode


def evaluate(
    waiting_env: gym.Env[Any, Any],
    policy: Policy,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = True,
) -> Evaluation:
    """Play episodes of a policy; the first one is seeded, the others go on from there.

    >>> from letitcook import make, plan
    >>> env = make("coffee", mode="wrap")
    >>> result = evaluate(env, plan(env).policy, episodes=2)
    >>> result.length, result.queries, result.base_queries
    (54.0, 36.0, 34.0)
    """
    if episodes < 1:
        raise SettingError(f"episodes = {episodes} is not allowed; play at least 1")
    decisions = waiting_env_of(waiting_env).decisions
    played = [rollout(waiting_env, policy, seed if n == 0 else None, deterministic) for n in range(episodes)]
    return Evaluation(played, decisions)
