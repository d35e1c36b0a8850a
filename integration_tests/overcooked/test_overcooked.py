"""Our kitchen against the published overcooked-ai package, in every reachable state and for every action."""

from typing import Any

import pytest

from letitcook.tasks.cook import CookEnv
from letitcook.tasks.kitchen import ACTIONS, INTERACT, LAYOUT, MOVES, START, STAY, State
from letitcook.tasks.overcooked import OvercookedKitchen

KITCHENS = {
    "cook": ({"cook_time": 18, "soups": 1}, 7_668),
    "cook-longer": ({"cook_time": 36, "soups": 1}, 15_444),
    "cook-twice": ({"cook_time": 18, "soups": 2}, 15_336),
}


def reachable(kitchen: Any) -> set[State]:
    """All states that are not terminal, by the kitchen's own dynamics."""
    states = [state for _, state in kitchen.initial_states()]
    seen = set(states)
    for state in states:
        for action in range(len(ACTIONS)):
            for _, after, _, terminated in kitchen.outcomes(state, action):
                if not terminated and after not in seen:
                    seen.add(after)
                    states.append(after)
    return seen


@pytest.mark.parametrize("name", KITCHENS)
def test_every_state_and_action_is_the_same(name: str) -> None:
    kwargs, expected_pairs = KITCHENS[name]
    ours, theirs = CookEnv(**kwargs), OvercookedKitchen(**kwargs)  # type: ignore[arg-type]
    pairs = [(state, action) for state in reachable(ours) for action in range(len(ACTIONS))]
    assert len(pairs) == expected_pairs
    mismatches = [pair for pair in pairs if ours.outcomes(*pair) != theirs.outcomes(*pair)]
    assert mismatches == []


def test_overcooked_reaches_the_same_states() -> None:
    assert reachable(OvercookedKitchen()) == reachable(CookEnv())


def test_the_starts_are_the_same() -> None:
    assert OvercookedKitchen().initial_states() == CookEnv().initial_states() == ((1.0, START),)


def test_two_kitchens_of_different_cook_times_live_side_by_side() -> None:
    quick, slow = OvercookedKitchen(cook_time=2), OvercookedKitchen(cook_time=5)
    state = State(2, 1, 1, held=1, onions=2, left=0, delivered=0)
    assert [kitchen.outcomes(state, INTERACT)[0][1].left for kitchen in (quick, slow, quick)] == [1, 4, 1]


def test_counters_are_all_that_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """With overcooked-ai's own interactions every pair is the same but putting something on a counter."""
    ours, theirs = CookEnv(), OvercookedKitchen()
    monkeypatch.delattr(type(theirs._gridworld), "resolve_interacts")
    put_down = 0
    for state in reachable(ours):
        dx, dy = MOVES[state.facing]
        if state.held and LAYOUT[state.y + dy][state.x + dx] == "X":
            put_down += 1
            with pytest.raises(RuntimeError, match="put something down"):
                theirs.outcomes(state, INTERACT)
            assert ours.outcomes(state, INTERACT) == ours.outcomes(state, STAY)
        else:
            assert theirs.outcomes(state, INTERACT) == ours.outcomes(state, INTERACT)
    assert put_down > 0
