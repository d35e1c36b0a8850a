"""A base policy as an environment with two actions: ask it for one primitive action, or wait one step."""

from __future__ import annotations

from time import perf_counter
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from letitcook.adapters import check_spaces
from letitcook.adapters.actions import checked_action, wait_action
from letitcook.core.decisions import WRAPPER, Policy
from letitcook.errors import SpaceError
from letitcook.wrappers.env_returns import begin
from letitcook.wrappers.features import Features, Function
from letitcook.wrappers.hold import HOLD, LastAction, is_hold

BASE, WAIT = 0, 1
"""The two primitive actions of a wrapped environment."""


class BasePolicyEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Two actions around an environment: 0 queries the base policy for one primitive action, 1 waits one step.

    The wait is any fixed action of the environment's space, or `"hold"`: the last action that was sent. Whoever decides
    then sees that action beside the observation (see `hold.py`), the base policy does not; and an episode that begins
    with a wait queries the base, as there is nothing to hold yet. The base may be stochastic (`deterministic=False`)
    and may keep a state between its calls, reset with each episode. Its queries are counted: `info["base_queries"]` is
    1 in a step that queried it, else 0; `base_seconds` is the time spent in its `predict` so far. Where there are
    `features`, whoever decides sees those in place of the observation.

    >>> from letitcook.adapters import CallablePolicy
    >>> env = BasePolicyEnv(gym.make("MountainCar-v0"), CallablePolicy(lambda o: 2 if o[1] > 0 else 0), wait=1)
    >>> _ = env.reset(seed=0)
    >>> env.step(0)[4]["base_queries"], env.step(1)[4]["base_queries"]
    (1, 0)
    """

    action_names = WRAPPER

    def __init__(
        self,
        env: gym.Env[Any, Any],
        base: Policy,
        wait: Any,
        deterministic: bool = True,
        features: Function | None = None,
    ) -> None:
        self.holds = is_hold(wait)
        fixed = HOLD if self.holds else wait_action(wait, env.action_space)
        check_spaces(base, env.observation_space, env.action_space, None if self.holds else fixed)
        last = LastAction(env.action_space) if self.holds else None
        gym.utils.RecordConstructorArgs.__init__(
            self, base=base, wait=fixed, deterministic=deterministic, features=features, _disable_deepcopy=True
        )
        gym.Wrapper.__init__(self, env)
        self.base = base
        self.wait: Any = fixed
        self.deterministic = deterministic
        self.action_space = spaces.Discrete(2)
        self._last_action = last
        self._action: Any = None
        self.features = None if features is None else Features(features, env.observation_space)
        self.seen_space = env.observation_space if self.features is None else self.features.space
        """Space of what whoever decides sees, without the last action."""
        self.observation_space = self.seen_space if last is None else last.space_with(self.seen_space)
        self._observation: Any = None
        self._base_state: Any = None
        self._episode_start = True
        self.base_seconds = 0.0
        self.base_queries = 0
        """Queries of the base policy since the environment was made."""
        self.episodes = 0
        """Episodes that were begun since then."""

    @property
    def observation(self) -> Any:
        """What the base policy sees now."""
        return self._observation

    def seen_of(self, observation: Any) -> Any:
        """Return what whoever decides sees of an observation: its features, or itself."""
        return observation if self.features is None else self.features(observation)

    @property
    def last_action(self) -> Any:
        """The action that was sent last in this episode; None if there was none."""
        return self._action

    def waiting_action(self) -> Any:
        """Return the action that waits: the fixed one, or the last one again."""
        return self._action if self.holds else self.wait

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and the base policy's state."""
        self._observation, info = begin(self.env, seed, options)
        self._base_state, self._episode_start, self._action = None, True, None
        self.episodes += 1
        return self._shown(), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Query the base policy and do as it says, or wait one step."""
        asked = int(action) == BASE or (self.holds and self._action is None)
        chosen = self.base_action() if asked else self.waiting_action()
        observation, reward, terminated, truncated, info = self.act(chosen)
        return observation, reward, terminated, truncated, {**info, "base_queries": int(asked)}

    def act(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one action of the environment inside."""
        inner = getattr(self.env, "act", self.env.step)
        self._action = action
        # An environment may change the array that it is given.
        sent = np.copy(action) if isinstance(action, np.ndarray) else action
        self._observation, reward, terminated, truncated, info = inner(sent)
        return self._shown(), reward, terminated, truncated, info

    def _shown(self) -> Any:
        """Return what whoever decides sees."""
        seen = self.seen_of(self._observation)
        return seen if self._last_action is None else self._last_action.shown(seen, self._action)

    def base_action(self) -> Any:
        """Query the base policy at the current observation."""
        if self._observation is None:
            raise SpaceError("the wrapped environment was not reset; call reset() first")
        action, self._base_state = self._answer(self._observation, self._base_state, self._episode_start)
        self._episode_start = False
        return action

    @property
    def remembers(self) -> bool:
        """Whether the base policy has kept a state in this episode, so that its answers depend on more than it sees."""
        return self._base_state is not None

    def answer_at(self, observation: Any) -> Any:
        """Query a base policy that keeps no state at any observation; it counts like every other query."""
        return self._answer(observation, None, True)[0]

    def _answer(self, observation: Any, state: Any, start: bool) -> tuple[Any, Any]:
        began = perf_counter()
        action, state = self.base.predict(observation, state, np.array([start]), deterministic=self.deterministic)
        self.base_seconds += perf_counter() - began
        self.base_queries += 1
        return checked_action(action, self.env.action_space), state


def base_env_of(env: gym.Env[Any, Any]) -> BasePolicyEnv | None:
    """Return the `BasePolicyEnv` in a stack of wrappers, None if no base policy is wrapped.

    >>> base_env_of(gym.make("MountainCar-v0")) is None
    True
    """
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, BasePolicyEnv):
            return layer
        layer = layer.env
    return None
