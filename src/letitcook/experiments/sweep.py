"""Sweeps: carry out the runs of a suite, and survive whatever happens meanwhile.

A sweep's folder::

    manifest.json                 the suite: name, and every run as data
    runs/<id>/                    finished runs; each appears whole or not at all
    unfinished/<id>/              the newest checkpoint of a long run
    failures/<id>.log             what went wrong with a run, until it succeeds

Only the sweep itself writes there, one at a time, whatever engine carries the runs out. Started again on the same
folder it goes on from what is there, and ends with the same numbers to the bit as if it had never been stopped.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_type_hints

from letitcook.core.decisions import Timesteps
from letitcook.errors import FileFormatError, OutputError
from letitcook.experiments.engine import Engine
from letitcook.experiments.jobs import Checkpoint, Failed, Finished, Job, Lost, Message
from letitcook.experiments.suites import Row, Run, Suite, base_of
from letitcook.storage import folders
from letitcook.storage.setting_values import converted
from letitcook.tasks import task_named
from letitcook.training.run import VERSION, from_files, run_manifest

ATTEMPTS = 3
"""How often a run is started whose process or machine is lost, with no checkpoint between."""
CHECKPOINT_SECONDS = 60.0
"""Seconds between two checkpoints of a run: what a kill or a power cut costs at most."""
PATIENCE = 0.5
"""Seconds that the sweep waits for messages before it looks around."""


def run_folder(out: Path, run: Run) -> Path:
    """Return where a finished run is kept."""
    return out / "runs" / run.id


def unfinished_folder(out: Path, run: Run) -> Path:
    """Return where the newest checkpoint of a run is kept."""
    return out / "unfinished" / run.id


def failure_log(out: Path, run: Run) -> Path:
    """Return where it is written what went wrong with a run."""
    return out / "failures" / f"{run.id}.log"


@contextmanager
def opened(out: Path, suite: Suite, command: str = "") -> Iterator[None]:
    """Hold `out` for a sweep of `suite`: made if it is not there, refused if it holds something else or is in use.

    `command` is what carries out the same sweep elsewhere; it is kept for the report.
    """
    if not (out / folders.MANIFEST).is_file():
        folders.check_output(out)
        folders.write_folder(out, {folders.MANIFEST: _manifest(suite, command)})
    held = folders.read_manifest(out, "suite")
    if held["suite"] != suite.name:
        raise OutputError(f"{out} holds the suite {held['suite']!r}, not {suite.name!r}; choose another with --out")
    folders.check_writable(out, out)
    with folders.claimed(out, "sweep"):
        for place in {folder.parent for run in suite.all_runs for folder in _folders_of(out, run)}:
            folders.recover(place)  # what a sweep left that was killed while it wrote
        _check_held_runs(out, suite)
        folders.write_file(out / folders.MANIFEST, _manifest(suite, command))
        yield


def _manifest(suite: Suite, command: str) -> bytes:
    runs = [{"id": run.id, **folders.as_plain(asdict(run))} for run in suite.runs]
    return folders.manifest("suite", {"suite": suite.name, "version": VERSION, "command": command, "runs": runs})


def read_suite_manifest(out: Path) -> Suite:
    """Return the suite whose sweep is kept in `out`."""
    manifest = folders.read_manifest(out, "suite")
    try:
        return Suite(converted(manifest["suite"], str), tuple(_run_of(dict(entry)) for entry in manifest["runs"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(
            f"{out / folders.MANIFEST} is damaged ({str(error)[:200]}); start the sweep again"
        ) from error


def _run_of(entry: dict[str, Any]) -> Run:
    row, types = Row(**entry["row"]), get_type_hints(Row)
    row = Row(**{name: converted(getattr(row, name), types[name]) for name in types})
    changes = tuple((converted(name, str), _hashable(value)) for name, value in entry["changes"])
    seed, steps = converted(entry["seed"], int), converted(entry["steps"], int)
    unit = converted(entry.get("unit", "step"), Literal["step", "decision"])
    return Run(row, seed, steps, converted(entry["preset"], str), changes, unit)


def _hashable(value: Any) -> Any:
    """Return lists, which JSON makes of tuples, as tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def at_work(out: Path) -> bool:
    """Return whether a sweep is at work in the folder."""
    return folders.at_work(out)


def _folders_of(out: Path, run: Run) -> tuple[Path, Path]:
    return run_folder(out, run), unfinished_folder(out, run)


def _check_held_runs(out: Path, suite: Suite) -> None:
    """Refuse a folder whose runs were made with other settings or by another version; remove damaged runs."""
    for run in suite.all_runs:
        for folder in _folders_of(out, run):
            manifest = _whole(folder)
            if manifest is None:
                continue
            if changed := _differences(run, manifest):
                raise OutputError(
                    f"{folder} holds this run with {', '.join(changed)}; choose another folder with --out, or remove it"
                )


def _differences(run: Run, manifest: dict[str, Any]) -> list[str]:
    """Return in what a run that is kept differs from the one that is wanted."""
    info, passed = manifest["run"], manifest["steps" if run.unit == "step" else "decisions_taken"]
    provenance = manifest.get("provenance")
    version = provenance.get("version") if isinstance(provenance, dict) else None
    then = {"version": version, "preset": info["preset"], **info["settings"]}
    now = {"version": VERSION, "preset": run.preset, **run.settings()}
    found = [f"{name} {then.get(name)} instead of {value}" for name, value in now.items() if then.get(name) != value]
    enough = run.steps <= passed < run.steps + task_named(run.row.task).horizon
    if not (enough if manifest["finished"] else passed < run.steps):
        found.append(f"{Timesteps(passed, run.unit)} instead of {run.length}")
    return found


def _whole(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a run; what is damaged is removed, so that just that run is done again."""
    if not os.path.lexists(folder):
        return None
    try:
        content = folders.read_folder(folder)
        from_files(content, folder)
        return run_manifest(content, folder)
    except FileFormatError:
        folders.remove(folder)
        return None


def finished(out: Path, run: Run) -> bool:
    """Return whether a run is done."""
    return (run_folder(out, run) / folders.MANIFEST).is_file()


def sweep(
    suite: Suite, out: Path, engine: Engine, checkpoint_seconds: float = CHECKPOINT_SECONDS
) -> Iterator[tuple[Run, Message]]:
    """Carry out the runs that are not done yet, base policies before what wraps them, and yield what happens.

    A run that fails is written down and left for the next start; the sweep goes on without it.
    """
    waiting = deque(_in_order(suite, out))
    going: set[Run] = set()
    failed: set[Run] = set()
    losses: Counter[Run] = Counter()
    again: set[Run] = set()
    try:
        while True:
            for gone in [] if going else _gone(suite, out, waiting, failed):
                if gone not in again:  # whoever removed it, it is done once more
                    again.add(gone)
                    waiting.appendleft(gone)
                    continue
                failed.add(gone)
                lost = Failed("its folder disappeared while the sweep was at work", "")
                _keep(out, gone, lost)
                yield gone, lost
            if not (waiting or going):
                break
            while len(going) < engine.slots and (run := _next_ready(waiting, out)) is not None:
                engine.start(_job(out, run, checkpoint_seconds))
                going.add(run)
            for run, told in engine.messages(PATIENCE):
                losses[run] = 0 if isinstance(told, Checkpoint) else losses[run] + isinstance(told, Lost)
                message = _given_up(told) if isinstance(told, Lost) and losses[run] == ATTEMPTS else told
                _keep(out, run, message)
                yield run, message
                if isinstance(message, Finished | Failed | Lost):
                    going.discard(run)
                if isinstance(message, Lost):
                    waiting.appendleft(run)
                if isinstance(message, Failed):
                    failed.add(run)
            for run in [run for run in waiting if base_of(run) in failed]:
                waiting.remove(run)
                failed.add(run)
                message = Failed("the run of its base policy failed", "")
                _keep(out, run, message)
                yield run, message
    finally:
        engine.close()
        _clear_checkpoints(out)


def _clear_checkpoints(out: Path) -> None:
    """Remove checkpoints of runs that are done: a kill may have come before they were; and their folder, if empty."""
    checkpoints = out / "unfinished"
    for manifest in list(checkpoints.rglob(folders.MANIFEST)):
        if (out / "runs" / manifest.parent.relative_to(checkpoints) / folders.MANIFEST).is_file():
            shutil.rmtree(manifest.parent, ignore_errors=True)
    if not any(checkpoints.rglob(folders.MANIFEST)):
        shutil.rmtree(checkpoints, ignore_errors=True)


def _gone(suite: Suite, out: Path, waiting: Collection[Run], failed: Collection[Run]) -> list[Run]:
    """Return what is neither done nor failed nor to be done: runs that somebody removed meanwhile."""
    return [run for run in suite.all_runs if run not in waiting and run not in failed and not finished(out, run)]


def _in_order(suite: Suite, out: Path) -> list[Run]:
    """Return what is to be done: base policies first, then the long runs, then the others."""
    rest = sorted(suite.runs, key=lambda run: task_named(run.row.task).finite)
    return [run for run in dict.fromkeys((*suite.bases, *rest)) if not finished(out, run)]


def _next_ready(waiting: deque[Run], out: Path) -> Run | None:
    """Take the first run that can begin: one that wraps nothing, or whose base policy is there."""
    for run in waiting:
        base = base_of(run)
        if base is None or finished(out, base):
            waiting.remove(run)
            return run
    return None


def _job(out: Path, run: Run, checkpoint_seconds: float) -> Job:
    base = base_of(run)
    checkpoint = unfinished_folder(out, run)
    return Job(
        run=run,
        base=None if base is None else folders.read_folder(run_folder(out, base)),
        checkpoint=folders.read_folder(checkpoint) if checkpoint.is_dir() else None,
        checkpoint_seconds=checkpoint_seconds,
    )


def _given_up(lost: Lost) -> Failed:
    return Failed(f"given up after {ATTEMPTS} attempts: {lost.reason}", "")


def _keep(out: Path, run: Run, message: Message) -> None:
    """Write what a message brings."""
    match message:
        case Checkpoint():
            folders.write_folder(unfinished_folder(out, run), message.files, replace=True)
        case Finished():
            folders.write_folder(run_folder(out, run), message.files)
            shutil.rmtree(unfinished_folder(out, run), ignore_errors=True)
            failure_log(out, run).unlink(missing_ok=True)
        case Failed():
            folders.write_file(failure_log(out, run), f"{run.id}\n{message.reason}\n\n{message.log}".encode())
