"""What comes of training, and how it is kept: a folder with a manifest, the policy and the learning curve."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook import files
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import FileFormatError
from letitcook.finite.policy import TablePolicy
from letitcook.wmdp import Policy

POLICIES: dict[str, Any] = {"table": TablePolicy, "network": NetworkPolicy}
"""Policies that can be saved, by the name in the manifest."""


class Point(NamedTuple):
    """One evaluation: the primitive steps before it, and means over its episodes."""

    step: int
    task_return: float
    length: float
    queries: float
    base_queries: float


@dataclass(frozen=True)
class Learned:
    """What came of a run: the best policy, its numbers, and the curve."""

    policy: Policy
    best: Point
    """The evaluation by which the policy was chosen."""
    fresh: Point
    """The policy on fresh episodes; the same as `best` if the run was stopped before its end."""
    curve: list[Point]
    steps: int
    seconds: float
    about: dict[str, Any]
    """Method, λ, seed, preset, settings and decisions, as plain data."""
    base: NetworkPolicy | None = None
    """The network that was wrapped, where there is one."""
    checkpoint: dict[str, NDArray[Any]] | None = None
    """The learner's state, if the run was stopped before its end."""

    @property
    def length(self) -> float:
        """Mean primitive steps of the policy's episodes."""
        return self.fresh.length

    @property
    def queries(self) -> float:
        """Mean queries of the policy."""
        return self.fresh.queries

    @property
    def task_return(self) -> float:
        """Mean task return of the policy."""
        return self.fresh.task_return

    def save(self, path: str | Path, replace: bool = False) -> Path:
        """Write the run as a folder: manifest, policy, learning curve; the learner's state, if it was stopped.

        With `replace`, the folder may hold an older state of the run, which goes once the new one is written.
        """
        folder = Path(path) if replace else files.check_output(Path(path))
        files.write_folder(folder, self._write, replace)
        return folder

    def _write(self, folder: Path) -> None:
        files.write_arrays(folder / "policy.safetensors", self.policy.arrays())  # type: ignore[attr-defined]
        if self.base is not None:
            files.write_arrays(folder / "base.safetensors", self.base.arrays())
        if self.checkpoint is not None:
            files.write_arrays(folder / "checkpoint.safetensors", self.checkpoint)
        curve = np.array(self.curve, dtype=np.float64)
        files.write_arrays(folder / "curve.safetensors", {n: curve[:, i] for i, n in enumerate(Point._fields)})
        content = {
            "about": self.about,
            "best": self.best._asdict(),
            "fresh": self.fresh._asdict(),
            "steps": self.steps,
            "seconds": self.seconds,
            "finished": self.checkpoint is None,
        }
        files.write_manifest(folder, "run", content)


def load(path: str | Path) -> Learned:
    """Read a run that was saved.

    >>> import tempfile
    >>> from letitcook import learn, make
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = learn(make("cook", mode="wrap"), steps=20_000, progress=False).save(place + "/run")
    ...     run = load(folder)
    >>> run.about["method"], len(run.curve)
    ('lexicographic', 2)
    """
    folder = Path(path)
    manifest = files.read_manifest(folder, "run")
    curve = files.read_arrays(folder / "curve.safetensors")
    arrays = files.read_arrays(folder / "policy.safetensors")
    base, checkpoint = folder / "base.safetensors", folder / "checkpoint.safetensors"
    try:
        points = [Point(int(row[0]), *row[1:]) for row in zip(*(curve[n].tolist() for n in Point._fields), strict=True)]
        return Learned(
            policy=POLICIES[manifest["about"]["policy"]].from_arrays(arrays),
            best=Point(**manifest["best"]),
            fresh=Point(**manifest["fresh"]),
            curve=points,
            steps=manifest["steps"],
            seconds=manifest["seconds"],
            about=manifest["about"],
            base=NetworkPolicy.from_arrays(files.read_arrays(base)) if base.exists() else None,
            checkpoint=None if manifest["finished"] else files.read_arrays(checkpoint),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{folder} is damaged or incomplete ({error!r}); train it anew") from error
