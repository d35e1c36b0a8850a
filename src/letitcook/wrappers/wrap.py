"""Waiting around a policy you already have.

The decisions of a wrapper are `{base, wait} ∪ W`: query the base policy for one primitive action, wait one step, or
commit to a longer wait. That is a `WaitingEnv` around `BasePolicyEnv`, an environment with two actions, so that
everything that learns, plans and evaluates works on it unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import gymnasium as gym

from letitcook.adapters import as_policy, check_spaces
from letitcook.adapters.actions import wait_action
from letitcook.core.decisions import Cost
from letitcook.errors import SettingError, SpaceError
from letitcook.wrappers.base_policy import WAIT, BasePolicyEnv
from letitcook.wrappers.features import Function
from letitcook.wrappers.hold import is_hold
from letitcook.wrappers.vector import WaitingVectorEnv
from letitcook.wrappers.waiting import WaitingEnv


@overload
def wrap(
    env: gym.Env[Any, Any],
    base: Any,
    wait: Any,
    durations: Iterable[int],
    gamma: float = 1.0,
    deterministic: bool = True,
    cost: Cost = "base",
    features: Function | None = None,
) -> WaitingEnv: ...


@overload
def wrap(
    env: gym.vector.VectorEnv[Any, Any, Any],
    base: Any,
    wait: Any,
    durations: Iterable[int],
    gamma: float = 1.0,
    deterministic: bool = True,
    cost: Cost = "base",
    features: Function | None = None,
) -> WaitingVectorEnv: ...


def wrap(
    env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any],
    base: Any,
    wait: Any,
    durations: Iterable[int],
    gamma: float = 1.0,
    deterministic: bool = True,
    cost: Cost = "base",
    features: Function | None = None,
) -> WaitingEnv | WaitingVectorEnv:
    """Return the waiting environment with decisions `{base, wait} ∪ W` around a base policy.

    `base` is a model of Stable-Baselines3 or sb3-contrib, a skrl agent, a torch.nn.Module with a value or logit for
    each action, an object with `predict`, or a function from observation to action. `wait` is any fixed action of the
    environment's space, or `"hold"`: the last action is sent again, and the wrapper sees it beside the observation (see
    `BasePolicyEnv`). What is to be few is the queries of the base (`cost="base"`), or all decisions, as in the paper
    (`cost="decisions"`). Vector environments become a `WaitingVectorEnv`.

    `features` is a function from an observation to a few numbers, which the wrapper sees in its place; the base sees
    the whole of it. For images, from which letitcook's small networks do not learn.

    >>> push = lambda observation: 2 if observation[1] > 0 else 0
    >>> env = wrap(gym.make("MountainCar-v0"), push, wait=1, durations=(2, 4))
    >>> [env.decisions.label(u) for u in range(env.decisions.n)]
    ['base', 'wait', 'wait 2', 'wait 4']
    >>> wrap(gym.make("Pendulum-v1"), lambda observation: [0.5], wait=0.0, durations=(2, 4)).action_space
    Discrete(4)
    >>> env = wrap(gym.make("Pendulum-v1"), lambda observation: [0.5], wait="hold", durations=(2, 4))
    >>> env.reset(seed=0)[0]["last_action"].tolist(), env.step(0)[0]["last_action"].tolist()
    ([0.0], [0.5])
    >>> env = wrap(gym.make("MountainCar-v0"), push, wait=1, durations=(2,), features=lambda seen: seen[1])
    >>> env.reset(seed=0)[0].tolist()  # the speed alone; the base sees the position too
    [0.0]
    """
    if not isinstance(env, gym.Env | gym.vector.VectorEnv):
        raise SpaceError(
            f"{type(env).__name__} is not an environment of Gymnasium; give gym.make(...) or gym.make_vec(...), also "
            "for a model that Stable-Baselines3 trained in its VecEnv: its normalisation comes with the model"
        )
    if isinstance(env, gym.vector.VectorEnv):
        if features is not None:
            raise SettingError(
                "features are for a single environment; of a vector environment, give its sub-environments an "
                "observation wrapper, and a base that reads what that shows"
            )
        seen, taken = env.single_observation_space, env.single_action_space
        known = None if is_hold(wait) else wait_action(wait, taken)
        policy = as_policy(base, seen, taken, known)
        check_spaces(policy, seen, taken, known)
        return WaitingVectorEnv(env, wait, durations, gamma, policy, deterministic, cost)
    policy = as_policy(base, env.observation_space, env.action_space, None if is_hold(wait) else wait)
    return WaitingEnv(BasePolicyEnv(env, policy, wait, deterministic, features), WAIT, durations, gamma, cost=cost)
