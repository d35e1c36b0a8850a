from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from letitcook import Objective, lex_argmax, lex_better
from letitcook.errors import SettingError, UnknownNameError

numbers = st.integers(-3, 3).map(float)


@settings(deadline=None)  # the first call compiles
@given(st.integers(1, 3).flatmap(lambda K: st.lists(st.lists(numbers, min_size=K, max_size=K), min_size=1, max_size=7)))
def test_lex_argmax_equals_the_definition(columns: list[list[float]]) -> None:
    q = np.array(columns).T
    for slack in (0.0, 0.5, 1.0, 2.0):
        assert lex_argmax(q, slack) == naive.lex_argmax(q.tolist(), slack)


@settings(deadline=None)
@given(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=1, max_size=7))
def test_without_slack_no_column_is_better(columns: list[list[float]]) -> None:
    q = np.array(columns).T
    best = q[:, lex_argmax(q)]
    assert not any(lex_better(column, best) for column in q.T)


def test_slack_and_ties() -> None:
    q = [[1.0, 0.999, 0.99], [-5.0, -4.0, -1.0]]
    assert [lex_argmax(q, slack) for slack in (0.0, 0.001, 0.0011, 0.01, 0.02)] == [0, 1, 1, 2, 2]
    assert lex_argmax([[2.0, 2.0], [3.0, 3.0]]) == 0
    assert lex_argmax([[-np.inf, -np.inf]]) == 0


def test_objectives() -> None:
    J = (-33.0, -25.0)
    assert Objective("lexicographic").of(*J).tolist() == [-33.0, -25.0]
    assert Objective("scalar", 2.0).of(*J).tolist() == [-83.0]
    assert Objective("task").of(*J).tolist() == [-33.0]
    assert Objective("lexicographic").better((-33, -25), (-34, -1))
    assert Objective("scalar", 2.0).better((-34, -1), (-33, -25))
    assert not Objective("task").better((-33, -1), (-33, -25))


@pytest.mark.parametrize("lam", [-1.0, float("nan"), float("inf")])
def test_lambda_must_be_a_number_of_at_least_zero(lam: float) -> None:
    with pytest.raises(SettingError, match="λ = .* is not allowed"):
        Objective("scalar", lam)


def test_wrong_calls_are_named() -> None:
    with pytest.raises(SettingError, match="needs a λ"):
        Objective("scalar")
    with pytest.raises(SettingError, match="leave it out"):
        Objective("task", 0.5)
    with pytest.raises(UnknownNameError, match="Did you mean 'lexicographic'"):
        Objective.named("lexicografic")
    with pytest.raises(SettingError, match="NaN"):
        lex_argmax([[np.nan, 1.0]])
    with pytest.raises(SettingError, match="shape"):
        lex_argmax(np.zeros((2, 0)))
    with pytest.raises(SettingError, match="slack"):
        lex_argmax([[1.0]], slack=-1.0)


def test_a_weight_of_nothing_is_allowed() -> None:
    assert Objective.named("scalar", 0.0).lam == 0.0
