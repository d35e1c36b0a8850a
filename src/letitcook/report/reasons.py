"""Why rows of preset `paper` differ from the paper's, as far as it is known; `docs/fidelity.md` tells more."""

from __future__ import annotations

from fnmatch import fnmatchcase

from letitcook.experiments.suites import Row

NOT_KNOWN = "not known"
STAND_IN = "the room is a stand-in, and how far learning comes within the steps depends on the room"
REASONS = {
    "cook/scalar-15/wrap": (
        "the exact optimum is 200/14, as the paper has it at λ = 10 and 20; its 56/38 is what λ = 5 gives"
    ),
    "cook-twice/scalar-1/wrap": "ours is the exact optimum, 109/81; the paper's 200/14 is what λ = 5 gives",
    "coffee/scalar-5/wrap": "the exact optimum is 60/34; only a heating time of seven steps would give 57/35",
    "coffee/*/scratch": STAND_IN,
}
"""What is known, by patterns of row ids; the first that fits counts."""


def known_reason(row: Row) -> str:
    """Return why a row is not as in the paper, or that it is not known.

    >>> known_reason(Row("coffee", "scratch", "scalar", 0.5)) == STAND_IN
    True
    """
    return next((text for pattern, text in REASONS.items() if fnmatchcase(row.id, pattern)), NOT_KNOWN)
