"""What comes of training, and how it is kept: a folder with a manifest, the policy and the learning curve."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook import files
from letitcook.choice import Candidate
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import FileFormatError
from letitcook.finite.policy import TablePolicy
from letitcook.wmdp import Policy

VERSION = metadata.version("letitcook")
PARTS = ("policy", "curve", "base", "checkpoint", "front")
POLICY, CURVE, BASE, CHECKPOINT, FRONT = (f"{name}.safetensors" for name in PARTS)
PACKAGES = ("numpy", "scipy", "numba", "gymnasium", "minigrid", "safetensors", "polars")
"""Packages whose versions are kept with a run."""
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
    time: tuple[float, ...] = ()
    """Mean primitive steps that a fresh episode spends in each decision; empty if the run was stopped."""
    base: NetworkPolicy | None = None
    """The network that was wrapped, where there is one."""
    checkpoint: dict[str, NDArray[Any]] | None = None
    """The learner's state, if the run was stopped before its end."""
    evaluation_episodes: int = 0
    """Episodes that were played to evaluate and to choose, beside the training."""
    choice: dict[str, Any] | None = None
    """How the policy was chosen, where there were several candidates."""
    front: tuple[Candidate, ...] = ()
    """Policies of several trade-offs that no other one beat in both task return and queries, fewest queries first."""

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
        files.write_folder(folder, self.files(), replace)
        return folder

    def files(self) -> dict[str, bytes]:
        """Return the files of the run's folder, by name."""
        curve = np.array(self.curve, dtype=np.float64)
        content = {
            "about": self.about,
            "best": self.best._asdict(),
            "fresh": self.fresh._asdict(),
            "time": list(self.time),
            "steps": self.steps,
            "seconds": self.seconds,
            "evaluation_episodes": self.evaluation_episodes,
            "choice": self.choice,
            "finished": self.checkpoint is None,
            "provenance": provenance(),
        }
        made = {
            files.MANIFEST: files.manifest("run", content),
            POLICY: files.pack_arrays(self.policy.arrays()),  # type: ignore[attr-defined]
            CURVE: files.pack_arrays({name: curve[:, i] for i, name in enumerate(Point._fields)}),
        }
        if self.base is not None:
            made[BASE] = files.pack_arrays(self.base.arrays())
        if self.front:
            made[FRONT] = files.pack_arrays(candidate_arrays(self.front))
        if self.checkpoint is not None:
            made[CHECKPOINT] = files.pack_arrays(self.checkpoint)
        return made


def provenance() -> dict[str, Any]:
    """Return what a run was made with: versions, the kind of machine, and the time.

    >>> sorted(provenance())
    ['machine', 'packages', 'python', 'time', 'version']
    """
    return {
        "version": VERSION,
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


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
    files.read_manifest(folder, "run")  # says best what is wrong with a folder of another kind
    return from_files(files.read_folder(folder), folder)


def from_files(content: Mapping[str, bytes], folder: Path) -> Learned:
    """Return the run that these files hold; `folder` is where they stand."""
    manifest = files.parse_manifest(content[files.MANIFEST], "run", folder / files.MANIFEST)
    arrays = files.unpack_arrays(content.get(POLICY), folder / POLICY)
    base, checkpoint, front = content.get(BASE), content.get(CHECKPOINT), content.get(FRONT)
    try:
        kind = manifest["about"]["policy"]
        return Learned(
            policy=POLICIES[kind].from_arrays(arrays),
            best=Point(**manifest["best"]),
            fresh=Point(**manifest["fresh"]),
            curve=curve_of(content, folder),
            steps=manifest["steps"],
            seconds=manifest["seconds"],
            about=manifest["about"],
            time=tuple(manifest.get("time", ())),
            base=None if base is None else NetworkPolicy.from_arrays(files.unpack_arrays(base, folder / BASE)),
            evaluation_episodes=int(manifest.get("evaluation_episodes", 0)),
            choice=manifest.get("choice"),
            front=() if front is None else tuple(candidates_of(files.unpack_arrays(front, folder / FRONT), kind)),
            checkpoint=None if manifest["finished"] else files.unpack_arrays(checkpoint, folder / CHECKPOINT),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{folder} is damaged or incomplete ({error!r}); train it anew") from error


def candidate_arrays(candidates: Sequence[Candidate]) -> dict[str, NDArray[Any]]:
    """Return candidates as arrays, to be saved."""
    arrays: dict[str, NDArray[Any]] = {}
    for i, candidate in enumerate(candidates):
        parts = {**candidate.policy.arrays(), "screening": candidate.screening}
        z = np.nan if candidate.trade_off is None else candidate.trade_off
        parts["met"] = np.array([candidate.step, z], dtype=np.float64)
        arrays.update({f"candidate.{i}.{name}": array for name, array in parts.items()})
    return arrays


def candidates_of(arrays: Mapping[str, NDArray[Any]], policy_kind: str) -> list[Candidate]:
    """Return the candidates among saved arrays; their policies are tables or networks, by the names of `POLICIES`."""
    parts: dict[int, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        if name.startswith("candidate."):
            _, number, part = name.split(".", 2)
            parts.setdefault(int(number), {})[part] = array
    found = []
    for _, its in sorted(parts.items()):
        step, z = its["met"].tolist()
        policy = POLICIES[policy_kind].from_arrays(its)
        found.append(Candidate(int(step), None if np.isnan(z) else z, policy, its["screening"].copy()))
    return found


def curve_of(content: Mapping[str, bytes], folder: Path) -> list[Point]:
    """Return the learning curve that a run's files hold."""
    curve = files.unpack_arrays(content.get(CURVE), folder / CURVE)
    return [Point(int(row[0]), *row[1:]) for row in zip(*(curve[n].tolist() for n in Point._fields), strict=True)]
