"""Results of several sittings, published together."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from letitcook.errors import FileFormatError
from letitcook.experiments.engines import Serial
from letitcook.experiments.results import read_results, read_tables, write_tables
from letitcook.experiments.suites import Row, Run, Suite
from letitcook.experiments.sweep import opened, sweep


def publisher() -> ModuleType:
    spec = importlib.util.spec_from_file_location("publish", Path(__file__).parent.parent / "docs" / "publish.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def swept(folder: Path, *runs: Run) -> Path:
    chosen = Suite("paper", runs)
    with opened(folder, chosen, "letitcook reproduce --suite few.toml"):
        for _ in sweep(chosen, folder, Serial()):
            pass
    return folder


def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    held = read_results(swept(tmp_path, Run(Row("cook", "wrap", "lexicographic"), 0, 20_000)))
    assert held.made.command == "letitcook reproduce --suite few.toml"
    assert held.made.settings["cook"]["slack"] == 0.001
    write_tables(held)
    again = read_tables(tmp_path, "paper")
    assert again.runs.equals(held.runs)
    assert again.curves.equals(held.curves)
    assert (again.made, again.optima) == (held.made, held.optima)
    (tmp_path / "made.json").write_text("[]")
    with pytest.raises(FileFormatError, match="does not hold tables of results"):
        read_tables(tmp_path, "paper")


def test_results_of_two_sittings_are_published_together(tmp_path: Path) -> None:
    good, short = Row("cook", "wrap", "lexicographic"), Row("cook", "scratch", "lexicographic")
    publish, published = publisher().publish, tmp_path / "published"
    first = swept(tmp_path / "first", Run(good, 0, 300_000), Run(short, 0, 20_000))
    publish(first, published)
    shown = {held["source"] for held in json.loads((published / "episodes.json").read_text())}
    shutil.rmtree(first)
    page = publish(swept(tmp_path / "second", Run(good, 1, 20_000), Run(short, 0, 40_000)), published)
    runs = pl.read_csv(published / "runs.csv")
    assert [(run, steps // 10_000) for run, steps in runs.select("id", "steps").rows()] == [
        ("cook/lexicographic/wrap/seed0", 30),
        ("cook/lexicographic/wrap/seed1", 2),
        ("cook/lexicographic/scratch/seed0", 4),
    ]
    assert pl.read_csv(published / "comparison.csv")["seeds"].to_list() == [1, 2]
    again = {held["source"] for held in json.loads((published / "episodes.json").read_text())}
    assert "cook/lexicographic/wrap/seed0" in shown & again, "the episode of a run that is no longer there is kept"
    assert "letitcook reproduce --suite paper" in page.read_text(encoding="utf-8")


def test_results_of_other_settings_are_not_mixed_in(tmp_path: Path) -> None:
    row, kept, other = (
        Row("cook", "wrap", "lexicographic"),
        Row("cook", "scratch", "vanilla"),
        Row("coffee", "wrap", "lexicographic"),
    )
    publish, published = publisher().publish, tmp_path / "published"
    publish(swept(tmp_path / "first", *(Run(each, 0, 20_000) for each in (row, kept, other))), published)
    changed, again = (Run(row, seed, 20_000, changes=(("epsilon", 0.1),)) for seed in (1, 2))
    for folder, run in (("second", changed), ("third", again)):
        publish(swept(tmp_path / folder, run), published)
    runs = pl.read_csv(published / "runs.csv").select("id", "preset").rows()
    earlier = publisher().EARLIER
    assert set(runs) == {
        (Run(other, 0, 20_000).id, "paper"),
        (Run(kept, 0, 20_000).id, earlier),
        (changed.id, "paper"),
        (again.id, "paper"),
    }
    assert set(pl.read_parquet(published / "curves.parquet")["id"]) == {run for run, _ in runs}
    page = published.with_suffix(".md").read_text(encoding="utf-8")
    assert "1 rows, marked °, are still of an earlier version" in page
    assert "| Cook, vanilla ° |" in page
    assert json.loads((published / "made.json").read_text())["settings"]["cook"]["epsilon"] == 0.1
    sources = {held["source"] for held in json.loads((published / "episodes.json").read_text())}
    assert not any(source.startswith("cook") and source.endswith("seed0") for source in sources)
    publish(swept(tmp_path / "fourth", Run(kept, 1, 20_000, changes=(("epsilon", 0.1),))), published)
    assert not pl.read_csv(published / "runs.csv").filter(preset=earlier).height
    assert "°" not in published.with_suffix(".md").read_text(encoding="utf-8")
