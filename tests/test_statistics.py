from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from letitcook.errors import SettingError
from letitcook.experiments.suites import PaperRow, Row, paper_rows
from letitcook.report.statistics import (
    SWEEP,
    best_lambda,
    bootstrap_interval,
    estimate,
    probability_as_good,
    summaries,
)
from letitcook.tasks import task_named

COOK = Row("cook", "scratch", "lexicographic")


def test_the_interval_is_that_of_every_possible_resample() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    means = [np.mean(draw) for draw in product(values, repeat=4)]  # all 256, equally likely
    found = estimate(values, resamples=50_000)
    assert (found.mean, found.n) == (4.0, 4)
    assert found.sd == pytest.approx(np.sqrt((9 + 4 + 0 + 25) / 3))
    assert (found.low, found.high) == tuple(np.percentile(means, [2.5, 97.5]))


def test_a_wider_confidence_gives_a_wider_interval() -> None:
    values = np.random.default_rng(0).normal(size=10)
    half, most = estimate(values, confidence=0.5), estimate(values, confidence=0.99)
    assert most.low < half.low < half.mean < half.high < most.high


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    samples = np.random.default_rng(1).normal(5.0, 2.0, (30, 400))  # 400 sweeps of 30 seeds
    low, high = bootstrap_interval(samples, resamples=999)
    covered = int(((low < 5.0) & (high > 5.0)).sum())
    assert 360 <= covered <= 392  # 95% of 400 is 380; the percentile bootstrap of 30 is a little narrow


def test_one_seed_and_seeds_that_agree_are_their_own_interval() -> None:
    assert estimate([42.0]) == estimate([42.0], confidence=0.5)
    assert (estimate([42.0]).low, estimate([42.0]).high, estimate([42.0]).sd, estimate([42.0]).n) == (
        42.0,
        42.0,
        0.0,
        1,
    )
    same = estimate([94.001] * 10)
    assert (same.mean, same.sd, same.low, same.high, same.n) == (94.001, 0.0, 94.001, 94.001, 10)
    assert bootstrap_interval(np.array([[1.0, 2.0]])).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_the_same_data_give_the_same_bits() -> None:
    values = np.random.default_rng(2).normal(size=10)
    assert estimate(values) == estimate(values.tolist())


def test_nothing_has_no_statistics() -> None:
    with pytest.raises(SettingError, match="at least one seed"):
        estimate([])
    with pytest.raises(SettingError, match="one number a seed"):
        estimate([[1.0, 2.0]])
    with pytest.raises(SettingError, match="at least one seed"):
        probability_as_good([], [], paper_rows()[COOK])


def test_summaries_are_over_the_seeds_of_a_row() -> None:
    rows = [("cook", "lexicographic", None, ""), ("cook", "scalar", 0.1, ""), ("cook", "scalar", 0.1, "slack=1")]
    frame = pl.DataFrame(
        [
            {"task": task, "mode": "wrap", "method": method, "lambda": lam, "variant": variant, "seed": seed,
             "length": 53.0 + n * seed, "queries": 39.0 + seed, "task_return": -53.0 - n * seed}
            for n, (task, method, lam, variant) in enumerate(rows)
            for seed in range(n + 2)
        ],
        schema_overrides={"lambda": pl.Float64},
        infer_schema_length=None,
    )  # fmt: skip
    table = summaries(frame)
    assert table.select("task", "method", "lambda", "variant").rows() == rows
    assert table["seeds"].to_list() == [2, 3, 4]
    assert table["length_mean"].to_list() == [53.0, 54.0, 56.0]
    assert table["length_sd"].to_list() == pytest.approx([0.0, 1.0, 2 * np.std([0, 1, 2, 3], ddof=1)])
    assert table["queries_mean"].to_list() == [39.5, 40.0, 40.5]
    assert table["task_return_mean"].to_list() == [-53.0, -54.0, -56.0]
    expected = estimate(frame.filter(pl.col("variant") == "slack=1")["queries"].to_numpy())
    assert table.select("queries_low", "queries_high").row(2) == (expected.low, expected.high)


def paper_returns(task: str, mode: str) -> dict[float, tuple[float, float]]:
    sign = task_named(task).return_per_step
    return {
        row.lam: (sign * paper.length, -paper.queries)
        for row, paper in paper_rows().items()
        if row.lam is not None and (row.task, row.mode) == (task, mode)
    }


def test_the_papers_own_best_scalarised_rows() -> None:
    best = {task: best_lambda(paper_returns(task, "scratch")) for task in
            ("cook", "cook-longer", "cook-twice", "coffee", "pong", "cartpole", "mountain-car")}  # fmt: skip
    assert best == {"cook": 0.01, "cook-longer": 0.1, "cook-twice": 0.1, "coffee": 0.0, "pong": 0.0, "cartpole": 0.0,
                    "mountain-car": 0.01}  # fmt: skip
    assert best_lambda(paper_returns("pong", "wrap")) == 0.1
    assert best_lambda(paper_returns("cartpole", "wrap")) == 1.0


def test_only_the_sweep_is_chosen_from_unless_asked() -> None:
    returns = {0.1: (-50.0, -40.0), 2.0: (-45.0, -30.0)}
    assert 2.0 not in SWEEP
    assert (best_lambda(returns), best_lambda(returns, among=None), best_lambda({2.0: (0.0, 0.0)})) == (0.1, 2.0, None)


def test_slack_trades_return_for_queries() -> None:
    returns = paper_returns("pong", "scratch")
    assert [best_lambda(returns, None, slack) for slack in (0.0, 0.05, 0.5)] == [0.0, 20.0, 2.0]


def paper(
    length: float, length_sd: float, queries: float, queries_sd: float, task: str = "cook", n: int = 10
) -> PaperRow:
    return PaperRow(Row(task, "scratch", "lexicographic"), length, length_sd, queries, queries_sd, n)


@pytest.mark.parametrize(
    ("length", "queries", "probability"),
    [(33.0, 25.0, 1.0), (33.0, 24.0, 1.0), (33.0, 26.0, 0.0), (32.0, 99.0, 1.0), (34.0, 1.0, 0.0),
     (33.0005, 25.0005, 1.0)],
)  # fmt: skip
def test_certain_results_are_compared_lexicographically(length: float, queries: float, probability: float) -> None:
    assert probability_as_good([length] * 5, [queries] * 5, paper(33.0, 0.0, 25.0, 0.0)) == probability


def test_longer_is_better_where_a_step_is_rewarded() -> None:
    assert probability_as_good([199.0], [10.0], paper(200.0, 0.0, 50.0, 0.0, "cartpole")) == 0.0
    assert probability_as_good([200.0], [60.0], paper(199.0, 0.0, 50.0, 0.0, "cartpole")) == 1.0
    assert probability_as_good([200.0], [50.0], paper(200.0, 0.0, 50.0, 0.0, "cartpole")) == 1.0


def test_an_uncertain_paper_is_students_t() -> None:
    # Ours is exact, so only the paper's mean is random: 51 ± 2/√10 · t(9).
    for ours in (50.0, 51.0, 51.5, 53.0):
        expected = stats.t.sf((ours - 51.0) / (2.0 / np.sqrt(10)), 9)
        found = probability_as_good([ours], [1.0], paper(51.0, 2.0, 30.0, 0.0), precision=0.0)
        assert found == pytest.approx(expected)
    # Equal returns leave it to the queries: 30 ± 1/√5 · t(4).
    found = probability_as_good([51.0], [30.5], paper(51.0, 0.0, 30.0, 1.0, n=5), precision=0.0)
    assert found == pytest.approx(stats.t.sf(0.5 * np.sqrt(5), 4))


def test_our_seeds_are_resampled_in_pairs() -> None:
    # Of two seeds, resamples are (0,0), (0,1), (1,1) with probabilities 1/4, 1/2, 1/4: only the first is at 33 steps.
    found = probability_as_good([33.0, 35.0], [25.0, 20.0], paper(33.0, 0.0, 25.0, 0.0), resamples=40_000)
    assert found == pytest.approx(0.25, abs=0.01)
    found = probability_as_good([33.0, 35.0], [25.0, 20.0], paper(34.0, 0.0, 23.0, 0.0), resamples=40_000)
    assert found == pytest.approx(0.75, abs=0.01)  # 33/25 is shorter, 34/22.5 equal with fewer queries
    found = probability_as_good([33.0, 35.0], [25.0, 20.0], paper(34.0, 0.0, 22.0, 0.0), resamples=40_000)
    assert found == pytest.approx(0.25, abs=0.01)
