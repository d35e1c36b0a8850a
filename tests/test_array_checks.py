from __future__ import annotations

import numpy as np
import pytest

from letitcook.errors import FileFormatError
from letitcook.storage.array_checks import Expected, checked

GOOD = {"a": np.array([0, 3]), "f": np.array([[0.5, np.nan]]), "t": np.array([True])}


def test_what_is_expected_comes_back_as_it_is() -> None:
    assert checked(GOOD, "a", Expected((2,), "whole", 0, 3)) is GOOD["a"]
    assert checked(GOOD, "a", Expected((None,), "real")) is GOOD["a"], "whole numbers are real ones"
    assert checked(GOOD, "f", Expected((1, None), nan=True)) is GOOD["f"]
    assert checked(GOOD, "t", Expected((1,), "truth")) is GOOD["t"]
    assert checked({"e": np.zeros(0)}, "e", Expected((0,), low=1)).size == 0


@pytest.mark.parametrize(
    ("array", "expected", "said"),
    [
        (np.array([1]), Expected((2,)), "has shape"),
        (np.array([[1]]), Expected((1,)), "has shape"),
        (np.array([1.0]), Expected((1,), "whole"), "holds float64"),
        (np.array([True]), Expected((1,)), "holds bool"),
        (np.array(["1"]), Expected((1,)), "holds <U1"),
        (np.array([np.nan]), Expected((1,)), "not finite"),
        (np.array([np.inf]), Expected((1,), nan=True), "not finite"),
        (np.array([-1]), Expected((1,), "whole", 0), "outside 0.."),
        (np.array([2**53 + 1]), Expected((1,), "whole", 0, 2**53), "outside"),
        (np.array([2**64 - 1], dtype=np.uint64), Expected((1,), "whole", 0, 3), "outside 0..3"),
    ],
)
def test_what_is_not_expected_is_named(array: np.ndarray, expected: Expected, said: str) -> None:
    with pytest.raises(FileFormatError, match=f"the saved it .*{said}"):
        checked({"it": array}, "it", expected)
    with pytest.raises(FileFormatError, match="the saved it is missing"):
        checked({}, "it", expected)
