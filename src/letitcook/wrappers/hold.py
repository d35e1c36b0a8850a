"""Holding: a wait that sends the last action again.

Where nothing can be done that does nothing (a lander falls, a pendulum swings on), the best wait is often to keep on
doing what was done last. What a held step does then depends on the last action, so whoever decides has to see it:
the observation becomes `{"observation": ..., "last_action": ...}`. A base policy still gets its own observation.
"""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.errors import SpaceError
from letitcook.wrappers.env_returns import begin

HOLD = "hold"
"""In place of a wait action: the last action that was sent."""


def is_hold(wait: Any) -> bool:
    """Return whether a wait is to hold the last action.

    >>> is_hold("hold"), is_hold(0)
    (True, False)
    """
    return isinstance(wait, str) and wait == HOLD


class LastAction:
    """How the last action stands in an observation: a vector, all zeros before the first action of an episode.

    Numbers of a Box as they are, whole numbers one-hot, as Gymnasium's `flatten` does it.

    >>> last = LastAction(spaces.Discrete(3, start=1))
    >>> last.vector(2).tolist(), last.vector(None).tolist()
    ([0.0, 1.0, 0.0], [0.0, 0.0, 0.0])
    """

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        if not action_space.is_np_flattenable:
            raise SpaceError(
                f"actions of {action_space} cannot be written as a vector, so a held one cannot be shown to the policy "
                "that waits; give a fixed action as the wait"
            )
        self.action_space = action_space
        flat: Any = spaces.flatten_space(action_space)
        low, high = np.minimum(flat.low, 0.0), np.maximum(flat.high, 0.0)
        self.space = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        """Space of the vector."""

    def vector(self, action: Any) -> NDArray[np.float32]:
        """Return an action as a vector; None if there was none."""
        if action is None:
            return np.zeros(self.space.shape, dtype=np.float32)
        return np.asarray(spaces.flatten(self.action_space, action), dtype=np.float32)

    def space_with(self, observation_space: spaces.Space[Any]) -> spaces.Dict:
        """Return the space of observations with the last action."""
        return spaces.Dict({"observation": observation_space, "last_action": self.space})

    def shown(self, observation: Any, action: Any) -> dict[str, Any]:
        """Return an observation with the last action."""
        return {"observation": observation, "last_action": self.vector(action)}


class HoldEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Add one action to a discrete environment, the last one, which sends the action before it again.

    Wrappers inside see the action that is sent. Before the first action of an episode there is none to hold: the first
    one of the space is sent.

    >>> env = HoldEnv(gym.make("MountainCar-v0"))
    >>> env.action_space, env.action_names[-1]
    (Discrete(4), 'hold')
    >>> _ = env.reset(seed=0)
    >>> _ = env.step(2)
    >>> env.step(3)[0]["last_action"].tolist()  # held: the push to the right
    [0.0, 0.0, 1.0]
    """

    holds = True
    """That its wait action sends the last action again."""

    def __init__(self, env: gym.Env[Any, Any], names: tuple[str, ...] | None = None) -> None:
        space = env.action_space
        if not isinstance(space, spaces.Discrete):
            raise SpaceError(
                f"waiting from scratch needs discrete actions, and this environment's action space is {space}; "
                "discretise it, or wrap a policy that acts in it: letitcook.wrap(env, base, wait='hold', durations=...)"
            )
        gym.utils.RecordConstructorArgs.__init__(self, names=names)
        gym.Wrapper.__init__(self, env)
        self._last_action = LastAction(space)
        self._first, self._hold = int(space.start), int(space.start + space.n)
        self.action_space = spaces.Discrete(int(space.n) + 1, start=int(space.start))
        self.observation_space = self._last_action.space_with(env.observation_space)
        known = names or tuple(f"action {space.start + i}" for i in range(int(space.n)))
        self.action_names = (*known, HOLD)
        self._action: Any = None

    @property
    def wait(self) -> int:
        """The action that holds."""
        return self._hold

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; nothing has been sent in it."""
        observation, info = begin(self.env, seed, options)
        self._action = None
        return self._last_action.shown(observation, None), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Send an action, or the last one again."""
        if int(action) != self._hold:
            self._action = int(action)
        elif self._action is None:
            self._action = self._first
        observation, reward, terminated, truncated, info = self.env.step(self._action)
        return self._last_action.shown(observation, self._action), reward, terminated, truncated, info
