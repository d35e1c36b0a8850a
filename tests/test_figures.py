from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure

from letitcook.envs import task_named
from letitcook.experiments.results import CURVES, RUNS, Results
from letitcook.experiments.suites import Row, paper_rows
from letitcook.experiments.work import Exact
from letitcook.report.figures import CAPTIONS, FIGURES, figure_svg, make_figures, write_figures
from letitcook.report.figures.curves import learning_curves, pong
from letitcook.report.figures.durations import wait_durations
from letitcook.report.figures.frames import best_scalar, curve
from letitcook.report.figures.methods import methods
from letitcook.report.figures.plane import plane
from letitcook.report.figures.style import in_order, style
from letitcook.report.statistics import bootstrap_interval

TASKS = ("cook", "pong", "cartpole")
LAMS = (None, 0.1, 5.0)
EVALUATIONS = 120
OPTIMUM = Exact(33.0, 25.0)


def made_up(seeds: int = 3, evaluations: int = EVALUATIONS, lams: tuple[float | None, ...] = LAMS) -> Results:
    """Return results around the paper's, of a few rows."""
    rng = np.random.default_rng(0)
    runs, curves = [], []
    rows = [row for row in paper_rows() if row.task in TASKS and row.lam in lams]
    for row in rows:
        paper, task = paper_rows()[row], task_named(row.task)
        for seed in range(seeds):
            length, queries = paper.length + rng.uniform(0.0, 3.0), paper.queries + rng.uniform(0.0, 3.0)
            waits = rng.dirichlet(np.ones(len(task.durations) + 1)) * (length - min(queries, length))
            identity = {"id": f"{row.id}/seed{seed}", "task": row.task, "method": row.method, "lambda": row.lam,
                        "mode": row.mode, "variant": "", "seed": seed}  # fmt: skip
            times = dict(zip((1, *task.durations), waits.tolist(), strict=True))
            runs.append({
                **identity, "preset": "paper", "steps": 10 * evaluations, "length": length, "queries": queries,
                "task_return": task.return_per_step * length, "base_queries": 0.0, "best_step": 10,
                "time_acting": length - waits.sum(), **{f"time_wait_{d}": steps for d, steps in times.items()},
            })  # fmt: skip
            for n in range(1, evaluations + 1):
                now = length + rng.uniform(0.0, 100.0 / n)
                curves.append({
                    **identity, "step": 10 * n + seed % 2, "length": now, "queries": queries + 50.0 / n,
                    "task_return": task.return_per_step * now, "base_queries": 0.0,
                })  # fmt: skip
    optima = {Row("cook", "scratch", "lexicographic"): OPTIMUM}
    return Results(
        Path("unused"), "made up", pl.DataFrame(runs, schema=RUNS), pl.DataFrame(curves, schema=CURVES), optima
    )


@pytest.fixture(scope="module")
def results() -> Results:
    return made_up()


@pytest.fixture(autouse=True)
def _one_style() -> Iterator[None]:
    with style():
        yield


def panel(figure: Figure | None, title: str) -> Axes:
    assert figure is not None
    return next(axes for axes in figure.axes if axes.get_title(loc="left").startswith(title))


def values_of(results: Results, row: Row, name: str) -> np.ndarray:
    same = (pl.col("task") == row.task) & (pl.col("mode") == row.mode) & (pl.col("method") == row.method)
    chosen = results.runs.filter(same & pl.col("lambda").eq_missing(pl.lit(row.lam, dtype=pl.Float64)))
    return chosen[name].to_numpy()


def test_every_figure_has_a_name_and_a_caption(results: Results) -> None:
    figures = make_figures(results)
    assert list(figures) == list(FIGURES) == list(CAPTIONS)
    assert len(figures) == 12
    assert [figure.get_label() for figure in figures.values()] == list(CAPTIONS.values())


def test_durations_are_those_of_the_best_seed(results: Results) -> None:
    figure = wait_durations(results)
    for n, mode in enumerate(("scratch", "wrap")):
        axes = figure.axes[n]  # type: ignore[union-attr]
        written = [text.get_text() for text in axes.texts]
        for x, task in enumerate(TASKS):
            runs = results.runs.filter(task=task, mode=mode, method="lexicographic")
            best = runs.sort("task_return", descending=True).row(0, named=True)
            spent = [best["time_acting"]] + [best[f"time_wait_{d}"] for d in (1, *task_named(task).durations)]
            heights = [bar.get_height() for bar in axes.patches if abs(bar.get_x() + bar.get_width() / 2 - x) < 1e-9]
            assert heights == pytest.approx([steps / best["length"] for steps in spent if steps])
            assert f"{best['length']:.1f}".removesuffix(".0") + " steps" in written
        acting = results.runs.filter(task="cook", mode=mode, method="lexicographic").sort("length")["time_acting"][0]
        assert f"acting: {acting:.1f}" in written


def test_a_seed_with_the_same_return_and_fewer_queries_is_better(results: Results) -> None:
    runs = results.runs.filter(task="cook", mode="scratch", method="lexicographic").head(2)
    runs = runs.with_columns(
        length=33.0, task_return=-33.0, queries=pl.Series([29.0, 25.0]), time_acting=pl.Series([33.0, 23.0]),
        time_wait_1=pl.lit(0.0), time_wait_5=pl.Series([0.0, 10.0]), time_wait_15=pl.lit(0.0),
    )  # fmt: skip
    figure = wait_durations(replace(results, runs=runs))
    assert [text.get_text() for text in figure.axes[0].texts] == ["acting: 23", "wait 5: 10", "33 steps"]  # type: ignore[union-attr]


def test_methods_show_means_and_deviations_beside_the_papers(results: Results) -> None:
    axes = panel(methods(results, "scratch"), "Pong")
    best = best_scalar(results.runs, "pong", "scratch")
    assert best is not None
    rows = [Row("pong", "scratch", "vanilla"), Row("pong", "scratch", "lexicographic"), best]
    bars = [c for c in axes.containers if isinstance(c, BarContainer)]
    marks = [c for c in axes.containers if isinstance(c, ErrorbarContainer)]
    heights = [bar.patches[0].get_height() for bar in bars]
    expected = [values_of(results, row, name).mean() for row in rows for name in ("length", "queries")]
    assert heights == pytest.approx(expected)
    # For each row: our two deviations, then the paper's two means, the best scalarised one by the paper's own choice.
    ours = [marks[4 * n + m] for n in range(3) for m in range(2)]
    deviations = [np.ptp(c.lines[2][0].get_segments()[0][:, 1]) / 2.0 for c in ours]
    assert deviations == pytest.approx(
        [values_of(results, row, name).std(ddof=1) for row in rows for name in ("length", "queries")]
    )
    paper = [paper_rows()[row] for row in (*rows[:2], Row("pong", "scratch", "scalar", 0.0))]
    shown = [float(marks[4 * n + 2 + m].lines[0].get_ydata()[0]) for n in range(3) for m in range(2)]
    assert shown == [number for p in paper for number in (p.length, p.queries)]
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks[2] == f"best\nscalarised\nλ = {best.lam:g}\n(paper 0)"


def test_wrapped_methods_have_no_vanilla(results: Results) -> None:
    axes = panel(methods(results, "wrap"), "Cook")
    assert [label.get_text().split("\n")[0] for label in axes.get_xticklabels()] == ["lexico-", "best"]


def test_curves_are_means_of_neighbours_over_seeds(results: Results) -> None:
    axes = panel(learning_curves(results, "queries", "scratch"), "Cook")
    rows = [Row("cook", "scratch", "lexicographic"), best_scalar(results.runs, "cook", "scratch")]
    lines = [line for line in axes.lines if len(line.get_xdata()) == EVALUATIONS // 3]
    assert len(lines) == len(rows) == len(axes.collections)
    for row, line, band in zip(rows, lines, axes.collections, strict=True):
        seeds = [
            results.curves.filter(task="cook", mode="scratch", method=row.method, seed=seed)  # type: ignore[union-attr]
            .filter(pl.col("lambda").eq_missing(pl.lit(row.lam, dtype=pl.Float64)))  # type: ignore[union-attr]
            .sort("step")
            for seed in range(3)
        ]
        means = np.array([s["queries"].to_numpy().reshape(-1, 3).mean(axis=1) for s in seeds])
        assert line.get_ydata() == pytest.approx(means.mean(axis=0))
        assert line.get_xdata() == pytest.approx(np.arange(2, EVALUATIONS, 3) * 10 + 1 / 3)
        assert isinstance(band, PolyCollection)
        edges = band.get_paths()[0].vertices
        sd = means[:, 0].std(ddof=1)
        assert edges[:, 1].max() == pytest.approx(min(means[:, 0].mean() + sd, means[:, 0].max()))
    assert [line.get_ydata()[0] for line in axes.lines if line not in lines] == [OPTIMUM.queries]


def test_scalarised_return_is_that_of_the_best_lambda(results: Results) -> None:
    figure = learning_curves(results, "scalar", "wrap")
    axes, best = panel(figure, "CartPole"), best_scalar(results.runs, "cartpole", "wrap")
    assert best is not None
    assert axes.get_title(loc="right") == f"λ = {best.lam:g}"
    rows = results.curves.filter(pl.col("lambda") == best.lam, task="cartpole", mode="wrap").sort("step")
    returns = (rows["task_return"] - best.lam * rows["queries"]).to_numpy().reshape(EVALUATIONS, 3).mean(axis=1)
    (line,) = axes.lines
    assert axes.get_xscale() == "log"
    assert 30 < len(line.get_xdata()) <= 50
    assert line.get_ydata()[:9] == pytest.approx(returns[:9])  # early evaluations stand alone, late ones are joined
    assert line.get_xdata()[:9] == pytest.approx(10 * np.arange(1, 10) + 1 / 3)
    assert returns[-10:].min() < line.get_ydata()[-1] < returns[-10:].max()


def test_curves_of_seeds_that_stopped_early_end_with_them(results: Results) -> None:
    row = Row("pong", "scratch", "lexicographic")
    short = results.curves.filter((pl.col("seed") != 1) | (pl.col("step") < 200))
    points = curve(short, row, "length", 1_000)
    assert points is not None
    assert points[1].shape == (3, 19)
    assert curve(short, Row("coffee", "scratch", "vanilla"), "length", 10) is None


def test_pong_has_a_band_of_the_bootstrap_interval(results: Results) -> None:
    figure = pong(results)
    axes = panel(figure, "Pong, length")
    assert len(axes.lines) == 2
    for mode, line, band in zip(("scratch", "wrap"), axes.lines, axes.collections, strict=True):
        points = curve(results.curves, Row("pong", mode, "lexicographic"), "length", 100)
        assert points is not None
        assert line.get_ydata() == pytest.approx(points[1].mean(axis=0))
        low, high = bootstrap_interval(points[1], resamples=2_000)
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == pytest.approx((low.min(), high.max()))


def test_the_plane_has_the_front_and_every_result(results: Results) -> None:
    axes = panel(plane(results, "scratch"), "Cook")
    stairs = next(line for line in axes.lines if line.get_drawstyle() == "steps-pre")
    assert stairs.get_xydata().tolist() == [[25, 33], [23, 37], [14, 200]]
    single = {(line.get_marker(), *line.get_xydata()[0]) for line in axes.lines if len(line.get_xydata()) == 1}
    for lam in LAMS:
        row = Row("cook", "scratch", "lexicographic" if lam is None else "scalar", lam)
        marker, paper = "*" if lam is None else "o", paper_rows()[row]
        mean = [float(values_of(results, row, name).mean()) for name in ("queries", "length")]
        assert (marker, *mean) in single
        assert (marker, paper.queries, paper.length) in single
    assert len(single) == 2 * len(LAMS)
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert sorted(len(line.get_xydata()) for line in dots) == [3, 3, 3]
    assert not any(line.get_drawstyle() == "steps-pre" for line in panel(plane(results, "scratch"), "Pong").lines)


def test_what_is_missing_has_no_figure(results: Results) -> None:
    nothing = replace(results, runs=results.runs.clear(), curves=results.curves.clear())
    assert make_figures(nothing) == {}
    no_pong = results.runs["task"] != "pong", results.curves["task"] != "pong"
    assert (
        pong(replace(results, runs=results.runs.filter(no_pong[0]), curves=results.curves.filter(no_pong[1]))) is None
    )
    scratch = replace(results, runs=results.runs.filter(mode="scratch"), curves=results.curves.filter(mode="scratch"))
    assert pong(scratch) is None
    assert methods(scratch, "wrap") is plane(scratch, "wrap") is learning_curves(scratch, "length", "wrap") is None
    assert len(wait_durations(scratch).axes) == 1  # type: ignore[union-attr]
    vanilla = replace(results, runs=results.runs.filter(method="vanilla"))
    assert (
        wait_durations(vanilla) is plane(vanilla, "scratch") is learning_curves(vanilla, "queries", "scratch") is None
    )
    assert methods(vanilla, "scratch") is not None
    no_curves = replace(results, curves=results.curves.clear())
    assert learning_curves(no_curves, "length", "scratch") is pong(no_curves) is None


def test_one_seed_one_lambda_and_two_evaluations_are_enough() -> None:
    small = made_up(seeds=1, evaluations=2, lams=(None, 0.1))
    assert list(make_figures(small)) == list(FIGURES)


def test_changed_settings_stay_out(results: Results) -> None:
    other = [frame.with_columns(variant=pl.lit("slack=1")) for frame in (results.runs, results.curves)]
    assert make_figures(replace(results, runs=other[0], curves=other[1])) == {}


def test_lambdas_outside_the_papers_sweep_are_better_than_none(results: Results) -> None:
    moved = results.runs.with_columns(pl.col("lambda") * 0.7)
    assert best_scalar(results.runs, "cook", "scratch") == Row("cook", "scratch", "scalar", 0.1)
    assert best_scalar(moved, "cook", "scratch") == Row("cook", "scratch", "scalar", 0.1 * 0.7)
    assert best_scalar(results.runs.filter(method="vanilla"), "cook", "scratch") is None


def test_files_are_written_in_both_formats_and_the_same_each_time(results: Results, tmp_path: Path) -> None:
    of_cook = replace(results, runs=results.runs.filter(task="cook", mode="scratch"), curves=results.curves.clear())
    first = write_figures(make_figures(of_cook), tmp_path / "first")
    with mpl.rc_context({"font.size": 30.0, "axes.facecolor": "red"}):  # a user's own settings have no part in it
        second = write_figures(make_figures(of_cook), tmp_path / "second")
    assert [path.name for path in first] == [path.name for path in second]
    names = ("wait-durations", "methods-scratch", "plane-scratch")
    assert [path.name for path in first] == [f"{name}.{kind}" for name in names for kind in ("pdf", "png")]
    for a, b in zip(first, second, strict=True):
        content = a.read_bytes()
        assert content.startswith(b"%PDF" if a.suffix == ".pdf" else b"\x89PNG")
        assert content == b.read_bytes(), a.name
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == sorted(path.name for path in first)


def test_svgs_stand_side_by_side_in_one_page(results: Results) -> None:
    texts = []
    for _ in range(2):
        figures = {"plane": plane(results, "wrap"), "durations": wait_durations(results)}
        texts.append([figure_svg(figure) for figure in figures.values() if figure is not None])
    assert texts[0] == texts[1]
    ids = []
    for text in texts[0]:
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        names = [element.get("id") for element in root.iter() if element.get("id")]
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
        assert used == set(names)
        assert len(names) > 10
        ids += names
        assert "<style" not in text  # it would hold for the whole page
        assert {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"} == set(
            re.findall(r"https?://[^\"\s]+", text)
        )
    assert len(ids) == len(set(ids))


def test_figures_leave_matplotlib_as_it_was(results: Results) -> None:
    with mpl.rc_context({"font.size": 30.0}):
        figures = make_figures(
            replace(results, runs=results.runs.filter(method="vanilla"), curves=results.curves.clear())
        )
        assert list(figures) == ["methods-scratch"]
        figure_svg(figures["methods-scratch"])
        assert mpl.rcParams["font.size"] == 30.0


def test_tasks_come_in_the_houses_order() -> None:
    assert in_order(["mountain-car", "coffee", "cook", "coffee"]) == ["cook", "coffee", "mountain-car"]
