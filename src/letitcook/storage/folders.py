"""Saved policies and runs: a folder with a JSON manifest and safetensors, never pickle.

A folder appears whole or not at all: it is written beside its place under another name, and moved there at the end.
Where it takes the place of an older one, that one is moved aside first; a kill between the two moves leaves both under
names that `recover` knows. The manifest holds the SHA-256 of every other file, and of itself.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from letitcook.errors import FileFormatError, OutputError
from letitcook.storage.plain_json import parse_json

FORMAT = 3
"""Version of the folder's layout; 1 is that of letitcook 0.1, 2 had no checksums."""
READABLE = (1, 2, FORMAT)
"""Versions that can be read."""
MANIFEST = "manifest.json"
SUFFIXES = (".json", ".safetensors")
"""Ends of the names of files that are read."""
LOCK = ".lock"
"""The file that a process at work in a folder holds locked."""
CHECKPOINTS = "checkpoints"
"""Where a run under way keeps its last states, inside its folder."""
MANIFEST_LIMIT = 8 * 2**20
"""Bytes of a manifest above which it is refused; that of a sweep has about 320 for each run."""
FILE_LIMIT = 2**30
"""Bytes of any other file above which it is refused."""
ARRAYS_LIMIT = 10_000
"""Arrays of a file above which it is refused."""
DRAFT = re.compile(r"\.(?P<name>.+)-[a-z0-9_]{8}\.(?P<state>draft|older)")
"""Names of folders on their way: written but not moved yet, or moved aside for a newer one."""
DTYPES = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}
"""Types of numbers in safetensors that NumPy has."""
_SELF = re.compile(rb'"sha256": "([0-9a-f]{64})"\n\}\n\Z')
"""The end of a manifest: its own checksum, computed with zeros in this place."""


def check_output(path: Path) -> Path:
    """Return `path` if a folder can be made there, or raise why not; nothing is written.

    >>> check_output(Path("/dev/null/results"))
    Traceback (most recent call last):
    ...
    letitcook.errors.OutputError: /dev/null/results cannot be written: /dev/null is not a folder; ...
    """
    if path.exists() and (not path.is_dir() or any(entry.name != LOCK for entry in path.iterdir())):
        what = "already holds other files" if path.is_dir() else "is a file"
        if (path / CHECKPOINTS).is_dir():
            raise OutputError(
                f"{path} already holds other files: a run that is not finished; go on with it (--resume), choose "
                "another folder with --out, or remove it first"
            )
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
        draft = _draft_of(path)
        try:
            for name, data in content.items():
                _write_through(draft / name, data)
            draft.chmod(0o755)
            _sync(draft)
            if replace and path.is_dir():
                older = path.replace(draft.with_suffix(".older"))
                draft.replace(path)
                _sync(path.parent)
                shutil.rmtree(older)
                return
            if path.is_dir():
                path.rmdir()  # only an empty one goes
            draft.replace(path)
            _sync(path.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            older = draft.with_suffix(".older")
            if older.is_dir() and not os.path.lexists(path):
                older.replace(path)
            raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; {_advice(error)}") from error


def _draft_of(path: Path) -> Path:
    """Make a folder beside `path` with a name that says what it is for."""
    while True:
        draft = path.with_name(f".{path.name}-{os.urandom(4).hex()}.draft")
        with suppress(FileExistsError):
            draft.mkdir(mode=0o700)
            return draft


def recover(parent: Path, name: str | None = None) -> None:
    """Clear up what a kill left of folders on their way in `parent`, all of them or those of one name.

    A folder that was moved aside goes back if its place is empty, else it is removed, as are drafts. Whatever has
    another name is left alone.
    """
    try:
        found = [(entry, match) for entry in sorted(parent.iterdir()) if (match := DRAFT.fullmatch(entry.name))]
    except OSError:
        return
    for entry, match in sorted(found, key=lambda pair: pair[1]["state"] == "draft"):
        if entry.is_symlink() or not entry.is_dir() or name not in (None, match["name"]):
            continue
        place = parent / match["name"]
        if match["state"] == "older" and not os.path.lexists(place):
            entry.replace(place)
        else:
            shutil.rmtree(entry, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a folder, or what stands in its place: of a link, what it links to stays; a pipe must not be opened."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    else:
        shutil.rmtree(path)


def fill_folder(path: Path, content: Mapping[str, bytes]) -> None:
    """Write files into a folder that is there already; the manifest comes last, so that without it nothing counts."""
    try:
        for name in sorted(content, key=lambda name: name == MANIFEST):
            if name == MANIFEST:
                _sync(path)
            _write_whole(path / name, content[name])
        _sync(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; {_advice(error)}") from error


def _sync(folder: Path) -> None:
    """Let the names in a folder reach the disk; where folders cannot be opened, nothing is to be done."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_through(path: Path, data: bytes) -> None:
    """Write a file to the disk itself, so that a power cut after the folder's move finds it whole."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _advice(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room and start the same command again (train and wrap: with --resume)"
    return "choose another with --out"


def read_folder(path: Path) -> dict[str, bytes]:
    """Return a folder's files."""
    try:
        files = [file for file in sorted(path.iterdir()) if file.suffix in SUFFIXES and file.is_file()]
        for file in files:
            _check_size(file, MANIFEST_LIMIT if file.name == MANIFEST else FILE_LIMIT)
        return {file.name: file.read_bytes() for file in files}
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}") from error


def read_file(path: Path) -> bytes:
    """Return a file's bytes, if it is not absurdly large."""
    _check_size(path, FILE_LIMIT)
    return path.read_bytes()


def _check_size(path: Path, most: int) -> None:
    size = path.stat().st_size
    if size > most:
        raise FileFormatError(f"{path} has {size:,} bytes, and at most {most:,} are read")


def free_folder(path: Path) -> Path:
    """Return `path`, or the next name like it that is not taken: `run`, `run-2`, `run-3`, ..."""
    free, n = path, 1
    while os.path.lexists(free):
        n += 1
        free = path.with_name(f"{path.name}-{n}")
    return free


def write_file(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, data)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; {_advice(error)}") from error


def _write_whole(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        _write_through(draft, data)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):  # where the folder is a file, there is no draft to remove
            draft.unlink()
        raise


# --- the claim of a folder ---


@contextmanager
def claimed(folder: Path, what: str) -> Iterator[None]:
    """Keep other processes out of a folder; the claim goes with this process, however it ends.

    `what` says what is at work there: a sweep, a run.
    """
    with ExitStack() as stack:
        for attempt in range(2):  # `at_work` may hold the lock for a moment
            lock = stack.enter_context(_opened_lock(folder))
            if _locked(lock) and _is_at(lock, folder / LOCK):
                break
            time.sleep(0.0 if attempt else 0.5)
        else:
            raise OutputError(
                f"another {what} is at work in {folder}; wait for it, or choose another folder with --out"
            )
        yield


def _is_at(file: IO[str], path: Path) -> bool:
    """Return whether an open file is the one at `path`: another process may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _opened_lock(folder: Path) -> IO[str]:
    try:
        return (folder / LOCK).open("w")
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}; {_advice(error)}") from error


def at_work(folder: Path) -> bool:
    """Return whether a process is at work in the folder."""
    try:
        with (folder / LOCK).open("r") as lock:
            return not _locked(lock)
    except OSError:
        return False


def _locked(lock: IO[str]) -> bool:
    """Lock a file if nobody holds it, and return whether that worked; closing it frees it."""
    try:
        import fcntl
    except ImportError:  # where there are no such locks, nothing can be said
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# --- manifests ---


def manifest(kind: str, content: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> bytes:
    """Return the text of a folder's manifest, with the checksums of the folder's other files and its own."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in (files or {}).items()}
    said = {"format": FORMAT, "kind": kind, **content, "files": sums, "sha256": "0" * 64}
    text = (json.dumps(said, indent=2, allow_nan=False) + "\n").encode()
    return text[:-68] + hashlib.sha256(text).hexdigest().encode() + text[-4:]


def read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    """Read a folder's manifest of the kind that is meant, or raise if something is wrong with it."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileFormatError(f"{folder} holds no {kind}: {path} is missing; was it written by letitcook?")
    try:
        _check_size(path, MANIFEST_LIMIT)
        text = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    return parse_manifest(text, kind, path)


def kind_of(folder: Path) -> str | None:
    """Return the kind that a folder's manifest names, such as `run`; None if it cannot be read."""
    path = folder / MANIFEST
    try:
        _check_size(path, MANIFEST_LIMIT)
        content = parse_json(path.read_bytes(), path)
    except (OSError, FileFormatError):
        return None
    kind = content.get("kind") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else None


def parse_manifest(text: bytes, kind: str, path: Path) -> dict[str, Any]:
    """Return what a manifest says, or what is wrong with it; `path` is where it stands."""
    content = parse_json(text, path)
    if not isinstance(content, dict) or content.get("kind") != kind:
        found = content.get("kind") if isinstance(content, dict) else None
        raise FileFormatError(f"{path} is not the manifest of a {kind} but of {str(found)[:80]!r}")
    if content.get("format") not in READABLE or isinstance(content["format"], float | bool):
        known = ", ".join(map(str, READABLE))
        raise FileFormatError(
            f"{path} has format {str(content.get('format'))[:80]}, and this version of letitcook reads {known}; "
            "write it anew, or install the version that wrote it"
        )
    _check_own_sum(text, content, path)
    return content


def _check_own_sum(text: bytes, content: Mapping[str, Any], path: Path) -> None:
    """Check a manifest's own checksum; older formats have none, and no other mark of a newer one either."""
    found = _SELF.search(text)
    if found is None and content["format"] < 3 and not {"sha256", "files"} & set(content):
        return
    blank = b"" if found is None else text[: found.start(1)] + b"0" * 64 + text[found.end(1) :]
    if found is None or hashlib.sha256(blank).hexdigest() != found[1].decode():
        raise FileFormatError(f"{path} is damaged or was changed (its SHA-256 differs); write it anew")


def check_sums(content: Mapping[str, bytes], said: Mapping[str, Any], folder: Path) -> None:
    """Raise if a folder's files are not those that its manifest lists; `said` is the manifest."""
    if said["format"] < 3:
        return
    sums = said.get("files")
    if not isinstance(sums, dict):
        raise FileFormatError(f"{folder / MANIFEST} is damaged (it lists no files); write it anew")
    for name, wanted in sums.items():
        if name not in content:
            raise FileFormatError(f"{folder / name} is missing; write it anew")
        if hashlib.sha256(content[name]).hexdigest() != wanted:
            raise FileFormatError(f"{folder / name} is damaged or was changed (its SHA-256 differs); write it anew")


# --- arrays ---


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as safetensors; whole numbers in the smallest type that holds them."""
    packed: bytes = save({name: np.ascontiguousarray(_small(array)) for name, array in arrays.items()})
    return packed


def unpack_arrays(data: bytes | None, path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of safetensors, or raise if something is wrong with them; `path` is where they stand."""
    if data is None:
        raise FileFormatError(f"{path} is missing; write it anew")
    try:
        _check_header(data)
        arrays: dict[str, NDArray[Any]] = load(data)
    except (SafetensorError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise FileFormatError(f"{path} is damaged ({str(error)[:200]}); write it anew") from error
    return arrays


def _check_header(data: bytes) -> None:
    """Raise ValueError if safetensors have numbers of types or shapes that NumPy does not take."""
    if len(data) < 8:
        raise ValueError("it is cut off")
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise ValueError("its header is cut off")
    header = parse_json(data[8 : 8 + length], "its header")
    if not isinstance(header, dict):
        raise FileFormatError("its header is not one")
    if len(header) > ARRAYS_LIMIT:
        raise ValueError(f"it has {len(header):,} arrays, and at most {ARRAYS_LIMIT:,} are read")
    for name, said in header.items():
        if name == "__metadata__":
            continue
        shape = said.get("shape") if isinstance(said, dict) else None
        if shape is None or not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"the shape of {name[:80]!r} cannot be read")
        # An array of no numbers can claim any other length; NumPy then multiplies them.
        if len(shape) > 8 or math.prod(n for n in shape if n) > max(len(data), 1):
            raise ValueError(f"{name[:80]!r} claims the shape {shape}")
        if not isinstance(said.get("dtype"), str) or said["dtype"] not in DTYPES:
            raise ValueError(f"{name[:80]!r} holds numbers of the type {str(said.get('dtype'))[:20]}")


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
