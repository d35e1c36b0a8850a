"""Memory on tables: everything that can be seen and remembered, numbered, and what comes after it.

What a policy remembers is revised where a decision ends, by what it did, how long that lasted, and what it then sees.
None of this needs the state, so a *row* `(what is seen, what is remembered)` and these three give the next row. All
rows that can be met are found by a search over pairs of a state and a row; a wait may end after any number of steps up
to the longest, for learning from its parts, and for the horizon.

Which timers suffice can be decided exactly: a memory is *sufficient* if whatever is seen and remembered determines the
belief (see `belief.py`), for then the best policy over rows is the best there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions
from letitcook.errors import FinitenessError
from letitcook.finite.belief import Beliefs, enumerate_beliefs
from letitcook.finite.tables import Tables, observation_key
from letitcook.wrappers.memory import Memory, Recall, Recollection, Timer, every_timer, number_of_parts

ROW_LIMIT = 1_000_000
"""The largest number of pairs of a state and a row that is tried."""
MOST_TIMERS = 2
"""The largest number of timers that is tried for a sufficient memory."""
CHOICE_BELIEFS = 50_000
"""Beliefs up to which it is decided exactly which timers suffice."""


@dataclass(frozen=True)
class Remembered:
    """The rows of a memory on tables."""

    keys: list[tuple[Any, ...]]
    """What is seen and remembered in each row, as a policy's table knows it."""
    arrays: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]
    """The next rows, as `q_learning.RecallTables` holds them."""


class _Rows:
    """Numbers what can be seen and remembered, and finds what comes next."""

    def __init__(self, recall: Recall, tables: Tables) -> None:
        self._recall = recall
        self._tables = tables
        self._seen: list[int] = tables.rows.tolist()
        self._number: dict[tuple[int, Recollection], int] = {}
        self.remembered: list[tuple[Any, Recollection]] = []
        self._following: dict[tuple[int, int, int, int], int] = {}

    def start(self, state: int) -> int:
        """Return the row in which an episode begins."""
        observation = self._tables.observations[state]
        return self._numbered(state, observation, self._recall.begin(_plain(observation)))

    def after(self, row: int, action: int, steps: int, state: int) -> int:
        """Return the row after an action that lasted some steps and led to a state."""
        place = row, action, steps, self._seen[state]
        if place not in self._following:
            observation = self._tables.observations[state]
            before = self.remembered[row][1]
            after = self._recall.after(before, action, steps, _plain(observation))
            self._following[place] = self._numbered(state, observation, after)
        return self._following[place]

    def _numbered(self, state: int, observation: Any, remembered: Recollection) -> int:
        key = self._seen[state], remembered
        if key not in self._number:
            self._number[key] = len(self.remembered)
            self.remembered.append((observation, remembered))
        return self._number[key]

    def keys(self) -> list[tuple[Any, ...]]:
        """Return the rows as a policy's table knows them."""
        return [observation_key(self._recall.key(seen, remembered)) for seen, remembered in self.remembered]

    def following(self) -> dict[tuple[int, int, int, int], int]:
        """Return row, action, steps and what is seen of everything that was followed, and the row after it."""
        return self._following


def _plain(observation: Any) -> Any:
    """Return an observation that can be hashed and compared."""
    return observation_key(observation)


def remember(
    tables: Tables, decisions: Decisions, memory: Memory, space: spaces.Space[Any], limit: int = ROW_LIMIT
) -> Remembered:
    """Return everything that can be seen and remembered in an enumerated environment.

    >>> from letitcook import enumerate_env, make
    >>> env = make("cook", hidden=True)
    >>> memory = Memory(timers=(Timer(4, values=(1,)),))
    >>> found = remember(enumerate_env(env), env.decisions, memory, env.observation_space)
    >>> len(found.keys), found.keys[0]
    (1278, (1, 1, 0, 0, 0, 0, 0))
    """
    rows = _Rows(Recall(memory, decisions, space), tables)
    successors = _Successors(tables, decisions)
    starts = [(state, rows.start(state)) for state in tables.start_state.tolist()]
    pairs = list(dict.fromkeys(starts))
    met, done = set(pairs), 0
    while done < len(pairs):
        state, row = pairs[done]
        done += 1
        for action, steps, following in successors.of(state):
            pair = following, rows.after(row, action, steps, following)
            if pair not in met:
                if len(met) >= limit:
                    raise FinitenessError(
                        f"more than {limit:,} pairs of a state and a memory can be met; remember less (a shorter "
                        "window, fewer timers, a lower cap), or use a learner with networks"
                    )
                met.add(pair)
                pairs.append(pair)
    return Remembered(rows.keys(), _arrays(rows, [row for _, row in starts], decisions))


class _Successors:
    """The states that actions and waits can lead to."""

    def __init__(self, tables: Tables, decisions: Decisions) -> None:
        self._tables = tables
        self._wait = decisions.wait
        self._longest = max(decisions.durations, default=1)
        self._known: dict[int, list[tuple[int, int, int]]] = {}

    def of(self, state: int) -> list[tuple[int, int, int]]:
        """Return action, steps and state of every action, and of waiting 2 steps up to the longest wait."""
        if state not in self._known:
            found = [(a, 1, s) for a in range(self._tables.n_actions) for s in self._step(state, a)]
            reached = self._step(state, self._wait)
            for steps in range(2, self._longest + 1):
                reached = sorted({after for s in reached for after in self._step(s, self._wait)})
                found += [(self._wait, steps, s) for s in reached]
            self._known[state] = found
        return self._known[state]

    def _step(self, state: int, action: int) -> list[int]:
        tables = self._tables
        at = state * tables.n_actions + action
        following = tables.next_state[tables.offsets[at] : tables.offsets[at + 1]].tolist()
        return sorted({s for s in following if s != tables.end})


def _arrays(
    rows: _Rows, starts: list[int], decisions: Decisions
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """Return the next rows as arrays, see `q_learning.RecallTables`."""
    n_actions = len(decisions.actions)
    n_kinds = n_actions + max(max(decisions.durations, default=1) - 1, 0)
    entries = [
        (row * n_kinds + (action if steps == 1 else n_actions + steps - 2), seen, after)
        for (row, action, steps, seen), after in rows.following().items()
    ]
    entries.sort()
    places, seen, after = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    counts = np.bincount(places, minlength=len(rows.remembered) * n_kinds)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, np.ascontiguousarray(seen), np.ascontiguousarray(after), np.array(starts, dtype=np.int64), n_kinds


def sufficient_memory(tables: Tables, decisions: Decisions, space: spaces.Space[Any], horizon: int) -> Memory:
    """Return the smallest set of timers with which a policy knows all that can be known.

    Timers are tried alone, then by twos. Where none suffice, or there are too many beliefs to decide it, every part of
    the observation is timed.

    >>> from letitcook import enumerate_env, make
    >>> env = make("cook", hidden=True)
    >>> sufficient_memory(enumerate_env(env), env.decisions, env.observation_space, 200).timers
    (Timer(part=4, values=(1,)),)
    """
    number_of_parts(space)
    try:
        beliefs = enumerate_beliefs(tables, decisions, horizon, limit=CHOICE_BELIEFS)
    except FinitenessError:
        return every_timer(space)
    for memory in _candidates(tables, decisions, horizon):
        if is_sufficient(memory, tables, decisions, space, beliefs, horizon):
            return memory
    return every_timer(space)


def _candidates(tables: Tables, decisions: Decisions, horizon: int) -> Iterator[Memory]:
    """Yield memories, the smallest first: parts, those first that count least often, then the clock, the actions."""
    counts = np.bincount(tables.rows)
    hides = [counts[row] > 1 for row in tables.rows.tolist()]
    parts = np.array([observation_key(o) for o in tables.observations])
    single: list[tuple[float, dict[str, Any]]] = []
    for part in range(parts.shape[1]):
        column = parts[:, part].tolist()
        hiding = {value for value, hidden in zip(column, hides, strict=True) if hidden}
        counting = float(np.mean([value in hiding for value in column]))  # how often it would count
        if len(set(column)) > 1:  # else it is the clock
            values = tuple(sorted(hiding)) if hiding != set(column) else ()
            single.append((counting, {"timers": (Timer(part, values),)}))
    single.append((2.0, {"clock": True}))
    single += [(3.0, {"actions": (action,)}) for action in range(len(decisions.actions))]
    ordered = [chosen for _, chosen in sorted(single, key=lambda pair: pair[0])]
    for size in range(1, MOST_TIMERS + 1):
        for several in combinations(ordered, size):
            yield Memory(
                clock=any(one.get("clock", False) for one in several),
                timers=tuple(chain.from_iterable(one.get("timers", ()) for one in several)),
                actions=tuple(chain.from_iterable(one.get("actions", ()) for one in several)),
                cap=horizon,
            )


def is_sufficient(
    memory: Memory,
    tables: Tables,
    decisions: Decisions,
    space: spaces.Space[Any],
    beliefs: Beliefs,
    horizon: int,
    limit: int = ROW_LIMIT // 4,
) -> bool:
    """Return whether what is seen and remembered always determines the belief, up to `limit` pairs of them."""
    recall = Recall(memory, decisions, space)
    first = [next(iter(belief)) for belief in beliefs.weighed]
    observations = [observation_key(tables.observations[s]) for s in first]
    pairs = [(b, recall.begin(observations[b]), 0) for b in beliefs.start_belief.tolist()]
    believed = {(int(beliefs.rows[b]), remembered): b for b, remembered, _ in pairs}
    at = 0
    while at < len(pairs):
        b, remembered, time = pairs[at]
        at += 1
        for u, steps in enumerate(decisions.durations_of.tolist()):
            if time + steps >= horizon:
                continue
            place = b * decisions.n + u
            for b_after in beliefs.next_belief[beliefs.offsets[place] : beliefs.offsets[place + 1]].tolist():
                after = recall.decided(remembered, u, steps, observations[b_after])
                key = int(beliefs.rows[b_after]), after
                if key not in believed:
                    if len(pairs) >= limit:
                        return False
                    believed[key] = b_after
                    pairs.append((b_after, after, time + steps))
                elif believed[key] != b_after:
                    return False
    return True
