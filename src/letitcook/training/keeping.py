"""The folder of a run under way: claimed before the work begins, with the last states of the run until it ends.

::

    .lock                     held locked by the process at work; gone when it ends by itself
    checkpoints/<steps>/      the last two states, each a whole run folder with all that it takes to go on
    manifest.json, ...        the result, once there is one; the checkpoints then go

A state is written whole or not at all, and reaches the disk before the one before the last goes. Whatever ends the
process, the newest state that is whole is where the run goes on, to the same bits.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from letitcook.errors import FileFormatError, OutputError, SettingError
from letitcook.storage import folders
from letitcook.training.loop import Training
from letitcook.training.run import CHECKPOINT, Learned, from_files, load, states_of

CHECKPOINT_SECONDS = 60.0
"""Seconds between two checkpoints."""
SHARE = 0.02
"""The most of a run's time that checkpoints may take; where one takes long, they come less often."""
KEPT = 2
"""States that are kept."""


class RunFolder:
    """The folder of a run under way."""

    def __init__(self, folder: Path, every: float) -> None:
        self.folder = folder
        self.every = every
        self.spent = 0.0
        """Seconds that checkpoints took."""
        self.problem: OutputError | None = None
        """Why the last checkpoint could not be written, if it could not."""
        self._next = time.monotonic() + every

    def resume(self, training: Training) -> None:
        """Let a run go on from its newest state that is whole; without any, it begins at the beginning."""
        states = states_of(self.folder)
        if states[:1] == [self.folder]:  # finished; a kill may have left its checkpoints
            shutil.rmtree(self.folder / folders.CHECKPOINTS, ignore_errors=True)
        found: FileFormatError | None = None
        for state in states:
            try:
                training.resume(from_files(folders.read_folder(state), state))
            except FileFormatError as error:
                found = found or error
            else:
                return
        if found is not None:
            raise found

    def look(self, training: Training) -> None:
        """Write a checkpoint if it is time for one; a disk that is full for a while does not end the run."""
        if time.monotonic() < self._next or training.best is None:
            return
        if training.enough:  # a state does not say that a callback has ended the run; the one before comes to it again
            return
        try:
            self.keep(training.stopped())
            self.problem = None
        except OutputError as error:
            self.problem = error

    def keep(self, state: Learned) -> None:
        """Write the state of a run, beside the one before it."""
        began = time.monotonic()
        place = self.folder / folders.CHECKPOINTS
        try:
            folders.write_folder(place / f"{state.steps:015d}", state.files(), replace=True)
            for older in sorted(path for path in place.iterdir() if path.name.isdigit())[:-KEPT]:
                folders.remove(older)
        finally:
            took = time.monotonic() - began
            self.spent += took
            self._next = time.monotonic() + max(self.every, took / SHARE)

    def finish(self, learned: Learned) -> None:
        """Write the result; until it is whole, the last state stands for it."""
        content = learned.files()
        if (self.folder / folders.MANIFEST).exists():  # the run was stopped, and saved in the folder itself
            self.keep(learned)
            (self.folder / folders.MANIFEST).unlink()
        folders.fill_folder(self.folder, content)
        shutil.rmtree(self.folder / folders.CHECKPOINTS, ignore_errors=True)
        if CHECKPOINT not in content:
            (self.folder / CHECKPOINT).unlink(missing_ok=True)


def _is_bare(folder: Path) -> bool:
    """Return whether a folder was claimed for a run that was then killed before its first checkpoint."""
    return folder.is_dir() and all(entry.name in (folders.LOCK, folders.CHECKPOINTS) for entry in folder.iterdir())


@contextmanager
def kept_in(folder: Path, resume: bool, every: float = CHECKPOINT_SECONDS) -> Iterator[RunFolder]:
    """Claim the folder of a run, new or to be resumed; where nothing comes of it, nothing is left behind."""
    if not every >= 0.0:
        raise SettingError(f"checkpoint_seconds = {every} is not allowed; give seconds of at least 0")
    there = folder.is_dir()
    if not resume:
        folders.check_output(folder)
    elif not states_of(folder) and not _is_bare(folder):
        load(folder)  # says what is wrong with it
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written: {error.strerror or error}; choose another with --out"
        ) from error
    try:
        with folders.claimed(folder, "run"):
            folders.recover(folder / folders.CHECKPOINTS)
            if not resume:
                folders.check_output(folder)  # another process may have been there first
            try:
                yield RunFolder(folder, every)
            finally:
                (folder / folders.LOCK).unlink(missing_ok=True)
    finally:
        if not there and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
