from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from letitcook.experiments.jobs import Exact
from letitcook.experiments.results import CURVES, RUNS, Results
from letitcook.experiments.suites import Row, paper_rows, paper_tasks
from letitcook.report.figures import CAPTIONS, FIGURES, figure_svg, make_figures, settling_times, write_figures
from letitcook.report.figures.curves import learning_curves
from letitcook.report.figures.durations import spread, wait_durations
from letitcook.report.figures.efficiency import efficiency, pong, settled
from letitcook.report.figures.episode import episode
from letitcook.report.figures.frames import Curve, best_scalar, curve, joined, unit_of
from letitcook.report.figures.methods import methods
from letitcook.report.figures.plane import plane
from letitcook.report.figures.rooms import CELL, rooms
from letitcook.report.figures.style import in_order, style
from letitcook.report.statistics import bootstrap_interval
from letitcook.tasks import coffee, task_named

TASKS = ("cook", "pong", "cartpole")
PAPER_TASKS = tuple(task.name for task in paper_tasks())
LAMS = (None, 0.1, 5.0)
MEASURES = ("length", "queries")
EVALUATIONS = 120
OPTIMUM = Exact(33.0, 25.0)


def made_up(
    seeds: int = 3,
    evaluations: int = EVALUATIONS,
    lams: Sequence[float | None] | None = LAMS,
    of: Sequence[str] = TASKS,
) -> Results:
    """Return results around the paper's, of a few rows; of every λ if `lams` is None."""
    rng = np.random.default_rng(0)
    runs, curves = [], []
    rows = [row for row in paper_rows() if row.task in of and (lams is None or row.lam in lams)]
    for row in rows:
        paper, task = paper_rows()[row], task_named(row.task)
        for seed in range(seeds):
            length, queries = paper.length + rng.uniform(0.0, 3.0), paper.queries + rng.uniform(0.0, 3.0)
            waits = rng.dirichlet(np.ones(len(task.durations) + 1)) * (length - min(queries, length))
            identity = {"id": f"{row.id}/seed{seed}", "task": row.task, "method": row.method, "lambda": row.lam,
                        "mode": row.mode, "variant": "", "seed": seed}  # fmt: skip
            times = dict(zip((1, *task.durations), waits.tolist(), strict=True))
            runs.append({
                **identity, "preset": "paper", "steps": 10 * evaluations, "decisions": 4 * evaluations,
                "length": length, "queries": queries, "task_return": task.return_per_step * length,
                "base_queries": 0.0, "best_step": 10, "best_decision": 4, "time_acting": length - waits.sum(),
                **{f"time_wait_{d}": steps for d, steps in times.items()},
            })  # fmt: skip
            for n in range(1, evaluations + 1):
                now = length + rng.uniform(0.0, 100.0 / n)
                curves.append({
                    **identity, "step": 10 * n + seed % 2, "decision": 4 * n + seed % 2, "length": now,
                    "queries": queries + rng.uniform(0.0, 50.0 / n), "task_return": task.return_per_step * now,
                    "base_queries": 0.0,
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
    assert len(figures) == 15
    assert [figure.get_label() for figure in figures.values()] == list(CAPTIONS.values())


def test_durations_are_those_of_the_best_seed(results: Results) -> None:
    figure = wait_durations(results)
    for n, mode in enumerate(("scratch", "wrap")):
        axes = figure.axes[n]
        written = [text.get_text() for text in axes.texts]
        for x, task in enumerate(TASKS):
            runs = results.runs.filter(task=task, mode=mode, method="lexicographic")
            best = runs.sort("task_return", descending=True).row(0, named=True)
            names = ["time_acting", "time_wait_1", *(f"time_wait_{d}" for d in task_named(task).durations)]
            heights = [bar.get_height() for bar in axes.patches if abs(bar.get_x() + bar.get_width() / 2 - x) < 1e-9]
            assert heights == pytest.approx([best[name] / best["length"] for name in names if best[name]])
            assert f"{best['length']:.1f}".removesuffix(".0") + " steps" in written
            for name in names:  # thin or not, every part has its number
                if best[name] > 0.05:
                    label = name.removeprefix("time_").replace("_", " ")
                    assert f"{label}: {f'{best[name]:.1f}'.removesuffix('.0')}" in written
        assert any(len(line.get_xdata()) == 3 for line in axes.lines), "the made-up results have thin parts"


def test_numbers_of_thin_parts_stand_beside_the_bar_apart() -> None:
    of = made_up(of=PAPER_TASKS, lams=(None,))
    waits = [name for name in of.runs.columns if name.startswith("time_wait")]
    thin = of.runs.with_columns(  # every wait takes so little time that its number stands outside
        pl.when(pl.col(name).is_not_null()).then(0.3).alias(name) for name in waits
    ).with_columns(time_acting=pl.col("length"))
    figure = wait_durations(replace(of, runs=thin))
    assert figure is not None
    figure.draw_without_rendering()
    for axes in figure.axes:
        bars = sorted({(bar.get_window_extent().x0, bar.get_window_extent().x1) for bar in axes.patches})
        outside = [text.get_window_extent() for text in axes.texts if text.get_ha() == "left"]
        assert len(outside) == sum(len(task_named(task).durations) + 1 for task in PAPER_TASKS)
        assert len(outside) == sum(len(line.get_xdata()) == 3 for line in axes.lines)
        for box in outside:
            assert all(box.x1 <= left or box.x0 >= right for left, right in bars)
        assert not overlapping({str(n): box for n, box in enumerate(outside)})


def test_places_are_spread_only_as_far_as_they_must() -> None:
    assert spread([0.1, 0.5, 0.9], gap=0.1, highest=1.0) == [0.1, 0.5, 0.9]
    places = spread([0.5, 0.5, 0.5, 0.99], gap=0.1, highest=0.95)
    assert places == pytest.approx([0.5, 0.6, 0.7, 0.95])
    assert spread([0.9, 0.9, 0.9], gap=0.1, highest=0.95) == pytest.approx([0.75, 0.85, 0.95])
    assert spread([], gap=0.1, highest=1.0) == []


def test_a_seed_with_the_same_return_and_fewer_queries_is_better(results: Results) -> None:
    runs = results.runs.filter(task="cook", mode="scratch", method="lexicographic").head(2)
    runs = runs.with_columns(
        length=33.0, task_return=-33.0, queries=pl.Series([29.0, 25.0]), time_acting=pl.Series([33.0, 23.0]),
        time_wait_1=pl.lit(0.0), time_wait_5=pl.Series([0.0, 10.0]), time_wait_15=pl.lit(0.0),
    )  # fmt: skip
    figure = wait_durations(replace(results, runs=runs))
    assert [text.get_text() for text in figure.axes[0].texts] == ["acting: 23", "wait 5: 10", "33 steps"]


def test_methods_are_parts_of_vanillas_length(results: Results) -> None:
    axes = panel(methods(results, "scratch"), "Pong")
    best = best_scalar(results.runs, "pong", "scratch")
    assert best is not None
    rows = [Row("pong", "scratch", "vanilla"), Row("pong", "scratch", "lexicographic"), best]
    unit = values_of(results, rows[0], "length").mean()
    bars = [c for c in axes.containers if isinstance(c, BarContainer)]
    marks = [c for c in axes.containers if isinstance(c, ErrorbarContainer)]
    heights = [bar.patches[0].get_height() for bar in bars]
    expected = [values_of(results, row, name).mean() for row in rows for name in ("length", "queries")]
    assert heights == pytest.approx([mean / unit for mean in expected])
    assert heights[0] == pytest.approx(1.0)
    # For each row: our two deviations, then the paper's two means, the best scalarised one by the paper's own choice.
    ours = [marks[4 * n + m] for n in range(3) for m in range(2)]
    deviations = [np.ptp(c.lines[2][0].get_segments()[0][:, 1]) / 2.0 for c in ours]
    assert deviations == pytest.approx(
        [values_of(results, row, name).std(ddof=1) / unit for row in rows for name in ("length", "queries")]
    )
    paper = [paper_rows()[row] for row in (*rows[:2], Row("pong", "scratch", "scalar", 0.0))]
    shown = [float(marks[4 * n + 2 + m].lines[0].get_ydata()[0]) for n in range(3) for m in range(2)]
    assert shown == pytest.approx([number / paper[0].length for p in paper for number in (p.length, p.queries)])
    written = [float(text.get_text()) for text in axes.texts]
    assert written == pytest.approx(expected, abs=0.05)  # absolute numbers, as rounded
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks[2] == f"best\nscalarised\nλ = {best.lam:g}\n(paper 0)"


def test_wrapped_methods_are_parts_of_vanillas_length_from_scratch(results: Results) -> None:
    axes = panel(methods(results, "wrap"), "Pong")
    unit = values_of(results, Row("pong", "scratch", "vanilla"), "length").mean()
    row = Row("pong", "wrap", "lexicographic")
    marks = [c for c in axes.containers if isinstance(c, ErrorbarContainer)]
    assert axes.patches[0].get_height() == pytest.approx(values_of(results, row, "length").mean() / unit)
    paper = paper_rows()[row].length / paper_rows()[Row("pong", "scratch", "vanilla")].length
    assert float(marks[2].lines[0].get_ydata()[0]) == pytest.approx(paper)
    assert axes.get_ylabel() == ""
    assert panel(methods(results, "wrap"), "Cook").get_ylabel() == "relative to vanilla's length"


def test_methods_without_vanilla_are_in_steps_and_say_so(results: Results) -> None:
    known = (pl.col("method") != "vanilla") | (pl.col("task") != "cook")
    figure = methods(replace(results, runs=results.runs.filter(known)), "wrap")
    cook, other = panel(figure, "Cook"), panel(figure, "Pong")
    row = Row("cook", "wrap", "lexicographic")
    assert cook.patches[0].get_height() == pytest.approx(values_of(results, row, "length").mean())
    assert float(next(c for c in cook.containers if c.get_label() == "paper, length").lines[0].get_ydata()[0]) == 53.0
    assert (cook.get_ylabel(), cook.get_title(loc="right")) == ("steps, queries", "in steps: no vanilla runs")
    assert other.get_title(loc="right") == ""
    assert other.patches[0].get_height() < 2.0


def test_the_number_of_a_low_bar_stands_above_it(results: Results) -> None:
    low = results.runs.with_columns(queries=pl.when(pl.col("method") == "scalar").then(3.0).otherwise("queries"))
    axes = panel(methods(replace(results, runs=low), "scratch"), "CartPole")
    number = next(text for text in axes.texts if text.get_text() == "3")
    bar = [c.patches[0] for c in axes.containers if isinstance(c, BarContainer)][-1]
    assert number.get_color() == "black"
    assert number.xy[1] == pytest.approx(bar.get_height())


def test_wrapped_methods_have_no_vanilla(results: Results) -> None:
    axes = panel(methods(results, "wrap"), "Cook")
    assert [label.get_text().split("\n")[0] for label in axes.get_xticklabels()] == ["lexico-", "best"]


def seeds_of(results: Results, row: Row, name: str) -> np.ndarray:
    """Return a column of the curves of a row, `(seeds, evaluations)`."""
    chosen = results.curves.filter(task=row.task, mode=row.mode, method=row.method).filter(
        pl.col("lambda").eq_missing(pl.lit(row.lam, dtype=pl.Float64))
    )
    return np.stack([chosen.filter(seed=seed).sort("step")[name].to_numpy() for seed in chosen["seed"].unique()])


def edges_of(band: PolyCollection) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper edge of a band, from left to right."""
    vertices = band.get_paths()[0].vertices
    half = len(vertices) // 2  # a corner, one edge, a corner, the other edge backwards, and the first corner again
    return vertices[1:half, 1], vertices[half + 1 : -1, 1][::-1]


def test_bands_are_the_deviation_over_seeds_at_each_evaluation() -> None:
    results = made_up(evaluations=90)
    axes = panel(learning_curves(results, "queries", "scratch"), "Cook")
    rows = [Row("cook", "scratch", "lexicographic"), best_scalar(results.runs, "cook", "scratch")]
    lines = [line for line in axes.lines if len(line.get_xdata()) == 90]
    assert len(lines) == len(rows) == len(axes.collections)
    for row, line, band in zip(rows, lines, axes.collections, strict=True):
        assert row is not None
        values = seeds_of(results, row, "queries")
        mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
        assert line.get_ydata() == pytest.approx(mean)
        assert line.get_xdata() == pytest.approx(np.arange(1, 91) * 10 + 1 / 3)
        assert isinstance(band, PolyCollection)
        low, high = edges_of(band)
        assert low == pytest.approx(mean - sd)
        assert high == pytest.approx(mean + sd)
        assert high[5] > values[:, 5].max() or low[5] < values[:, 5].min(), "nothing is cut at the seeds' range"
    assert [line.get_ydata()[0] for line in axes.lines if line not in lines] == [OPTIMUM.queries]


def test_many_evaluations_are_joined_after_their_deviations_were_taken(results: Results) -> None:
    axes = panel(learning_curves(results, "length", "scratch"), "Pong")
    values = seeds_of(results, Row("pong", "scratch", "vanilla"), "length")
    mean, sd = (numbers.reshape(-1, 2).mean(axis=1) for numbers in (values.mean(axis=0), values.std(axis=0, ddof=1)))
    assert axes.lines[0].get_ydata() == pytest.approx(mean)  # 120 evaluations, at most 100 points: two make one
    low, high = edges_of(axes.collections[0])
    assert low == pytest.approx(mean - sd)
    assert high == pytest.approx(mean + sd)
    joined_first = values.reshape(3, -1, 2).mean(axis=2).std(axis=0, ddof=1)
    assert (high - mean).mean() > 1.05 * joined_first.mean(), "a band of joined evaluations would be too narrow"


def test_timesteps_are_steps_or_decisions_by_what_the_runs_counted(results: Results) -> None:
    figure = learning_curves(results, "length", "scratch")
    assert [axes.get_xlabel() for axes in figure.axes] == ["training steps", *["training decisions"] * 2]
    for task, size in (("Cook", 10), ("Pong", 4)):
        times = panel(figure, task).lines[0].get_xdata()
        assert times == pytest.approx(size * (2 * np.arange(1, EVALUATIONS // 2 + 1) - 0.5) + 1 / 3)
    other = replace(results, runs=results.runs.with_columns(preset=pl.lit("best")))
    figure = learning_curves(other, "length", "scratch")
    assert {axes.get_xlabel() for axes in figure.axes} == {"training steps"}
    assert unit_of(results.runs, "cartpole") == "decision"
    assert unit_of(other.runs, "cartpole") == unit_of(results.runs, "cook") == "step"


def test_scalarised_return_is_that_of_the_best_lambda(results: Results) -> None:
    figure = learning_curves(results, "scalar", "wrap")
    axes, best = panel(figure, "CartPole"), best_scalar(results.runs, "cartpole", "wrap")
    assert best is not None
    assert axes.get_title(loc="right") == f"λ = {best.lam:g}"
    returns = (seeds_of(results, best, "task_return") - best.lam * seeds_of(results, best, "queries")).mean(axis=0)
    (line,) = axes.lines
    assert axes.get_xscale() == "log"
    assert 70 < len(line.get_xdata()) <= 100
    assert line.get_ydata()[:40] == pytest.approx(returns[:40])  # early evaluations stand alone, late ones are joined
    assert line.get_xdata()[:40] == pytest.approx(4 * np.arange(1, 41) + 1 / 3)
    assert returns[-10:].min() < line.get_ydata()[-1] < returns[-10:].max()


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("m", [1, 99, 100, 101, 250, 1_000, 12_345])
def test_joined_points_are_few_and_hold_every_evaluation(m: int, log: bool) -> None:
    places, ones = joined([np.arange(m), np.ones(m)], most=100, log=log)
    assert 40 < len(places) <= 100 or len(places) == m
    assert (ones == 1.0).all()
    # The middle of each group and where it begins give its size; groups follow one another without a gap.
    begin = 0
    sizes = []
    for place in places:
        size = round(2 * (place - begin)) + 1
        sizes.append(size)
        begin += size
    assert begin == m
    if log:
        assert sizes[:-1] == sorted(sizes[:-1]), "they grow"
    else:
        assert len(set(sizes[:-1])) <= 1


def test_curves_of_seeds_that_stopped_early_end_with_them(results: Results) -> None:
    row = Row("pong", "scratch", "lexicographic")
    short = results.curves.filter((pl.col("seed") != 1) | (pl.col("step") < 200))
    points = curve(short, row, "length")
    assert points is not None
    assert points.values.shape == (3, 19)
    assert curve(short, Row("coffee", "scratch", "vanilla"), "length") is None


def test_the_interval_of_a_curve_is_the_bootstrap_interval(results: Results) -> None:
    values = np.random.default_rng(1).normal(size=(10, 40))
    values[:, 7] = 5.0
    seeds = Curve(np.arange(40.0), values)
    assert seeds.interval == pytest.approx(bootstrap_interval(values, resamples=2_000))
    assert seeds.interval[:, 7].tolist() == [5.0, 5.0]
    one = Curve(np.arange(40.0), values[:1])
    assert one.interval == pytest.approx(np.concatenate([values[:1]] * 2))
    assert one.sd.tolist() == [0.0] * 40


def test_pong_has_its_field_and_a_band_of_the_bootstrap_interval(results: Results) -> None:
    figure = pong(results)
    assert panel(figure, "Pong").images[0].get_array().shape == (360, 504, 3)
    axes = panel(figure, "Pong, length")
    assert axes.get_xlabel() == "training decisions"
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    for mode, line, band in zip(("scratch", "wrap"), lines, axes.collections, strict=True):
        seeds = curve(results.curves, Row("pong", mode, "lexicographic"), "length", "decision")
        assert seeds is not None
        times, mean, low, high = joined([seeds.times, seeds.mean, *seeds.interval], 100)
        assert line.get_xdata() == pytest.approx(times)
        assert line.get_ydata() == pytest.approx(mean)
        assert np.stack(edges_of(band)) == pytest.approx(np.stack([low, high]))


def settling(results: Results, task: str, mode: str, settled_at: int) -> pl.DataFrame:
    """Return curves in which the lexicographic method of a task and mode has settled from some evaluation on."""
    mine = (pl.col("task") == task) & (pl.col("mode") == mode) & (pl.col("method") == "lexicographic")
    late = pl.col("step") >= 10 * settled_at
    values = {name: pl.when(mine).then(pl.when(late).then(50.5).otherwise(90.0)).otherwise(name) for name in MEASURES}
    return results.curves.with_columns(**values)


def test_a_curve_has_settled_where_it_stays_near_its_final_level() -> None:
    def after(*means: float) -> float | None:
        return settled(Curve(10.0 * np.arange(1, len(means) + 1), np.array([means])))

    assert after(*[200.0] * 5, *[100.0] * 15) == 60.0
    assert after(100.0, *[200.0] * 4, *[100.0] * 15) == 60.0, "being there once is not enough"
    assert after(*[200.0] * 5, *[101.9] * 5, *[100.0] * 10) == 60.0
    assert after(*[200.0] * 5, *[102.1] * 5, *[100.0] * 10) == 110.0
    assert after(*[10.0] * 5, *[200.0] * 15) == 60.0, "from below as from above"
    assert after(*[100.0] * 20) == 10.0
    assert after(*[-100.0] * 20) == 10.0
    assert after(*[100.0] * 19, 120.0) is None
    many = Curve(np.arange(20.0), np.array([[300.0] * 5 + [90.0] * 15, [100.0] * 5 + [110.0] * 15]))
    assert settled(many) == 5.0, "it is the mean over seeds that counts"


def test_settling_times_stand_in_the_figure_and_in_a_table(results: Results) -> None:
    curves = settling(results, "cook", "scratch", 80)
    curves = settling(replace(results, curves=curves), "cook", "wrap", 20)
    curves = settling(replace(results, curves=curves), "pong", "wrap", 30)
    made = replace(results, curves=curves)
    table = settling_times(made)
    assert table.height == len(TASKS) * 2
    first = table.filter(task="cook", measure="length").row(0, named=True)
    assert first == {"task": "cook", "measure": "length", "unit": "step", "scratch": pytest.approx(800 + 1 / 3),
                     "wrap": pytest.approx(200 + 1 / 3)}  # fmt: skip
    wrapped = table.filter(task="pong", measure="queries").row(0, named=True)
    assert (wrapped["unit"], wrapped["wrap"]) == ("decision", pytest.approx(120 + 1 / 3))
    axes = panel(efficiency(made), "Cook")
    assert [text.get_text() for text in axes.texts] == ["settled after", "800", "200"]
    marks = sorted(line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2)
    assert marks == pytest.approx([200 + 1 / 3, 800 + 1 / 3])


def test_efficiency_has_two_panels_for_each_task_that_was_run_in_both_modes(results: Results) -> None:
    figure = efficiency(results)
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Cook", "", "Pong", "", "CartPole", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "training steps", *["", "training decisions"] * 2]
    no_wrap = (pl.col("mode") == "scratch") | (pl.col("task") != "pong")
    half = replace(results, curves=results.curves.filter(no_wrap))
    assert [axes.get_title(loc="left") for axes in efficiency(half).axes[::2]] == ["Cook", "CartPole"]
    assert settling_times(half)["task"].unique(maintain_order=True).to_list() == ["cook", "cartpole"]
    assert pong(half) is None


def test_the_episode_is_the_end_of_the_optimal_one(results: Results) -> None:
    figure = episode(results)
    assert figure is not None
    shown = [axes for axes in figure.axes if axes.images]
    titles = ["step 25", "step 27: unseen", "step 30", "step 31", "step 32", "step 33"]
    assert [axes.get_title(loc="left") for axes in shown] == titles
    assert [axes.images[0].get_alpha() == 1.0 for axes in shown] == ["unseen" not in title for title in titles]
    pictures = [np.asarray(axes.images[0].get_array()) for axes in shown]
    assert all((a != b).any() for a, b in pairwise(pictures))
    decisions, timeline = figure.axes[len(shown) :]
    assert [text.get_text() for text in decisions.texts] == ["wait 5", "interact", "east", "interact"]
    assert decisions.patches[0].get_width() > 1.9 > 1.1 > decisions.patches[1].get_width()
    assert len(timeline.patches) == OPTIMUM.queries
    assert sum(patch.get_width() > 4.0 for patch in timeline.patches) == 2
    others = replace(results, runs=results.runs.filter(pl.col("task") != "cook"))
    assert episode(others) is None


def test_rooms_are_those_of_the_tasks_and_the_errand_goes_to_the_sugar_and_back() -> None:
    figure = rooms(made_up(of=PAPER_TASKS, lams=(None,), seeds=1, evaluations=1))
    assert figure is not None
    titles = ["Cook, CookLonger, CookTwice", "Coffee", "Pong", "CartPole", "MountainCar"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == titles
    assert all(len(axes.images) == 1 for axes in figure.axes)
    (line,) = panel(figure, "Coffee").lines
    cells = [(int(x // CELL), int(y // CELL)) for x, y in line.get_xydata()]
    machine, sugar = coffee.USED_FROM["M"][:2], coffee.USED_FROM["S"][:2]
    assert (cells[0], cells[-1]) == (machine, machine)
    assert sugar in cells
    assert len(cells) == 16  # fifteen steps
    assert all(coffee.LAYOUT[y][x] == "." for x, y in cells)
    assert line.is_dashed()
    assert [axes.get_title(loc="left") for axes in rooms(made_up(of=("cook-twice",))).axes] == ["CookTwice"]


def test_the_plane_has_the_front_and_every_result(results: Results) -> None:
    figure = plane(results, "scratch")
    axes = panel(figure, "Cook")
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
    assert not any(line.get_drawstyle() == "steps-pre" for line in panel(figure, "Pong").lines)


def labels_of(axes: Axes) -> dict[str, tuple[float, float]]:
    """Return the labels of a panel with the points that they are at, in its own units."""
    scale, back = axes.figure.dpi / 72.0, axes.transData.inverted()
    return {text.get_text(): tuple(back.transform(np.array(text.xy) * scale)) for text in axes.texts}


def test_the_plane_names_each_lambda_once_at_its_mean() -> None:
    of = made_up(lams=(None, 0.1, 0.5, 1.0, 5.0, 20.0), of=("cook", "coffee"))
    exactly = of.runs.with_columns(  # λ = 0.1, 0.5 and 1 fall together
        queries=pl.when(pl.col("lambda") <= 1.0).then(26.0).otherwise("queries"),
        length=pl.when(pl.col("lambda") <= 1.0).then(34.0).otherwise("length"),
    )
    figure = plane(replace(of, runs=exactly), "scratch")
    assert figure is not None
    whole, close = figure.axes[:2]
    assert (whole.get_title(loc="left"), close.get_title(loc="left")) == ("Cook", "enlarged")
    near, far = labels_of(close), labels_of(whole)
    assert set(near) == {"0.1–1", "5"}
    assert set(far) == {"20"}
    assert near["0.1–1"] == pytest.approx((26.0, 34.0))
    row = exactly.filter(task="cook", mode="scratch").filter(pl.col("lambda") == 20.0)
    assert far["20"] == pytest.approx((row["queries"].mean(), row["length"].mean()))
    frame = whole.patches[0].get_bbox()
    assert (frame.x0, frame.x1) == pytest.approx(close.get_xlim())
    assert (frame.y0, frame.y1) == pytest.approx(close.get_ylim())


def test_labels_of_the_plane_keep_clear_of_points() -> None:
    figure = plane(made_up(lams=None, of=PAPER_TASKS), "wrap")
    assert figure is not None
    figure.draw_without_rendering()
    written = 0
    for axes in figure.axes[:14]:
        marks = np.concatenate([line.get_xydata() for line in axes.lines if line.get_marker() in "o*"])
        places = axes.transData.transform(marks)
        for text in axes.texts:
            box = Text.get_window_extent(text)  # without the line that leads to it
            inside = (places > box.min - 2.5).all(axis=1) & (places < box.max + 2.5).all(axis=1)
            assert not inside.any(), text.get_text()
            here = np.array(text.xy) * figure.dpi / 72.0
            assert np.abs(places - here).sum(axis=1).min() < 0.01, "it belongs to a point"
            written += 1
    assert written > 40


def test_what_is_missing_has_no_figure(results: Results) -> None:
    nothing = replace(results, runs=results.runs.clear(), curves=results.curves.clear())
    assert make_figures(nothing) == {}
    no_pong = results.runs["task"] != "pong", results.curves["task"] != "pong"
    assert (
        pong(replace(results, runs=results.runs.filter(no_pong[0]), curves=results.curves.filter(no_pong[1]))) is None
    )
    scratch = replace(results, runs=results.runs.filter(mode="scratch"), curves=results.curves.filter(mode="scratch"))
    assert pong(scratch) is efficiency(scratch) is None
    assert methods(scratch, "wrap") is plane(scratch, "wrap") is learning_curves(scratch, "length", "wrap") is None
    assert len(wait_durations(scratch).axes) == 1
    vanilla = replace(results, runs=results.runs.filter(method="vanilla"))
    assert (
        wait_durations(vanilla) is plane(vanilla, "scratch") is learning_curves(vanilla, "queries", "scratch") is None
    )
    assert methods(vanilla, "scratch") is not None
    no_curves = replace(results, curves=results.curves.clear())
    assert learning_curves(no_curves, "length", "scratch") is pong(no_curves) is efficiency(no_curves) is None


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
    names = ("episode", "rooms", "wait-durations", "methods-scratch", "plane-scratch")
    assert [path.name for path in first] == [f"{name}.{kind}" for name in names for kind in ("pdf", "png")]
    for a, b in zip(first, second, strict=True):
        content = a.read_bytes()
        assert content.startswith(b"%PDF" if a.suffix == ".pdf" else b"\x89PNG")
        assert content == b.read_bytes(), a.name
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == sorted(path.name for path in first)


def test_svgs_stand_side_by_side_in_one_page(results: Results) -> None:
    texts = []
    for _ in range(2):
        figures = {"plane": plane(results, "wrap"), "durations": wait_durations(results), "episode": episode(results)}
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
        assert list(figures) == ["episode", "rooms", "methods-scratch"]
        figure_svg(figures["methods-scratch"])
        assert mpl.rcParams["font.size"] == 30.0


def test_tasks_come_in_the_houses_order() -> None:
    assert in_order(["mountain-car", "coffee", "cook", "coffee"]) == ["cook", "coffee", "mountain-car"]


def ticks_in_view(axis: Axis) -> Iterator[Text]:
    low, high = sorted(axis.get_view_interval())
    for tick in axis.get_major_ticks():
        if low <= tick.get_loc() <= high:
            yield tick.label1


def texts_of(figure: Figure) -> dict[str, Bbox]:
    """Return where everything that is written in a figure stands."""
    found = [text for shown in figure.legends for text in shown.get_texts()]
    for axes in figure.axes:
        ticks = {
            label for axis in (axes.xaxis, axes.yaxis) for t in axis.get_major_ticks() for label in (t.label1, t.label2)
        }
        axis_labels = {axes.xaxis.label, axes.yaxis.label}
        found += [t for t in axes.findobj(Text) if t not in ticks and (axes.axison or t not in axis_labels)]
        if axes.axison:
            found += [label for axis in (axes.xaxis, axes.yaxis) for label in ticks_in_view(axis)]
    written = [text for text in found if text.get_visible() and text.get_text().strip()]
    return {f"{n}: {text.get_text()!r}": Text.get_window_extent(text) for n, text in enumerate(written)}


def overlapping(boxes: dict[str, Bbox]) -> list[tuple[str, str]]:
    """Return the names of boxes that overlap by more than the blur of a letter's edge."""
    names = list(boxes)
    ends = np.array([boxes[name].extents for name in names]) + np.array([0.5, 0.5, -0.5, -0.5])
    meet = (ends[:, None, :2] < ends[None, :, 2:]).all(axis=2)
    return [(names[i], names[j]) for i, j in zip(*np.nonzero(meet & meet.T), strict=True) if i < j]


FEW = {
    1: ("mountain-car",),
    2: ("coffee", "pong"),
    3: ("cook", "cook-longer", "cartpole"),
    4: ("cook", "cook-longer", "cook-twice", "coffee"),
    7: PAPER_TASKS,
}


@pytest.mark.parametrize("number", FEW)
def test_nothing_is_cut_and_no_text_overlaps_another(number: int) -> None:
    made = made_up(lams=None, of=FEW[number], evaluations=20)
    figures = make_figures(made)
    expected = set(FIGURES) - ({"episode"} if "cook" not in FEW[number] else set())
    assert set(figures) == expected - ({"pong-curves"} if "pong" not in FEW[number] else set())
    for name, figure in figures.items():
        figure.set_dpi(200)  # as it is saved; letters are a little wider than at the resolution in which it was placed
        figure.draw_without_rendering()
        boxes = texts_of(figure)
        assert len(boxes) >= len(FEW[number]) if name != "rooms" else boxes
        for text, box in boxes.items():
            assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, (name, text)
            assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, (name, text)
        assert overlapping(boxes) == [], name
