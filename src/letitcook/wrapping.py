"""Waiting around a policy you already have.

The decisions of a wrapper are `{base, wait} ∪ W`: ask the base policy for one primitive action, wait one step, or
commit to a longer wait. In the house's terms that is a `WaitingEnv` around `BasePolicyEnv`, an environment with two
actions, so that everything that learns, plans and evaluates works on it unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any, SupportsFloat, overload

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from letitcook.envs import task_named
from letitcook.errors import SettingError, SpaceError
from letitcook.foreign import CallablePolicy, as_policy, check_spaces
from letitcook.foreign.actions import checked_action, wait_action
from letitcook.waiting import WaitingEnv
from letitcook.wmdp import WRAPPER, Policy

if TYPE_CHECKING:
    from letitcook.waiting_vector import WaitingVectorEnv

__all__ = [
    "BASE",
    "WAIT",
    "BasePolicyEnv",
    "CallablePolicy",
    "base_env_of",
    "checked_action",
    "make",
    "wait_action",
    "wrap",
]

BASE, WAIT = 0, 1
"""The two primitive actions of a wrapped environment."""


class BasePolicyEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Two actions around an environment: 0 asks the base policy for one primitive action, 1 waits one step.

    The wait is any fixed action of the environment's space. The base may be stochastic (`deterministic=False`) and may
    keep a state between its calls, reset with each episode. Its queries are counted: `info["base_queries"]` is 1 in a
    step that asked it, else 0; `base_seconds` is the time spent inside its `predict` since the environment was made.

    >>> env = BasePolicyEnv(gym.make("MountainCar-v0"), CallablePolicy(lambda o: 2 if o[1] > 0 else 0), wait=1)
    >>> _ = env.reset(seed=0)
    >>> env.step(0)[4]["base_queries"], env.step(1)[4]["base_queries"]
    (1, 0)
    """

    action_names = WRAPPER

    def __init__(self, env: gym.Env[Any, Any], base: Policy, wait: Any, deterministic: bool = True) -> None:
        fixed = wait_action(wait, env.action_space)
        check_spaces(base, env.observation_space, env.action_space, fixed)
        gym.utils.RecordConstructorArgs.__init__(
            self, base=base, wait=fixed, deterministic=deterministic, _disable_deepcopy=True
        )
        gym.Wrapper.__init__(self, env)
        self.base = base
        self.wait = fixed
        self.deterministic = deterministic
        self.action_space = spaces.Discrete(2)
        self._observation: Any = None
        self._base_state: Any = None
        self._episode_start = True
        self.base_seconds = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and the base policy's state."""
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._base_state, self._episode_start = None, True
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Ask the base policy and do as it says, or wait one step."""
        asked = int(action) == BASE
        # An environment may change the array that it is given.
        chosen = self.base_action() if asked else np.copy(self.wait) if isinstance(self.wait, np.ndarray) else self.wait
        observation, reward, terminated, truncated, info = self.act(chosen)
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
        began = perf_counter()
        action, self._base_state = self.base.predict(
            self._observation, self._base_state, np.array([self._episode_start]), deterministic=self.deterministic
        )
        self.base_seconds += perf_counter() - began
        self._episode_start = False
        return checked_action(action, self.env.action_space)


def base_env_of(env: gym.Env[Any, Any]) -> BasePolicyEnv | None:
    """Return the `BasePolicyEnv` in a stack of wrappers, None if no base policy is wrapped.

    >>> base_env_of(wrap(gym.make("MountainCar-v0"), lambda o: 2, wait=1, durations=(2,))).action_names
    ('base', 'wait')
    """
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, BasePolicyEnv):
            return layer
        layer = layer.env
    return None


@overload
def wrap(
    env: gym.Env[Any, Any],
    base: Any,
    wait: Any,
    durations: Iterable[int],
    gamma: float = 1.0,
    deterministic: bool = True,
) -> WaitingEnv: ...


@overload
def wrap(
    env: gym.vector.VectorEnv[Any, Any, Any],
    base: Any,
    wait: Any,
    durations: Iterable[int],
    gamma: float = 1.0,
    deterministic: bool = True,
) -> WaitingVectorEnv: ...


def wrap(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    base: Any,
    wait: Any,
    durations: Iterable[int],
    gamma: float = 1.0,
    deterministic: bool = True,
) -> WaitingEnv | WaitingVectorEnv:
    """Return the waiting environment with decisions `{base, wait} ∪ W` around a base policy.

    `base` is a model of Stable-Baselines3 or sb3-contrib, a skrl agent, a torch.nn.Module with a value or logit for
    each action, an object with `predict`, or a function from observation to action; `wait` is any fixed action of the
    environment's space. Vector environments become a `WaitingVectorEnv`.

    >>> push = lambda observation: 2 if observation[1] > 0 else 0
    >>> env = wrap(gym.make("MountainCar-v0"), push, wait=1, durations=(2, 4))
    >>> [env.decisions.label(u) for u in range(env.decisions.n)]
    ['base', 'wait', 'wait 2', 'wait 4']
    >>> wrap(gym.make("Pendulum-v1"), lambda observation: [0.5], wait=0.0, durations=(2, 4)).action_space
    Discrete(4)
    """
    if isinstance(env, gym.vector.VectorEnv):
        from letitcook.waiting_vector import WaitingVectorEnv  # stands above this module

        seen, taken = env.single_observation_space, env.single_action_space
        fixed = wait_action(wait, taken)
        policy = as_policy(base, seen, taken, fixed)
        check_spaces(policy, seen, taken, fixed)
        return WaitingVectorEnv(env, fixed, durations, gamma, policy, deterministic)
    policy = as_policy(base, env.observation_space, env.action_space, wait)
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
