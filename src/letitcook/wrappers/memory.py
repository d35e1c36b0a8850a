"""What a policy remembers of an episode, where what it sees does not tell everything.

Two kinds of memory, both revised only where a decision ends, by what was executed: a wait of 15 steps counts 15, and
nothing inside it is seen.

- **Timers** count primitive steps: since the episode began, since a part of the observation last changed, since an
  action was last taken. A part that changed during a wait counts from the wait's end, for nobody saw when it changed.
  For one hidden clock whose beginning is seen, what is seen and the steps since then are all that counts.
- **A window** of past decisions: the action, how long it lasted, and what was seen before it. For velocities, several
  clocks, or counts.

What is remembered begins anew with each episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions
from letitcook.errors import FileFormatError, SettingError, SpaceError
from letitcook.storage.imports import module_named, thing_named
from letitcook.wrappers.vector import Finished, WaitingVectorEnv
from letitcook.wrappers.waiting import WaitingEnv, waiting_env_of

CAP = 1000
"""Where timers stop to count."""
WINDOW = 1000
"""The longest window that is allowed."""
Parts = tuple[Any, ...]


class Timer(NamedTuple):
    """Counts the steps since a part of the observation last changed.

    >>> Timer(4, values=(1,))  # of the hidden kitchen: steps since the pot changed, while it cooks
    Timer(part=4, values=(1,))
    """

    part: int
    """Which part, counted from 0 in the flat observation, or in what the user's function returns."""
    values: tuple[Any, ...] = ()
    """It counts while the part has one of these values, and is 0 otherwise; always, if there are none."""


@dataclass(frozen=True)
class Memory:
    """What a policy remembers; plain data, which is saved with the policy.

    >>> Memory(timers=(Timer(4, values=(1,)),)).size, Memory(window=2).size
    (1, 0)
    >>> Memory.of_data(Memory(clock=True, actions=(0,)).data()) == Memory(clock=True, actions=(0,))
    True
    """

    clock: bool = False
    """Steps since the episode began."""
    timers: tuple[Timer, ...] = ()
    """Steps since parts of the observation last changed."""
    actions: tuple[int, ...] = ()
    """Steps since each of these actions was last taken, or since the episode began."""
    window: int = 0
    """How many past decisions are kept, with what was seen before them."""
    cap: int = CAP
    """Where timers stop to count."""
    parts: str | Callable[[Any], Any] | None = None
    """What gives the parts that timers watch: a function of the observation, or its name `module:function`."""

    def __post_init__(self) -> None:
        whole = {"window": 0 <= self.window <= WINDOW, "cap": self.cap >= 1}
        for name, fine in whole.items():
            if not fine:
                raise SettingError(f"{name} = {getattr(self, name)!r} is not allowed; see letitcook.Memory")
        if not (self.clock or self.timers or self.actions or self.window):
            raise SettingError("a memory that holds nothing is none; give clock, timers, actions or a window")

    @property
    def size(self) -> int:
        """How many timers there are in all."""
        return int(self.clock) + len(self.timers) + len(self.actions)

    def data(self) -> dict[str, Any]:
        """Return the memory as plain data."""
        return {
            "clock": self.clock,
            "timers": [[timer.part, list(timer.values)] for timer in self.timers],
            "actions": list(self.actions),
            "window": self.window,
            "cap": self.cap,
            "parts": _name_of(self.parts),
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Memory:
        """Return the memory that `data()` described."""
        try:
            return cls(
                clock=bool(data["clock"]),
                timers=tuple(Timer(int(part), tuple(values)) for part, values in data["timers"]),
                actions=tuple(int(action) for action in data["actions"]),
                window=int(data["window"]),
                cap=int(data["cap"]),
                parts=None if data["parts"] is None else str(data["parts"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"what the policy remembers is damaged ({error!r}); learn it anew") from error


def _name_of(parts: str | Callable[[Any], Any] | None) -> str | None:
    """Return a function's name by which it can be found again, or raise."""
    if parts is None or isinstance(parts, str):
        return parts
    name = f"{parts.__module__}:{parts.__qualname__}"
    if "<" in name or parts.__module__ == "__main__":
        raise SettingError(
            f"the memory's function {parts.__qualname__} cannot be found again by its name, so it cannot be saved; "
            "put it into a module of its own"
        )
    return name


class Recollection(NamedTuple):
    """What is remembered at one moment."""

    seen: Parts
    """The watched parts when they were last seen."""
    counts: tuple[int, ...]
    """The timers: the clock's, the parts', the actions'."""
    past: tuple[tuple[int, int, Any], ...]
    """Action, steps and observation before it of the last decisions, the last one first; -1, 0, None where none was."""
    observation: Any
    """What was seen last, where there is a window."""


class Recall:
    """A memory at work: revises a recollection, and adds it to observations.

    >>> recall = Recall(Memory(timers=(Timer(1),)), Decisions(("go", "stay"), 1, (5,)), spaces.MultiDiscrete([9, 3]))
    >>> begun = recall.begin(np.array([0, 1]))
    >>> after = recall.after(begun, action=1, elapsed=5, observation=np.array([4, 1]))
    >>> after.counts, recall.after(after, 0, 1, np.array([5, 2])).counts
    ((5,), (0,))
    """

    def __init__(self, memory: Memory, decisions: Decisions, space: spaces.Space[Any]) -> None:
        self.memory = memory
        self.decisions = decisions
        self.space = space
        self._parts = _parts_of(memory, space)
        unknown = [action for action in memory.actions if not 0 <= action < len(decisions.actions)]
        if unknown:
            raise SettingError(f"the memory times action {unknown[0]}, and there are {len(decisions.actions)} actions")
        self._flat = spaces.flatdim(space) if memory.window or not isinstance(space, spaces.Box) else 0
        self._scale = 1.0 / max(decisions.durations, default=1)
        self._continuous = isinstance(space, spaces.Box)

    def begin(self, observation: Any) -> Recollection:
        """Return what is remembered when an episode begins."""
        none = (-1, 0, None)
        seen = self._parts(observation)
        for timer in self.memory.timers:
            if not 0 <= timer.part < len(seen):
                raise SettingError(f"the memory times part {timer.part} of an observation that has {len(seen)} parts")
        kept = observation if self.memory.window else None
        return Recollection(seen, (0,) * self.memory.size, (none,) * self.memory.window, kept)

    def after(self, before: Recollection, action: int, elapsed: int, observation: Any) -> Recollection:
        """Return what is remembered after an action that lasted `elapsed` steps, and what was seen then."""
        memory, seen = self.memory, self._parts(observation)
        counts = [count + elapsed for count in before.counts]
        at = int(memory.clock)
        for i, (part, values) in enumerate(memory.timers, start=at):
            if seen[part] != before.seen[part] or (values and seen[part] not in values):
                counts[i] = 0
        for i, timed in enumerate(memory.actions, start=at + len(memory.timers)):
            if timed == action:
                counts[i] = 0
        past = before.past
        if memory.window:
            past = ((action, elapsed, before.observation), *past[:-1])
        kept = observation if memory.window else None
        return Recollection(seen, tuple(min(count, memory.cap) for count in counts), past, kept)

    def decided(self, before: Recollection, decision: int, elapsed: int, observation: Any) -> Recollection:
        """Return what is remembered after a decision."""
        return self.after(before, int(self.decisions.actions_of[decision]), elapsed, observation)

    def key(self, observation: Any, remembered: Recollection) -> tuple[Any, ...]:
        """Return an observation with what is remembered, for a table; the same for the same memories alone."""
        blank = np.zeros_like(observation) if remembered.past else None
        past = tuple((a, steps, blank if seen is None else seen) for a, steps, seen in remembered.past)
        return observation, remembered.counts, past

    @property
    def vector_space(self) -> spaces.Box:
        """The space of `vector`."""
        entry = len(self.decisions.actions) + 1 + spaces.flatdim(self.space)
        size = spaces.flatdim(self.space) + self.memory.size + self.memory.window * entry
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def vector(self, observation: Any, remembered: Recollection) -> NDArray[np.float32]:
        """Return an observation with what is remembered as one vector, for networks.

        Steps are in units of the longest wait. A decision of the window is the action as one-hot, its steps, and what
        was seen before it; of an observation of real numbers, by how much it then changed in a step on average: a
        network learns slowly what depends on small differences of its inputs.
        """
        later = self._flattened(observation)
        entries: list[Any] = [later, np.array(remembered.counts) * self._scale]
        for action, steps, seen in remembered.past:
            hot = np.zeros(len(self.decisions.actions) + 1, dtype=np.float32)
            told = np.zeros(len(later), dtype=np.float32)
            if seen is not None:
                before = self._flattened(seen)
                hot[action], hot[-1] = 1.0, steps * self._scale
                told = (later - before) / max(steps, 1) if self._continuous else before
                later = before
            entries += [hot, told]
        return np.concatenate(entries).astype(np.float32)

    def _flattened(self, observation: Any) -> NDArray[Any]:
        if isinstance(self.space, spaces.Box):
            return np.asarray(observation, dtype=np.float32).reshape(-1)
        return np.asarray(spaces.flatten(self.space, observation))


def _parts_of(memory: Memory, space: spaces.Space[Any]) -> Callable[[Any], Parts]:
    """Return the function that gives the parts of an observation that timers watch."""
    if not memory.timers:
        return lambda observation: ()
    if memory.parts is not None:
        function = _function_named(memory.parts) if isinstance(memory.parts, str) else memory.parts
        return lambda observation: tuple(np.asarray(function(observation)).reshape(-1).tolist())
    if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        raise SettingError(
            f"timers watch parts that change from one value to another, and {space} has none by itself; give a "
            "function of the observation that returns them, Memory(timers=..., parts=function), or keep a window"
        )
    return lambda observation: tuple(np.asarray(observation).reshape(-1).tolist())


def _function_named(name: str) -> Callable[[Any], Any]:
    """Return the function of a name `module:function`, which is looked up when it is first called.

    A name may come from a file, and to load a file runs no code.
    """
    module, colon, path = name.partition(":")
    if not colon or not path:
        raise SettingError(f"the memory's function {name!r} is not named module:function")

    @cache
    def found() -> Any:
        return thing_named(module_named(module), path, "function")

    def function(observation: Any) -> Any:
        return found()(observation)

    return function


def number_of_parts(space: spaces.Space[Any]) -> int:
    """Return how many parts a discrete observation has, or raise.

    >>> number_of_parts(spaces.MultiDiscrete([5, 5, 3])), number_of_parts(spaces.Discrete(4))
    (3, 1)
    """
    if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        raise SettingError(
            f"a memory is chosen by itself for discrete observations, and this environment has {space}; say what to "
            "remember: memory=Memory(window=2), or Memory(timers=(Timer(0),), parts=function)"
        )
    return int(np.prod(space.shape)) if space.shape else 1


def every_timer(space: spaces.Space[Any]) -> Memory:
    """Return a memory that times every part of a discrete observation.

    >>> [timer.part for timer in every_timer(spaces.MultiDiscrete([5, 5, 3])).timers]
    [0, 1, 2]
    """
    return Memory(timers=tuple(Timer(part) for part in range(number_of_parts(space))))


def read_memory(given: Memory | int | str) -> Memory:
    """Return the memory that is meant by a number of past decisions, its name, or itself.

    >>> read_memory(3).window
    3
    """
    if isinstance(given, Memory):
        return given
    if isinstance(given, str) and given.isdigit():
        given = int(given)
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return Memory(window=given)
    raise SettingError(f"memory = {given!r} is not allowed; give 'auto', a number of past decisions, or a Memory")


class MemoryEnv(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """A waiting environment whose observations hold what is remembered, as vectors: for networks of any library.

    `learn(env, memory=...)` makes it by itself, and its policy then keeps the memory, not the environment.

    >>> from letitcook import make
    >>> env = MemoryEnv(make("cook", hidden=True), Memory(timers=(Timer(4, values=(1,)),)))
    >>> env.observation_space.shape, float(env.reset(seed=0)[0][-1])
    ((26,), 0.0)
    """

    def __init__(self, env: gym.Env[Any, Any], memory: Memory) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, memory=memory)
        gym.Wrapper.__init__(self, env)
        self.waiting: WaitingEnv = waiting_env_of(env)
        self.memory = memory
        self._recall = Recall(memory, self.waiting.decisions, env.observation_space)
        self._remembered: Recollection | None = None
        self.observation_space = self._recall.vector_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with nothing remembered."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._remembered = self._recall.begin(observation)
        return self._recall.vector(observation, self._remembered), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one decision, and remember it."""
        if self._remembered is None:
            raise SpaceError("the environment was not reset; call reset() first")
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._remembered = self._recall.decided(self._remembered, int(action), info["elapsed"], observation)
        return self._recall.vector(observation, self._remembered), reward, terminated, truncated, info


class MemoryVectorEnv(WaitingVectorEnv):
    """The same for a vector environment: each sub-environment has a memory of its own.

    >>> several = WaitingVectorEnv(gym.make_vec("MountainCar-v0", num_envs=2), wait=1, durations=(2, 4))
    >>> env = MemoryVectorEnv(several, Memory(window=1))
    >>> env.reset(seed=0)[1].shape  # position, speed; the last decision: one of 3 actions, its steps, what was seen
    (8,)
    """

    def __init__(self, env: WaitingVectorEnv, memory: Memory) -> None:
        of = env.decisions
        super().__init__(env.envs, env._wait, of.durations, env.gamma, env.base, env.deterministic, of.cost, of.repeat)
        self.memory = memory
        self._recall = Recall(memory, self.decisions, env.single_observation_space)
        self.single_observation_space = self._recall.vector_space
        self._raw: list[Any] = []
        self._remembered: list[Recollection | None] = [None] * self.num_envs

    def reset(self, seed: int | list[int | None] | None = None) -> list[Any]:
        """Begin a new episode everywhere, with nothing remembered."""
        self._raw = super().reset(seed)
        self._remembered = [self._recall.begin(observation) for observation in self._raw]
        self._show()
        return self.observations

    def step(self, decisions: Any) -> list[Finished]:
        """Carry out decisions until someone is due again, and remember what was finished."""
        self.observations = self._raw  # the base policy, if there is one, is asked at what the environments show
        finished = super().step(decisions)
        self._raw = self.observations
        told = []
        for done in finished:
            before, i = self._remembered[done.index], done.index
            assert before is not None
            after = self._recall.decided(before, done.decision, done.elapsed, done.observation)
            told.append(done._replace(observation=self._recall.vector(done.observation, after)))
            self._remembered[i] = None if done.terminated or done.truncated else after
        self._show()
        return told

    def _show(self) -> None:
        """Add what is remembered to what is seen; who is due without a memory begins an episode."""
        for i in np.flatnonzero(self.due).tolist():
            if self._remembered[i] is None:
                self._remembered[i] = self._recall.begin(self._raw[i])
        shown = zip(self._raw, self._remembered, strict=True)
        self.observations = [seen if of is None else self._recall.vector(seen, of) for seen, of in shown]
