from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from letitcook.errors import FileFormatError, SettingError
from letitcook.poll import Distribution, Log, estimate, read_csv


def test_kaplan_and_meier_by_hand() -> None:
    # Six jobs: ends at 1, 3, 3; given up at 2, 3 (after the ends of 3, by convention) and 5.
    ends, masses, beyond = Log.read([1, "2+", 3, 3, "3+", "5+"]).weights()
    assert ends.tolist() == [1.0, 3.0, 3.0]
    assert masses == pytest.approx([1 / 6, 5 / 6 / 4, 5 / 6 / 4])
    assert beyond == pytest.approx(5 / 6 / 2)


def test_without_censoring_all_durations_weigh_the_same() -> None:
    _, masses, beyond = Log.read([5, 1, 3, 3]).weights()
    assert masses == pytest.approx([0.25] * 4)
    assert beyond == 0.0


def test_an_estimate_is_a_distribution_near_its_sample_with_a_tail() -> None:
    x = 100 * np.exp(0.3 * np.random.default_rng(0).standard_normal(500))
    known = estimate(Log.read(x))
    assert known.mass.min() >= 0.0
    assert known.mass.sum() == pytest.approx(1.0)
    assert (np.diff(known.times) > 0).all()
    for q in (0.1, 0.5, 0.9):
        assert known.quantile(q) == pytest.approx(np.quantile(x, q), rel=0.05)
    assert known.times[-1] > 3 * x.max()


def test_given_up_jobs_make_the_estimate_longer() -> None:
    plain, more = estimate(Log.read([10, 11, 12])), estimate(Log.read([10, 11, 12, "40+", "50+"]))
    assert more.quantile(0.9) > 2 * plain.quantile(0.9)


def test_one_duration_and_equal_durations_are_enough() -> None:
    for given in ([7.0], [7.0] * 20):
        assert estimate(Log.read(given)).quantile(0.5) == pytest.approx(7.0, rel=0.1)


def test_mixtures_and_weights() -> None:
    both = Distribution.mixture([(1, Distribution.of([5.0, 6.0])), (1, Distribution.of([6.0]))])
    assert both.times.tolist() == [5.0, 6.0]
    assert both.mass.tolist() == [0.25, 0.75]
    with pytest.raises(SettingError, match="weights"):
        Distribution.of([1.0], [-1.0])


@pytest.mark.parametrize(
    ("text", "values", "censored"),
    [
        ("12\n13.5\n20+\n", [12, 13.5, 20], [False, False, True]),
        ("job,duration,censored\na,12,0\n\nb,14,true\n", [12, 14], [False, True]),
        ("name,seconds\nx,3\ny,4\n", [3, 4], [False, False]),
    ],
)
def test_files(tmp_path: Path, text: str, values: list[float], censored: list[bool]) -> None:
    (tmp_path / "log.csv").write_text(text)
    log = read_csv(tmp_path / "log.csv")
    assert log.values.tolist() == values
    assert log.censored.tolist() == censored


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("a,b\nc,d\n", "no column of numbers"),
        ("duration\n3\nx\n", "line 3: 'x'"),
        ("5+\n", "censored"),
        ("duration\n" + "3" * 200_000 + "\n", "field larger than field limit"),
        ("duration\n1e999\n", "is not allowed"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(FileFormatError, match=what):
        read_csv(tmp_path / "log.csv")


def test_a_long_log_takes_little_memory_and_says_the_same() -> None:
    values = np.random.default_rng(0).lognormal(3.0, 0.5, size=6_001)
    tracemalloc.start()
    long = estimate(Log.read(values.tolist()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6, "all pairs of them would take 288 MB for every array of pairs"
    for q in (0.1, 0.5, 0.9):
        assert long.quantile(q) == pytest.approx(np.quantile(values, q), rel=0.03)


def test_what_is_no_duration_is_refused() -> None:
    for given in ([], [0], [-1], ["x"], [float("nan")], [None]):
        with pytest.raises(SettingError):
            Log.read(given)
    with pytest.raises(SettingError, match="prior"):
        estimate(Log.read([1]), prior=0)
