"""Saved policies and runs: a folder with a JSON manifest and safetensors, never pickle.

A folder appears whole or not at all: it is written beside its place under another name, and moved there at the end.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from letitcook.errors import FileFormatError, OutputError

FORMAT = 2
"""Version of the folder's layout; 1 is that of letitcook 0.1."""
READABLE = (1, FORMAT)
"""Versions that can be read."""
MANIFEST = "manifest.json"


def check_output(path: Path) -> Path:
    """Return `path` if a folder can be made there, or raise why not; nothing is written.

    >>> check_output(Path("/dev/null/results"))
    Traceback (most recent call last):
    ...
    letitcook.errors.OutputError: /dev/null/results cannot be written: /dev/null is not a folder; ...
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        what = "already holds other files" if path.is_dir() else "is a file"
        raise OutputError(f"{path} {what}; choose another folder with --out, or remove it first")
    parent = path
    while not os.path.lexists(parent):
        parent = parent.parent
    if not parent.is_dir():
        raise OutputError(f"{path} cannot be written: {parent} is not a folder; choose another with --out")
    check_writable(parent, path)
    return path


def check_writable(folder: Path, path: Path) -> None:
    """Raise if nothing can be written in `folder`; it is tried, and nothing is left behind."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; choose another with --out") from error


def write_folder(path: Path, content: Mapping[str, bytes], replace: bool = False) -> None:
    """Make the folder `path` with these files, whole or not at all, in place of an older one if requested.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_folder(Path(place) / "run", {"x.txt": b"x"})
    ...     sorted(p.name for p in Path(place).rglob("*"))
    ['run', 'x.txt']
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        try:
            for name, data in content.items():
                _write_through(draft / name, data)
            draft.chmod(0o755)
            if replace and path.is_dir():
                older = path.replace(draft.with_name(f"{draft.name}-older"))
                draft.replace(path)
                shutil.rmtree(older)
                return
            if path.is_dir():
                path.rmdir()  # only an empty one goes
            draft.replace(path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; {_advice(error)}") from error


def _write_through(path: Path, data: bytes) -> None:
    """Write a file to the disk itself, so that a power cut after the folder's move finds it whole."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _advice(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room and start the same command again"
    return "choose another with --out"


def read_folder(path: Path) -> dict[str, bytes]:
    """Return a folder's files."""
    try:
        return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.is_file()}
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}") from error


def free_folder(path: Path) -> Path:
    """Return `path`, or the next name like it that is not taken: `run`, `run-2`, `run-3`, ..."""
    free, n = path, 1
    while os.path.lexists(free):
        n += 1
        free = path.with_name(f"{path.name}-{n}")
    return free


def write_file(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_through(draft, data)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):  # where the folder is a file, there is no draft to remove
            draft.unlink()
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; {_advice(error)}") from error


def manifest(kind: str, content: Mapping[str, Any]) -> bytes:
    """Return the text of a folder's manifest."""
    return (json.dumps({"format": FORMAT, "kind": kind, **content}, indent=2, allow_nan=False) + "\n").encode()


def read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    """Read a folder's manifest of the kind that is meant, or raise if something is wrong with it."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileFormatError(f"{folder} holds no {kind}: {path} is missing; was it written by letitcook?")
    return parse_manifest(path.read_bytes(), kind, path)


def parse_manifest(text: bytes, kind: str, path: Path) -> dict[str, Any]:
    """Return what a manifest says, or what is wrong with it; `path` is where it stands."""
    try:
        content: Any = json.loads(text.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{path} is damaged ({error}); write it anew") from error
    if not isinstance(content, dict) or content.get("kind") != kind:
        found = content.get("kind") if isinstance(content, dict) else None
        raise FileFormatError(f"{path} is not the manifest of a {kind} but of {found!r}")
    if content.get("format") not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise FileFormatError(
            f"{path} has format {content.get('format')!r}, and this version of letitcook reads {known}; "
            "write it anew, or install the version that wrote it"
        )
    return content


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as safetensors; whole numbers in the smallest type that holds them."""
    packed: bytes = save({name: np.ascontiguousarray(_small(array)) for name, array in arrays.items()})
    return packed


def unpack_arrays(data: bytes | None, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of safetensors, or raise if something is wrong with them; `path` is where they stand."""
    if data is None:
        raise FileFormatError(f"{path} is missing; write it anew")
    try:
        arrays: dict[str, NDArray[Any]] = load(data)
    except (SafetensorError, ValueError) as error:
        raise FileFormatError(f"{path} is damaged ({error}); write it anew") from error
    return arrays


def as_plain(data: Any) -> Any:
    """Return data as JSON would give them back: tuples as lists.

    >>> as_plain({"a": (1, 2)})
    {'a': [1, 2]}
    """
    return json.loads(json.dumps(data))


def _small(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind != "i" or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array
