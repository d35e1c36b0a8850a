"""Logs that others keep: a Minari dataset as a recording of a base policy.

Minari (https://minari.farama.org) stores observations, actions and rewards of whole episodes. Where the actions are
the base policy's own, of a policy that was queried at every step, that is what a `Recording` holds.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from letitcook.deep.policy import flat
from letitcook.errors import FileFormatError, SettingError, SpaceError
from letitcook.evaluation.persistence import Recording
from letitcook.storage.spaces import can_be_flat, numbers_in
from letitcook.wrappers.hold import LastAction

PREFIX = "minari:"
"""What begins the name of a dataset where the file of a recording could stand."""


def recording_from_minari(dataset: Any) -> Recording:
    """Return a Minari dataset, or the local one of an id, as a recording of the policy that acted in it.

    The actions must be the answers of the base policy itself, queried at every step. Episodes that do not end are left
    out, with a warning: their returns are not known.

    >>> from types import SimpleNamespace as Minari  # stands for minari.load_dataset("pendulum/swing-v0")
    >>> from gymnasium import spaces
    >>> over, line = np.array([False, True]), spaces.Box(-1.0, 1.0, (1,))
    >>> played = Minari(observations=np.zeros((3, 1)), actions=np.ones((2, 1)), rewards=[1, 1], terminations=over)
    >>> swing = Minari(observation_space=line, action_space=line, iterate_episodes=lambda: [played])
    >>> recording_from_minari(swing).answers.tolist()
    [[1.0], [1.0]]
    """
    held = _local(dataset) if isinstance(dataset, str) else dataset
    space, vectors = numbers_in(held.observation_space), LastAction(held.action_space)
    if not can_be_flat(space):
        raise SpaceError(f"observations of {space} cannot be written as a vector, so their dataset cannot be read")
    rows: list[tuple[Any, ...]] = []
    count, unended = 0, 0
    for episode in held.iterate_episodes():
        steps = len(episode.rewards)
        if steps == 0 or not (episode.terminations[-1] or episode.truncations[-1]):
            unended += 1
            continue
        before = np.full(vectors.space.shape, np.nan, dtype=np.float32)
        for t in range(steps):
            answer = vectors.vector(_at(episode.actions, t))
            seen = flat(space, _at(episode.observations, t))
            rows.append((seen, answer, before, count, float(episode.rewards[t])))
            before = answer
        count += 1
    if unended:
        warnings.warn(f"{unended} episodes of the dataset have no end, and are left out", stacklevel=2)
    if not rows:
        raise FileFormatError("the Minari dataset has no whole episode; record the policy: letitcook record")
    observations, answers, last, numbers, rewards = zip(*rows, strict=True)
    arrays = {"observations": observations, "answers": answers, "held": last, "episodes": numbers, "rewards": rewards}
    try:
        return Recording.of_arrays({name: np.array(values) for name, values in arrays.items()})
    except FileFormatError as error:
        raise FileFormatError(f"the Minari dataset cannot be used: {error}") from error


def read_recording(where: str | Path) -> Recording:
    """Return the recording in a file of `letitcook record`, or with `minari:ID` that of a local Minari dataset.

    >>> read_recording("minari:")
    Traceback (most recent call last):
    ...
    letitcook.errors.SettingError: no dataset is named in 'minari:'; give its id: minari:pendulum/swing-v0
    """
    name = str(where)
    if not name.startswith(PREFIX):
        return Recording.load(where)
    if name == PREFIX:
        raise SettingError(f"no dataset is named in {name!r}; give its id: minari:pendulum/swing-v0")
    return recording_from_minari(name.removeprefix(PREFIX))


def _local(name: str) -> Any:
    """Return the local dataset of an id; nothing is downloaded."""
    try:
        import minari
    except ImportError as error:
        raise SettingError("reading Minari datasets needs its package: pip install 'letitcook[minari]'") from error
    try:
        return minari.load_dataset(name)
    except ImportError as error:
        raise SettingError(f"the Minari dataset {name!r} cannot be read: {error}") from error
    except Exception as error:  # whatever Minari finds wrong with a name or a file
        raise FileFormatError(
            f"the Minari dataset {name!r} cannot be read ({str(error)[:200]}); see what there is: minari list local, "
            f"and fetch it: minari download {name}"
        ) from error


def _at(values: Any, t: int) -> Any:
    """Return what stands at a time in values that may be dictionaries or tuples of arrays."""
    if isinstance(values, dict):
        return {key: _at(inner, t) for key, inner in values.items()}
    if isinstance(values, tuple):
        return tuple(_at(inner, t) for inner in values)
    return values[t]
