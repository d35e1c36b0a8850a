from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from letitcook.errors import SettingError
from letitcook.tasks.clocks import drawn, read_times


def test_repeated_times_are_likelier() -> None:
    assert read_times("cook_time", [3, 1, 3, 3]) == ((0.25, 1), (0.75, 3))


@pytest.mark.parametrize("given", [0, -1, 2.5, True, "18", (), (3, 0), (3, None)])
def test_what_is_no_duration_is_refused(given: Any) -> None:
    with pytest.raises(SettingError, match="brew_time = .* is not allowed; give a whole number"):
        read_times("brew_time", given)


def test_outcomes_are_drawn_by_their_probabilities() -> None:
    outcomes = [(0.2, "a", 0.0, False), (0.8, "b", 0.0, False)]
    rng = np.random.default_rng(0)
    share = np.mean([drawn(outcomes, rng)[1] == "a" for _ in range(4000)])
    assert abs(share - 0.2) < 4 * np.sqrt(0.16 / 4000)


def test_one_outcome_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    drawn([(1.0, "a", 0.0, False)], rng)
    assert rng.random() == np.random.default_rng(0).random()
