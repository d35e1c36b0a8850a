"""A waiting policy that needs NumPy and nothing else; any Python from 3.8 on.

This file and `policy.npz` beside it were written by letitcook, and run without it::

    from policy import load

    policy = load()
    decision, _ = policy.predict(observation)      # one decision, or an array of them for a batch of observations
    action, steps = policy.decide(observation)     # what to do, and for how many control periods without sensing

A policy that remembers takes one observation at a time, with the state that it returned for the one before::

    decision, state = policy.predict(observation, state)   # None when an episode begins
    policy.reset()                                          # before `decide` in a new episode, which keeps the state

`policy.actions` names the actions; `action` counts from 0 in them. For a policy that wraps another one, action 0 is to
ask that other policy. Where `policy.hold` is True, action `policy.wait` is to send the last action again (if there was
none yet: to ask the other policy, or action 0), and an observation is `{"observation": ..., "last_action": ...}`: the
last action as a vector, whole numbers one-hot, all zeros before the first. The arrays are plain numbers: nothing is
unpickled.

A network's values are computed in float64 from its float32 weights and from the observation rounded to float32. The
decision is the one that letitcook takes, except where two values are so close that float32's rounding, in which
letitcook computes, decides between them.
"""

from __future__ import annotations

import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = 1
"""Version of the file's layout."""
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    RecursionError,
    OverflowError,
    MemoryError,
    LookupError,
    TypeError,
    AttributeError,
    SyntaxError,
)
"""What a damaged file makes of the modules that read it; all of it becomes ValueError."""


def load(path: str | Path | None = None, parts: Any = None) -> ExportedPolicy:
    """Read a policy; the one in `policy.npz` beside this file, if no other is named.

    `parts` is the function of the observation that the policy's timers watch, where it was learned with one.
    """
    file = Path(__file__).with_name("policy.npz") if path is None else Path(path)
    if file.stat().st_size > 2**30:
        raise ValueError(f"{file} is larger than any policy; export it anew")
    data = file.read_bytes()
    try:
        arrays = _read(data, file)
        if "about" not in arrays:
            raise ValueError(f"{file} is not a policy that letitcook exported: it says nothing about itself")
        about = json.loads(str(arrays.pop("about")))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            said = about.get("format") if isinstance(about, dict) else None
            raise ValueError(f"{file} has format {said!r}, and this loader reads {FORMAT}; export it anew")
        return ExportedPolicy(about, arrays, parts)
    except DAMAGE as error:
        raise ValueError(f"{file} is damaged ({type(error).__name__}: {str(error)[:200]}); export it anew") from error


def _read(data: bytes, file: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an `npz` file that is not compressed, so that it cannot become larger than it is."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename[:-4]: info for info in archive.infolist() if info.filename.endswith(".npy")}
        for info in members.values():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(data):
                raise ValueError(f"{file} is compressed; export it anew")
        return {name: _array(archive.read(info)) for name, info in members.items()}


def _array(data: bytes) -> NDArray[Any]:
    """Return the array in an `npy` file; one that claims to be larger than its data is refused before it is made."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array has another version of NumPy's format than 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"an array claims the shape {shape}")
    flat = np.frombuffer(data, dtype=dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


class ExportedPolicy:
    """A policy that was read."""

    def __init__(self, about: dict[str, Any], arrays: dict[str, NDArray[Any]], parts: Any = None) -> None:
        self.about = about
        """What it was made of, as plain data."""
        decisions = about.get("decisions") or {"actions": [], "wait": 0, "durations": []}
        self.actions: tuple[str, ...] = tuple(decisions["actions"])
        """Names of the actions; empty if they were not known when the policy was exported."""
        self.wait: int = decisions["wait"]
        """Index of the action that waits."""
        self.durations: tuple[int, ...] = tuple(decisions["durations"])
        """Steps of each wait: decision `len(actions) + i` waits `durations[i]` steps."""
        self.hold: bool = bool(decisions.get("hold", False))
        """Whether to wait is to send the last action again."""
        self.repeat: int = decisions.get("repeat", 1)
        """Steps that every other action is done for."""
        self._chooser: _Table | _Schedule | _Networks
        self._pace = _Schedule(arrays) if about["kind"] == "paced" else None
        if about["kind"] == "table":
            self._chooser = _Table(arrays)
        elif about["kind"] == "schedule":
            self._chooser = _Schedule(arrays)
        else:
            self._chooser = _Networks(about, arrays)
        self._state: Any = None
        known = [*self.actions, *self.durations]
        whole = [self.wait, self.repeat - 1 if isinstance(self.repeat, int) else None, *self.durations]
        if known and (self._chooser.answers > len(known) or not all(isinstance(n, int) and n >= 0 for n in whole)):
            raise ValueError(f"a policy of {self._chooser.answers} decisions does not fit the {len(known)} it names")
        memory = about.get("memory")
        self._memory = (
            None if memory is None else _Memory(memory, decisions, vector=about["kind"] == "network", parts=parts)
        )
        if self._memory is not None and not self._memory.fits(self._chooser):
            raise ValueError("what the policy remembers does not fit it")

    def reset(self) -> None:
        """Forget what `decide` remembers: a new episode begins."""
        self._state = None

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the decision at an observation, or an array of decisions for a batch of them; and the next state.

        A schedule keeps its place in its period as a state, a policy that remembers its memory; they take no batches.
        """
        if isinstance(self._chooser, _Schedule):
            return self._chooser.choose(state)
        if self._pace is not None:
            decision, after = self._pace.choose(state)
            if state == 0:  # the period is over: the networks say whether to wait on
                decision = int(self._chooser.choose(observation)[0][0])
            return decision, after if decision == 0 or state != 0 else 0
        if self._memory is None:
            decisions, single = self._chooser.choose(observation)
            return (int(decisions[0]) if single else decisions), None
        fresh = state is None or (episode_start is not None and bool(np.any(episode_start)))
        if fresh:
            remembered = self._memory.begin(observation)
        else:
            before, action, elapsed = state
            remembered = self._memory.after(before, action, elapsed, observation)
        decisions, _ = self._chooser.choose(self._memory.added(observation, remembered))
        decision = int(decisions[0])
        return decision, (remembered, *self._carried_out(decision))

    def ended_early(self, state: Any, steps: int) -> Any:
        """Return the state of a policy that remembers when its last decision ended `steps` before its time."""
        if self._memory is None or state is None:
            return state
        remembered, action, elapsed = state
        return remembered, action, elapsed - steps

    def _carried_out(self, decision: int) -> tuple[int, int]:
        """Return a decision's action, and for how many steps it is done."""
        wait = decision - len(self.actions)
        return (decision, self.repeat) if wait < 0 else (self.wait, self.durations[wait])

    def decide(self, observation: Any) -> tuple[int, int]:
        """Return the action at one observation, and for how many steps it is to be done without sensing.

        A schedule goes on in its period from call to call.
        """
        if not self.actions:
            raise ValueError("this policy was exported without its decisions; export it anew with decisions=...")
        decision, self._state = self.predict(observation, self._state)
        if not isinstance(decision, int):
            raise TypeError("decide takes one observation; use predict for a batch of them")
        return self._carried_out(decision)


class _Memory:
    """What a policy remembers: steps since something changed, and past decisions; see letitcook's docs."""

    def __init__(self, about: dict[str, Any], decisions: dict[str, Any], vector: bool, parts: Any) -> None:
        self.clock, self.timers = int(about["clock"]), about["timers"]
        self.timed, self.window, self.cap = about["actions"], about["window"], about["cap"]
        self.space, self.vector = about["space"], vector
        numbers = [self.window, self.cap, *self.timed, *(part for part, _ in self.timers)]
        if not all(type(n) is int and n >= 0 for n in numbers) or self.window > 1000:
            raise ValueError("what the policy remembers is damaged")
        self.n_actions = len(decisions["actions"])
        self.scale = 1.0 / max(decisions["durations"], default=1)
        if about["parts"] is not None and parts is None and self.timers:
            raise ValueError(f"the policy's timers watch {about['parts']}; give that function: load(parts=...)")
        self.function = parts

    def fits(self, chooser: Any) -> bool:
        """Return whether the table or the networks take an observation with what is remembered."""
        counts = self.clock + len(self.timers) + len(self.timed)
        if isinstance(chooser, _Table):
            return bool(chooser.length == _numbers(self.space) * (1 + self.window) + counts + 2 * self.window)
        size = _size(self.space)
        return isinstance(chooser, _Networks) and chooser.size == size + counts + self.window * (
            self.n_actions + 1 + size
        )

    def parts(self, observation: Any) -> list[Any]:
        """Return what the timers watch."""
        if not self.timers:
            return []
        seen = observation if self.function is None else self.function(observation)
        return list(np.asarray(seen).reshape(-1).tolist())

    def begin(self, observation: Any) -> tuple[Any, ...]:
        """Return what is remembered when an episode begins: parts, counts, past decisions, what was seen."""
        counts = [0] * (self.clock + len(self.timers) + len(self.timed))
        return self.parts(observation), counts, [(-1, 0, None)] * self.window, observation

    def after(self, before: tuple[Any, ...], action: int, elapsed: int, observation: Any) -> tuple[Any, ...]:
        """Return what is remembered after an action that lasted `elapsed` steps."""
        was, counts, past, last = before
        seen, counts = self.parts(observation), [count + elapsed for count in counts]
        for i, (part, values) in enumerate(self.timers, start=self.clock):
            if seen[part] != was[part] or (values and seen[part] not in values):
                counts[i] = 0
        for i, timed in enumerate(self.timed, start=self.clock + len(self.timers)):
            if timed == action:
                counts[i] = 0
        past = [(action, elapsed, last), *past][: self.window]
        return seen, [min(count, self.cap) for count in counts], past, observation

    def added(self, observation: Any, remembered: tuple[Any, ...]) -> Any:
        """Return an observation with what is remembered, as the table or the networks take it."""
        _, counts, past, _ = remembered
        if not self.vector:
            blank = np.zeros_like(observation)
            return observation, counts, [(a, steps, blank if seen is None else seen) for a, steps, seen in past]
        later = flat(self.space, observation)
        entries = [later, np.array(counts) * self.scale]
        for action, steps, seen in past:
            hot, told = np.zeros(self.n_actions + 1), np.zeros(len(later))
            if seen is not None:
                before = flat(self.space, seen)
                hot[action], hot[-1] = 1.0, steps * self.scale
                told = (later - before) / max(steps, 1) if self.space["type"] == "Box" else before
                later = before
            entries += [hot, told]
        return np.concatenate(entries).astype(np.float32)


class _Networks:
    """The lexicographically best decision of K networks, each a flat row of weights `(out, in)` and biases by layer.

    An observation `x` becomes `x̂ = (x - mean) · scale`, and the networks see `[x̂, sin(F x̂), cos(F x̂)]`.
    """

    def __init__(self, about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.mean, self.scale = arrays["mean"].astype(np.float64), arrays["scale"].astype(np.float64)
        self.frequencies = arrays["frequencies"].astype(np.float64)
        self.size = len(self.mean)
        self.slack = float(about["slack"])
        self.space: dict[str, Any] = about["space"] or {"type": "Box", "shape": [self.size]}
        sizes, networks, features = about["sizes"], arrays["networks"], len(self.frequencies)
        counts = [n for n in sizes if isinstance(n, int) and n >= 1]
        if len(counts) != len(sizes) or len(sizes) < 2 or sizes[0] != self.size + 2 * features:
            raise ValueError(f"networks of the sizes {str(sizes)[:80]} do not fit {self.size} numbers")
        parameters = sum(sizes[i + 1] * (sizes[i] + 1) for i in range(len(sizes) - 1))
        if networks.shape[1:] != (parameters,) or not len(networks):
            raise ValueError(f"networks of the sizes {sizes} do not have parameters {networks.shape}")
        shapes = self.mean.shape, self.scale.shape, self.frequencies.shape
        fits = shapes == ((self.size,), (self.size,), (features, self.size))
        for array in (self.mean, self.scale, self.frequencies):
            if not fits or not np.isfinite(array).all():
                raise ValueError("what scales the observations is damaged")
        if not np.isfinite(networks).all() or not math.isfinite(self.slack):
            raise ValueError("a parameter is not finite")
        if _size(self.space) != self.size:
            raise ValueError(f"observations of {str(self.space)[:80]} are not the {self.size} numbers that are needed")
        self.networks = [_layers(row.astype(np.float64), sizes) for row in networks]
        self.answers = sizes[-1]

    def choose(self, observation: Any) -> tuple[NDArray[np.int64], bool]:
        """Return decisions, and whether there was one observation alone."""
        rows, single = self._rows(observation)
        if not np.isfinite(rows).all():
            raise ValueError(f"the observation {observation!r} is not finite; the policy cannot decide on it")
        x = (rows.astype(np.float64) - self.mean) * self.scale
        fourier_features = x @ self.frequencies.T
        x = np.hstack([x, np.sin(fourier_features), np.cos(fourier_features)])
        values = np.stack([_forward(layers, x) for layers in self.networks])
        return lexicographic_best(values, self.slack), single

    def _rows(self, observation: Any) -> tuple[NDArray[np.float32], bool]:
        """Return the observations as rows of float32, and whether there was one alone."""
        if self.space["type"] in ("Dict", "Tuple"):
            single = isinstance(observation, dict if self.space["type"] == "Dict" else tuple)
            each = [observation] if single else list(observation)
            return np.stack([flat(self.space, one) for one in each]).astype(np.float32), single
        x = np.asarray(observation, dtype=np.float32 if self.space["type"] == "Box" else None)
        shape = _shape(self.space)
        if x.shape != shape and x.shape[1:] != shape:
            raise ValueError(f"the policy takes observations of shape {shape}, or a batch of them, and got {x.shape}")
        single = x.shape == shape
        rows = x if self.space["type"] == "Box" else [flat(self.space, one) for one in (x[None] if single else x)]
        return np.asarray(rows, dtype=np.float32).reshape(-1, self.size), single


def _layers(parameters: NDArray[np.float64], sizes: list[int]) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Cut a row of parameters into the weights `(in, out)` and biases of its layers."""
    layers, at = [], 0
    for layer in range(len(sizes) - 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weights = parameters[at : at + n_in * n_out].reshape(n_out, n_in)
        at += n_in * n_out
        layers.append((np.ascontiguousarray(weights.T), parameters[at : at + n_out]))
        at += n_out
    return layers


def _forward(layers: list[tuple[NDArray[np.float64], NDArray[np.float64]]], x: NDArray[np.float64]) -> Any:
    """Return the values of the decisions, `(rows, n)`."""
    for weights, bias in layers[:-1]:
        x = np.maximum(x @ weights + bias, 0.0)
    weights, bias = layers[-1]
    return x @ weights + bias


def lexicographic_best(values: NDArray[np.float64], slack: float) -> NDArray[np.int64]:
    """Return the best decision of each row of `values`, `(K, rows, n)`.

    Keeps the decisions within `slack` of the best in the first objective, among them those within it of the best in
    the next, and so on; the last objective decides without slack, ties go to the lowest index.
    """
    admissible = np.ones(values.shape[1:], dtype=bool)
    for q in values[:-1]:
        best = np.where(admissible, q, -np.inf).max(axis=1, keepdims=True)
        admissible &= q >= best - slack
    return np.asarray(np.where(admissible, values[-1], -np.inf).argmax(axis=1), dtype=np.int64)


def flat(space: dict[str, Any], observation: Any) -> Any:
    """Return an observation as one vector, as Gymnasium does: whole numbers one-hot, dictionaries by their keys."""
    kind = space["type"]
    if kind == "Dict":
        return np.concatenate([flat(inner, observation[key]) for key, inner in space["spaces"]])
    if kind == "Tuple":
        return np.concatenate([flat(inner, observation[i]) for i, inner in enumerate(space["spaces"])])
    x = np.asarray(observation)
    if x.shape != _shape(space):
        raise ValueError(f"a part of the observation has shape {x.shape}, and the policy takes {_shape(space)} there")
    if kind in ("Box", "MultiBinary"):
        return x.astype(np.float32).ravel()
    counts = np.array(space["n"] if kind == "Discrete" else space["nvec"], dtype=np.int64).ravel()
    index = (x - np.array(space["start"])).ravel()
    if ((index < 0) | (index >= counts)).any():
        raise ValueError(f"{observation!r} is outside what the policy takes there: {space}")
    hot = np.zeros(int(counts.sum()), dtype=np.float32)
    hot[np.cumsum(counts) - counts + index] = 1.0
    return hot


def _size(space: dict[str, Any]) -> int:
    """Return how many numbers a flat observation of a space has."""
    kind = space["type"]
    if kind in ("Dict", "Tuple"):
        return sum(_size(inner[1] if kind == "Dict" else inner) for inner in space["spaces"])
    if kind in ("Box", "MultiBinary"):
        return math.prod(int(n) for n in _shape(space))
    return sum(int(n) for n in np.ravel(space["n"] if kind == "Discrete" else space["nvec"]))


def _numbers(space: dict[str, Any]) -> int:
    """Return how many numbers an observation of a space has as it is."""
    if space["type"] in ("Dict", "Tuple"):
        return sum(_numbers(inner[1] if space["type"] == "Dict" else inner) for inner in space["spaces"])
    return math.prod(int(n) for n in _shape(space))


def _shape(space: dict[str, Any]) -> tuple[int, ...]:
    """Return the shape of an observation in a space that is neither Dict nor Tuple."""
    if space["type"] == "Discrete":
        return ()
    if space["type"] == "MultiBinary":
        return (space["n"],) if isinstance(space["n"], int) else tuple(space["n"])
    return np.shape(space["nvec"]) if space["type"] == "MultiDiscrete" else tuple(space["shape"])


class _Schedule:
    """To query another policy every so many steps."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.cycle = arrays["cycle"].tolist()
        if not self.cycle or not all(isinstance(u, int) and u >= 0 for u in self.cycle):
            raise ValueError(f"the decisions {self.cycle} are not those of a schedule")
        self.answers = max(self.cycle) + 1

    def choose(self, state: Any) -> tuple[int, int]:
        """Return the next decision, and the place of the one after it."""
        place = 0 if state is None else int(state)
        return int(self.cycle[place]), (place + 1) % len(self.cycle)


class _Table:
    """A decision for each observation."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        observations, table = arrays["observations"], arrays["decisions"]
        if observations.ndim != 2 or not observations.size or table.shape != (len(observations),):
            raise ValueError("the table is not one decision for each observation")
        if table.dtype.kind not in "iu" or table.min() < 0:
            raise ValueError("the table has something that is no decision")
        keys, decisions = observations.tolist(), table.tolist()
        self.answers = max(decisions) + 1
        self.length = len(keys[0])
        self.decision_of = {tuple(key): decisions[i] for i, key in enumerate(keys)}

    def choose(self, observation: Any) -> tuple[NDArray[np.int64], bool]:
        """Return decisions, and whether there was one observation alone."""
        batch = isinstance(observation, np.ndarray) and (
            observation.size > self.length or observation.shape == (1, self.length)
        )
        keys = [observation_key(one) for one in (observation if batch else [observation])]
        for key in keys:
            if key not in self.decision_of:
                raise LookupError(f"observation {key} is not one of the {len(self.decision_of):,} that were learned")
        return np.array([self.decision_of[key] for key in keys], dtype=np.int64), not batch


def observation_key(observation: Any) -> tuple[Any, ...]:
    """Return an observation as a tuple of plain numbers: dictionaries by their sorted keys, arrays row by row."""
    if isinstance(observation, dict):
        return tuple(part for key in sorted(observation) for part in observation_key(observation[key]))
    if isinstance(observation, (tuple, list)):
        return tuple(part for one in observation for part in observation_key(one))
    if isinstance(observation, np.ndarray):
        return tuple(observation.ravel().tolist())
    return (observation.item() if isinstance(observation, np.generic) else observation,)
