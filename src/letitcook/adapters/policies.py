"""Anything that chooses actions, as a `Policy`.

What a thing is, is told by its classes' names: no library is imported to find out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.adapters.sb3_normalise import NormalisedPolicy
from letitcook.adapters.skrl_agent import AgentPolicy
from letitcook.adapters.torch_module import ModulePolicy
from letitcook.core.decisions import Policy
from letitcook.errors import SettingError, SpaceError

KINDS = (
    "a Stable-Baselines3 or sb3-contrib model, a skrl agent, a torch.nn.Module with a value or logit for each action, "
    "an object with predict(observation), or a function observation -> action"
)
"""What can be a policy."""


class CallablePolicy:
    """A function `observation -> action` as a `Policy`.

    >>> CallablePolicy(lambda observation: 3).predict([0.0])
    (3, None)
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.batched = bool(getattr(function, "batched", False))
        """Whether it answers a batch of observations at once; only if the function has an attribute that says so."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the function's action."""
        return self.function(observation), None


class PredictingPolicy:
    """An object with a `predict` of its own, as a `Policy`.

    It is given those of `state`, `episode_start` and `deterministic` that it takes; an answer that is not a pair
    `(action, state)` is the action.

    >>> class Short:
    ...     def predict(self, observation):
    ...         return observation[0] > 0
    >>> PredictingPolicy(Short()).predict([1.0])
    (True, None)
    """

    def __init__(self, base: Any, batched: bool = False) -> None:
        self.base = base
        """The object inside."""
        self.batched = batched
        """Whether `predict` answers a batch of observations (leading axis) in one call."""
        self.observation_space: spaces.Space[Any] | None = getattr(base, "observation_space", None)
        self.action_space: spaces.Space[Any] | None = getattr(base, "action_space", None)
        self._takes = _parameters(base.predict)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the object's answer."""
        if self._takes is None:
            answer = self.base.predict(observation, state, episode_start, deterministic=deterministic)
        else:
            given = {"state": state, "episode_start": episode_start, "deterministic": deterministic}
            answer = self.base.predict(observation, **{name: given[name] for name in self._takes})
        return answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)


def as_policy(
    base: Any,
    observation_space: spaces.Space[Any] | None = None,
    action_space: spaces.Space[Any] | None = None,
    wait: Any = None,
) -> Policy:
    """Return a base policy of any known kind as a `Policy`.

    The result has an attribute `batched`: whether its `predict` answers a batch of observations (leading axis) in one
    call. What has that attribute and a `predict` already is returned as it is, and so is a policy of letitcook's own.
    The spaces and the wait action are the environment's; they matter to a torch.nn.Module, which has none of its own.

    >>> policy = as_policy(lambda observation: 2 if observation[1] > 0 else 0)
    >>> policy.predict([0.0, 0.5]), policy.batched
    ((2, None), False)
    >>> as_policy("model.zip")
    Traceback (most recent call last):
    ...
    letitcook.errors.SettingError: 'model.zip' is the name of a policy, not a policy; letitcook.named_policy reads ...
    """
    if isinstance(base, str):
        raise SettingError(
            f"{base!r} is the name of a policy, not a policy; letitcook.named_policy reads names such as "
            "'sb3:dqn:model.zip' and 'module:function'"
        )
    if inspect.isclass(base):
        raise SettingError(f"{base.__name__} is a class, not a policy; give an object of it: {base.__name__}(...)")
    if isinstance(base, ModulePolicy) and base.action_space is None:
        base = base.module
    if isinstance(base, Policy):
        if hasattr(base, "batched") or _has_class_of(base, "letitcook"):
            return base
        of_sb3 = _has_class_of(base, "stable_baselines3")
        shown = base.get_vec_normalize_env() if of_sb3 and hasattr(base, "get_vec_normalize_env") else None
        policy = PredictingPolicy(base, batched=of_sb3)
        return policy if shown is None else NormalisedPolicy(policy, shown.normalize_obs)
    if _has_class_of(base, "skrl.agents"):
        return AgentPolicy(base)
    if _has_class_of(base, "skrl.models"):
        raise SettingError(
            f"{type(base).__name__} is a model of skrl, which does not choose actions by itself; give its agent"
        )
    if _has_class_of(base, "torch.nn.modules.module"):
        if action_space is not None and not isinstance(action_space, spaces.Discrete):
            raise SpaceError(
                f"a torch.nn.Module is read as a value or logit for each of the actions of a Discrete space, and this "
                f"environment takes {action_space}; give a function observation -> action that calls the module"
            )
        return ModulePolicy(base, observation_space, action_space, wait)
    if callable(base):
        return CallablePolicy(base)
    raise SettingError(f"{base!r} ({type(base).__name__}) is not a policy; give {KINDS}")


def _has_class_of(base: Any, package: str) -> bool:
    """Return whether a class of `package` is among the classes of an object."""
    names = (cls.__module__ for cls in type(base).__mro__)
    return any(name == package or name.startswith(package + ".") for name in names)


def _parameters(predict: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return which of the optional arguments `predict` takes; None if it takes all of them in our order."""
    try:
        signature = inspect.signature(predict)
    except (TypeError, ValueError):  # a compiled function that does not tell
        return None
    try:
        signature.bind(np.zeros(1), None, None, deterministic=True)
    except TypeError:
        known = ("state", "episode_start", "deterministic")
        return tuple(name for name in known if name in signature.parameters)
    return None
