"""Curves read back with TensorBoard's own reader, and from the file that Weights & Biases keeps offline."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2

from letitcook import learn, make
from letitcook.errors import OutputError
from letitcook.training.callbacks import scalars, tensorboard, track
from letitcook.training.run import Point

NAME = "cook/lexicographic/wrap/seed0"


def read_curves(folder: Path) -> EventAccumulator:
    reader = EventAccumulator(str(folder))
    reader.Reload()
    return reader


def train_tracked(**places: Any) -> tuple[list[Point], list[dict[str, float]]]:
    """Train for three evaluations; returns them, and all that the callback should have told."""
    told: list[dict[str, float]] = []
    with track(NAME, **places) as callback:
        assert callback is not None

        def both(point: Point, training: Any) -> None:
            told.append(scalars(point, training))
            callback(point, training)

        learned = learn(make("cook", mode="wrap"), steps=30_000, progress=False, callback=both)
    return learned.curve, told


def test_tensorboard_reads_every_number_at_its_step(tmp_path: Path) -> None:
    curve, told = train_tracked(tensorboard_dir=tmp_path)
    reader = read_curves(tmp_path / NAME)
    assert sorted(reader.Tags()["scalars"]) == sorted(told[0])
    assert {"rollout/ep_len_mean", "rollout/wait_fraction", "eval/mean_base_queries"} <= set(told[0])
    for tag in told[0]:
        events = reader.Scalars(tag)
        assert [event.step for event in events] == [point.step for point in curve], tag
        assert [event.value for event in events] == pytest.approx([numbers[tag] for numbers in told]), tag
    assert [event.value for event in reader.Scalars("eval/mean_queries")] == [point.queries for point in curve]
    (text,) = reader.Tensors("run/text_summary")
    about = json.loads(text.tensor_proto.string_val[0])
    assert (about["task"], about["mode"], about["seed"]) == ("cook", "wrap", 0)
    assert not {"torch", "tensorflow"} & set(sys.modules)


def test_a_second_run_does_not_mix_with_the_first_and_a_resumed_one_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        with track("run", tmp_path):
            pass
    with track("run", tmp_path, resumed=True):
        pass
    assert {folder.name: len(list(folder.iterdir())) for folder in tmp_path.iterdir()} == {"run": 2, "run-2": 1}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OutputError, match="taken.* cannot be written"), tensorboard(tmp_path / "taken" / "run"):
        pytest.fail("it began all the same")


def records(path: Path) -> Iterator[Any]:
    """Read the records that Weights & Biases keeps, in LevelDB's log format: blocks of 32 KiB after 7 bytes."""
    data, at, record = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        left = 32_768 - at % 32_768
        if left < 7:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


def test_weights_and_biases_keeps_every_number_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    curve, told = train_tracked(tensorboard_dir=tmp_path / "curves", wandb_project="waiting")
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    kept: dict[str, list[Any]] = {}
    for record in records(path):
        kind = record.WhichOneof("record_type")
        kept.setdefault(kind, []).append(getattr(record, kind))
    assert (kept["run"][0].project, kept["run"][0].display_name) == ("waiting", NAME)
    config = {item.key: json.loads(item.value_json) for record in kept["config"] for item in record.update}
    assert (config["task"], config["mode"], config["lambda"]) == ("cook", "wrap", None)
    assert [history.step.num for history in kept["history"]] == [point.step for point in curve]
    for history, numbers in zip(kept["history"], told, strict=True):
        read = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in history.item}
        assert {tag: read[tag] for tag in numbers} == pytest.approx(numbers)
    assert kept["exit"][0].exit_code == 0
    assert len(read_curves(tmp_path / "curves" / NAME).Scalars("time/fps")) == 3
