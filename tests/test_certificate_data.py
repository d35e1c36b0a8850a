from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from letitcook.errors import FileFormatError
from letitcook.evaluation.certificate import judge
from letitcook.training.certificate_data import CANDIDATE, TEST, read_candidates, read_certificate, read_spent

SPENT = {"base_queries": 30, "episodes": 2, "student_episodes": 0, "seconds": 1.5}
TESTED = judge(np.zeros(800), margin=1.0, at_stake=100.0).summary()
CERTIFIED = {**TESTED, "queries_saved": 0.5, "nearest": None, "spent": SPENT}
NOT = {"certified": False, "margin": 1.0, "at_stake": 9.0, "queries_saved": 0.0, "nearest": None, "spent": SPENT}


def test_what_a_certificate_says_is_what_is_read() -> None:
    assert set(TEST) == set(TESTED) - {"certified"}
    assert read_certificate(CERTIFIED) == CERTIFIED
    assert read_certificate(NOT) == NOT
    near = {**NOT, "nearest": {"name": "every 2 steps", "bound": -3, "episodes": 6}}
    assert read_certificate(near) == near
    assert read_certificate(None) is None


@pytest.mark.parametrize("name", [*TEST, "certified", "queries_saved", "spent"])
@pytest.mark.parametrize("value", [None, "x", [], {}])
def test_other_types_are_refused(name: str, value: Any) -> None:
    if name == "reason" and value == "x":
        return
    with pytest.raises((TypeError, KeyError)):
        read_certificate({**CERTIFIED, name: value})
    with pytest.raises(KeyError):
        read_certificate({key: held for key, held in CERTIFIED.items() if key != name})


def test_nothing_below_0_was_spent() -> None:
    with pytest.raises(FileFormatError, match="below 0"):
        read_spent({**SPENT, "episodes": -1})


def test_candidates_are_read_with_their_tests() -> None:
    row = {"name": "every 2 steps", "kind": "schedule", "saved": 0.5, "difference": 0.0, "difference_se": None}
    tested = {**row, "episodes": 10, "certificate": TESTED}
    untested = {**tested, "certificate": None}
    read = read_candidates({"candidates": [tested, untested]})
    assert set(read[0]) == {*CANDIDATE, "certificate"}
    assert read[0]["certificate"]["bound"] == TESTED["bound"] and read[1]["certificate"] is None
    assert read_candidates(None) == []
    with pytest.raises(FileFormatError, match="candidates of the run are damaged"):
        read_candidates({"candidates": [{**tested, "saved": "much"}]})
