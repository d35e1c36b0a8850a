from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from letitcook import learn, load, make
from letitcook.deploy.numpy_policy import load as load_exported
from letitcook.errors import FileFormatError, OutputError
from letitcook.storage import folders
from letitcook.training.run import POLICY


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return learn(make("cook", mode="wrap"), steps=20_000, seed=3, progress=False).save(tmp_path / "run")


def test_a_saved_run_is_the_run(tmp_path: Path) -> None:
    env = make("cook", mode="wrap")
    learned = learn(env, steps=30_000, seed=3, progress=False)
    again = load(learned.save(tmp_path / "run"))
    for name in ("best", "fresh", "curve", "steps", "decisions_taken", "info", "time"):
        assert getattr(again, name) == getattr(learned, name), name
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        decision, _ = learned.policy.predict(observation)
        assert again.policy.predict(observation)[0] == decision
        observation, _, terminated, truncated, _ = env.step(decision)
        over = terminated or truncated


def test_nothing_in_a_run_is_pickled(run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == ["curve.safetensors", "manifest.json", "policy.safetensors"]


@pytest.fixture
def power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second file of a folder cannot be written."""
    write = folders._write_through

    def fail(path: Path, data: bytes) -> None:
        if path.name == "second":
            raise RuntimeError("power cut")
        write(path, data)

    monkeypatch.setattr(folders, "_write_through", fail)


@pytest.mark.usefixtures("power_cut")
def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="power cut"):
        folders.write_folder(tmp_path / "run", {"first": b"1", "second": b"2"})
    assert list(tmp_path.iterdir()) == []


def test_a_newer_state_takes_the_place_of_an_older_one_whole(tmp_path: Path, run: Path, power_cut: None) -> None:
    before = (run / "manifest.json").read_text()
    with pytest.raises(RuntimeError, match="power cut"):
        folders.write_folder(run, {"first": b"1", "second": b"2"}, replace=True)
    assert (run / "manifest.json").read_text() == before
    folders.write_folder(run, {"new": b"new"}, replace=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "new"]


def test_a_free_name(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        free = folders.free_folder(tmp_path / "run")
        free.mkdir()
        names.append(free.name)
    assert names == ["run", "run-2", "run-3"]


def test_outputs_that_cannot_be_used(tmp_path: Path, run: Path) -> None:
    with pytest.raises(OutputError, match="already holds other files"):
        folders.check_output(run)
    with pytest.raises(OutputError, match="is a file"):
        folders.check_output(run / "manifest.json")
    with pytest.raises(OutputError, match="is not a folder"):
        folders.check_output(run / "manifest.json" / "below")
    with pytest.raises(OutputError, match="cannot be written"):
        folders.check_output(Path("/proc/results"))
    assert folders.check_output(tmp_path / "new" / "below") == tmp_path / "new" / "below"
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    assert folders.check_output(tmp_path / "empty").is_dir()


@pytest.mark.parametrize("name", ["manifest.json", "policy.safetensors", "curve.safetensors"])
def test_a_damaged_run_is_named(run: Path, name: str) -> None:
    whole = (run / name).read_bytes()
    (run / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=name):
        load(run)
    (run / name).unlink()
    with pytest.raises(FileFormatError, match=r"missing"):
        load(run)


def test_manifests_of_another_kind_or_format(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest = {**manifest, "format": 2}  # without checksums, so that what follows is reached
    del manifest["files"], manifest["sha256"]
    for change, message in (
        ({"kind": "suite"}, "not the manifest of a run but of 'suite'"),
        ({"format": 99}, "has format 99"),
        ({"run": {}}, "damaged or incomplete"),
        ({"best": {"step": 1}}, "damaged or incomplete"),
    ):
        (run / "manifest.json").write_text(json.dumps({**manifest, **change}))
        with pytest.raises(FileFormatError, match=message):
            load(run)
    (run / "manifest.json").write_text("[1, 2]")
    with pytest.raises(FileFormatError, match="not the manifest"):
        load(run)


def test_files_that_are_absurdly_large_are_not_read(run: Path, tmp_path: Path) -> None:
    with (run / "notes.bin").open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk, and would take all of the memory
    load(run)
    for name, said in ((POLICY, "at most 1,073,741,824"), (folders.MANIFEST, "at most 8,388,608")):
        with (run / name).open("r+b") as file:
            file.truncate(2**40)
        with pytest.raises(FileFormatError, match=said):
            folders.read_folder(run)
    with (tmp_path / "policy.npz").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match="larger than any policy"):
        load_exported(tmp_path / "policy.npz")
    many = {f"n{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(10_001)}
    header = json.dumps(many).encode()
    with pytest.raises(FileFormatError, match="10,001 arrays"):
        folders.unpack_arrays(struct.pack("<Q", len(header)) + header, run)


def test_whole_numbers_are_kept_small() -> None:
    arrays = {"a": np.array([1, -5]), "b": np.array([70_000]), "c": np.array([0.5]), "d": np.array([], dtype=np.int64)}
    back = folders.unpack_arrays(folders.pack_arrays(arrays), Path("x.safetensors"))
    assert {n: back[n].dtype.name for n in "abc"} == {"a": "int8", "b": "int32", "c": "float64"}
    assert all(np.array_equal(arrays[n], back[n]) for n in arrays)
