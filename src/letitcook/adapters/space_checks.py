"""Whether a policy was made for an environment: its own spaces, where it has some, beside the environment's."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.core.decisions import Policy
from letitcook.errors import SpaceError

TOLERANCE = 1e-6
"""Difference, relative to bounds above 1, below which the bounds of two action spaces are the same."""


def check_spaces(
    policy: Policy, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], wait: Any = None
) -> None:
    """Raise SpaceError if `policy` has spaces of its own that are not the environment's.

    Observation spaces must have the same kind and shape, whatever their bounds; action spaces also the same bounds.
    A policy need not know a wait that is the last action: it may have been added to its environment.

    >>> class ForTwoActions:
    ...     action_space = spaces.Discrete(2)
    ...     def predict(self, observation, state=None, episode_start=None, deterministic=True):
    ...         return 0, None
    >>> check_spaces(ForTwoActions(), spaces.Box(-1, 1, (2,)), spaces.Discrete(3))
    Traceback (most recent call last):
    ...
    letitcook.errors.SpaceError: a policy for another action space: its actions are Discrete(2), ...
    """
    own: Any = getattr(policy, "action_space", None)
    if isinstance(own, spaces.Space) and not any(
        same_actions(own, known) for known in known_actions(action_space, wait)
    ):
        raise SpaceError(
            f"a policy for another action space: its actions are {own}, and this environment's are {action_space}; "
            "give the environment that it was trained in, with the same wrappers, or a function observation -> action"
        )
    own = getattr(policy, "observation_space", None)
    if isinstance(own, spaces.Space) and not same_observations(own, observation_space):
        raise SpaceError(
            f"a policy for other observations: it takes {own}, and this environment gives {observation_space}; "
            "give the environment that it was trained in, with the same wrappers, or a function observation -> action"
        )


def known_actions(space: spaces.Space[Any], wait: Any = None) -> list[spaces.Space[Any]]:
    """Return the action spaces that a policy for `space` may know: itself, and without a wait that is its last action.

    >>> known_actions(spaces.Discrete(3), wait=2)
    [Discrete(3), Discrete(2)]
    """
    if isinstance(space, spaces.Discrete) and space.n > 1 and wait is not None and wait == space.start + space.n - 1:
        return [space, spaces.Discrete(int(space.n) - 1, start=int(space.start))]
    return [space]


def same_actions(a: spaces.Space[Any], b: spaces.Space[Any]) -> bool:
    """Return whether two spaces hold the same actions; the bounds of boxes may differ by their last digits."""
    if isinstance(a, spaces.Box) and isinstance(b, spaces.Box):
        return a.shape == b.shape and _near(a.low, b.low) and _near(a.high, b.high)
    return type(a) is type(b) and a == b


def same_observations(a: spaces.Space[Any], b: spaces.Space[Any]) -> bool:
    """Return whether a policy for observations in `a` can be given those in `b`."""
    if isinstance(a, spaces.Dict) and isinstance(b, spaces.Dict):
        return a.spaces.keys() == b.spaces.keys() and all(same_observations(a[k], b[k]) for k in a.spaces)
    if isinstance(a, spaces.Box) and isinstance(b, spaces.Box):
        # Stable-Baselines3 takes images with their channels first or last.
        return a.shape == b.shape or (
            len(b.shape) == 3 and a.shape in (b.shape[2:] + b.shape[:2], b.shape[1:] + b.shape[:1])
        )
    return type(a) is type(b) and a == b


def _near(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE))
