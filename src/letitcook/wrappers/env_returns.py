"""What a user's environment returns, checked: errors name the primitive step and what is wrong with it.

An environment of an older form, or with a slip in it, would else be learned from as it is: `reset()` that returns an
observation of two numbers alone unpacks as `(observation, info)`.
"""

from __future__ import annotations

import inspect
import signal
import threading
import time
from typing import Any, NoReturn, SupportsFloat

import gymnasium as gym
import numpy as np

from letitcook.errors import EnvironmentTimeError, SettingError, SpaceError

LONGEST_EPISODE = 100_000
"""Primitive steps after which an episode of an evaluation counts as endless, where there is no time limit."""


def reset_parts(returned: Any) -> tuple[Any, dict[str, Any]]:
    """Return `(observation, info)` as `reset()` gave them, or raise if it gave something else.

    >>> reset_parts((0, {}))
    (0, {})
    >>> reset_parts(np.zeros(2))
    Traceback (most recent call last):
    ...
    letitcook.errors.SpaceError: reset() returned array([0., 0.]), which is not (observation, info) with ...
    """
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], dict):
        return returned
    raise SpaceError(
        f"reset() returned {_shown(returned)}, which is not (observation, info) with a dict as info; the environment "
        "must follow Gymnasium's API"
    )


def begin(
    env: gym.Env[Any, Any], seed: int | None, options: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Reset an environment and return `(observation, info)`, or raise what is wrong with its `reset`.

    >>> class Old(gym.Env):
    ...     def reset(self):
    ...         return 0, {}
    >>> begin(Old(), seed=0)
    Traceback (most recent call last):
    ...
    letitcook.errors.SpaceError: reset() of Old takes no seed and no options; define it as ...
    """
    try:
        return reset_parts(env.reset(seed=seed, options=options))
    except TypeError as error:
        said = _reset_without(env)
        if said is None:  # it takes them, so this is another mistake, in its own code
            raise
        raise SpaceError(
            f"{said}; define it as Gymnasium's API does: def reset(self, *, seed=None, options=None), and call "
            "super().reset(seed=seed) first. Without a seed no episode can be played twice, and policies cannot be "
            "compared on the same ones"
        ) from error


def _reset_without(env: gym.Env[Any, Any]) -> str | None:
    """Return which layer of an environment has a `reset` that does not take what Gymnasium gives it, if any."""
    layer: Any = env
    while layer is not None:
        try:
            taken = inspect.signature(layer.reset).parameters
        except (TypeError, ValueError, AttributeError):  # code of another language does not tell
            return None
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken.values()):
            missing = [f"no {name}" for name in ("seed", "options") if name not in taken]
            if missing:
                return f"reset() of {type(layer).__name__} takes {' and '.join(missing)}"
        layer = layer.env if isinstance(layer, gym.Wrapper) else None
    return None


def step_parts(returned: Any, step: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
    """Return the five parts that `step()` gave, or raise if they are others; `step` counts in the episode.

    >>> step_parts((0, -1.0, np.False_, False, {}), step=3)
    (0, -1.0, False, False, {})
    >>> step_parts((0, -1.0, False, {}), step=3)
    Traceback (most recent call last):
    ...
    letitcook.errors.SpaceError: step() returned 4 values at primitive step 3 of an episode, not the 5 of Gymnasium's...
    """
    if type(returned) is tuple and len(returned) == 5:
        _, _, terminated, truncated, info = returned
        if type(info) is dict and type(terminated) is bool and type(truncated) is bool:  # nearly always
            return returned
    return _unusual(returned, step)


def _unusual(returned: Any, step: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
    """Return the parts of a step that are unusual but mean the same, or raise what is wrong."""
    if not isinstance(returned, tuple | list) or len(returned) != 5:
        what = f"{len(returned)} values" if isinstance(returned, tuple | list) else _shown(returned)
        raise SpaceError(
            f"step() returned {what} at primitive step {step} of an episode, not the 5 of Gymnasium's API: "
            "(observation, reward, terminated, truncated, info)"
        )
    observation, reward, terminated, truncated, info = returned
    for name, said in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(said, bool | np.bool_ | int | np.integer):
            _wrong(name, said, "True or False", step)
    if not isinstance(info, dict):
        _wrong("info", info, "a dict", step)
    return observation, reward, bool(terminated), bool(truncated), info


def number_of(reward: Any, step: int) -> float:
    """Return a reward as a number, or raise if it is none.

    >>> number_of(np.float32(0.5), step=3)
    0.5
    """
    if isinstance(reward, str | bytes):
        _wrong("reward", reward, "one number", step)
    try:
        return float(reward)
    except OverflowError:
        _wrong("reward", reward, "a number that a float can hold", step)
    except (TypeError, ValueError):
        _wrong(
            "reward",
            reward,
            "one number; make a vector of objectives one first, with a wrapper such as "
            "mo_gymnasium.wrappers.LinearReward",
            step,
        )


def _wrong(name: str, said: Any, wanted: str, step: int) -> NoReturn:
    raise SpaceError(
        f"the environment gave the {name} {_shown(said)} at primitive step {step} of an episode; it must be {wanted}"
    )


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_length(steps: int, limit: int | None) -> None:
    """Raise if an episode of an evaluation has gone on for so long that it will not end by itself.

    `limit` is the environment's own time limit, None if it has none.
    """
    if limit is None and steps > LONGEST_EPISODE:
        raise SettingError(
            f"an episode did not end within {LONGEST_EPISODE:,} primitive steps, and the environment has no time "
            "limit; give it one: gymnasium.wrappers.TimeLimit(env, max_episode_steps=...), inside WaitingEnv"
        )


class StepDeadline(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """An environment whose `reset` and `step` must return within some seconds, for ones that hang.

    Where they do not, they are interrupted and `EnvironmentTimeError` says in which step; a run in a folder keeps what
    it has. It works by a timer signal in the main thread, so code that never comes back to Python cannot be
    interrupted. Elsewhere the time is measured, and the error comes when the call returns.

    >>> env = StepDeadline(gym.make("MountainCar-v0"), seconds=5.0)
    >>> env.reset(seed=0)[1], env.step(1)[1]
    ({}, -1.0)
    """

    def __init__(self, env: gym.Env[Any, Any], seconds: float) -> None:
        if not 0.0 < seconds < float("inf"):
            raise SettingError(f"seconds = {seconds} is not allowed; give a time above 0, such as 5")
        gym.utils.RecordConstructorArgs.__init__(self, seconds=seconds)
        gym.Wrapper.__init__(self, env)
        self.seconds = seconds
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment in time."""
        self._steps = 0
        with _Timer(self.seconds, "reset()"):
            return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one action in time."""
        self._steps += 1
        with _Timer(self.seconds, f"step({action!r}), primitive step {self._steps} of an episode,"):
            return self.env.step(action)


class _Timer:
    """Raises when a block takes too long."""

    def __init__(self, seconds: float, what: str) -> None:
        self.error = EnvironmentTimeError(f"{what} did not return within {seconds:g} s; does the environment hang?")
        self.seconds = seconds
        self.interrupts = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        self.began = time.monotonic()
        if self.interrupts:
            self.before = signal.signal(signal.SIGALRM, self._late)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def _late(self, number: int, frame: Any) -> None:
        raise self.error

    def __exit__(self, *raised: object) -> None:
        if self.interrupts:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self.before)
        elif raised[0] is None and time.monotonic() - self.began > self.seconds:
            raise self.error
