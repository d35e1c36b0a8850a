"""Waiting environments: any Gymnasium environment with discrete actions, plus commitments to wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.envs import task_of
from letitcook.errors import SettingError, SpaceError
from letitcook.lexicographic import Objective
from letitcook.wmdp import Decisions, check_durations


class WaitingEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Turn an environment with discrete actions into a waiting MDP.

    Action `|A|+i` commits to the wait action for `durations[i]` primitive steps, with no sensing in between; it ends
    early where the episode ends. The reward is the pair `(task, waiting)` in MO-Gymnasium's convention (an array, with
    its `reward_space`); waiting is -1 for every decision. `info` holds what a learner needs:

    - `elapsed`: primitive steps that were executed, `requested`: those that were asked for;
    - `discount`: `γ^elapsed`, the weight of the next decision's value;
    - `task_reward`: the undiscounted sum of the primitive rewards (the reward's task part is `Σ γ^i r_i`);
    - `intermediate`: the `(observation, reward)` of each primitive step, only if `intermediate=True` was asked for.
      They are for learning; a policy never sees them.

    >>> env = WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4, 8))
    >>> env.action_space
    Discrete(6)
    >>> _ = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(5)
    >>> reward.tolist(), info["elapsed"], env.decisions.label(5)
    ([-8.0, -1.0], 8, 'wait 8')
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        wait: int,
        durations: Iterable[int],
        gamma: float = 1.0,
        intermediate: bool = False,
    ) -> None:
        self._durations = check_durations(durations)
        self._space = _discrete_actions(env, wait)
        if not 0.0 < gamma <= 1.0:
            raise SettingError(f"gamma = {gamma} is not allowed; give a discount in (0, 1]")
        gym.utils.RecordConstructorArgs.__init__(
            self, wait=int(wait), durations=self._durations, gamma=gamma, intermediate=intermediate
        )
        gym.Wrapper.__init__(self, env)
        start = int(self._space.start)
        self.decisions = Decisions(_action_names(env, self._space), int(wait) - start, self._durations)
        self.gamma = gamma
        self.intermediate = intermediate
        self.action_space = spaces.Discrete(self.decisions.n)
        self.reward_space = spaces.Box(
            np.array([-np.inf, -1.0], dtype=np.float32), np.array([np.inf, -1.0], dtype=np.float32)
        )
        self.reward_dim = 2
        # MO-Gymnasium's wrappers look for these on the innermost environment.
        inside: Any = env.unwrapped
        inside.reward_space, inside.reward_dim = self.reward_space, self.reward_dim
        # Plain lists: `step` reads single elements, and Python does that fastest.
        self._requested = self.decisions.durations_of.tolist()
        self._primitive = (self.decisions.actions_of + start).tolist()

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one decision: a primitive action, or a wait to its end or the episode's."""
        decision = int(action)
        if not 0 <= decision < self.decisions.n:
            raise SpaceError(f"decision {action!r} is outside 0..{self.decisions.n - 1} ({self.decisions})")
        requested, primitive = self._requested[decision], self._primitive[decision]
        discounted = total = 0.0
        discount = 1.0
        base_queries = 0
        passed: list[tuple[Any, float]] = []
        for elapsed in range(1, requested + 1):  # noqa: B007 (used below)
            observation, reward, terminated, truncated, info = self.env.step(primitive)
            r = float(reward)
            total += r
            discounted += discount * r
            discount *= self.gamma
            base_queries += info.get("base_queries", 0)
            if self.intermediate:
                passed.append((observation, r))
            if terminated or truncated:
                break
        info = {
            **info,
            "elapsed": elapsed,
            "requested": requested,
            "discount": discount,
            "task_reward": total,
            "base_queries": base_queries,
        }
        if self.intermediate:
            info["intermediate"] = passed
        return observation, np.array([discounted, -1.0]), terminated, truncated, info

    def act(self, action: int) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one primitive action of the innermost task, past the decisions (for work inside a wait)."""
        inner = getattr(self.env, "act", self.env.step)
        result: tuple[Any, SupportsFloat, bool, bool, dict[str, Any]] = inner(action)
        return result


class ScalarisedEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """The scalarised view `r0 + λ r1` of a waiting environment, for single-objective libraries.

    >>> env = ScalarisedEnv(WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4)), lam=0.5)
    >>> _ = env.reset(seed=0)
    >>> env.step(4)[1]
    -4.5
    """

    def __init__(self, env: gym.Env[Any, Any], lam: float) -> None:
        self._weights: NDArray[np.float64] = Objective.named("scalar", lam).weights[0]
        gym.utils.RecordConstructorArgs.__init__(self, lam=lam)
        gym.Wrapper.__init__(self, env)
        self.lam = lam

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Carry out one decision; the vector reward is kept in `info["vector_reward"]`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        vector = np.asarray(reward)
        scalar = float(self._weights @ vector)
        return observation, scalar, terminated, truncated, {**info, "vector_reward": vector}


def waiting_env_of(env: gym.Env[Any, Any]) -> WaitingEnv:
    """Return the `WaitingEnv` in a stack of wrappers, or say that there is none."""
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, WaitingEnv):
            return layer
        layer = layer.env
    raise SpaceError(
        f"{env} is not a waiting environment; wrap it first: letitcook.WaitingEnv(env, wait=..., durations=...)"
    )


def horizon_of(env: gym.Env[Any, Any]) -> int | None:
    """Return the number of primitive steps after which `env` cuts an episode, None if it never does.

    >>> horizon_of(gym.make("MountainCar-v0"))
    200
    """
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, gym.wrappers.TimeLimit):
            return int(layer._max_episode_steps)
        layer = layer.env
    return None


def _discrete_actions(env: gym.Env[Any, Any], wait: Any) -> spaces.Discrete:
    space = env.action_space
    if not isinstance(space, spaces.Discrete):
        raise SpaceError(
            f"waiting needs discrete actions, and this environment's action space is {space}; "
            "discretise it, or wrap a policy that acts in it: letitcook.wrap(env, base, wait=..., durations=...)"
        )
    if isinstance(wait, bool) or not isinstance(wait, int | np.integer) or not space.contains(int(wait)):
        first, last = int(space.start), int(space.start + space.n) - 1
        raise SettingError(
            f"wait action {wait!r} is outside the action space {first}..{last}; "
            "give the index of the action that does nothing"
        )
    return space


def _action_names(env: gym.Env[Any, Any], space: spaces.Discrete) -> tuple[str, ...]:
    names = getattr(env, "action_names", None)
    task = task_of(env)
    if names is None and task is not None and len(task.actions) == space.n:
        names = task.actions
    return tuple(names) if names is not None else tuple(f"action {space.start + i}" for i in range(space.n))
