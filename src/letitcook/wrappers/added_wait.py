"""A wait action for environments that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium import spaces

from letitcook.errors import SettingError, SpaceError
from letitcook.storage.imports import module_named, thing_named
from letitcook.wrappers.waiting import action_names

Step = tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]
"""What `step` returns: observation, reward, terminated, truncated, info."""


class AddedWait(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Add one action to a discrete environment: the last one, which makes the passive step.

    `passive` is a function that takes the *unwrapped* environment, lets one step pass in which the agent does nothing,
    and returns what `step` returns; or the name of a method of the unwrapped environment that does. The wrappers in
    between see an ordinary step (`TimeLimit` counts it), and are told the environment's first action.

    >>> def no_force(cartpole):
    ...     force, cartpole.force_mag = cartpole.force_mag, 0.0
    ...     try:
    ...         return cartpole.step(0)
    ...     finally:
    ...         cartpole.force_mag = force
    >>> env = AddedWait(gym.make("CartPole-v1"), passive=no_force)
    >>> env.action_space, env.wait, env.action_names
    (Discrete(3), 2, ('action 0', 'action 1', 'wait'))
    >>> _ = env.reset(seed=0)
    >>> cart, pole = env.step(env.wait)[0][[1, 3]]  # their velocities: neither has been pushed
    >>> f"{cart:.3f} {pole:.3f}"
    '-0.022 -0.063'
    """

    def __init__(self, env: gym.Env[Any, Any], passive: str | Callable[[Any], Step]) -> None:
        space = env.action_space
        if not isinstance(space, spaces.Discrete):
            raise SpaceError(
                f"a wait can be added to discrete actions only, and this environment's action space is {space}; "
                "wrap a policy that acts in it instead: letitcook.wrap(env, base, wait=..., durations=...)"
            )
        _check_passive(env.unwrapped, passive)
        gym.utils.RecordConstructorArgs.__init__(self, passive=passive)
        gym.Wrapper.__init__(self, env)
        n, start = int(space.n), int(space.start)
        self.action_space = spaces.Discrete(n + 1, start=start)
        self.action_names = (*action_names(env, space), "wait")
        self._passive = passive
        self._first = start
        self._wait = start + n

    @property
    def wait(self) -> int:
        """The added action."""
        return self._wait

    def step(self, action: Any) -> Step:
        """Do an action of the environment, or let one step pass."""
        if action != self._wait:
            return self.env.step(action)
        with _stepping(self.env.unwrapped, self._passive):
            return self.env.step(self._first)


def passive_named(text: str) -> str | Callable[[Any], Step]:
    """Return the passive step that `text` names: `module:function`, or a method of the unwrapped environment.

    Modules are also looked for in the current folder.

    >>> passive_named("idle")
    'idle'
    >>> passive_named("math:sqrt")
    <built-in function sqrt>
    """
    module_name, colon, function_name = text.partition(":")
    if not colon:
        if not text.isidentifier():
            raise SettingError(f"passive step {text!r} is not a name; give module:function, or the name of a method")
        return text
    function: Callable[[Any], Step] = thing_named(module_named(module_name), function_name, "function")
    if not callable(function):
        raise SettingError(f"passive step {text!r} is {function!r}, which is not a function")
    return function


def _check_passive(inside: gym.Env[Any, Any], passive: Any) -> None:
    if isinstance(passive, str):
        if not callable(getattr(inside, passive, None)):
            raise SettingError(
                f"passive step {passive!r} is not a method of {type(inside).__name__}; "
                "give a function that takes the environment and returns what step returns"
            )
    elif not callable(passive):
        raise SettingError(
            f"passive step {passive!r} is neither a function nor the name of a method; "
            "give a function that takes the unwrapped environment and returns what step returns"
        )


def _passive_step(inside: gym.Env[Any, Any], passive: str | Callable[[Any], Step]) -> Step:
    """Make the passive step, and check that it answers as a step does."""
    result: Any = getattr(inside, passive)() if isinstance(passive, str) else passive(inside)
    if not isinstance(result, tuple) or len(result) != 5:
        raise SpaceError(
            f"the passive step {passive!r} returned {result!r}; it must return what step returns: "
            "(observation, reward, terminated, truncated, info)"
        )
    return result


@contextmanager
def _stepping(inside: Any, passive: str | Callable[[Any], Step]) -> Iterator[None]:
    """Let `inside.step` be the passive one; within it, `inside.step` is the environment's own."""
    own = vars(inside).get("step")  # None: the class's method, as usual

    def restore() -> None:
        if own is None:
            del inside.step
        else:
            inside.step = own

    def step(_: Any) -> Step:
        restore()
        try:
            return _passive_step(inside, passive)
        finally:
            inside.step = step  # a wrapper that skips frames calls it again

    inside.step = step
    try:
        yield
    finally:
        restore()
