"""A few kills of each kind of run; `campaign.py` does it by the hundred."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("campaign", Path(__file__).with_name("campaign.py"))
assert SPEC is not None
assert SPEC.loader is not None
CAMPAIGN = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(CAMPAIGN)


@pytest.mark.parametrize("name", ["tables", "learn"])
def test_killed_runs_come_to_the_same(name: str) -> None:
    assert CAMPAIGN.campaign(name, kills=2, seed=0)["runs"] >= 1
