"""What a kitchen is: its layout, and its state. The rules are in `cook.py`."""

from __future__ import annotations

from typing import NamedTuple

ACTIONS = ("north", "south", "east", "west", "stay", "interact")
NORTH, SOUTH, EAST, WEST, STAY, INTERACT = range(6)
MOVES = ((0, -1), (0, 1), (1, 0), (-1, 0))
"""Steps in x and y of the actions north, south, east and west."""

NOTHING, ONION, DISH, SOUP = range(4)
HELD = ("nothing", "onion", "dish", "soup")
FILLING, COOKING, DONE = range(3)
PHASES = ("filling", "cooking", "done")
ONIONS_PER_SOUP = 3

LAYOUT = ("XXXXX", "X   X", "O P S", "X   X", "XDXXX")
"""The kitchen's rows; a space is free floor."""

Outcome = tuple[float, "State", float, bool]
"""Probability, next state, reward, terminated."""


class State(NamedTuple):
    """All there is to know about a kitchen.

    >>> State(1, 1, NORTH, NOTHING, onions=3, left=4, delivered=0).phase == COOKING
    True
    """

    x: int
    y: int
    facing: int
    held: int
    onions: int
    """Onions in the pot."""
    left: int
    """Steps until the soup is done; 0 where nothing cooks."""
    delivered: int

    @property
    def phase(self) -> int:
        """What the pot does: filling, cooking or done."""
        if self.onions < ONIONS_PER_SOUP:
            return FILLING
        return COOKING if self.left else DONE


START = State(1, 1, NORTH, NOTHING, onions=0, left=0, delivered=0)
