"""Why rows of preset `paper` differ from the paper's, as far as it is known; `docs/fidelity.md` tells more."""

from __future__ import annotations

from fnmatch import fnmatchcase

from letitcook.experiments.suites import Row

NOT_KNOWN = "not known"
STAND_IN = "the room is a stand-in, and how far learning comes within the steps depends on the room"
ROUNDS = (
    "a round has one batch here, and target networks follow by timesteps; with a batch for each gradient step, and "
    "targets by gradient steps, as in skrl 2, this row or its neighbours come out (docs/fidelity.md)"
)
REASONS = {
    "cook/scalar-15/wrap": (
        "the exact optimum is 200/14, as the paper has it at λ = 10 and 20; its 56/38 is what λ = 5 gives"
    ),
    "cook-twice/scalar-1/wrap": "ours is the exact optimum, 109/81; the paper's 200/14 is what λ = 5 gives",
    "coffee/scalar-5/wrap": "the exact optimum is 60/34; only a heating time of seven steps would give 57/35",
    "coffee/*/scratch": STAND_IN,
    **{f"pong/scalar-{lam}/scratch": ROUNDS for lam in (10, 15, 20, 30)},
    "mountain-car/scalar-1/scratch": ROUNDS,
    "mountain-car/lexicographic/scratch": ROUNDS,
    **{f"cartpole/scalar-{lam}/wrap": ROUNDS for lam in (0.5, 1, 2, 5, 10, 15, 20)},
}
"""What is known, by patterns of row ids; the first that fits counts."""


def known_reason(row: Row) -> str:
    """Return why a row is not as in the paper, or that it is not known.

    >>> known_reason(Row("coffee", "scratch", "scalar", 0.5)) == STAND_IN
    True
    """
    return next((text for pattern, text in REASONS.items() if fnmatchcase(row.id, pattern)), NOT_KNOWN)
