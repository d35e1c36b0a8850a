from __future__ import annotations

import numpy as np
import pytest

from letitcook.core.objective import Objective
from letitcook.finite.channels import TIE, Channels, better


def test_the_objective_decides_and_the_rest_is_read() -> None:
    channels = Channels.of(Objective.named("scalar", 0.5), gamma=0.9)
    assert channels.K == 1
    assert channels.per_query.tolist() == [-0.5, 0.0, 1.0, 0.0]
    assert channels.of_reward.tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 0.0], [0.0, 9.0], True),
        ([0.0, 9.0], [1.0, 0.0], False),
        ([1.0, 2.0], [1.0 + 1e-12, 1.0], True),
        ([1.0, 1.0], [1.0, 1.0], False),
        ([1e9, 1.0], [1e9 + 1e-3, 0.0], True),
    ],
)
def test_better_is_lexicographic_up_to_rounding(a: list[float], b: list[float], expected: bool) -> None:
    assert better(np.array(a), np.array(b), 2, TIE) == expected
