from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from letitcook.errors import OutputError, SettingError, UnknownNameError
from letitcook.experiments import sweep as sweeps
from letitcook.experiments.suites import Row, Run, paper_rows, suite
from letitcook.report.compare import compare, comparison_frame, runs_frame, write_results
from letitcook.report.tables import comparison_tables
from letitcook.runs import load

FEW = [Run(Row("cook", mode, "lexicographic"), seed, steps=20_000) for mode in ("scratch", "wrap") for seed in range(2)]


def test_the_papers_rows() -> None:
    rows = paper_rows()
    assert len(rows) == 166
    tasks = ["cook", "cook-longer", "cook-twice", "coffee"]
    assert sum(row.task in tasks for row in rows) == 86
    assert sum(paper.seeds for row, paper in rows.items() if row.task in tasks) == 675
    coffee = rows[Row("coffee", "scratch", "scalar", 0.5)]
    assert (coffee.length, coffee.length_sd, coffee.queries, coffee.queries_sd) == (45.4, 0.843, 41.0, 2.494)


def test_suites() -> None:
    discrete = suite("discrete")
    assert (len(discrete), len({run.row for run in discrete}), len({run.id for run in discrete})) == (675, 86, 675)
    assert {run.steps for run in discrete} == {10_000_000}
    assert len(suite("discrete", seeds=2)) == 2 * 86
    assert {run.steps for run in suite("smoke", steps=50)} == {50}
    assert Run(Row("cook", "wrap", "scalar", 0.1), 3, 10).id == "cook/scalar-0.1/wrap/seed3"
    continuous = suite("continuous")
    assert len({run.row for run in continuous}) == 80
    assert {run.steps for run in continuous} == {1_000_000}
    assert len(suite("paper")) == len(discrete) + len(continuous)
    chosen = suite("continuous", seeds=1, rows=["lexicographic", "pong/scalar-0.1/*"])
    assert len(chosen) == 6 + 2
    with pytest.raises(SettingError, match="no row of the suite 'discrete' is 'pong'"):
        suite("discrete", rows=["pong"])


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownNameError, match="no suite named 'discret'. Did you mean 'discrete'"):
        suite("discret")
    with pytest.raises(SettingError, match="seeds = 0"):
        suite("discrete", seeds=0)
    with pytest.raises(SettingError, match="steps = -5"):
        suite("discrete", steps=-5)
    with pytest.raises(SettingError, match="base policy itself"):
        Run(Row("cook", "wrap", "vanilla"), 0, 10)
    with pytest.raises(UnknownNameError, match="no mode named"):
        Run(Row("cook", "wrapped", "lexicographic"), 0, 10)
    with pytest.raises(SettingError, match="workers = 0"):
        list(sweeps.side_by_side(len, [[1], [2]], workers=0))


def test_serial_and_parallel_sweeps_give_the_same_numbers(tmp_path: Path) -> None:
    numbers = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        assert sweeps.open_output(out, "few", FEW) == []
        numbers.append({r.run.id: (r.length, r.queries, r.best_step) for r in sweeps.sweep(FEW, out, workers)})
        assert all((sweeps.folder_of(out, run) / "manifest.json").is_file() for run in FEW)
    assert numbers[0] == numbers[1]


def test_a_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweeps.open_output(out, "few", FEW)
    first = list(sweeps.sweep(FEW[:3], out, workers=1))
    damaged = sweeps.folder_of(out, FEW[1]) / "policy.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:20])
    held = sweeps.open_output(out, "few", FEW)
    assert [r.run for r in held] == [FEW[0], FEW[2]]
    rest = [run for run in FEW if run not in {r.run for r in held}]
    again = {r.run: r for r in sweeps.sweep(rest, out, workers=1)}
    assert (again[FEW[1]].length, again[FEW[1]].queries) == (first[1].length, first[1].queries)


def test_an_output_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    sweeps.open_output(tmp_path / "out", "few", FEW)
    with pytest.raises(OutputError, match="another suite or other settings"):
        sweeps.open_output(tmp_path / "out", "few", FEW[:2])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match="already holds other files"):
        sweeps.open_output(tmp_path / "mine", "few", FEW)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_base_policies_are_trained_once_and_first(tmp_path: Path) -> None:
    runs = [
        Run(Row("cartpole", "wrap", method, lam), seed=0, steps=1_500)
        for method, lam in (("lexicographic", None), ("scalar", 0.1))
    ]
    sweeps.open_output(tmp_path / "out", "wrappers", runs)
    results = list(sweeps.sweep(runs, tmp_path / "out", workers=1))
    assert [r.run for r in results] == runs
    base = sweeps.folder_of(tmp_path / "out", Run(Row("cartpole", "scratch", "vanilla"), seed=0, steps=1_500))
    stamp = (base / "manifest.json").stat().st_mtime_ns
    assert (
        load(base).policy.arrays()["networks"].tolist()
        == load(  # type: ignore[attr-defined]
            sweeps.folder_of(tmp_path / "out", runs[0])
        )
        .base.arrays()["networks"]
        .tolist()
    )  # type: ignore[union-attr]
    again = list(sweeps.sweep(runs[1:], tmp_path / "elsewhere", workers=1))
    assert (again[0].length, again[0].queries) == (results[1].length, results[1].queries)
    assert (base / "manifest.json").stat().st_mtime_ns == stamp


def test_comparison_of_known_results(tmp_path: Path) -> None:
    row, zero = Row("cook", "scratch", "lexicographic"), Row("cook", "scratch", "scalar", 0.0)
    values = {row: [(33.0, 25.0), (33.0, 29.0)], zero: [(33.0, 31.0)]}
    results = [
        sweeps.Result(Run(r, seed, 20_000), length, queries, 10_000, 20_000, 1.0)
        for r, pairs in values.items()
        for seed, (length, queries) in enumerate(pairs)
    ]
    optima = sweeps.exact_rows([row, zero], workers=1)
    assert optima == {row: sweeps.Exact(33.0, 25.0), zero: sweeps.Exact(33.0, None)}
    comparisons = compare(results, optima)
    first = comparisons[0]
    assert (first.row, first.seeds, first.length, first.queries) == (row, 2, 33.0, 27.0)
    assert first.queries_sd == pytest.approx(8**0.5)
    assert first.paper is not None
    assert first.paper.queries == 25.0
    write_results(tmp_path, results, comparisons)
    runs, table = pl.read_csv(tmp_path / "runs.csv"), pl.read_csv(tmp_path / "comparison.csv")
    assert runs.columns == ["task", "mode", "method", "lambda", "seed", "length", "queries", "best_step"]
    assert runs.rows() == runs_frame(results).rows()
    assert runs.height == 3
    assert table["exact_queries"].to_list() == [25.0, None]
    assert table["paper_queries_mean"].to_list() == [25.0, 32.2]
    assert comparison_frame(comparisons).columns == table.columns
    assert len(comparison_tables(comparisons)) == 1


def test_provenance_of_a_run(tmp_path: Path) -> None:
    run = FEW[0]
    sweeps.carry_out(run, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["about"]["task"] == "cook"
    assert manifest["about"]["settings"]["alpha"] == 0.1
