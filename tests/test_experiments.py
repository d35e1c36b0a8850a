from __future__ import annotations

import io
import json
import multiprocessing
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from letitcook.cli.terminal.live import Board, headline, view
from letitcook.cli.terminal.status import status_lines, status_of
from letitcook.cli.terminal.tables import comparison_tables
from letitcook.core.decisions import Timesteps, read_timesteps
from letitcook.deep.settings import BEST
from letitcook.errors import FileFormatError, OutputError, SettingError, UnknownNameError
from letitcook.experiments import jobs, results
from letitcook.experiments import sweep as sweeps
from letitcook.experiments.engines import Processes, Serial, engine_named
from letitcook.experiments.jobs import Checkpoint, Exact, Failed, Finished, Job, Lost, Progress, Started, carry_out
from letitcook.experiments.results import Results, read_results, write_tables
from letitcook.experiments.suites import BASE_SEEDS, LEFT_OUT, Row, Run, Suite, base_of, paper_rows, suite
from letitcook.report.compare import compare, comparison_frame, write_comparison
from letitcook.storage import folders
from letitcook.training.run import load
from signing import sign

FEW = Suite(
    "few",
    tuple(Run(Row("cook", mode, "lexicographic"), seed, 20_000) for mode in ("scratch", "wrap") for seed in range(2)),
)


def sweep_all(chosen: Suite, out: Path, engine: Any | None = None, every: float = 60.0) -> list[Any]:
    with sweeps.opened(out, chosen):
        return list(sweeps.sweep(chosen, out, engine or Serial(), every))


def last_of(told: list[Any]) -> dict[Run, Any]:
    return dict(told)


def test_the_papers_rows() -> None:
    rows = paper_rows()
    assert len(rows) == 166
    tasks = ["cook", "cook-longer", "cook-twice", "coffee"]
    assert sum(row.task in tasks for row in rows) == 86
    assert sum(paper.seeds for row, paper in rows.items() if row.task in tasks) == 675
    coffee = rows[Row("coffee", "scratch", "scalar", 0.5)]
    assert (coffee.length, coffee.length_sd, coffee.queries, coffee.queries_sd) == (45.4, 0.843, 41.0, 2.494)


def test_suites() -> None:
    discrete = suite("discrete").runs
    assert (len(discrete), len({run.row for run in discrete}), len({run.id for run in discrete})) == (675, 86, 675)
    assert {str(run.length) for run in discrete} == {"10,000,000 steps"}
    assert len(suite("discrete").only(seeds=2).runs) == 2 * 86
    assert {str(run.length) for run in suite("smoke").only(length=Timesteps(50)).runs} == {"50 steps"}
    assert Run(Row("cook", "wrap", "scalar", 0.1), 3, 10).id == "cook/scalar-0.1/wrap/seed3"
    continuous = suite("continuous").runs
    assert len({run.row for run in continuous}) == 80
    assert {str(run.length) for run in continuous} == {"1,000,000 decisions"}
    assert len(suite("paper").runs) == len(discrete) + len(continuous)
    chosen = suite("continuous").only(seeds=1, rows=["lexicographic", "pong/scalar-0.1/*"])
    assert len(chosen.runs) == 6 + 2
    assert {base.id for base in chosen.bases} == {
        f"{t}/vanilla/scratch/seed{BASE_SEEDS[t]}" for t in ("pong", "cartpole", "mountain-car")
    }
    with pytest.raises(SettingError, match="no row of the suite 'discrete' is 'pong'"):
        suite("discrete").only(rows=["pong"])


def test_the_suites_beyond_the_paper() -> None:
    limit = suite("limit")
    assert len(limit.runs) == 3 * 2 * 10
    assert {run.preset for run in limit.runs} == {"best"}
    longer = [run for run in limit.runs if (run.row.task, run.row.mode) == ("cartpole", "wrap")]
    assert {run.steps for run in longer} == {170_000}
    assert {run.steps for run in limit.runs if run not in longer} == {120_000}
    assert {(base.row.method, base.preset, base.steps) for base in limit.bases} == {("vanilla", "best", 60_000)}
    assert [base.steps for base in limit.only(length=Timesteps(5_000)).bases] == [5_000] * 30
    ablation = suite("ablation").runs
    whole = {run.row.task: run.settings() for run in ablation if not run.row.variant}
    for run in ablation:
        changed = {name for name, value in run.settings().items() if value != whole[run.row.task][name]}
        assert changed == set(LEFT_OUT[run.row.variant]), run.id  # what is left out, and nothing else, changes
        assert len(changed) <= 3
    assert len({run.row.variant for run in ablation}) * 3 * 5 == len(ablation)
    for changes in LEFT_OUT.values():
        for needless in list(changes)[1:]:  # beside the part that is left out, only what cannot be without it
            with pytest.raises(SettingError):
                replace(BEST, **{name: value for name, value in changes.items() if name != needless})


def test_the_smoke_suite_has_every_task_method_and_mode() -> None:
    rows = {run.row for run in suite("smoke").runs}
    assert len({row.task for row in rows}) == 7
    kinds = {(row.method, row.mode) for row in rows}
    assert kinds == {
        ("lexicographic", "scratch"),
        ("lexicographic", "wrap"),
        ("scalar", "scratch"),
        ("scalar", "wrap"),
        ("vanilla", "scratch"),
    }
    assert len(rows) == 7 * len(kinds)


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownNameError, match="no suite named 'discret'. Did you mean 'discrete'"):
        suite("discret")
    with pytest.raises(SettingError, match="seeds = 0"):
        suite("discrete").only(seeds=0)
    with pytest.raises(SettingError, match="steps = -5"):
        read_timesteps(-5, None)
    with pytest.raises(SettingError, match="both given"):
        read_timesteps(5, 5)
    with pytest.raises(SettingError, match="base policy itself"):
        Run(Row("cook", "wrap", "vanilla"), 0, 10)
    with pytest.raises(UnknownNameError, match="no mode named"):
        Run(Row("cook", "wrapped", "lexicographic"), 0, 10)
    with pytest.raises(SettingError, match="workers = 0"):
        engine_named("processes", 0)
    with pytest.raises(UnknownNameError, match="no engine named 'spark'"):
        engine_named("spark", 1)
    with pytest.raises(SettingError, match="goes with --engine ray"):
        engine_named("serial", 1, "auto")


def test_changed_settings_are_part_of_a_run() -> None:
    run = Run(Row("cartpole", "wrap", "lexicographic", variant="slack=1"), 0, 100, changes=(("slack", 1.0),))
    assert run.id == "cartpole/lexicographic+slack=1/wrap/seed0"
    assert run.settings()["slack"] == 1.0
    base = base_of(run)
    assert base is not None
    assert (base.id, base.changes) == (f"cartpole/vanilla+slack=1/scratch/seed{BASE_SEEDS['cartpole']}", run.changes)
    assert base_of(replace(run, seed=7)) == base, "one base policy for all seeds"
    assert base_of(replace(run, seed=7, preset="best", changes=())).seed == 7  # type: ignore[union-attr]
    changed = Run(Row("cook", "wrap", "lexicographic"), 0, 1, changes=(("alpha", 0.3),))
    assert jobs.training_of(changed).info.settings.alpha == 0.3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("slak", 1.0, "Did you mean 'slack'"),
        ("slack", "1", "wrong type"),
        ("slack", True, "wrong type"),
        ("hidden", 3, "wrong type"),
        ("slack", -1.0, "give a number of at least 0"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: Any, message: str) -> None:
    with pytest.raises((SettingError, UnknownNameError), match=message):
        Run(Row("cartpole", "scratch", "vanilla"), 0, 100, changes=((name, value),)).settings()


def test_a_run_that_goes_on_from_a_checkpoint_has_the_same_bits() -> None:
    for run in (FEW.runs[0], Run(Row("cartpole", "scratch", "lexicographic"), 0, 11_000, unit="decision")):
        whole = list(carry_out(Job(run, checkpoint_seconds=0.0)))
        kept = next(message for message in whole if isinstance(message, Checkpoint))
        again = list(carry_out(Job(run, checkpoint=kept.files)))
        assert again[0] == Started(kept.steps)
        first, second = whole[-1], again[-1]
        assert isinstance(first, Finished)
        assert isinstance(second, Finished)
        for name in first.files:
            if name != folders.MANIFEST:
                assert first.files[name] == second.files[name], name
        a, b = (json.loads(message.files[folders.MANIFEST]) for message in (first, second))
        assert all(a[name] == b[name] for name in ("run", "best", "fresh", "time", "steps", "finished"))


def test_engines_give_the_same_tables(tmp_path: Path) -> None:
    tables = []
    for name, engine in (("serial", Serial()), ("processes", Processes(2))):
        told = sweep_all(FEW, tmp_path / name, engine)
        assert {run for run, message in told if isinstance(message, Finished)} == set(FEW.runs)
        write_tables(read_results(tmp_path / name))
        tables.append([(tmp_path / name / file).read_bytes() for file in ("runs.csv", "curves.csv")])
    assert tables[0] == tables[1]


def test_a_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep_all(Suite("few", FEW.runs[:3]), out)
    before = {run: (sweeps.run_folder(out, run) / folders.MANIFEST).stat().st_mtime_ns for run in FEW.runs[:3]}
    numbers = load(sweeps.run_folder(out, FEW.runs[1])).fresh
    damaged = sweeps.run_folder(out, FEW.runs[1]) / "policy.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:20])
    told = sweep_all(FEW, out)
    assert {run for run, _ in told} == {FEW.runs[1], FEW.runs[3]}
    assert load(sweeps.run_folder(out, FEW.runs[1])).fresh == numbers
    for run in (FEW.runs[0], FEW.runs[2]):
        assert (sweeps.run_folder(out, run) / folders.MANIFEST).stat().st_mtime_ns == before[run]
    assert sweep_all(FEW, out) == []


@pytest.mark.parametrize("name", ["manifest.json", "policy.safetensors", "curve.safetensors"])
@pytest.mark.parametrize("keep", [0, 0.5, None])
def test_a_truncated_or_missing_file_costs_just_that_run(tmp_path: Path, name: str, keep: float | None) -> None:
    out, few = tmp_path / "out", Suite("few", FEW.runs[2:])
    sweep_all(few, out)
    file = sweeps.run_folder(out, few.runs[0]) / name
    if keep is None:
        file.unlink()
    else:
        data = file.read_bytes()
        file.write_bytes(data[: int(keep * len(data))])
    told = sweep_all(few, out)
    assert {run for run, _ in told} == {few.runs[0]}
    assert isinstance(told[-1][1], Finished)


def test_an_output_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep_all(FEW, out)
    with pytest.raises(OutputError, match="holds the suite 'few', not 'other'"):
        sweep_all(Suite("other", FEW.runs), out)
    longer = Suite("few", tuple(Run(run.row, run.seed, 30_000) for run in FEW.runs))
    with pytest.raises(OutputError, match="20,000 steps instead of 30,000"):
        sweep_all(longer, out)
    changed = Suite("few", tuple(Run(run.row, run.seed, run.steps, changes=(("alpha", 0.2),)) for run in FEW.runs))
    with pytest.raises(OutputError, match="alpha 0.1 instead of 0.2"):
        sweep_all(changed, out)
    manifest = sweeps.run_folder(out, FEW.runs[0]) / folders.MANIFEST
    old = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**old, "provenance": {**old["provenance"], "version": "0.0.1"}}))
    sign(manifest.parent)
    with pytest.raises(OutputError, match="version 0.0.1 instead of"):
        sweep_all(FEW, out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match="already holds other files"):
        sweep_all(FEW, tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_two_sweeps_do_not_share_a_folder(tmp_path: Path) -> None:
    with sweeps.opened(tmp_path / "out", FEW):
        assert status_of(tmp_path / "out")["at_work"]
        with pytest.raises(OutputError, match="another sweep is at work"), sweeps.opened(tmp_path / "out", FEW):
            pass
    assert not status_of(tmp_path / "out")["at_work"]


def test_base_policies_are_trained_once_and_first(tmp_path: Path) -> None:
    runs = tuple(
        Run(Row("cartpole", "wrap", method, lam), seed=0, steps=1_500)
        for method, lam in (("lexicographic", None), ("scalar", 0.1))
    )
    told = sweep_all(Suite("wrappers", runs), tmp_path / "out")
    base = base_of(runs[0])
    assert base is not None
    assert [run for run, message in told if isinstance(message, Finished)] == [base, *runs]
    wrapped = load(sweeps.run_folder(tmp_path / "out", runs[0])).base
    assert wrapped is not None
    trained = load(sweeps.run_folder(tmp_path / "out", base)).policy
    assert trained.arrays()["networks"].tolist() == wrapped.arrays()["networks"].tolist()  # type: ignore[attr-defined]
    assert read_results(tmp_path / "out").runs["id"].to_list() == [run.id for run in runs]


class Unreliable(Serial):
    """Loses or fails what it is told to."""

    def __init__(self, trouble: dict[Run, list[Any]]) -> None:
        super().__init__()
        self.trouble = trouble
        self.started: list[tuple[Run, bool]] = []

    def start(self, job: Job) -> None:
        self.started.append((job.run, job.checkpoint is not None))
        super().start(job)

    def messages(self, seconds: float) -> list[Any]:
        told = super().messages(seconds)
        if told and isinstance(told[0][1], Finished) and self.trouble.get(told[0][0]):
            return [(told[0][0], self.trouble[told[0][0]].pop(0))]
        return told


def test_one_failed_run_never_ends_the_sweep(tmp_path: Path) -> None:
    engine = Unreliable({FEW.runs[0]: [Failed("ValueError: no", "Traceback ...")], FEW.runs[1]: [Lost("gone")] * 3})
    told = last_of(sweep_all(FEW, tmp_path, engine))
    assert told[FEW.runs[0]].reason == "ValueError: no"
    assert told[FEW.runs[1]].reason == "given up after 3 attempts: gone"
    assert all(isinstance(told[run], Finished) for run in FEW.runs[2:])
    assert "Traceback ..." in sweeps.failure_log(tmp_path, FEW.runs[0]).read_text()
    facts = status_of(tmp_path)
    assert (facts["runs_done"], facts["runs"], facts["rows_done"], facts["rows"]) == (2, 4, 1, 2)
    assert facts["failures"][FEW.runs[0].id]["reason"] == "ValueError: no"
    assert any("failed: cook/lexicographic/scratch/seed0: ValueError: no" in line for line in status_lines(facts))
    assert set(last_of(sweep_all(FEW, tmp_path))) == set(FEW.runs[:2])
    assert status_of(tmp_path)["failures"] == {}
    assert status_of(tmp_path)["runs_done"] == 4


def test_a_lost_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    engine = Unreliable({FEW.runs[0]: [Lost("gone")]})
    told = sweep_all(Suite("few", FEW.runs[:1]), tmp_path, engine, every=0.0)
    assert engine.started == [(FEW.runs[0], False), (FEW.runs[0], True)]
    assert [message for _, message in told if isinstance(message, Started)] == [Started(0), Started(10_000)]
    assert not (tmp_path / "unfinished" / FEW.runs[0].id).exists()


def test_a_kill_between_the_end_of_a_run_and_its_checkpoint_leaves_nothing_behind(tmp_path: Path) -> None:
    done, other = FEW.runs[0], FEW.runs[1]
    sweep_all(Suite("few", (done,)), tmp_path)
    for run in (done, other):
        shutil.copytree(tmp_path / "runs" / done.id, tmp_path / "unfinished" / run.id)
    sweep_all(Suite("few", (done,)), tmp_path)
    assert not (tmp_path / "unfinished" / done.id).exists()
    assert (tmp_path / "unfinished" / other.id).exists()  # that one is not done


def test_what_wraps_a_failed_base_policy_fails_with_it(tmp_path: Path) -> None:
    run = Run(Row("cartpole", "wrap", "lexicographic"), seed=0, steps=1_500)
    base = base_of(run)
    assert base is not None
    told = last_of(sweep_all(Suite("wrap", (run, *FEW.runs[:1])), tmp_path, Unreliable({base: [Failed("no", "")]})))
    assert told[run].reason == "the run of its base policy failed"
    assert isinstance(told[FEW.runs[0]], Finished)


def test_a_run_that_raises_is_a_failure_with_its_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*arguments: Any) -> Any:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(jobs, "training_of", broken)
    told = last_of(sweep_all(Suite("few", FEW.runs[:1]), tmp_path))
    assert told[FEW.runs[0]].reason == "ZeroDivisionError: by nothing"
    assert "in broken" in told[FEW.runs[0]].log


def test_a_killed_worker_is_lost_and_its_run_done_by_another(tmp_path: Path) -> None:
    long = Suite("long", (Run(Row("cook", "scratch", "lexicographic"), 0, 3_000_000),))
    killed = False
    with sweeps.opened(tmp_path, long):
        for _, message in sweeps.sweep(long, tmp_path, Processes(2), 0.0):
            if isinstance(message, Checkpoint) and not killed:
                killed = True
                for child in multiprocessing.active_children():
                    os.kill(child.pid or 0, signal.SIGKILL)
            if isinstance(message, Lost):
                assert "signal 9 (SIGKILL)" in message.reason
                killed = "lost"  # type: ignore[assignment]
    assert killed == "lost"  # type: ignore[comparison-overlap]
    assert sweeps.finished(tmp_path, long.runs[0])  # type: ignore[unreachable]
    assert multiprocessing.active_children() == []


def test_a_full_disk_is_said_and_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write, written = folders._write_through, 0

    def full(path: Path, data: bytes) -> None:
        nonlocal written
        if path.name == "policy.safetensors":
            written += 1
        if written == 3:
            raise OSError(28, "No space left on device")
        write(path, data)

    monkeypatch.setattr(folders, "_write_through", full)
    with pytest.raises(OutputError, match="No space left on device; make room and start the same command again"):
        sweep_all(FEW, tmp_path / "out")
    monkeypatch.setattr(folders, "_write_through", write)
    assert [run for run in FEW.runs if sweeps.finished(tmp_path / "out", run)] == list(FEW.runs[:2])
    assert [p for p in (tmp_path / "out").rglob(".*") if p.name != ".lock"] == []
    assert {run for run, _ in sweep_all(FEW, tmp_path / "out")} == set(FEW.runs[2:])


def few_results(folder: Path) -> Results:
    """Known numbers, as a sweep would give them."""
    row, zero = Row("cook", "scratch", "lexicographic"), Row("cook", "scratch", "scalar", 0.0)
    values = {row: [(33.0, 25.0), (33.0, 29.0)], zero: [(33.0, 31.0)]}
    records = [
        {
            **dict.fromkeys(results.RUNS),
            "id": f"{r.id}/seed{seed}",
            "task": r.task,
            "method": r.method,
            "lambda": r.lam,
            "mode": r.mode,
            "variant": "",
            "seed": seed,
            "length": length,
            "queries": queries,
        }
        for r, pairs in values.items()
        for seed, (length, queries) in enumerate(pairs)
    ]
    runs = pl.DataFrame(records, schema=results.RUNS)
    return Results(folder, "few", runs, pl.DataFrame(schema=results.CURVES), results.optima(folder, [row, zero]))


def test_comparison_of_known_results(tmp_path: Path) -> None:
    known = few_results(tmp_path)
    row, zero = Row("cook", "scratch", "lexicographic"), Row("cook", "scratch", "scalar", 0.0)
    assert known.optima == {row: Exact(33.0, 25.0), zero: Exact(33.0, None)}
    comparisons = compare(known)
    first = comparisons[0]
    assert (first.row, first.seeds, first.length, first.queries) == (row, 2, 33.0, 27.0)
    assert first.queries_sd == pytest.approx(8**0.5)
    assert first.paper is not None
    assert first.paper.queries == 25.0
    write_comparison(known, comparisons)
    table = pl.read_csv(tmp_path / "comparison.csv")
    assert table["exact_queries"].to_list() == [25.0, None]
    assert table["paper_queries_mean"].to_list() == [25.0, 32.2]
    assert comparison_frame(comparisons).columns == table.columns
    assert len(comparison_tables(comparisons)) == 1


def test_optima_are_kept_once_computed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = Row("cook", "wrap", "lexicographic")
    first = results.optima(tmp_path, [row, Row("pong", "scratch", "vanilla")])
    assert first == {row: Exact(53.0, 39.0)}
    monkeypatch.setattr(results, "exact", None)
    assert results.optima(tmp_path, [row]) == first


def test_the_tables_of_a_sweep(tmp_path: Path) -> None:
    wrapper = Run(Row("cook", "wrap", "lexicographic"), 0, 300_000)
    chosen = Suite("few", (FEW.runs[0], wrapper, Run(Row("pong", "scratch", "lexicographic"), 0, 1_500)))
    sweep_all(chosen, tmp_path)
    held = read_results(tmp_path)
    assert [path.name for path in write_tables(held)] == [
        "made.json",
        "runs.csv",
        "runs.parquet",
        "curves.csv",
        "curves.parquet",
    ]
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    assert runs.schema == results.RUNS
    assert runs["id"].to_list() == [run.id for run in chosen.runs]
    assert pl.read_csv(tmp_path / "runs.csv").columns == runs.columns
    times = runs.select(pl.sum_horizontal(results.TIMES)).to_series()
    assert times.to_list() == pytest.approx(runs["length"].to_list())
    assert runs["time_wait_15"].is_null().to_list() == [False, False, True]
    assert runs["base_queries"][0] == 0.0
    assert runs["base_queries"][1] > 0.0
    curves = pl.read_parquet(tmp_path / "curves.parquet")
    assert curves.schema == results.CURVES
    for run in chosen.runs:
        mine = curves.filter(pl.col("id") == run.id)
        assert mine["queries"].to_list() == [point.queries for point in load(sweeps.run_folder(tmp_path, run)).curve]


def test_provenance_of_a_run(tmp_path: Path) -> None:
    sweep_all(Suite("few", FEW.runs[:1]), tmp_path)
    manifest = json.loads((sweeps.run_folder(tmp_path, FEW.runs[0]) / folders.MANIFEST).read_text())
    assert manifest["run"]["task"] == "cook"
    assert manifest["run"]["settings"]["alpha"] == 0.1
    assert manifest["run"]["seed"] == 0
    assert {"numpy", "numba"} <= set(manifest["provenance"]["packages"])
    assert manifest["provenance"]["version"] == json.loads((tmp_path / folders.MANIFEST).read_text())["version"]


def test_the_board_counts_rows_runs_steps_and_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = 100.0
    monkeypatch.setattr("letitcook.cli.terminal.live.time.monotonic", lambda: now)
    board = Board(FEW, tmp_path, slots=2)
    board.take(FEW.runs[0], Started(0))
    board.take(FEW.runs[1], Started(5_000))
    now = 110.0
    board.take(FEW.runs[0], Progress(10_000, 50.0, 40.0))
    board.take(FEW.runs[1], Finished(20_000, {}))
    assert board.rows == (0, 2)
    assert board.steps_per_second == pytest.approx(25_000 / 10)
    assert board.seconds_left == pytest.approx((10_000 + 2 * 20_000) * (20 / 25_000) / 2)
    board.take(FEW.runs[0], Finished(20_000, {}))
    board.take(FEW.runs[2], Started(0))
    board.take(FEW.runs[2], Failed("ValueError: no", ""))
    assert board.rows == (1, 2)
    assert headline(board).startswith("2/4 runs  1/2 rows")
    assert "1 failed" in headline(board)
    console = Console(width=200, file=io.StringIO())
    console.print(view(board))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "failed  cook/lexicographic/wrap/seed0: ValueError: no" in shown
    assert str(sweeps.failure_log(tmp_path, FEW.runs[2])) in shown


def damaged_manifest(text: bytes) -> Any:
    def do(folder: Path) -> None:
        (folder / folders.MANIFEST).write_bytes(text)

    return do


def text_for_a_number(folder: Path) -> None:
    manifest = json.loads((folder / folders.MANIFEST).read_text())
    (folder / folders.MANIFEST).write_text(json.dumps({**manifest, "steps": "many"}))
    sign(folder)


def a_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("nowhere"))


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("x")


def a_pipe(folder: Path) -> None:
    shutil.rmtree(folder)
    os.mkfifo(folder)  # to open it would wait for ever


@pytest.mark.parametrize(
    "damage",
    [
        damaged_manifest(b'{"kind": "run", "format": 3, "steps": 1e999}'),
        damaged_manifest(b"[" * 100_000),
        damaged_manifest(b""),
        text_for_a_number,
        a_link,
        a_file,
        a_pipe,
    ],
    ids=["1e999", "brackets", "empty", "text", "link", "file", "pipe"],
)
def test_a_damaged_run_is_done_again_and_no_other(tmp_path: Path, damage: Any) -> None:
    out = tmp_path / "out"
    sweep_all(FEW, out)
    before = {run: (sweeps.run_folder(out, run) / "policy.safetensors").read_bytes() for run in FEW.runs}
    damage(sweeps.run_folder(out, FEW.runs[0]))
    told = sweep_all(FEW, out)
    assert {run for run, _ in told} == {FEW.runs[0]}
    assert {run: (sweeps.run_folder(out, run) / "policy.safetensors").read_bytes() for run in FEW.runs} == before


def test_what_was_not_made_here_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep_all(FEW, out)
    place = sweeps.run_folder(out, FEW.runs[0]).parent
    for hidden in (out / "runs" / ".git", place / ".git", place / ".seed0-notours"):
        hidden.mkdir()
        (hidden / "HEAD").write_text("mine")
    (out / "runs" / ".DS_Store").write_text("x")
    (place / ".DS_Store").write_text("x")
    ours = place / ".seed0-0123abcd.draft"
    ours.mkdir()
    assert sweep_all(FEW, out) == []
    assert (out / "runs" / ".git" / "HEAD").exists()
    assert (place / ".git" / "HEAD").exists()
    assert (place / ".seed0-notours").exists()
    assert (out / "runs" / ".DS_Store").exists()
    assert not ours.exists()


def test_a_kill_between_the_two_moves_of_a_replacement_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep_all(FEW, out)
    folder = sweeps.run_folder(out, FEW.runs[0])
    folder.rename(folder.with_name(f".{folder.name}-0123abcd.older"))
    folder.with_name(f".{folder.name}-0123abcd.draft").mkdir()
    assert sweep_all(FEW, out) == [], "the run is back, not done again"
    assert folder.is_dir()
    assert not list(folder.parent.glob(".*"))


def test_a_run_that_disappears_meanwhile_is_done_once_more(tmp_path: Path) -> None:
    out = tmp_path / "out"
    removed: list[Run] = []
    with sweeps.opened(out, FEW):
        for run, message in sweeps.sweep(FEW, out, Serial()):
            if isinstance(message, Finished) and run == FEW.runs[0] and not removed:
                removed.append(run)
                shutil.rmtree(sweeps.run_folder(out, run))
    assert removed
    assert all(sweeps.finished(out, run) for run in FEW.runs)


def test_a_run_that_disappears_again_and_again_is_a_failure(tmp_path: Path) -> None:
    out, last = tmp_path / "out", {}
    with sweeps.opened(out, FEW):
        for run, message in sweeps.sweep(FEW, out, Serial()):
            last[run] = message
            if isinstance(message, Finished) and run == FEW.runs[0]:
                shutil.rmtree(sweeps.run_folder(out, run))
    told = last[FEW.runs[0]]
    assert isinstance(told, Failed)
    assert "disappeared" in told.reason


@pytest.mark.parametrize("change", [{"variant": "../../x"}, {"variant": ".."}, {"seed": "../x"}, {"seed": -1}])
def test_a_sweep_manifest_leads_nowhere_else(tmp_path: Path, change: dict[str, Any]) -> None:
    out = tmp_path / "out"
    with sweeps.opened(out, FEW):
        pass
    manifest = json.loads((out / folders.MANIFEST).read_text())
    place = manifest["runs"][0]["row"] if "variant" in change else manifest["runs"][0]
    place.update(change)
    (out / folders.MANIFEST).write_text(json.dumps(manifest))
    sign(out)
    with pytest.raises(FileFormatError, match="is damaged"):
        sweeps.read_suite_manifest(out)
