"""Environments that are learned in: what is refused, and what is warned of."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from letitcook.errors import SettingError, SpaceError
from letitcook.storage.spaces import can_be_flat, numbers_in, text_in
from letitcook.wrappers.waiting import WaitingEnv, waiting_env_of

UNCHANGING = (gym.wrappers.OrderEnforcing, gym.wrappers.PassiveEnvChecker, gym.wrappers.RecordEpisodeStatistics)
"""Wrappers outside of `WaitingEnv` that change nothing of what is learned."""
MANY_NUMBERS = 2_000
"""Numbers of an observation above which it is taken for an image."""


def outermost(env: gym.Env[Any, Any]) -> WaitingEnv:
    """Return the waiting environment, or raise if wrappers around it change what happens: they would be left out."""
    inside, layer = waiting_env_of(env), env
    while layer is not inside and isinstance(layer, gym.Wrapper):
        if not isinstance(layer, UNCHANGING):
            raise SettingError(
                f"the wrapper {type(layer).__name__} is outside of WaitingEnv, and learn would leave it out; put it "
                "around the environment itself, inside of WaitingEnv (for a scalarised reward: learn(..., 'scalar', λ))"
            )
        layer = layer.env
    return inside


def warn_of_observations(space: spaces.Space[Any]) -> None:
    """Warn of what networks of a few small layers do not learn from: text, which is left out, and images."""
    said = text_in(space)
    if said:
        warnings.warn(
            f"the text in the observations ({', '.join(said)}) is left out: networks read numbers", stacklevel=5
        )
    readable = numbers_in(space)
    size = spaces.flatdim(readable) if can_be_flat(readable) else 0
    if size > MANY_NUMBERS:
        warnings.warn(
            f"observations of {size:,} numbers look like images, from which letitcook's small networks learn slowly or "
            "not at all; show a few features instead, such as positions, or the features of a network you have: around "
            "a base policy with letitcook.wrap(..., features=function), else with an observation wrapper around the "
            "environment (gymnasium.wrappers.TransformObservation)",
            stacklevel=5,
        )


def check_evaluation_env(env: Any, of_training: Any) -> WaitingEnv:
    """Return the environment for evaluations, or raise if it differs from that of the training."""
    if isinstance(env, gym.vector.VectorEnv) or not isinstance(env, gym.Env):
        raise SpaceError("eval_env must be one waiting environment; make it like the one for training, without vectors")
    inside = outermost(env)
    seen = getattr(of_training, "observation_space", None) or of_training.single_observation_space
    if inside.decisions != of_training.decisions or inside.observation_space != seen:
        raise SpaceError(
            f"eval_env has {inside.decisions} and shows {inside.observation_space}, and the environment for training "
            f"has {of_training.decisions} and shows {seen}; make both alike"
        )
    return inside
