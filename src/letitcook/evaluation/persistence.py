"""Persistence: how long the answer of a base policy would stay (nearly) the same, learned from its own episodes.

No reinforcement learning, a few thousand queries. In a recording the base was queried at every step, so it is known
for each step and each reference (the action that would be held, or the fixed wait action) whether its answers stay near
that reference for the next d steps. A small network learns the probability of that for every d at once, from what a
wrapper sees. The wrapper takes the longest wait whose probability is at least a confidence, and else queries the base:
that is a lexicographic choice with a slack of 1 - confidence, so the result is a `NetworkPolicy` like any other.

Holding leads to states that the base alone does not come by. A second recording, in which the first wrapper waits while
the base is queried all the same, shows them (DAgger; Ross, Gordon and Bagnell 2011).

The same recordings say, before anything is learned, how often the answers change at all: `audit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, Policy
from letitcook.deep.network import adam, gradient_of_all, initial_parameters, layers, new_scratch, parameter_count
from letitcook.deep.normalisation import REACH, Inputs, input_size, plain_inputs, write_input
from letitcook.deep.policy import NetworkPolicy, flat
from letitcook.errors import FileFormatError, SettingError
from letitcook.evaluation.rollout import episode_seed
from letitcook.storage import folders
from letitcook.storage.array_checks import Expected, checked
from letitcook.storage.spaces import numbers_in
from letitcook.wrappers.base_policy import BASE, BasePolicyEnv, base_env_of
from letitcook.wrappers.env_returns import check_length
from letitcook.wrappers.hold import LastAction
from letitcook.wrappers.waiting import WaitingEnv, horizon_of

TOLERANCES = (0.05, 0.2, 0.6)
"""How far an answer may be from the reference, in standard deviations of the base's answers; whole numbers: equal."""
CONFIDENCES = (0.95, 0.8, 0.6)
LAGS = (1, 2, 3, 5, 8)
"""Steps before which an answer was given that is taken for the one that is held, in recordings of the base alone."""
HIDDEN = (64, 64)
FOURIER_FEATURES = 32
UPDATES, BATCH, RATE = 3_000, 256, 1e-3
LARGEST = 1e30
"""Numbers of a recording are at most this, so that differences of two are finite."""
FIELDS = ("observations", "answers", "held", "episodes", "rewards")


@dataclass(frozen=True)
class Recording:
    """Steps of episodes in which a base policy was queried at every one."""

    observations: NDArray[np.float32]
    """What the base saw, flat, `(steps, size)`; its features, where a wrapper sees those."""
    answers: NDArray[np.float32]
    """What it answered, as vectors, `(steps, action size)`."""
    held: NDArray[np.float32]
    """The action that was sent in the step before; NaN at an episode's first step."""
    episodes: NDArray[np.int64]
    """Number of each step's episode."""
    rewards: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many episodes there are."""
        return len(np.unique(self.episodes))

    def joined(self, other: Recording) -> Recording:
        """Return both recordings as one."""
        later = other.episodes + (int(self.episodes.max()) + 1 if len(self.episodes) else 0)
        pairs = [(getattr(self, name), getattr(other, name)) for name in FIELDS]
        joined = {name: np.concatenate(pair) for name, pair in zip(FIELDS, pairs, strict=True)}
        return Recording(**{**joined, "episodes": np.concatenate([self.episodes, later])})

    def split(self) -> list[Recording]:
        """Return a recording for each episode."""
        return [
            Recording(**{name: getattr(self, name)[self.episodes == n] for name in FIELDS})
            for n in np.unique(self.episodes)
        ]

    def save(self, path: str | Path) -> Path:
        """Write the recording as a file of NumPy arrays, which must not exist yet."""
        file = folders.check_output(Path(path))
        folders.write_file(file, folders.pack_arrays({name: getattr(self, name) for name in FIELDS}))
        return file

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read a recording that was saved."""
        file = Path(path)
        try:
            content = folders.read_file(file)
        except OSError as error:
            raise FileFormatError(
                f"{file} cannot be read: {error.strerror or error}; make it: letitcook record"
            ) from error
        arrays = folders.unpack_arrays(content, file)
        if set(arrays) != set(FIELDS):
            raise FileFormatError(f"{file} is not a recording of a policy; make one with: letitcook record")
        try:
            return cls.of_arrays(arrays)
        except FileFormatError as error:
            raise FileFormatError(f"{file}: {error}; make it anew: letitcook record") from error

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Recording:
        """Return a recording, every array of it checked."""
        answers = checked(arrays, "answers", Expected((None, None), low=-LARGEST, high=LARGEST))
        n, size = answers.shape
        episodes = checked(arrays, "episodes", Expected((n,), "whole", 0)).astype(np.int64)
        if n == 0 or size == 0 or (np.diff(episodes) < 0).any():
            raise FileFormatError("the recording is empty, or its episodes are out of order")
        return cls(
            checked(arrays, "observations", Expected((n, None), low=-LARGEST, high=LARGEST)).astype(np.float32),
            answers.astype(np.float32),
            checked(arrays, "held", Expected((n, size), low=-LARGEST, high=LARGEST, nan=True)).astype(np.float32),
            episodes,
            checked(arrays, "rewards", Expected((n,))).astype(np.float64),
        )


def record(env: WaitingEnv, episodes: int, seed: int = 0, policy: Policy | None = None) -> Recording:
    """Play episodes around a base policy, query it at every step, and record what it sees and answers.

    Without a `policy` the base acts alone; with one, its decisions are carried out, whatever the base answers.

    >>> import gymnasium as gym
    >>> from letitcook import wrap
    >>> env = wrap(gym.make("MountainCar-v0"), lambda o: 2 if o[1] > 0 else 0, wait="hold", durations=(2, 4))
    >>> recording = record(env, episodes=2)
    >>> recording.count, recording.answers.shape[1], bool(np.isnan(recording.held[0]).all())
    (2, 3, True)
    """
    wrapped = base_env_of(env)
    if wrapped is None:
        raise SettingError("there is no base policy to record; wrap one first: letitcook.wrap(env, base, ...)")
    if episodes < 1:
        raise SettingError(f"episodes = {episodes} is not allowed; record at least 1")
    rows: list[tuple[Any, ...]] = []
    for n in range(episodes):
        rows += [(*row[:3], n, row[3]) for row in _episode(env, wrapped, episode_seed(seed, n), policy)]
    observations, answers, held, numbers, rewards = zip(*rows, strict=True)
    return Recording(
        np.array(observations, dtype=np.float32),
        np.array(answers, dtype=np.float32),
        np.array(held, dtype=np.float32),
        np.array(numbers, dtype=np.int64),
        np.array(rewards, dtype=np.float64),
    )


def _episode(env: WaitingEnv, wrapped: BasePolicyEnv, seed: int, policy: Policy | None) -> list[tuple[Any, ...]]:
    """Return observation, answer, action before and reward of each step of one episode."""
    vectors, space = LastAction(wrapped.env.action_space), numbers_in(wrapped.seen_space)
    none = np.full(vectors.space.shape, np.nan, dtype=np.float32)
    shown, _ = wrapped.reset(seed=seed)
    rows: list[tuple[Any, ...]] = []
    left, waits, state, over, limit = 0, False, None, False, horizon_of(env)
    while not over:
        seen, before = flat(space, wrapped.seen_of(wrapped.observation)), wrapped.last_action
        answer = wrapped.base_action()
        if policy is not None and left == 0:
            decision, state = policy.predict(shown, state, np.array([not rows]), deterministic=True)
            left, waits = int(env.decisions.durations_of[int(decision)]), int(decision) != BASE
        waiting = waits and not (wrapped.holds and before is None)
        shown, reward, terminated, truncated, _ = wrapped.act(wrapped.waiting_action() if waiting else answer)
        rows.append((seen, vectors.vector(answer), none if before is None else vectors.vector(before), float(reward)))
        left, over = max(left - 1, 0), bool(terminated or truncated)
        check_length(len(rows), limit)
    return rows


def spread_of(recording: Recording) -> NDArray[np.float64]:
    """Return the standard deviation of each number of the answers; 1 where they are all the same."""
    spread = recording.answers.astype(np.float64).std(axis=0)
    return np.where(spread > 1e-8, spread, 1.0)


def stays(recording: Recording, reference: NDArray[np.float32], tolerance: float) -> NDArray[np.int64]:
    """Return for how many steps from each step on the answers stay near that step's reference, to the episode's end.

    An episode that ends near the reference counts as staying on for ever. `reference` has a row for each step, NaN
    where there is none.

    >>> ones = np.ones((4, 1), dtype=np.float32)
    >>> seen = Recording(ones, np.array([[0.0], [0.0], [5.0], [5.0]], np.float32), ones, np.zeros(4, int), np.zeros(4))
    >>> stays(seen, np.zeros((4, 1), dtype=np.float32), 0.1).tolist()
    [2, 1, 0, 0]
    """
    limit, n = tolerance * spread_of(recording), len(recording.answers)
    out = np.zeros(n, dtype=np.int64)
    last = np.append(recording.episodes[1:] != recording.episodes[:-1], True)
    ends = np.flatnonzero(last)
    end_of = ends[np.searchsorted(ends, np.arange(n))]
    running: NDArray[np.bool_] = np.asarray(~np.isnan(reference).any(axis=1))
    at = np.arange(n)
    while running.any():
        rows = np.flatnonzero(running)
        near = (np.abs(recording.answers[at[rows]] - reference[rows]) <= limit).all(axis=1)
        running[rows[~near]] = False
        rows = rows[near]
        out[rows] += 1
        over = at[rows] == end_of[rows]
        out[rows[over]] = np.iinfo(np.int64).max // 2
        running[rows[over]] = False
        at[rows[~over]] += 1
    return out


@dataclass(frozen=True)
class Audit:
    """What could be saved if one knew, at one tolerance."""

    tolerance: float
    kept: float
    """Queries that are left if an answer is held for exactly as long as the base would repeat it, as a share."""
    waited: float | None
    """Share of the steps in which the base answers as the fixed wait action does; None if answers are held."""


def audit(recording: Recording, wait: NDArray[np.float32] | None = None) -> list[Audit]:
    """Return how many of a base's queries repeat what is known already, at several tolerances.

    An estimate from the base's own episodes, made before anything is learned: whoever could foresee the answers would
    save that much. A held answer is compared with the one that was given when it began.

    >>> ones = np.ones((4, 1), dtype=np.float32)
    >>> seen = Recording(ones, np.array([[0.0], [0.0], [5.0], [5.0]], np.float32), ones, np.zeros(4, int), np.zeros(4))
    >>> audit(seen)[0].kept
    0.5
    """
    found = []
    for tolerance in (0.0, *TOLERANCES):
        length = stays(recording, recording.answers, tolerance)
        at, queries, n = 0, 0, len(recording.answers)
        ends = np.append(np.flatnonzero(recording.episodes[1:] != recording.episodes[:-1]) + 1, n)
        for end in ends.tolist():
            while at < end:
                queries += 1
                at += max(1, min(int(length[at]), end - at))
        waited = None
        if wait is not None:
            near = np.abs(recording.answers - wait) <= tolerance * spread_of(recording)
            waited = float(near.all(axis=1).mean())
        found.append(Audit(tolerance, queries / n, waited))
    return found


def persistence_policies(env: WaitingEnv, recording: Recording, seed: int = 0) -> list[tuple[str, NetworkPolicy]]:
    """Return wrappers that wait for as long as the base's answer would stay the same, with their names.

    One network for each tolerance, a policy of it for each confidence.
    """
    wrapped = base_env_of(env)
    assert wrapped is not None
    exact = not isinstance(wrapped.env.action_space, spaces.Box)
    found = []
    known: list[Any] = []
    for tolerance in TOLERANCES[:1] if exact else TOLERANCES:
        x, y = examples(env, wrapped, recording, tolerance)
        if any(np.array_equal(y, before) for before in known):  # answers that are either the same or far apart
            continue
        known.append(y)
        network, inputs = fit(x, y, seed)
        for confidence in CONFIDENCES:
            near = "" if exact else f" within {tolerance:g} sd"
            name = f"persistence{near} at {confidence:.0%}"
            found.append((name, _policy(network, inputs, env.decisions, confidence, numbers_in(env.observation_space))))
    return found


def examples(
    env: WaitingEnv, wrapped: BasePolicyEnv, recording: Recording, tolerance: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return what a wrapper sees, flat, and for each decision whether its wait would be right, 0 or 1."""
    if not wrapped.holds:
        wait = LastAction(wrapped.env.action_space).vector(wrapped.wait)
        references = [np.broadcast_to(wait, recording.answers.shape)]
    else:
        references = [recording.held, *(_before(recording, lag) for lag in LAGS[1:])]
    x, y = [], []
    durations = env.decisions.durations_of
    for reference in references:
        known = ~np.isnan(reference).any(axis=1)
        right = stays(recording, reference, tolerance)[:, None] >= durations[None, :]
        right[:, BASE] = True
        seen = recording.observations
        # As Gymnasium flattens a dictionary: by its sorted keys, and `last_action` comes before `observation`.
        x.append((np.hstack([reference, seen]) if wrapped.holds else seen)[known])
        y.append(right[known])
    return np.concatenate(x).astype(np.float32), np.concatenate(y).astype(np.float32)


def _before(recording: Recording, lag: int) -> NDArray[np.float32]:
    """Return the answers of some steps before; NaN where that was another episode."""
    out = np.full_like(recording.answers, np.nan)
    if lag < len(out):
        same = recording.episodes[lag:] == recording.episodes[:-lag]
        out[lag:][same] = recording.answers[:-lag][same]
    return out


def fit(x: NDArray[np.float32], y: NDArray[np.float32], seed: int) -> tuple[NDArray[np.float32], Inputs]:
    """Return a network that predicts `y` from `x` in the mean square, and how its inputs are made."""
    low, high = x.min(axis=0), x.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    plain = plain_inputs(x.shape[1], FOURIER_FEATURES, seed)
    inputs = plain._replace(mean=((low + high) / 2).astype(np.float32), scale=(2.0 * REACH / span).astype(np.float32))
    sizes = (input_size(inputs), *HIDDEN, y.shape[1])
    features = np.zeros((len(x), sizes[0]), dtype=np.float32)
    for i in range(len(x)):
        write_input(inputs, x[i], features[i])
    generator = np.random.default_rng([seed, 4])
    parameters = initial_parameters(sizes, 1, generator)[0]
    first, second = np.zeros_like(parameters), np.zeros_like(parameters)
    scratch, out = new_scratch(sizes, 1, BATCH), np.zeros((BATCH, y.shape[1]), dtype=np.float32)
    layout = np.array(sizes, dtype=np.int64)
    for update in range(1, UPDATES + 1):
        rows = generator.integers(len(x), size=BATCH)
        gradient_of_all(parameters, layout, features[rows], y[rows], out, scratch)
        adam(parameters, scratch.gradient, first, second, RATE * (1.0 - 0.9 * update / UPDATES), update)
    return parameters, inputs


def _policy(
    network: NDArray[np.float32], inputs: Inputs, decisions: Decisions, confidence: float, space: spaces.Space[Any]
) -> NetworkPolicy:
    """Return the policy that takes the longest wait whose probability is at least the confidence."""
    sizes = (input_size(inputs), *HIDDEN, decisions.n)
    networks = np.zeros((2, parameter_count(sizes)), dtype=np.float32)
    networks[0] = network
    weights, biases = layers(networks[0], list(sizes))[-1]
    weights[BASE], biases[BASE] = 0.0, 1.0  # to query the base is always right
    layers(networks[1], list(sizes))[-1][1][:] = decisions.durations_of
    networks[1, parameter_count(sizes) - decisions.n + BASE] = 0.0
    return NetworkPolicy(networks, sizes, 1.0 - confidence, space, inputs)
