"""Waiting in several environments at once.

The sub-environments of a vector environment wait for different times, so each has a countdown of its own: a primitive
vector step gives a new decision to those that are due, and lets the others go on waiting. A base policy is queried once
for all who ask it at that step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from letitcook.adapters.actions import checked_action, wait_action
from letitcook.core.decisions import Cost, Decisions, Episode, Policy, check_durations
from letitcook.errors import SettingError, SpaceError
from letitcook.wrappers.base_policy import BASE, WAIT, BasePolicyEnv
from letitcook.wrappers.hold import HOLD, LastAction, is_hold
from letitcook.wrappers.waiting import action_names, check_gamma, check_wait, numbered

VectorEnv = gym.vector.VectorEnv[Any, Any, Any]


class Finished(NamedTuple):
    """A decision that one sub-environment has carried out."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    """Of the sub-environment."""
    decision: int
    reward: NDArray[np.float64]
    """`(task, waiting)`; the task part is discounted inside the wait, `Σ γ^i r_i`."""
    elapsed: int
    """Primitive steps that passed."""
    requested: int
    """Primitive steps that were requested."""
    discount: float
    """`γ^elapsed`."""
    task_reward: float
    """Undiscounted sum of the primitive rewards."""
    base_queries: int
    base_seconds: float
    """Time inside the base policy's `predict`: this one's share of it, where several queried it together."""
    observation: Any
    """After the decision; the episode's last one where it ended, never that of the next episode."""
    terminated: bool
    truncated: bool


class WaitingVectorEnv:
    """Turn a vector environment into waiting MDPs side by side, from scratch or around a base policy.

    Without `base` the decisions are those of `WaitingEnv`; with it they are `{base, wait} ∪ W`, as from `wrap`, and
    `wait` is any fixed action of the space. With `wait="hold"` the last action is sent again, see `BasePolicyEnv` and
    `HoldEnv`; the observations then hold that action too. `cost` is as in `wrap`, `action_repeat` as in `WaitingEnv`.
    All three autoreset modes of Gymnasium are understood.

    - `decisions`, `num_envs`, `gamma`, `single_observation_space`;
    - `observations`: the current observation of each sub-environment;
    - `due`: which of them need a decision, `(num_envs,)`.

    >>> env = WaitingVectorEnv(gym.make_vec("MountainCar-v0", num_envs=2), wait=1, durations=(2, 4))
    >>> _ = env.reset(seed=0)
    >>> [(done.index, done.elapsed) for done in env.step([0, 4])]  # a push; a wait of 4
    [(0, 1)]
    >>> env.due.tolist()
    [True, False]
    >>> [(done.index, done.elapsed) for done in env.step([4, 0])]  # the second goes on waiting
    [(1, 4)]
    """

    def __init__(
        self,
        envs: VectorEnv,
        wait: Any,
        durations: Iterable[int],
        gamma: float = 1.0,
        base: Policy | None = None,
        deterministic: bool = True,
        cost: Cost | None = None,
        action_repeat: int = 1,
    ) -> None:
        self._mode = _autoreset_mode(envs)
        waits = check_durations(durations)
        check_gamma(gamma)
        holds, taken = is_hold(wait), envs.single_action_space
        self._wait: Any = wait
        if base is None:
            check_wait(taken, int(getattr(taken, "start", 0)) if holds else wait)
            names, first = _names(envs)
            at = len(names) if holds else int(wait) - first
            known = (*names, HOLD) if holds else names
            self.decisions = Decisions(known, at, waits, holds, cost or "decisions", action_repeat)
            self._primitive = [None if holds and a == at else a + first for a in self.decisions.actions_of.tolist()]
        else:
            self._wait = HOLD if holds else wait_action(wait, taken)
            self.decisions = Decisions(BasePolicyEnv.action_names, WAIT, waits, holds, cost or "base", action_repeat)
            # The base's answer takes its place where it is queried; None holds the last action.
            self._primitive = [None if holds else self._wait] * self.decisions.n
        self._last_action = LastAction(taken) if holds else None
        self.envs = envs
        self.num_envs: int = envs.num_envs
        self.gamma = gamma
        self.base = base
        self.deterministic = deterministic
        seen = envs.single_observation_space
        self.single_observation_space = seen if self._last_action is None else self._last_action.space_with(seen)
        self.observations: list[Any] = []
        self.due: NDArray[np.bool_] = np.zeros(self.num_envs, dtype=bool)
        self._asking = (
            None if base is None else Asking(base, envs.single_observation_space, envs.num_envs, deterministic)
        )
        self._any_action = taken.sample() if holds else self._wait
        self._actions: list[Any] = [self._any_action] * self.num_envs
        self._sent = np.zeros(self.num_envs, dtype=bool)
        """Who has sent an action in this episode, so that there is one to hold."""
        self._seen: list[Any] = []
        """The observations as the environments gave them, for the base policy."""
        self._running: list[_Running] = []
        # Only with next-step autoreset: whose episode has ended, so that the next vector step begins a new one.
        self._resetting = np.zeros(self.num_envs, dtype=bool)

    def reset(self, seed: int | list[int | None] | None = None) -> list[Any]:
        """Begin a new episode everywhere; a whole number seeds sub-environment `i` with `seed + i`.

        Returns the first observations.
        """
        # Gymnasium's class says a whole number; its synchronous and asynchronous environments take lists too.
        given: Any = seed
        batch, _ = self.envs.reset(seed=given)
        self.due[:] = True
        self._resetting[:] = False
        self._running = [_Running(0, 0)] * self.num_envs
        self._restart(range(self.num_envs))
        self._take_in(batch)
        return self.observations

    def step(self, decisions: Sequence[int] | NDArray[np.integer[Any]]) -> list[Finished]:
        """Begin the decisions of those that are due, and make primitive vector steps until someone is due again.

        `decisions` has one entry for each sub-environment, read only where `due`. Returns what was finished; nothing
        where a new episode was begun and that was all (next-step autoreset does it in a vector step of its own).
        """
        if not self.observations:
            raise SpaceError("the environments were not reset; call reset() first")
        if len(decisions) != self.num_envs:
            raise SpaceError(f"{len(decisions)} decisions for {self.num_envs} environments; give one for each")
        self._begin([(i, self._checked(decisions[i])) for i in range(self.num_envs) if self.due[i]])
        self.due[:] = False
        finished: list[Finished] = []
        while not self.due.any():
            finished += self._primitive_step()
        return finished

    def with_discount(self, gamma: float) -> WaitingVectorEnv:
        """Return the same with another discount, around the same environments."""
        of = self.decisions
        return WaitingVectorEnv(
            self.envs, self._wait, of.durations, gamma, self.base, self.deterministic, of.cost, of.repeat
        )

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def _checked(self, decision: Any) -> int:
        if not 0 <= int(decision) < self.decisions.n:
            raise SpaceError(f"decision {decision!r} is outside 0..{self.decisions.n - 1} ({self.decisions})")
        return int(decision)

    def _begin(self, taken: list[tuple[int, int]]) -> None:
        """Note the decisions `(index, decision)` and what they do; query the base policy for those that say so."""
        for i, decision in taken:
            self._running[i] = _Running(decision, int(self.decisions.durations_of[decision]))
            primitive = self._primitive[decision]
            if primitive is not None:
                self._actions[i] = primitive
            elif not self._sent[i] and self._asking is None:
                self._actions[i] = self._primitive[0]
        asked = [i for i, decision in taken if decision == BASE or (self.decisions.hold and not self._sent[i])]
        self._sent[[i for i, _ in taken]] = True
        if self._asking is None or not asked:
            return
        answers, seconds = self._asking.ask(asked, self._seen)
        for i, answer in zip(asked, answers, strict=True):
            self._actions[i] = checked_action(answer, self.envs.single_action_space)
            self._running[i].base_queries, self._running[i].base_seconds = 1, seconds

    def _primitive_step(self) -> list[Finished]:
        actions = _stacked(self.envs.single_action_space, self._actions)
        batch, rewards, terminated, truncated, infos = self.envs.step(actions)
        if np.shape(rewards) != (self.num_envs,):
            raise SpaceError(f"rewards of shape {np.shape(rewards)} are not one number for each environment")
        begun = self._resetting.copy()
        self._take_in(batch)
        ended = np.logical_or(terminated, truncated) & ~begun
        finished = []
        for i in range(self.num_envs):
            if begun[i]:
                self.due[i] = True
                continue
            running = self._running[i]
            running.pass_step(float(rewards[i]), self.gamma)
            if ended[i] or running.elapsed == running.requested:
                seen = self._last_observation(i, infos) if ended[i] else self.observations[i]
                paid = self.decisions.cost_of(running.base_queries)
                finished.append(running.finished(i, seen, bool(terminated[i]), bool(truncated[i]), paid))
                self.due[i] = True
        self._renew(ended)
        return finished

    def _last_observation(self, i: int, infos: dict[str, Any]) -> Any:
        """Return what sub-environment `i` showed at its episode's end."""
        if self._mode is not AutoresetMode.SAME_STEP:
            return self.observations[i]
        return self._shown(deepcopy(infos["final_obs"][i]), self._actions[i])

    def _renew(self, ended: NDArray[np.bool_]) -> None:
        """Begin new episodes where they have ended, by the rules of the autoreset mode."""
        self._resetting[:] = False
        if not ended.any():
            return
        self._restart(np.flatnonzero(ended).tolist())
        if self._mode is AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(ended):
                self.observations[i] = self._shown(self._seen[i], None)
        if self._mode is AutoresetMode.NEXT_STEP:
            self._resetting[:] = ended
            self.due[ended] = False
            for i in np.flatnonzero(ended):
                self._actions[i] = self._any_action  # it is ignored
        elif self._mode is AutoresetMode.DISABLED:
            firsts = self._split(self.envs.reset(options={"reset_mask": ended.copy()})[0])
            for i in np.flatnonzero(ended):
                self._seen[i], self.observations[i] = firsts[i], self._shown(firsts[i], None)

    def _restart(self, indices: Iterable[int]) -> None:
        self._sent[list(indices)] = False
        if self._asking is not None:
            self._asking.restart(indices)

    def _take_in(self, batch: Any) -> None:
        """Note the observations, and show them with the last actions where these are held."""
        self._seen = self._split(batch)
        self.observations = [
            self._shown(seen, action if sent else None)
            for seen, action, sent in zip(self._seen, self._actions, self._sent, strict=True)
        ]

    def _shown(self, observation: Any, action: Any) -> Any:
        return observation if self._last_action is None else self._last_action.shown(observation, action)

    def _split(self, batch: Any) -> list[Any]:
        """Return the observations one by one; copies, as some environments write into the same array."""
        return list(iterate(self.envs.observation_space, deepcopy(batch)))


def play(
    env: WaitingVectorEnv, policy: Policy, episodes: int, seed: int = 0, deterministic: bool = True
) -> list[Episode]:
    """Play episodes of a policy side by side, all that are due queried together if it has `batched`.

    Episode `i` is one of sub-environment `i % num_envs`, settled in advance: to take the first that come would prefer
    short ones. Sub-environment `i` is seeded with `seed + i`, its later episodes go on from there.

    >>> from letitcook.adapters import as_policy
    >>> env = WaitingVectorEnv(gym.make_vec("MountainCar-v0", num_envs=2), wait=1, durations=(2, 8))
    >>> [(episode.length, episode.queries) for episode in play(env, as_policy(lambda observation: 4), episodes=3)]
    [(200, 25), (200, 25), (200, 25)]
    """
    if episodes < 1:
        raise SettingError(f"episodes = {episodes} is not allowed; play at least 1")
    n = env.num_envs
    asking = Asking(policy, env.single_observation_space, n, deterministic)
    played: list[list[Episode]] = [[] for _ in range(n)]
    missing = [len(range(i, episodes, n)) for i in range(n)]
    current = [Episode() for _ in range(n)]
    longest = env.decisions.n - 1  # what those do that have played all theirs
    decisions = np.full(n, longest)
    env.reset(seed=seed)
    while any(missing):
        asked = [int(i) for i in np.flatnonzero(env.due) if missing[i]]
        answers, seconds = asking.ask(asked, env.observations)
        for i, answer in zip(asked, answers, strict=True):
            decisions[i] = np.asarray(answer).item()
            current[i].policy_seconds += seconds
        for done in env.step(decisions):
            i = done.index
            if not missing[i]:
                continue
            _add(current[i], done)
            if done.terminated or done.truncated:
                played[i].append(current[i])
                current[i], missing[i] = Episode(), missing[i] - 1
                asking.restart([i])
                decisions[i] = longest
    return [played[i % n][i // n] for i in range(episodes)]


class Asking:
    """A policy that several sub-environments ask, in one call if it has `batched` and keeps no state.

    A policy's state is kept for each of them; as there is no common form for the states of a batch, such a policy
    is queried one by one.
    """

    def __init__(self, policy: Policy, space: spaces.Space[Any], n: int, deterministic: bool) -> None:
        self.policy = policy
        self.space = space
        self.deterministic = deterministic
        self._batched = bool(getattr(policy, "batched", False))
        self._states: list[Any] = [None] * n
        self._starts = np.ones(n, dtype=bool)

    def restart(self, indices: Iterable[int]) -> None:
        """Forget the states of those who begin a new episode."""
        for i in indices:
            self._states[i], self._starts[i] = None, True

    def ask(self, indices: list[int], observations: Sequence[Any]) -> tuple[list[Any], float]:
        """Return the answers to those at `indices`, and how many seconds each one's took."""
        if not indices:
            return [], 0.0
        began = perf_counter()
        answers = self._together(indices, observations) if self._batched and len(indices) > 1 else None
        if answers is None:
            answers = [self._alone(i, observations[i]) for i in indices]
        self._starts[indices] = False
        return answers, (perf_counter() - began) / len(indices)

    def _together(self, indices: list[int], observations: Sequence[Any]) -> list[Any] | None:
        """Return all answers from one call; None if the policy turns out to keep a state."""
        seen = [observations[i] for i in indices]
        answers, state = self.policy.predict(
            _stacked(self.space, seen), None, self._starts[indices], deterministic=self.deterministic
        )
        if state is not None:
            self._batched = False
            return None
        if np.ndim(answers) == 0 or len(answers) != len(seen):
            raise SpaceError(f"the policy answered {answers!r} to {len(seen)} observations; it must answer each")
        return list(answers)

    def _alone(self, i: int, observation: Any) -> Any:
        start = self._starts[i : i + 1].copy()
        answer, self._states[i] = self.policy.predict(
            observation, self._states[i], start, deterministic=self.deterministic
        )
        return answer


@dataclass
class _Running:
    """A decision on its way."""

    decision: int
    requested: int
    elapsed: int = 0
    discounted: float = 0.0
    discount: float = 1.0
    total: float = 0.0
    base_queries: int = 0
    base_seconds: float = 0.0

    def pass_step(self, reward: float, gamma: float) -> None:
        self.elapsed += 1
        self.total += reward
        self.discounted += self.discount * reward
        self.discount *= gamma

    def finished(self, index: int, observation: Any, terminated: bool, truncated: bool, paid: float) -> Finished:
        return Finished(
            index=index,
            decision=self.decision,
            reward=np.array([self.discounted, -paid]),
            elapsed=self.elapsed,
            requested=self.requested,
            discount=self.discount,
            task_reward=self.total,
            base_queries=self.base_queries,
            base_seconds=self.base_seconds,
            observation=observation,
            terminated=terminated,
            truncated=truncated,
        )


def _add(episode: Episode, done: Finished) -> None:
    episode.decisions.append(done.decision)
    episode.elapsed.append(done.elapsed)
    episode.task_return += done.task_reward
    episode.base_queries += done.base_queries
    episode.base_seconds += done.base_seconds
    episode.terminated, episode.truncated = done.terminated, done.truncated


def _autoreset_mode(envs: Any) -> AutoresetMode:
    if not isinstance(envs, gym.vector.VectorEnv):
        raise SpaceError(f"{envs} is not a vector environment; give it to letitcook.WaitingEnv or letitcook.wrap")
    mode = envs.metadata.get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError:
        raise SpaceError(
            f"{envs} does not say how it begins new episodes; set envs.metadata['autoreset_mode'] to a "
            f"gymnasium.vector.AutoresetMode (it is {mode!r})"
        ) from None


def _names(envs: Any) -> tuple[tuple[str, ...], int]:
    """Return the names of the actions and the number of the first."""
    space, inside = envs.single_action_space, getattr(envs.unwrapped, "envs", None)
    return action_names(inside[0], space) if inside else numbered(space), int(space.start)


def _stacked(space: spaces.Space[Any], items: Sequence[Any]) -> Any:
    """Return elements of `space` as a batch."""
    empty: Any = create_empty_array(space, n=len(items))
    return concatenate(space, items, empty)
