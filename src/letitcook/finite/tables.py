"""Any finite environment as transition tables.

An environment can be enumerated if, unwrapped, it offers one of

1. **outcomes** (ours do; the way to go for a new environment)::

       initial_states() -> [(probability, state), ...]
       outcomes(state, action) -> [(probability, next_state, reward, terminated), ...]
       observe(state) -> observation

2. **P**, Gymnasium's toy-text tables: `P[state][action] = [(probability, next_state, reward, terminated), ...]` with
   `initial_state_distrib`;
3. **get_state() and set_state(state)**, for deterministic environments: they are then stepped through every action of
   every state they reach. The starts are those of the first 32 seeds.

States are hashable. They are numbered in the order a breadth-first search meets them; only states in which a
decision can be due are kept, and the index one past them, `end`, stands for every terminal state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics, TimeLimit
from numpy.typing import NDArray

from letitcook.adapters.actions import checked_action
from letitcook.errors import FinitenessError, NotFiniteError
from letitcook.wrappers.base_policy import BasePolicyEnv
from letitcook.wrappers.waiting import WaitingEnv

Outcome = tuple[float, Hashable, float, bool]
"""Probability, next state, reward, terminated."""

STATE_LIMIT = 1_000_000
SEEDED_STARTS = 32
WAYS = (("initial_states", "outcomes", "observe"), ("P", "initial_state_distrib"), ("get_state", "set_state"))
"""What an environment has to offer, one of three."""
NEUTRAL = (OrderEnforcing, PassiveEnvChecker, TimeLimit, RecordEpisodeStatistics, WaitingEnv)
"""Wrappers that change neither transitions nor observations."""


@dataclass(frozen=True)
class Tables:
    """Transition tables of a finite environment with primitive actions.

    The outcomes of action `a` in state `s` are the rows `offsets[s * n_actions + a]` up to the next offset of
    `probability`, `next_state`, `reward`. A terminal outcome leads to state `n_states`.

    >>> tables = enumerate_env(gym.make("FrozenLake-v1", is_slippery=True))
    >>> tables.n_states, tables.n_actions, tables.deterministic
    (11, 4, False)
    """

    n_states: int
    """States in which a decision can be due."""
    n_terminal: int
    """Different terminal states."""
    n_actions: int
    offsets: NDArray[np.int64]
    probability: NDArray[np.float64]
    next_state: NDArray[np.int64]
    reward: NDArray[np.float64]
    start_state: NDArray[np.int64]
    start_probability: NDArray[np.float64]
    observations: list[Any]
    """What a policy sees in each state."""
    states: list[Hashable] = field(default_factory=list)
    """The states themselves."""

    @property
    def end(self) -> int:
        """The index that stands for every terminal state."""
        return self.n_states

    @cached_property
    def deterministic(self) -> bool:
        """Whether every action has one outcome."""
        return len(self.next_state) == self.n_states * self.n_actions

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """A number for each state that is equal where the observations are equal, `(n_states,)`."""
        seen: dict[Hashable, int] = {}
        return np.array([seen.setdefault(observation_key(o), len(seen)) for o in self.observations], dtype=np.int64)

    @cached_property
    def fully_observed(self) -> bool:
        """Whether different states look different."""
        return int(self.rows.max()) + 1 == self.n_states


def observation_key(observation: Any) -> tuple[Any, ...]:
    """Return an observation as a hashable tuple of plain numbers.

    >>> observation_key(3), observation_key(np.array([1, 2])), observation_key({"b": 1, "a": (0, 2)})
    ((3,), (1, 2), (0, 2, 1))
    """
    if isinstance(observation, dict):
        return tuple(chain.from_iterable(observation_key(observation[k]) for k in sorted(observation)))
    if isinstance(observation, tuple | list):
        return tuple(chain.from_iterable(observation_key(o) for o in observation))
    if isinstance(observation, np.ndarray):
        return tuple(observation.ravel().tolist())
    return (observation.item() if isinstance(observation, np.generic) else observation,)


def enumerate_env(env: gym.Env[Any, Any], limit: int = STATE_LIMIT) -> Tables:
    """Return the tables of `env`'s primitive actions: those of the environment, or `{base, wait}` if it is wrapped.

    `limit` is the largest number of states that is tried; the error says how far the search came.

    >>> enumerate_env(gym.make("Taxi-v4"), limit=100)
    Traceback (most recent call last):
    ...
    letitcook.errors.FinitenessError: Taxi-v4 has more than 100 reachable states (101 found so far); ...
    """
    layer: gym.Env[Any, Any] = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, WaitingEnv) and layer.decisions.repeat != 1:
            raise FinitenessError("tables are made of single steps; leave action_repeat out, or learn with networks")
        if isinstance(layer, BasePolicyEnv):
            return _wrapped(enumerate_env(layer.env, limit), layer)
        if not isinstance(layer, NEUTRAL):
            raise FinitenessError(
                f"the wrapper {type(layer).__name__} may change what {_name(env)} does, and tables are made of the "
                "environment inside; take it off, or build its change into an environment that offers outcomes()"
            )
        layer = layer.env
    if not isinstance(layer.action_space, spaces.Discrete) or layer.action_space.start != 0:
        raise FinitenessError(f"tables need actions numbered from 0, and {_name(env)} has {layer.action_space}")
    return _search(layer, int(layer.action_space.n), limit, _name(env))


def can_be_enumerated(env: gym.Env[Any, Any]) -> bool:
    """Return whether an environment offers one of the three ways; it may still turn out too large.

    >>> can_be_enumerated(gym.make("FrozenLake-v1")), can_be_enumerated(gym.make("CartPole-v1"))
    (True, False)
    """
    inside, layer = env.unwrapped, env
    while isinstance(layer, gym.Wrapper):
        if getattr(layer, "holds", False):  # what a held action does depends on the one before it
            return False
        if isinstance(layer, BasePolicyEnv) and layer.features is not None:  # tables are made of observations
            return False
        if isinstance(layer, WaitingEnv) and layer.decisions.repeat != 1:
            return False
        layer = layer.env
    return any(all(hasattr(inside, name) for name in names) for names in WAYS)


def _search(env: Any, n_actions: int, limit: int, name: str) -> Tables:
    starts, outcomes, observe = _model(env, name)
    number: dict[Hashable, int] = {}
    states: list[Hashable] = []

    def numbered(state: Hashable) -> int:
        if state not in number:
            if len(states) >= limit:
                raise FinitenessError(
                    f"{name} has more than {limit:,} reachable states ({len(states) + 1:,} found so far); "
                    "give more with limit=... (plan, enumerate_env), or learn it with networks"
                )
            number[state] = len(states)
            states.append(state)
        return number[state]

    start = [(numbered(state), p) for p, state in starts]
    ends: set[Hashable] = set()
    offsets, probability, target, reward = [0], [], [], []
    done = 0
    while done < len(states):
        state = states[done]
        for action in range(n_actions):
            total = 0.0
            for p, following, r, terminated in outcomes(state, action):
                if not np.isfinite(r):
                    raise NotFiniteError(f"{name}: the reward of action {action} in state {state!r} is {r}")
                if terminated:
                    ends.add(following)
                if p > 0.0:
                    total += p
                    probability.append(p)
                    target.append(-1 if terminated else numbered(following))
                    reward.append(float(r))
            if not abs(total - 1.0) < 1e-9:
                raise FinitenessError(f"{name}: the outcomes of action {action} in state {state!r} sum to {total:g}")
            offsets.append(len(target))
        done += 1
    nexts = np.array(target, dtype=np.int64)
    nexts[nexts < 0] = len(states)
    return Tables(
        n_states=len(states),
        n_terminal=len(ends),
        n_actions=n_actions,
        offsets=np.array(offsets, dtype=np.int64),
        probability=np.array(probability),
        next_state=nexts,
        reward=np.array(reward),
        start_state=np.array([s for s, _ in start], dtype=np.int64),
        start_probability=np.array([p for _, p in start]),
        observations=[observe(state) for state in states],
        states=states,
    )


Model = tuple[Iterable[tuple[float, Hashable]], Callable[[Any, int], Iterable[Outcome]], Callable[[Any], Any]]


def _model(env: Any, name: str) -> Model:
    """Return starts, outcomes and observe by whichever of the three ways `env` offers."""
    outcomes, tables, states = (all(hasattr(env, name) for name in names) for names in WAYS)
    if outcomes:
        return env.initial_states(), env.outcomes, env.observe
    if tables:
        weights = np.asarray(env.initial_state_distrib, dtype=np.float64)
        starts = [(float(p), s) for s, p in enumerate(weights / weights.sum()) if p > 0.0]
        return starts, lambda state, action: _merged(env.P[state][action]), lambda state: state
    if states:
        return _by_stepping(env)
    raise FinitenessError(
        f"{name} cannot be enumerated: it offers neither outcomes(), nor P, nor get_state() and set_state(); "
        "add one of them (see the guide, 'your own finite environment'), or use a learner with networks"
    )


def _merged(outcomes: Iterable[tuple[Any, ...]]) -> Iterator[Outcome]:
    """Join equal outcomes of a toy-text table, so that a deterministic one is seen to be so."""
    total: dict[tuple[Hashable, float, bool], float] = {}
    for p, state, reward, terminated in outcomes:
        key = (int(state), float(reward), bool(terminated))
        total[key] = total.get(key, 0.0) + float(p)
    return ((p, *key) for key, p in total.items())


def _by_stepping(env: Any) -> Model:
    seen: dict[Hashable, Any] = {}

    def started(seed: int) -> Hashable:
        observation, _ = env.reset(seed=seed)
        state: Hashable = env.get_state()
        seen.setdefault(state, observation)
        return state

    def outcomes(state: Hashable, action: int) -> list[Outcome]:
        env.set_state(state)
        observation, reward, terminated, _, _ = env.step(action)
        following: Hashable = env.get_state()
        seen.setdefault(following, observation)
        return [(1.0, following, float(reward), bool(terminated))]

    states = [started(seed) for seed in range(SEEDED_STARTS)]
    starts = [(states.count(s) / len(states), s) for s in dict.fromkeys(states)]
    return starts, outcomes, lambda state: seen[state]


def _wrapped(inner: Tables, env: BasePolicyEnv) -> Tables:
    """Return the tables of `{base, wait}` over the tables of the environment inside."""
    if env.features is not None:
        raise FinitenessError("tables are made of observations, and this wrapper sees features; leave them out")
    if env.holds:
        raise FinitenessError(
            "what a held action does depends on the one before it, which is no part of the environment's states; "
            "give a fixed action as the wait, or use a learner with networks"
        )
    if not env.deterministic:
        raise FinitenessError(
            "a base policy that draws its actions at random cannot be enumerated; wrap it with deterministic=True"
        )
    rows: list[int] = []
    for s, observation in enumerate(inner.observations):
        action, state = env.base.predict(observation, None, np.array([True]), deterministic=True)
        if state is not None:
            raise FinitenessError(
                "the base policy keeps a state between its calls, so it is no function of the environment's state "
                "and cannot be enumerated; use a learner with networks"
            )
        rows += [s * inner.n_actions + checked_action(action, env.env.action_space), s * inner.n_actions + env.wait]
    spans = [np.arange(inner.offsets[row], inner.offsets[row + 1]) for row in rows]
    kept = np.concatenate(spans)
    return replace(
        inner,
        n_actions=2,
        offsets=np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64),
        probability=inner.probability[kept],
        next_state=inner.next_state[kept],
        reward=inner.reward[kept],
    )


def _name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
