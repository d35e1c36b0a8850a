"""What a run is and what comes of it, and how it is kept: a folder with a manifest, the policy, the learning curve."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, Policy, check_durations
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.settings import LDQNSettings
from letitcook.errors import FileFormatError, LetItCookError
from letitcook.evaluation.savings import Savings
from letitcook.evaluation.schedules import PacedPolicy, SchedulePolicy
from letitcook.finite.policy import TablePolicy
from letitcook.finite.settings import QSettings
from letitcook.storage import folders
from letitcook.storage.array_checks import Expected, checked
from letitcook.storage.setting_values import converted, read_settings
from letitcook.training.certificate_data import read_certificate, read_spent
from letitcook.training.env_spec import WrappedEnvSpec
from letitcook.training.selection import BASE_QUERIES, QUERIES, Candidate
from letitcook.wrappers.remembering import RememberingPolicy, Remembers, remembering

VERSION = metadata.version("letitcook")
PARTS = ("policy", "curve", "base", "checkpoint", "front")
POLICY, CURVE, BASE, CHECKPOINT, FRONT = (f"{name}.safetensors" for name in PARTS)
PACKAGES = ("numpy", "scipy", "numba", "gymnasium", "minigrid", "safetensors", "polars")
"""Packages whose versions are kept with a run."""
SETTINGS: dict[str, type[QSettings] | type[LDQNSettings]] = {"table": QSettings, "network": LDQNSettings}
"""Settings by what is learned."""
POLICIES: dict[str, Any] = {
    "table": TablePolicy,
    "network": NetworkPolicy,
    "schedule": SchedulePolicy,
    "paced": PacedPolicy,
}
"""Policies that can be saved, by the name in the manifest."""


class Point(NamedTuple):
    """One evaluation: the primitive steps and the decisions before it, and means over its episodes."""

    step: int
    decision: int
    task_return: float
    length: float
    queries: float
    base_queries: float


def read_decisions(data: Mapping[str, Any]) -> Decisions:
    """Return decisions that were saved; what older versions did not know has its default.

    >>> read_decisions({"actions": ["go", "stay"], "wait": 1, "durations": [2]}).n
    3
    """
    types = get_type_hints(Decisions)
    known = {name: converted(data[name], types[name]) for name in types if name in data}
    if known["durations"]:
        check_durations(known["durations"])
    return Decisions(**known)


@dataclass(frozen=True)
class RunInfo:
    """What a run is: all that decides its result, and how its environment is made again.

    >>> info = RunInfo("table", "lexicographic", None, 0, "paper", QSettings(), Decisions(("go", "stay"), 1, (2,)))
    >>> RunInfo.of_data(info.data()) == info, info.mode
    (True, 'scratch')
    """

    policy: Literal["table", "network"]
    """What is learned: a table or networks."""
    method: str
    """`lexicographic`, `scalar` or `vanilla`."""
    lam: float | None
    seed: int
    preset: str
    settings: QSettings | LDQNSettings
    decisions: Decisions
    task: str | None = None
    """Name of the task, if it is one of ours."""
    env_spec: WrappedEnvSpec | None = None
    """The environment and the base policy by name, where they were given so."""

    remembers: Remembers | None = None
    """What the policy remembers, where it does."""

    def with_memory(self, policy: Any) -> Policy:
        """Return a policy of the run with its memory, where it has one."""
        return remembering(policy, self.remembers, self.decisions, vector=self.policy == "network")

    @property
    def mode(self) -> str:
        """`wrap` around a base policy, else `scratch`."""
        return "wrap" if self.decisions.has_base else "scratch"

    def data(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return {
            "policy": self.policy,
            "method": self.method,
            "lambda": self.lam,
            "seed": self.seed,
            "preset": self.preset,
            "settings": folders.as_plain(asdict(self.settings)),
            "decisions": folders.as_plain(asdict(self.decisions)),
            "task": self.task,
            "mode": self.mode,
            "env_spec": None if self.env_spec is None else self.env_spec.data(),
            "remembers": None if self.remembers is None else self.remembers.data(),
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> RunInfo:
        """Return the record that `data()` described."""
        spec, remembers = data["env_spec"], data.get("remembers")
        return cls(
            policy=converted(data["policy"], Literal["table", "network"]),
            method=converted(data["method"], Literal["lexicographic", "scalar", "vanilla"]),
            lam=converted(data["lambda"], float | None),
            seed=converted(data["seed"], int),
            preset=converted(data["preset"], str),
            settings=read_settings(SETTINGS[data["policy"]], data["settings"]),
            decisions=read_decisions(data["decisions"]),
            task=converted(data["task"], str | None),
            env_spec=None if spec is None else WrappedEnvSpec.of_data(spec),
            remembers=None if remembers is None else Remembers.of_data(remembers),
        )


@dataclass(frozen=True)
class Learned:
    """What came of a run: the best policy, its numbers, and the curve.

    >>> from letitcook import learn, make
    >>> learned = learn(make("cook", mode="wrap"), steps=20_000, preset="exact", progress=False)
    >>> learned.finished, learned.length, len(learned.curve)
    (True, 53.0, 2)
    """

    policy: Policy
    best: Point
    """The evaluation by which the policy was chosen."""
    fresh: Point
    """The policy on fresh episodes; the same as `best` if the run was stopped before its end."""
    curve: list[Point]
    steps: int
    """Primitive steps of training."""
    decisions_taken: int
    """Decisions of training."""
    seconds: float
    info: RunInfo
    """What the run is: method, λ, seed, preset, settings and decisions."""
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
    certificate: dict[str, Any] | None = None
    """What was certified of a wrapper: whether it is, margin, bound, episodes, failures, and what was spent."""
    spent: dict[str, Any] | None = None
    """What training had cost when the run was stopped, where a wrapper is to be certified within a budget."""
    savings: Savings | None = None
    """The wrapper beside its base on the certificate's episodes; not saved with the run."""

    @property
    def decisions(self) -> Decisions:
        """What the policy's answers mean."""
        return self.info.decisions

    @property
    def certified(self) -> bool:
        """Whether the policy is certified to lose no more than a margin against its base."""
        return self.certificate is not None and bool(self.certificate["certified"])

    @property
    def finished(self) -> bool:
        """Whether the run reached its end; else it holds what it takes to go on."""
        return self.checkpoint is None

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
        folder = Path(path) if replace else folders.check_output(Path(path))
        folders.write_folder(folder, self.files(), replace)
        return folder

    def files(self) -> dict[str, bytes]:
        """Return the files of the run's folder, by name."""
        curve = np.array(self.curve, dtype=np.float64)
        content = {
            "run": self.info.data(),
            "best": self.best._asdict(),
            "fresh": self.fresh._asdict(),
            "time": list(self.time),
            "steps": self.steps,
            "decisions_taken": self.decisions_taken,
            "seconds": self.seconds,
            "evaluation_episodes": self.evaluation_episodes,
            "choice": self.choice,
            "certificate": self.certificate,
            "spent": self.spent,
            "policy_kind": kind_of(self.policy),
            "finished": self.checkpoint is None,
            "provenance": provenance(),
        }
        made = {
            POLICY: folders.pack_arrays(self.policy.arrays()),  # type: ignore[attr-defined]
            CURVE: folders.pack_arrays({name: curve[:, i] for i, name in enumerate(Point._fields)}),
        }
        if self.base is not None:
            made[BASE] = folders.pack_arrays(self.base.arrays())
        if self.front:
            made[FRONT] = folders.pack_arrays(candidate_arrays(self.front))
        if self.checkpoint is not None:
            made[CHECKPOINT] = folders.pack_arrays(self.checkpoint)
        return {**made, folders.MANIFEST: folders.manifest("run", content, made)}


def kind_of(policy: Any) -> str:
    """Return the name of a policy's kind in the manifest.

    >>> kind_of(SchedulePolicy(3, (2,)))
    'schedule'
    """
    plain = policy.policy if isinstance(policy, RememberingPolicy) else policy
    return next(name for name, kind in POLICIES.items() if isinstance(plain, kind))


def provenance() -> dict[str, Any]:
    """Return what a run was made with: versions, the kind of machine, and the time.

    >>> sorted(provenance())
    ['commit', 'machine', 'packages', 'python', 'time', 'version']
    """
    return {
        "version": VERSION,
        "commit": source_commit(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def source_commit() -> str | None:
    """Return the commit of the source, with a `+` if files were changed since; None where it is not in a repository."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        said = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, timeout=10, check=True)
        return said.stdout.strip()

    try:
        git(
            "ls-files", "--error-unmatch", Path(__file__).name
        )  # an environment may stand in another project's repository
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", "..") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def load(path: str | Path) -> Learned:
    """Read a run that was saved; of one that was killed, its newest checkpoint.

    >>> import tempfile
    >>> from letitcook import learn, make
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = learn(make("cook", mode="wrap"), steps=20_000, progress=False).save(place + "/run")
    ...     run = load(folder)
    >>> run.info.method, len(run.curve)
    ('lexicographic', 2)
    """
    folder = Path(path)
    if not (folder / folders.MANIFEST).exists():
        for state in states_of(folder):  # of a run that did not reach its end
            with suppress(FileFormatError):
                return from_files(folders.read_folder(state), state)
    folders.read_manifest(folder, "run")  # says best what is wrong with a folder of another kind
    return from_files(folders.read_folder(folder), folder)


def states_of(folder: Path) -> list[Path]:
    """Return the folders that hold a state of the run in `folder`, the newest first: the result, then checkpoints."""
    try:
        names = sorted(path.name for path in (folder / folders.CHECKPOINTS).iterdir() if path.name.isdigit())
    except OSError:
        names = []
    itself = [folder] if (folder / folders.MANIFEST).is_file() else []
    finished = bool(itself) and _is_finished(folder)
    checkpoints = [folder / folders.CHECKPOINTS / name for name in reversed(names)]
    return [*itself, *checkpoints] if finished else [*checkpoints, *itself]


def _is_finished(folder: Path) -> bool:
    try:
        return folders.read_manifest(folder, "run").get("finished") is True
    except FileFormatError:
        return False


def from_files(content: Mapping[str, bytes], folder: Path) -> Learned:
    """Return the run that these files hold, every part of them checked; `folder` is where they stand."""
    manifest = run_manifest(content, folder)
    arrays = folders.unpack_arrays(content.get(POLICY), folder / POLICY)
    base, checkpoint, front = content.get(BASE), content.get(CHECKPOINT), content.get(FRONT)
    try:
        info = RunInfo.of_data(manifest["run"])
        return Learned(
            policy=_saved_policy(arrays, manifest.get("policy_kind") or info.policy, info),
            best=_point_of(manifest["best"]),
            fresh=_point_of(manifest["fresh"]),
            curve=curve_of(content, folder),
            steps=converted(manifest["steps"], int),
            decisions_taken=converted(manifest["decisions_taken"], int),
            seconds=converted(manifest["seconds"], float),
            info=info,
            time=converted(manifest.get("time", ()), tuple[float, ...]),
            base=None if base is None else NetworkPolicy.from_arrays(folders.unpack_arrays(base, folder / BASE)),
            evaluation_episodes=converted(manifest.get("evaluation_episodes", 0), int),
            choice=_object_of(manifest.get("choice")),
            certificate=read_certificate(_object_of(manifest.get("certificate"))),
            spent=None if manifest.get("spent") is None else read_spent(manifest["spent"]),
            front=() if front is None else _front_of(folders.unpack_arrays(front, folder / FRONT), info),
            checkpoint=None
            if converted(manifest["finished"], bool)
            else folders.unpack_arrays(checkpoint, folder / CHECKPOINT),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, FileFormatError) and str(error).startswith(str(folder)):
            raise
        said = str(error) if isinstance(error, LetItCookError) else repr(error)
        raise FileFormatError(f"{folder} is damaged or incomplete ({said}); train it anew") from error


def _point_of(data: Mapping[str, Any]) -> Point:
    """Return an evaluation that was saved as plain data."""
    if set(data) != set(Point._fields):
        raise FileFormatError(f"an evaluation has {sorted(data)} where {sorted(Point._fields)} are needed")
    types = get_type_hints(Point)
    return Point(**{name: converted(data[name], types[name]) for name in Point._fields})


def _object_of(data: Any) -> dict[str, Any] | None:
    if data is not None and not isinstance(data, dict):
        raise FileFormatError(f"{str(data)[:40]!r} stands where an object is needed")
    return data


def _policy_of(arrays: Mapping[str, NDArray[Any]], kind: str, decisions: Decisions) -> Any:
    """Return the policy among saved arrays; its answers are decisions of the run."""
    policy = POLICIES[kind].from_arrays(arrays)
    if isinstance(policy, SchedulePolicy | PacedPolicy) and (
        not decisions.has_base or policy.durations != decisions.durations
    ):
        raise FileFormatError(f"a schedule with waits of {policy.durations} does not fit a run with {decisions}")
    if isinstance(policy, SchedulePolicy):
        return policy
    chooser = policy.policy if isinstance(policy, PacedPolicy) else policy
    answers = int(chooser.sizes[-1]) if isinstance(chooser, NetworkPolicy) else int(chooser.table.max()) + 1
    if answers != decisions.n if isinstance(chooser, NetworkPolicy) else answers > decisions.n:
        raise FileFormatError(f"a policy of {answers} decisions does not fit a run with {decisions.n}")
    return policy


def run_manifest(content: Mapping[str, bytes], folder: Path) -> dict[str, Any]:
    """Return the manifest among a run's files, in today's form if an older version wrote it; checksums are checked."""
    manifest = folders.parse_manifest(content.get(folders.MANIFEST, b""), "run", folder / folders.MANIFEST)
    folders.check_sums(content, manifest, folder)
    return _upgraded(manifest, folder) if manifest["format"] == 1 else manifest


def _upgraded(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the manifest of a run of version 0.1 in today's form; decisions were not counted then, and are 0."""
    if manifest.get("finished") is False:
        raise FileFormatError(
            f"{folder} was stopped by letitcook 0.1, and this version cannot go on with it; train it anew"
        )
    try:
        about = manifest["about"]
        run = {**about, "task": about.get("task"), "env_spec": about.get("origin")}
        points = {name: {"decision": 0, **manifest[name]} for name in ("best", "fresh")}
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(f"{folder} is damaged or incomplete ({error!r}); train it anew") from error
    return {"decisions_taken": 0, **manifest, **points, "run": run}


def candidate_arrays(candidates: Sequence[Candidate]) -> dict[str, NDArray[Any]]:
    """Return candidates as arrays, to be saved."""
    arrays: dict[str, NDArray[Any]] = {}
    for i, candidate in enumerate(candidates):
        parts = {**candidate.policy.arrays(), "screening": candidate.screening}
        z = np.nan if candidate.log_lambda is None else candidate.log_lambda
        parts["met"] = np.array([candidate.step, candidate.decision, z], dtype=np.float64)
        arrays.update({f"candidate.{i}.{name}": array for name, array in parts.items()})
    return arrays


def paid_for(decisions: Decisions) -> int:
    """Return the place of what is to be few in a row of an evaluation."""
    return BASE_QUERIES if decisions.cost == "base" else QUERIES


def _saved_policy(arrays: Mapping[str, NDArray[Any]], kind: str, info: RunInfo) -> Policy:
    """Return a run's policy among saved arrays, with its memory where it has one."""
    policy: Policy = _policy_of(arrays, kind, info.decisions)
    return info.with_memory(policy) if kind == info.policy else policy


def _front_of(arrays: Mapping[str, NDArray[Any]], info: RunInfo) -> tuple[Candidate, ...]:
    """Return the front among saved arrays, its policies with their memories where they have any."""
    return tuple(replace(one, policy=info.with_memory(one.policy)) for one in candidates_of(arrays, info))


def candidates_of(arrays: Mapping[str, NDArray[Any]], info: RunInfo) -> list[Candidate]:
    """Return the candidates of a run among saved arrays."""
    parts: dict[int, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        if name.startswith("candidate."):
            _, number, part = name.split(".", 2)
            parts.setdefault(int(number), {})[part] = array
    found = []
    for _, its in sorted(parts.items()):
        met = checked(its, "met", Expected((None,), nan=True)).tolist()
        if len(met) not in (2, 3) or np.isnan(met[:-1]).any():
            raise FileFormatError("a candidate does not say when it was met")
        step, *decision, z = met
        policy = _policy_of(its, info.policy, info.decisions)
        screening = checked(its, "screening", Expected((None, None)))
        if screening.shape[0] < 1 or screening.shape[1] < 4:
            raise FileFormatError(f"a candidate's episodes have shape {screening.shape}")
        rows = np.array(screening, dtype=np.float64)
        log_lambda, paid = None if np.isnan(z) else z, paid_for(info.decisions)
        found.append(Candidate(int(step), log_lambda, policy, rows, decision=int(sum(decision)), paid=paid))
    if len({candidate.screening.shape for candidate in found}) > 1:
        raise FileFormatError("the saved candidates have not played the same episodes; the file is damaged")
    return found


def curve_of(content: Mapping[str, bytes], folder: Path) -> list[Point]:
    """Return the learning curve that a run's files hold."""
    curve = folders.unpack_arrays(content.get(CURVE), folder / CURVE)
    n = len(curve["step"]) if "step" in curve and curve["step"].ndim == 1 else 0
    curve.setdefault("decision", np.zeros(n))  # version 0.1 did not count them
    try:
        columns = [checked(curve, name, Expected((n,))).tolist() for name in Point._fields]
    except FileFormatError as error:
        raise FileFormatError(f"{folder / CURVE} is damaged ({error}); write it anew") from error
    rows = zip(*columns, strict=True)
    return [Point(int(step), int(decision), *numbers) for step, decision, *numbers in rows]
