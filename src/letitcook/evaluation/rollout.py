"""Playing episodes with a policy, and what they say about it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from letitcook.adapters import as_policy
from letitcook.core.decisions import Decisions, Episode, Policy
from letitcook.errors import NotFiniteError, SettingError
from letitcook.wrappers.base_policy import base_env_of
from letitcook.wrappers.env_returns import check_length
from letitcook.wrappers.vector import WaitingVectorEnv, play
from letitcook.wrappers.waiting import horizon_of, waiting_env_of


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one policy, and their means.

    >>> from letitcook import make, plan
    >>> cook = make("cook")
    >>> played = evaluate(cook, plan(cook).policy, episodes=1)
    >>> played.length, played.queries
    (33.0, 25.0)
    """

    episodes: list[Episode]
    decisions: Decisions

    def of(self, name: str) -> NDArray[np.float64]:
        """Return one number of every episode, by its name in `Episode`: `length`, `queries`, `task_return`, ..."""
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
    def policy_seconds(self) -> float:
        """Mean time in the policy's `predict`, an episode."""
        return float(self.of("policy_seconds").mean())

    @property
    def base_seconds(self) -> float:
        """Mean time in a wrapped base policy's `predict`, an episode; 0 where there is none."""
        return float(self.of("base_seconds").mean())

    @property
    def wait_share(self) -> dict[int, float]:
        """Share of the steps that were spent in waits of each duration; the shortest is the primitive wait action."""
        spent = dict.fromkeys((self.decisions.repeat, *self.decisions.durations), 0)
        for duration, elapsed in self._waits():
            spent[duration] += elapsed
        total = sum(episode.length for episode in self.episodes)
        return {duration: steps / total for duration, steps in spent.items()}

    @property
    def waiting_share(self) -> float:
        """Share of the steps that were spent in waits of any duration."""
        return sum(elapsed for _, elapsed in self._waits()) / sum(episode.length for episode in self.episodes)

    @property
    def waits_said(self) -> str:
        """The same by duration, for people; empty if there were no waits."""
        return ", ".join(f"{100 * share:.0f}% in waits of {d}" for d, share in self.wait_share.items() if share > 0)

    @property
    def longest_wait(self) -> int:
        """Steps of the longest wait: the longest time for which nothing was sensed. 0 if there was none."""
        return max((elapsed for _, elapsed in self._waits()), default=0)

    def _waits(self) -> Iterator[tuple[int, int]]:
        """Yield the duration that was requested and the steps that passed, of each wait."""
        durations, actions = self.decisions.durations_of.tolist(), self.decisions.actions_of.tolist()
        for episode in self.episodes:
            for u, elapsed in zip(episode.decisions, episode.elapsed, strict=True):
                if actions[u] == self.decisions.wait:
                    yield durations[u], elapsed

    def rows(self) -> NDArray[np.float64]:
        """Return task return, length, queries, base queries and the steps in each decision, a row for each episode."""
        spent = np.zeros((len(self.episodes), self.decisions.n))
        for row, episode in zip(spent, self.episodes, strict=True):
            np.add.at(row, episode.decisions, episode.elapsed)
        numbers = [self.of(name) for name in ("task_return", "length", "queries", "base_queries")]
        return np.column_stack([*numbers, spent])

    def summary(self) -> dict[str, float | int]:
        """Return the numbers that are reported, standard deviations over episodes included; times in seconds."""
        result: dict[str, float | int] = {"episodes": len(self.episodes)}
        for name in ("length", "queries", "task_return", "base_queries"):
            values = self.of(name)
            result[name] = float(values.mean())
            result[f"{name}_sd"] = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        for name in ("waiting_share", "longest_wait", "policy_seconds", "base_seconds"):
            result[name] = getattr(self, name)
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
    episode, wrapped = Episode(), base_env_of(env)
    spent = 0.0 if wrapped is None else wrapped.base_seconds
    observation, _ = env.reset(seed=seed)
    state, start = None, True
    passed, limit = 0, horizon_of(env)
    while not (episode.terminated or episode.truncated):
        asked = time.perf_counter()
        decision, state = policy.predict(observation, state, np.array([start]), deterministic=deterministic)
        episode.policy_seconds += time.perf_counter() - asked
        start = False
        observation, _, episode.terminated, episode.truncated, info = env.step(decision)
        passed += info["elapsed"]
        if not math.isfinite(info["task_reward"]):
            raise NotFiniteError(f"the environment gave a reward that is not finite by primitive step {passed}")
        check_length(passed, limit)
        episode.decisions.append(int(decision))
        episode.elapsed.append(info["elapsed"])
        episode.task_return += info["task_reward"]
        episode.base_queries += info["base_queries"]
    episode.base_seconds = 0.0 if wrapped is None else wrapped.base_seconds - spent
    return episode


def episode_seed(seed: int, episode: int) -> int:
    """Return the seed of one episode of an evaluation, a function of the evaluation's seed and the episode's number.

    >>> [episode_seed(0, n) for n in range(3)]
    [1484405855, 1982462498, 1570558271]
    """
    # 31 bits, for environments that hand their seed on to a signed C int.
    return int(np.random.SeedSequence((seed, episode)).generate_state(1)[0] >> 1)


def check_episodes(episodes: int, seed: int) -> None:
    """Raise if something is wrong with a number of episodes or the seed of an evaluation."""
    if episodes < 1:
        raise SettingError(f"episodes = {episodes} is not allowed; play at least 1")
    check_seed(seed)


def check_seed(seed: int) -> int:
    """Return a seed, or raise if something is wrong with it."""
    if seed < 0:
        raise SettingError(f"seed = {seed} is not allowed; give a whole number of at least 0")
    return seed


def evaluate(
    waiting_env: gym.Env[Any, Any] | WaitingVectorEnv,
    policy: Policy | Callable[[Any], Any],
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = True,
) -> Evaluation:
    """Play episodes of a policy, in one waiting environment or in several side by side.

    Every episode has a seed of its own, so two policies meet the same starts under the same `seed`, and the first
    episodes do not depend on how many follow. Side by side, only the first episode of each environment can be seeded,
    and the others go on from there. A function from observation to decision will do as a policy.

    >>> from letitcook import make, plan
    >>> env = make("coffee", mode="wrap")
    >>> result = evaluate(env, plan(env).policy, episodes=2)
    >>> result.length, result.queries, result.base_queries, result.longest_wait
    (54.0, 36.0, 34.0, 15)
    """
    check_episodes(episodes, seed)
    policy = policy if isinstance(policy, Policy) else as_policy(policy)
    if isinstance(waiting_env, WaitingVectorEnv):
        return Evaluation(play(waiting_env, policy, episodes, seed, deterministic), waiting_env.decisions)
    decisions = waiting_env_of(waiting_env).decisions
    played = [rollout(waiting_env, policy, episode_seed(seed, n), deterministic) for n in range(episodes)]
    return Evaluation(played, decisions)
