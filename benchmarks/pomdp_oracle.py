"""Values of published POMDPs by an independent exact solver, for tests/test_belief.py to compare with.

    pip install pomdp-py==1.3.5.1       (in an environment of its own; letitcook is not needed)
    python benchmarks/pomdp_oracle.py

Prints the value of the first belief for each horizon, by `pomdp_py.algorithms.value_function.value`. The problems: the
tiger behind one of two doors (Kaelbling, Littman and Cassandra 1998; listening is the wait), and the crying baby
(Kochenderfer 2015; ignoring it is the wait).
"""

from __future__ import annotations

from typing import Any

TIGER: dict[str, Any] = {
    "states": ["left", "right"],
    "actions": ["listen", "open left", "open right"],
    "observations": ["hear left", "hear right"],
    "start": {"left": 0.5, "right": 0.5},
    "gamma": 0.95,
    "T": lambda s, a: {s: 1.0} if a == "listen" else {"left": 0.5, "right": 0.5},
    "O": lambda a, s: {f"hear {x}": (0.85 if x == s else 0.15) if a == "listen" else 0.5 for x in ("left", "right")},
    "R": lambda s, a: -1.0 if a == "listen" else -100.0 if a == f"open {s}" else 10.0,
}
BABY: dict[str, Any] = {
    "states": ["hungry", "sated"],
    "actions": ["ignore", "feed", "sing"],
    "observations": ["crying", "quiet"],
    "start": {"hungry": 0.5, "sated": 0.5},
    "gamma": 0.9,
    "T": lambda s, a: {"sated": 1.0} if a == "feed" else {s: 1.0} if s == "hungry" else {"hungry": 0.1, "sated": 0.9},
    "O": lambda a, s: _cries((0.9 if a == "sing" else 0.8) if s == "hungry" else (0.0 if a == "sing" else 0.1)),
    "R": lambda s, a: (-10.0 if s == "hungry" else 0.0) - {"feed": 5.0, "sing": 0.5, "ignore": 0.0}[a],
}
PROBLEMS = {"tiger": TIGER, "crying baby": BABY}


def _cries(p: float) -> dict[str, float]:
    return {"crying": p, "quiet": 1.0 - p}


class _Model:
    """The three models that the solver asks."""

    def __init__(self, of: dict[str, Any]) -> None:
        self.of = of

    def probability(self, what: Any, given: Any, action: Any) -> float:
        """Return the probability of a next state, or of an observation in a next state."""
        raise NotImplementedError


class _Transitions(_Model):
    def probability(self, what: Any, given: Any, action: Any) -> float:
        return float(self.of["T"](given, action).get(what, 0.0))


class _Observations(_Model):
    def probability(self, what: Any, given: Any, action: Any) -> float:
        return float(self.of["O"](action, given).get(what, 0.0))


class _Rewards:
    def __init__(self, of: dict[str, Any]) -> None:
        self.of = of

    def sample(self, state: Any, action: Any, next_state: Any) -> float:
        """Return the reward, which is not random."""
        return float(self.of["R"](state, action))


def main() -> None:
    """Print the values."""
    from pomdp_py.algorithms.value_function import value

    for name, of in PROBLEMS.items():
        known = (of["states"], of["actions"], of["observations"], _Transitions(of), _Observations(of), _Rewards(of))
        values = [value(of["start"], *known, of["gamma"], horizon=h) for h in range(1, 6)]
        print(f"{name}: {[round(v, 9) for v in values]}")


if __name__ == "__main__":
    main()
