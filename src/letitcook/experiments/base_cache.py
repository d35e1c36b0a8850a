"""Base policies of the tasks that have no handwritten one: trained once, kept in the user's cache, and used again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from letitcook.errors import FileFormatError
from letitcook.experiments.jobs import Checkpoint, Finished, Job, carry_out
from letitcook.experiments.suites import Run, base_of
from letitcook.storage import folders
from letitcook.training.run import VERSION, load


def kept_base(run: Run) -> Path:
    """Return the folder of the base policy of a run, trained at the first call and kept."""
    base = base_of(run)
    assert base is not None
    home = os.environ.get("LETITCOOK_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "letitcook"
    folder = Path(home).expanduser() / "bases" / VERSION / f"{base.id}-{base.steps}-{base.unit}s-{base.preset}"
    if not _whole(folder):
        under_way = folder.with_name(f"{folder.name}-unfinished")
        checkpoint = folders.read_folder(under_way) if _whole(under_way) else None
        for message in carry_out(Job(base, checkpoint=checkpoint)):
            if isinstance(message, Checkpoint):
                folders.write_folder(under_way, message.files, replace=True)
            if isinstance(message, Finished):
                folders.write_folder(folder, message.files, replace=True)
                shutil.rmtree(under_way, ignore_errors=True)
    return folder


def _whole(folder: Path) -> bool:
    folders.recover(folder.parent, folder.name)
    try:
        load(folder)
    except FileFormatError:
        return False
    return True
