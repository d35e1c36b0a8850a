"""A policy with its memory: it takes what the environment shows, and keeps the rest as its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, Policy
from letitcook.errors import FileFormatError
from letitcook.storage.spaces import space_data, space_of
from letitcook.wrappers.memory import Memory, Recall, Recollection


@dataclass(frozen=True)
class Remembers:
    """What a policy remembers, and of what observations; saved with the policy.

    >>> remembers = Remembers(Memory(window=2), spaces.Discrete(3))
    >>> Remembers.of_data(remembers.data()) == remembers
    True
    """

    memory: Memory
    space: spaces.Space[Any]
    """The observations that the environment shows."""

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**self.memory.data(), "space": space_data(self.space)}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Remembers:
        """Return what `data()` described."""
        if "space" not in data:
            raise FileFormatError("what the policy remembers is damaged (no space); learn it anew")
        return cls(Memory.of_data(data), space_of(data["space"]))


class Moment(NamedTuple):
    """The state of a policy that remembers: what it knew when it decided, and what it then did."""

    remembered: Recollection
    decision: int
    elapsed: int
    """Primitive steps that the decision takes."""


class RememberingPolicy:
    """A policy over what is seen and remembered, as one over what is seen; its state is its memory.

    `policy` is a table over keys, or with `vector=True` networks over vectors (see `Recall`). The memory begins anew
    where there is no state, or where `episode_start` says so.

    >>> from letitcook import learn, make
    >>> env = make("cook", mode="wrap", hidden=True)
    >>> policy = learn(env, steps=60_000, preset="exact", memory="auto", progress=False).policy
    >>> policy.memory.timers
    (Timer(part=4, values=(1,)),)
    >>> decision, state = policy.predict(env.reset(seed=0)[0])
    >>> decision, state.remembered.counts
    (0, (0,))
    """

    def __init__(self, policy: Any, remembers: Remembers, decisions: Decisions, vector: bool) -> None:
        self.policy: Any = policy
        self.remembers = remembers
        self.decisions = decisions
        self._vector = vector
        self._recall = Recall(remembers.memory, decisions, remembers.space)
        self._durations = decisions.durations_of.tolist()

    @property
    def memory(self) -> Memory:
        """What it remembers."""
        return self.remembers.memory

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, Moment]:
        """Return the decision at one observation, and the state to pass with the next one."""
        fresh = state is None or (episode_start is not None and bool(np.any(episode_start)))
        if fresh:
            remembered = self._recall.begin(observation)
        else:
            remembered = self._recall.decided(state.remembered, state.decision, state.elapsed, observation)
        add = self._recall.vector if self._vector else self._recall.key
        answer, _ = self.policy.predict(add(observation, remembered), deterministic=deterministic)
        decision = int(np.asarray(answer).item())
        return decision, Moment(remembered, decision, self._durations[decision])

    def ended_early(self, state: Moment, steps: int) -> Moment:
        """Return the state when a decision ended `steps` before its time; after it, if `steps` is negative."""
        return state._replace(elapsed=state.elapsed - steps)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the policy as arrays, for a file; what it remembers is kept beside them."""
        arrays: dict[str, NDArray[Any]] = self.policy.arrays()
        return arrays


def remembering(policy: Any, remembers: Remembers | None, decisions: Decisions, vector: bool) -> Policy:
    """Return a policy with its memory, where it has one.

    >>> from letitcook.adapters import CallablePolicy
    >>> plain = CallablePolicy(lambda observation: 0)
    >>> remembering(plain, None, Decisions(("go", "stay"), 1), vector=False) is plain
    True
    """
    plain: Policy = policy
    return plain if remembers is None else RememberingPolicy(plain, remembers, decisions, vector)
