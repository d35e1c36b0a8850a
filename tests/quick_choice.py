"""A certified choice that takes a moment: few episodes, hardly any fitting."""

from __future__ import annotations

import pytest

QUICK = {
    "training.by_student.FOLDS": 2,
    "training.by_student.LISTENED": 2,
    "training.certified.ROUNDS": (2, 4),
    "training.certified.LEFT": (3,),
    "training.certified.RECORDED": 2,
    "training.certified.SECOND_RECORDINGS": 1,
    "training.certified.LEAST_PAIRS": 6,
    "training.certified.MOST_PAIRS": 6,
    "evaluation.persistence.UPDATES": 30,
    "evaluation.schedules.PERIODS": (2, 3, 5),
}


def choose_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUICK.items():
        monkeypatch.setattr(f"letitcook.{name}", value)
