"""A run's certificate as it stands in its folder: plain data, every part of it checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from letitcook.errors import FileFormatError
from letitcook.storage.setting_values import converted

SPENT = {"base_queries": int, "episodes": int, "seconds": float}
"""What training, choosing and certifying cost; episodes around students of the base policy are among the episodes."""
TEST = {
    "margin": float,
    "difference": float,
    "bound": float,
    "episodes": int,
    "looks": int,
    "at_stake": float,
    "reason": str,
    "failure_loss": float,
    "failed": int,
    "rescued": int,
    "failure_bound": float,
}
"""What the test of one wrapper says, see `Certificate`."""
NEAREST = {"name": str, "bound": float, "episodes": int}
"""The wrapper that came nearest, where none was certified."""
CANDIDATE = {
    "name": str,
    "kind": str,
    "saved": float,
    "difference": float,
    "difference_se": float | None,
    "episodes": int,
}
"""How a candidate did in the choosing."""


def read_spent(data: Any) -> dict[str, Any]:
    """Return what was spent, or raise what is wrong with it.

    >>> read_spent({"base_queries": 30, "episodes": 2, "seconds": 1})
    {'base_queries': 30, 'episodes': 2, 'seconds': 1.0, 'student_episodes': 0}
    """
    spent = {name: converted(data[name], kind) for name, kind in SPENT.items()}
    spent["student_episodes"] = converted(data.get("student_episodes", 0), int)  # which the first runs did not count
    if min(spent.values()) < 0:
        raise FileFormatError(f"{spent} were spent, and none of it can be below 0")
    return spent


def read_certificate(data: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a run's certificate, or raise if a part of it is missing or of another type."""
    if data is None:
        return None
    read = {**data, "certified": converted(data["certified"], bool), "spent": read_spent(data["spent"])}
    names = TEST if read["certified"] else ("margin", "at_stake")
    read.update({name: converted(data[name], TEST[name]) for name in names})
    read["queries_saved"] = converted(data["queries_saved"], float)
    if data.get("nearest") is not None:
        read["nearest"] = {name: converted(data["nearest"][name], kind) for name, kind in NEAREST.items()}
    return read


def read_candidates(choice: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return how the candidates of a certified choice did, or raise if a part of it is missing or of another type."""
    try:
        return [_candidate(data) for data in (() if choice is None else choice["candidates"])]
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(f"the candidates of the run are damaged ({error!r}); wrap it anew") from error


def _candidate(data: Mapping[str, Any]) -> dict[str, Any]:
    row, test = {name: converted(data[name], kind) for name, kind in CANDIDATE.items()}, data["certificate"]
    row["certificate"] = None if test is None else {name: converted(test[name], kind) for name, kind in TEST.items()}
    return row
