"""Waiting environments: any Gymnasium environment with discrete actions, plus commitments to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import Cost, Decisions, check_durations
from letitcook.core.objective import Objective
from letitcook.errors import SettingError, SpaceError
from letitcook.wrappers.env_returns import begin, number_of, step_parts
from letitcook.wrappers.hold import HoldEnv, is_hold

solve_front: Callable[[WaitingEnv, float], list[NDArray[np.float64]]] | None = None
"""What computes a Pareto front. Set by `finite.front`, which knows tables as this module does not."""


class WaitingEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Turn an environment with discrete actions into a waiting MDP.

    Action `|A|+i` commits to the wait action for `durations[i]` primitive steps, with no sensing in between; it ends
    early where the episode ends. The reward is the pair `(task, waiting)` in MO-Gymnasium's convention (an array, with
    its `reward_space`); waiting is -1 for every decision, or with `cost="base"` for every query of a base
    policy (and -0.01 for a decision without one).
    `info` holds what a learner needs:

    - `elapsed`: primitive steps that were executed, `requested`: those that were requested;
    - `discount`: `γ^elapsed`, the weight of the next decision's value;
    - `task_reward`: the undiscounted sum of the primitive rewards (the reward's task part is `Σ γ^i r_i`);
    - `base_queries`: how often a wrapped base policy was queried (see `wrap`);
    - `intermediate`: the `(observation, reward)` of each primitive step, only if `intermediate=True` was requested.
      They are for learning; a policy never sees them.

    With `action_repeat=k` every primitive action is sent k times before the policy is asked again. A slower clock is
    often no worse and easier to learn by, and is where waits of several steps then begin from.

    With `wait="hold"` a wait sends the last action again, as one more action at the end of the others; the observation
    then holds that action too, see `HoldEnv`.

    The other keys are those of the last primitive step. Observations of any kind pass through as they are. `render`
    shows the environment as it is after a decision; to film every primitive step, put `RecordVideo` or
    `RenderCollection` inside, around the environment itself.

    >>> env = WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4, 8))
    >>> env.action_space
    Discrete(6)
    >>> _ = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(5)
    >>> reward.tolist(), info["elapsed"], env.decisions.label(5)
    ([-8.0, -1.0], 8, 'wait 8')
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        wait: int | str,
        durations: Iterable[int],
        gamma: float = 1.0,
        intermediate: bool = False,
        cost: Cost = "decisions",
        action_repeat: int = 1,
    ) -> None:
        self._durations = check_durations(durations)
        check_gamma(gamma)
        gym.utils.RecordConstructorArgs.__init__(
            self,
            wait=wait,
            durations=self._durations,
            gamma=gamma,
            intermediate=intermediate,
            cost=cost,
            action_repeat=action_repeat,
        )
        if is_hold(wait):
            env = held = _holding(env)
            wait = held.wait
        self._space = _discrete_actions(env, wait)
        gym.Wrapper.__init__(self, env)
        start, names = int(self._space.start), action_names(env, self._space)
        holds = getattr(env, "holds", False)
        self.decisions = Decisions(names, int(wait) - start, self._durations, holds, cost, action_repeat)
        self.gamma = gamma
        self.intermediate = intermediate
        self.env_spec: Any = None
        """How the environment was made from names, if it was (see `training.env_spec`)."""
        self.action_space = spaces.Discrete(self.decisions.n)
        most = -float(self.decisions.costs_of.min())
        self.reward_space = spaces.Box(np.array([-np.inf, -1.0]), np.array([np.inf, most]), dtype=np.float64)
        self.reward_dim = 2
        # MO-Gymnasium's wrappers look for these on the innermost environment.
        inside: Any = env.unwrapped
        inside.reward_space, inside.reward_dim = self.reward_space, self.reward_dim
        # Plain lists: `step` reads single elements, and Python does that fastest.
        self._steps = 0
        self._requested = self.decisions.durations_of.tolist()
        self._primitive = (self.decisions.actions_of + start).tolist()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._steps = 0
        return begin(self.env, seed, options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one decision: a primitive action, or a wait to its end or the episode's."""
        decision = int(action)
        if not 0 <= decision < self.decisions.n:
            raise SpaceError(f"decision {action!r} is outside 0..{self.decisions.n - 1} ({self.decisions})")
        requested, primitive = self._requested[decision], self._primitive[decision]
        discounted = total = 0.0
        discount = 1.0
        base_queries = 0
        passed: list[tuple[Any, float]] = []
        for elapsed in range(1, requested + 1):  # noqa: B007 (used below)
            self._steps += 1
            try:
                returned = self.env.step(primitive)
            except Exception as error:
                error.add_note(f"raised in primitive step {self._steps} of an episode, action {primitive}")
                raise
            observation, reward, terminated, truncated, info = step_parts(returned, self._steps)
            r = reward if type(reward) is float else number_of(reward, self._steps)
            total += r
            discounted += discount * r
            discount *= self.gamma
            base_queries += info.get("base_queries", 0)
            if self.intermediate:
                passed.append((observation, r))
            if terminated or truncated:
                break
        info = {
            **info,
            "elapsed": elapsed,
            "requested": requested,
            "discount": discount,
            "task_reward": total,
            "base_queries": base_queries,
        }
        if self.intermediate:
            info["intermediate"] = passed
        return observation, np.array([discounted, -self.decisions.cost_of(base_queries)]), terminated, truncated, info

    def pareto_front(self, gamma: float = 1.0) -> list[NDArray[np.float64]]:
        """Return the exact Pareto front of a finite task: returns `(J0, J1)`, discounted, as in MO-Gymnasium.

        The task must be deterministic, with a reward of -1 a step; see `letitcook.pareto_front`.
        """
        assert solve_front is not None, "letitcook.finite.front was not imported"
        return solve_front(self, gamma)

    def with_discount(self, gamma: float, intermediate: bool = False) -> WaitingEnv:
        """Return a waiting environment with another discount around the same world.

        >>> env = WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4)).with_discount(0.99)
        >>> env.gamma, env.action_space
        (0.99, Discrete(5))
        """
        wait, of = self._primitive[self.decisions.wait], self.decisions
        return WaitingEnv(self.env, wait, self._durations, gamma, intermediate, of.cost, of.repeat)

    def act(self, action: int) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Do one primitive action of the innermost task, past the decisions (for work inside a wait)."""
        inner = getattr(self.env, "act", self.env.step)
        result: tuple[Any, SupportsFloat, bool, bool, dict[str, Any]] = inner(action)
        return result


class ScalarisedEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """The scalarised view `r0 + λ r1` of a waiting environment, for single-objective libraries.

    >>> env = ScalarisedEnv(WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4)), lam=0.5)
    >>> _ = env.reset(seed=0)
    >>> env.step(4)[1]
    -4.5
    """

    def __init__(self, env: gym.Env[Any, Any], lam: float) -> None:
        self._weights: NDArray[np.float64] = Objective.named("scalar", lam).weights[0]
        gym.utils.RecordConstructorArgs.__init__(self, lam=lam)
        gym.Wrapper.__init__(self, env)
        self.lam = lam

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Carry out one decision; the vector reward is kept in `info["vector_reward"]`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        vector = np.asarray(reward)
        scalar = float(self._weights @ vector)
        return observation, scalar, terminated, truncated, {**info, "vector_reward": vector}


def waiting_env_of(env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any]) -> WaitingEnv:
    """Return the `WaitingEnv` in a stack of wrappers, or raise."""
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, WaitingEnv):
            return layer
        layer = layer.env
    if isinstance(env, gym.vector.VectorEnv):
        raise SpaceError(
            f"{env} holds several environments; let them wait side by side, with the waits outside: "
            "letitcook.WaitingVectorEnv(envs, wait=..., durations=...), or letitcook.wrap(envs, base, ...)"
        )
    raise SpaceError(
        f"{env} is not a waiting environment; wrap it first: letitcook.WaitingEnv(env, wait=..., durations=...)"
    )


def horizon_of(env: gym.Env[Any, Any]) -> int | None:
    """Return the primitive steps after which a `TimeLimit` truncates an episode of `env`, None if there is none.

    Limits outside of the `WaitingEnv` count decisions, and are left out.

    >>> horizon_of(gym.make("MountainCar-v0"))
    200
    """
    limits: list[int] = []
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, gym.wrappers.TimeLimit):
            limits.append(int(layer._max_episode_steps))
        elif isinstance(layer, WaitingEnv):
            limits.clear()
        layer = layer.env
    return min(limits, default=None)


def _holding(env: Any) -> HoldEnv:
    """Return an environment with one action more, which holds the last one."""
    named = isinstance(env, gym.Env) and isinstance(env.action_space, spaces.Discrete)
    return HoldEnv(env, action_names(env, env.action_space) if named else None)


def _discrete_actions(env: Any, wait: Any) -> spaces.Discrete:
    if isinstance(env, gym.vector.VectorEnv):
        raise SpaceError(
            f"{env} holds several environments; give it to letitcook.WaitingVectorEnv(envs, wait=..., durations=...)"
        )
    space = env.action_space
    check_wait(space, wait)
    assert isinstance(space, spaces.Discrete)
    return space


def check_wait(space: spaces.Space[Any], wait: Any) -> None:
    """Raise if `space` is not discrete, or `wait` is not one of its actions.

    >>> check_wait(spaces.Discrete(3), 1)
    """
    if not isinstance(space, spaces.Discrete):
        raise SpaceError(
            f"waiting from scratch needs discrete actions, and this environment's action space is {space}; discretise "
            "it, or wrap a policy that acts in it, with any fixed action of the space as the wait: "
            f"letitcook.wrap(env, base, wait={_some_action(space)}, durations=...)"
        )
    if isinstance(wait, bool) or not isinstance(wait, int | np.integer) or not space.contains(int(wait)):
        first, last = int(space.start), int(space.start + space.n) - 1
        raise SettingError(
            f"wait action {wait!r} is outside the action space {first}..{last}; "
            "give the index of the action that does nothing, or add one: letitcook.AddedWait(env, passive)"
        )


def check_gamma(gamma: float) -> None:
    """Raise if something is wrong with a discount outside (0, 1]."""
    if not 0.0 < gamma <= 1.0:
        raise SettingError(f"gamma = {gamma} is not allowed; give a discount in (0, 1]")


def _some_action(space: spaces.Space[Any]) -> str:
    """Write down the action 0 of a space that has one."""
    zero = np.zeros(space.shape, space.dtype) if space.shape is not None and space.dtype is not None else None
    return f"np.zeros({space.shape}, {str(space.dtype)!r})" if zero is not None and space.contains(zero) else "..."


def action_names(env: gym.Env[Any, Any], space: spaces.Discrete) -> tuple[str, ...]:
    """Return the names of the actions, `env.action_names` where it has them, else numbers."""
    names = env.get_wrapper_attr("action_names") if env.has_wrapper_attr("action_names") else None
    return tuple(names) if names is not None and len(names) == space.n else numbered(space)


def numbered(space: spaces.Discrete) -> tuple[str, ...]:
    """Return names for actions that have none.

    >>> numbered(spaces.Discrete(2, start=5))
    ('action 5', 'action 6')
    """
    return tuple(f"action {space.start + i}" for i in range(int(space.n)))
