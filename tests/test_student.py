"""Students of base policies: what they answer, and where they are unsure."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from letitcook.evaluation import persistence
from letitcook.evaluation.student import Student


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "UPDATES", 400)


def test_whole_numbers_are_learned_and_doubted_at_their_boundary() -> None:
    seen = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 2)).astype(np.float32)
    right = (seen[:, 0] > 0.2).astype(int)
    hot = np.eye(2, dtype=np.float32)[right]
    student = Student.of(seen, hot, spaces.Box(-1.0, 1.0, (2,)), spaces.Discrete(2, start=3))
    assert student.agreement(seen, hot) > 0.95
    assert student.predict(np.array([0.9, 0.0]))[0] == 4 and student.predict(np.array([-0.9, 0.0]))[0] == 3
    at = np.array([[0.2, 0.0], [0.9, 0.0], [-0.9, 0.0]], dtype=np.float32)
    assert student.doubt(at).argmax() == 0


def test_numbers_are_learned_within_their_bounds() -> None:
    seen = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 1)).astype(np.float32)
    space = spaces.Box(-50.0, 50.0, (1,), np.float64)
    student = Student.of(seen, 60.0 * seen, spaces.Box(-1.0, 1.0, (1,)), space)
    assert student.agreement(seen, 60.0 * seen) > 0.98
    action, _ = student.predict(np.array([1.0]))
    assert space.contains(action) and action[0] == 50.0
    far = np.array([[3.0]], dtype=np.float32)  # nothing like it was seen
    assert student.doubt(far)[0] > student.doubt(seen).mean()


def test_it_keeps_what_it_was_asked_if_it_is_to() -> None:
    seen = np.zeros((50, 1), dtype=np.float32)
    student = Student.of(seen, seen, spaces.Box(-1.0, 1.0, (1,)), spaces.Box(-1.0, 1.0, (1,)))
    student.predict(np.zeros(1))
    student.heard = []
    student.predict(np.ones(1))
    assert [x.tolist() for x in student.heard] == [[1.0]]
