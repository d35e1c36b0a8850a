"""Waiting around a policy you already have.

The decisions of a wrapper are `{base, wait} ∪ W`: ask the base policy for one primitive action, wait one step, or
commit to a longer wait. In the house's terms that is a `WaitingEnv` around `BasePolicyEnv`, an environment with two
actions, so that everything that learns, plans and evaluates works on it unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from letitcook.envs import task_named
from letitcook.errors import SettingError, SpaceError
from letitcook.waiting import WaitingEnv
from letitcook.wmdp import Policy

BASE, WAIT = 0, 1
"""The two primitive actions of a wrapped environment."""


class CallablePolicy:
    """A function `observation -> action` as a `Policy`.

    >>> CallablePolicy(lambda observation: 3).predict([0.0])
    (3, None)
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the function's action."""
        return self.function(observation), None


class BasePolicyEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Two actions around an environment: 0 asks the base policy for one primitive action, 1 waits one step.

    The base may be stochastic (`deterministic=False`) and may keep a state between its calls, reset with each
    episode. Its queries are counted: `info["base_queries"]` is 1 in a step that asked it, else 0.

    >>> env = BasePolicyEnv(gym.make("MountainCar-v0"), CallablePolicy(lambda o: 2 if o[1] > 0 else 0), wait=1)
    >>> _ = env.reset(seed=0)
    >>> env.step(0)[4]["base_queries"], env.step(1)[4]["base_queries"]
    (1, 0)
    """

    action_names = ("base", "wait")

    def __init__(self, env: gym.Env[Any, Any], base: Policy, wait: Any, deterministic: bool = True) -> None:
        if not env.action_space.contains(wait) and not env.action_space.contains(np.asarray(wait)):
            raise SettingError(
                f"wait action {wait!r} is outside the action space {env.action_space}; "
                "give the action that does nothing"
            )
        super().__init__(env)
        self.base = base
        self.wait = wait
        self.deterministic = deterministic
        self.action_space = spaces.Discrete(2)
        self._observation: Any = None
        self._base_state: Any = None
        self._episode_start = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and the base policy's state."""
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._base_state, self._episode_start = None, True
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Ask the base policy and do as it says, or wait one step."""
        asked = int(action) == BASE
        observation, reward, terminated, truncated, info = self.act(self.base_action() if asked else self.wait)
        return observation, reward, terminated, truncated, {**info, "base_queries": int(asked)}

    def act(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one action of the environment inside."""
        inner = getattr(self.env, "act", self.env.step)
        self._observation, reward, terminated, truncated, info = inner(action)
        return self._observation, reward, terminated, truncated, info

    def base_action(self) -> Any:
        """Query the base policy at the current observation."""
        if self._observation is None:
            raise SpaceError("the wrapped environment was not reset; call reset() first")
        action, self._base_state = self.base.predict(
            self._observation, self._base_state, np.array([self._episode_start]), deterministic=self.deterministic
        )
        self._episode_start = False
        return checked_action(action, self.env.action_space)


def checked_action(action: Any, space: spaces.Space[Any]) -> Any:
    """Return a base policy's action in the form that `space` takes, or say what is wrong with it."""
    if isinstance(space, spaces.Discrete):
        array = np.asarray(action)
        if array.size != 1 or not np.isfinite(array).all() or array.ravel()[0] != int(array.ravel()[0]):
            raise SpaceError(f"the base policy answered {action!r}, which is not one action of {space}")
        action = int(array.ravel()[0])
    else:
        action = np.asarray(action, dtype=space.dtype).reshape(space.shape or ())
    if not space.contains(action):
        raise SpaceError(
            f"the base policy answered {action!r}, which is outside the action space {space}; "
            "was it trained for another environment?"
        )
    return action


def wrap(
    env: gym.Env[Any, Any],
    base: Policy | Callable[[Any], Any],
    wait: Any,
    durations: Iterable[int],
    gamma: float = 1.0,
    deterministic: bool = True,
) -> WaitingEnv:
    """Return the waiting environment with decisions `{base, wait} ∪ W` around a base policy.

    `base` is anything with Stable-Baselines3's `predict`, or a function from observation to action.

    >>> push = lambda observation: 2 if observation[1] > 0 else 0
    >>> env = wrap(gym.make("MountainCar-v0"), push, wait=1, durations=(2, 4))
    >>> [env.decisions.label(u) for u in range(env.decisions.n)]
    ['base', 'wait', 'wait 2', 'wait 4']
    """
    policy = base if isinstance(base, Policy) else CallablePolicy(base)
    return WaitingEnv(BasePolicyEnv(env, policy, wait, deterministic), wait=WAIT, durations=durations, gamma=gamma)


def make(name: str, mode: str = "scratch", durations: Iterable[int] | None = None, **kwargs: Any) -> WaitingEnv:
    """Return a task of the paper as a waiting environment, from scratch or around its handwritten base policy.

    `durations` replaces the task's own; other arguments go to the environment (`render_mode`, ...).

    >>> make("cook").decisions.durations
    (5, 15)
    >>> make("coffee", mode="wrap").action_space
    Discrete(4)
    """
    task = task_named(name)
    waits = task.durations if durations is None else tuple(durations)
    env = gym.make(task.env_id, **kwargs)
    if mode == "scratch":
        return WaitingEnv(env, task.wait, waits)
    if mode != "wrap":
        raise SettingError(f"mode {mode!r} is not known; use 'scratch' or 'wrap'")
    if task.base_policy is None:
        raise SettingError(f"{name} has no handwritten base policy; wrap one of yours: letitcook.wrap(env, base, ...)")
    return wrap(env, task.base_policy(), task.wait, waits)
