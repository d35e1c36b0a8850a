"""Cook onion soup: put three onions into a pot, wait until it is done, serve the soup.

**Kitchen** (x to the right, y down; the cook starts at the `1`, facing north)::

    XXXXX     X counter    O onions     P pot
    X1  X     S serving    D dishes
    O P S
    X   X
    XDXXX

**Actions**, in overcooked-ai's order: 0 north, 1 south, 2 east, 3 west, 4 stay (wait), 5 interact. Moving turns the
cook and moves it if the cell ahead is free. Interacting uses the cell ahead:

- onions or dishes, empty-handed: take one;
- pot, holding an onion and fewer than three in it: put the onion in. The third one starts the cooking;
- pot, holding a dish and the soup is done: take the soup;
- serving, holding a soup: deliver it.

Everything else does nothing; in particular nothing can be put down on a counter. The clock ticks at the end of every
step, the one of the third onion included: a pot filled at step f can be emptied at step `f + cook_time`.

**Observation**: x, y, orientation (0 north, 1 south, 2 east, 3 west), held (0 nothing, 1 onion, 2 dish, 3 soup), pot
(0 filling, 1 cooking, 2 done), onions in the pot, steps until done (unless `hidden`), and, where more than one soup is
due, soups delivered (unless `hide_delivered`).

**Random durations**: with several cook times, one of them is drawn when the third onion goes in, each with the same
probability. **Hidden clock**: with `hidden`, what the pot does is seen, and how long it still takes is not.

**Reward** -1 per step. **Termination** when all soups are delivered.

Three tasks: Cook (18 steps to cook), CookLonger (36 steps), CookTwice (two soups); and the same three with a hidden
clock, which are not the paper's: CookHidden, CookLongerHidden, CookTwiceHidden. The rules are those of overcooked-ai
with one player and `old_dynamics`; `letitcook.tasks.overcooked` compares the two. The paper's picture of the kitchen is
not available: this layout is a calibrated stand-in, found by search so that every published number that is
deterministic comes out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.errors import SettingError, SpaceError
from letitcook.tasks import kitchen_drawing
from letitcook.tasks.clocks import Times, drawn, read_times
from letitcook.tasks.kitchen import (
    ACTIONS,
    DISH,
    DONE,
    EAST,
    FILLING,
    HELD,
    INTERACT,
    LAYOUT,
    MOVES,
    NOTHING,
    ONION,
    ONIONS_PER_SOUP,
    PHASES,
    SOUP,
    SOUTH,
    START,
    STAY,
    WEST,
    Outcome,
    State,
)
from letitcook.tasks.task import Task, with_hidden_clock


class CookEnv(gym.Env[NDArray[np.int64], np.int64 | int]):
    """The kitchen as a Gymnasium environment.

    >>> env = CookEnv()
    >>> env.reset(seed=0)[0].tolist()
    [1, 1, 0, 0, 0, 0, 0]
    >>> for action in (SOUTH, WEST, INTERACT):
    ...     observation, reward, terminated, truncated, info = env.step(action)
    >>> observation.tolist(), reward, HELD[env.state.held]
    ([1, 2, 3, 1, 0, 0, 0], -1.0, 'onion')
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012
    action_names = ACTIONS

    def __init__(
        self,
        cook_time: int | Sequence[int] = 18,
        soups: int = 1,
        hide_delivered: bool = False,
        hidden: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Set up a kitchen where a soup takes `cook_time` steps and `soups` of them are due.

        Of several cook times, one is drawn whenever a soup begins to cook. `hidden` leaves the steps until it is done
        out of the observation and the drawings, `hide_delivered` the number of soups delivered. `render_mode` is None,
        `"ansi"` (text) or `"rgb_array"` (a picture).
        """
        if not isinstance(soups, int | np.integer) or soups < 1:
            raise SettingError(f"soups = {soups!r} is not allowed; give a whole number of at least 1")
        self.cook_times: Times = read_times("cook_time", cook_time)
        self.cook_time = max(time for _, time in self.cook_times)
        self.soups = int(soups)
        self.shows_delivered = self.soups > 1 and not hide_delivered
        self.hidden = bool(hidden)
        self.render_mode = render_mode
        sizes = [len(LAYOUT[0]), len(LAYOUT), len(MOVES), len(HELD), len(PHASES), ONIONS_PER_SOUP + 1]
        sizes += [self.cook_time] * (not self.hidden) + [self.soups + 1] * self.shows_delivered
        self.observation_space = spaces.MultiDiscrete(sizes)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._state = START

    # The rules, as pure functions of the state.

    def initial_states(self) -> tuple[tuple[float, State], ...]:
        """Return the starts as pairs of probability and state.

        >>> CookEnv().initial_states()
        ((1.0, State(x=1, y=1, facing=0, held=0, onions=0, left=0, delivered=0)),)
        """
        return ((1.0, START),)

    def outcomes(self, state: State, action: int) -> tuple[Outcome, ...]:
        """Return what `action` can lead to from `state`: probability, next state, reward, terminated.

        >>> [(p, state, reward, terminated)] = CookEnv().outcomes(START, EAST)
        >>> p, (state.x, state.y), reward, terminated
        (1.0, (2, 1), -1.0, False)
        """
        if state.delivered == self.soups:
            return ((1.0, state, 0.0, True),)
        acted = self._act(state, action)
        if acted.onions == ONIONS_PER_SOUP > state.onions:  # it begins to cook, and this step is the first
            return tuple((p, acted._replace(left=time - 1), -1.0, False) for p, time in self.cook_times)
        after = self._tick(acted)
        return ((1.0, after, -1.0, after.delivered == self.soups),)

    def observe(self, state: State) -> NDArray[np.int64]:
        """Return the observation of `state`, laid out as in the module's description.

        >>> CookEnv(soups=2).observe(START._replace(onions=3, left=9, delivered=1)).tolist()
        [1, 1, 0, 0, 1, 3, 9, 1]
        >>> CookEnv(hidden=True).observe(START._replace(onions=3, left=9)).tolist()
        [1, 1, 0, 0, 1, 3]
        """
        seen = [state.x, state.y, state.facing, state.held, state.phase, state.onions]
        seen += [state.left] * (not self.hidden) + [state.delivered] * self.shows_delivered
        return np.array(seen, dtype=np.int64)

    def _act(self, state: State, action: int) -> State:
        """Carry out the cook's part of a step."""
        if action == STAY:
            return state
        if action == INTERACT:
            return self._interact(state)
        x, y = state.x + MOVES[action][0], state.y + MOVES[action][1]
        if LAYOUT[y][x] != " ":
            x, y = state.x, state.y
        return state._replace(x=x, y=y, facing=action)

    def _interact(self, state: State) -> State:
        """Use the cell ahead."""
        dx, dy = MOVES[state.facing]
        ahead = LAYOUT[state.y + dy][state.x + dx]
        if ahead == "O" and state.held == NOTHING:
            return state._replace(held=ONION)
        if ahead == "D" and state.held == NOTHING:
            return state._replace(held=DISH)
        if ahead == "P" and state.held == ONION and state.phase == FILLING:
            return state._replace(held=NOTHING, onions=state.onions + 1)
        if ahead == "P" and state.held == DISH and state.phase == DONE:
            return state._replace(held=SOUP, onions=0)
        if ahead == "S" and state.held == SOUP:
            return state._replace(held=NOTHING, delivered=state.delivered + 1)
        return state

    def _tick(self, state: State) -> State:
        """Let a step of time pass in the pot."""
        return state._replace(left=state.left - 1) if state.left else state

    # Gymnasium's side.

    @property
    def state(self) -> State:
        """Where the episode is."""
        return self._state

    def set_state(self, state: State) -> None:
        """Go on from `state`."""
        self._state = state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Begin an episode; every episode begins in the same state."""
        super().reset(seed=seed)
        self._state = START
        return self.observe(START), {}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        """Carry out one action."""
        if not self.action_space.contains(action):
            raise SpaceError(f"action {action!r} is not one of 0..{len(ACTIONS) - 1} ({', '.join(ACTIONS)})")
        _, self._state, reward, terminated = drawn(self.outcomes(self._state, int(action)), self.np_random)
        return self.observe(self._state), reward, terminated, False, {}

    def render(self) -> NDArray[np.uint8] | str | None:
        """Return the kitchen as pixels or as text, whichever was requested."""
        if self.render_mode == "ansi":
            return kitchen_drawing.text(self._state, self.soups, self.hidden)
        if self.render_mode == "rgb_array":
            return kitchen_drawing.picture(self._state, self.cook_time, self.soups, self.hidden)
        return None


class CookPolicy:
    """The handwritten cook: one onion after the other, stay while the pot cooks, then dish, soup, serve.

    It walks shortest paths, ties in the order north, south, east, west, and uses the pot from above. It keeps no
    state, and looks at no clock: it is the same where the clock is hidden.

    >>> policy = CookPolicy()
    >>> ACTIONS[policy.predict(CookEnv().observe(START))[0]]
    'south'
    """

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, None]:
        """Return the action at `observation`; the other arguments change nothing."""
        x, y, facing, held, phase = (int(value) for value in observation[:5])
        return self._towards(x, y, facing, self._station(held, phase)), None

    @staticmethod
    def _station(held: int, phase: int) -> str | None:
        """Return the station to use next, or None where there is nothing to do but stay."""
        if held == SOUP:
            return "S"
        if phase == FILLING and held in (NOTHING, ONION):
            return "P" if held == ONION else "O"
        if phase == DONE and held in (NOTHING, DISH):
            return "P" if held == DISH else "D"
        return None

    @staticmethod
    def _towards(x: int, y: int, facing: int, station: str | None) -> int:
        """Return the next action on the way to using `station`."""
        if station is None:
            return STAY
        *cell, direction = USED_FROM[station]
        if [x, y] != cell:
            return first_move((x, y), (cell[0], cell[1]))
        return INTERACT if facing == direction else direction


USED_FROM = {"O": (1, 2, WEST), "P": (2, 1, SOUTH), "D": (1, 3, SOUTH), "S": (3, 2, EAST)}
"""Where the handwritten cook stands, and how it faces, to use a station."""


@cache
def first_move(start: tuple[int, int], goal: tuple[int, int]) -> int:
    """Return the first move of a shortest path between free cells, ties in the order north, south, east, west.

    >>> ACTIONS[first_move((1, 1), (2, 3))], ACTIONS[first_move((2, 1), (1, 2))]
    ('south', 'west')
    """
    distance = {goal: 0}
    queue = deque([goal])
    while queue:
        x, y = queue.popleft()
        for dx, dy in MOVES:
            cell = (x + dx, y + dy)
            if LAYOUT[cell[1]][cell[0]] == " " and cell not in distance:
                distance[cell] = distance[x, y] + 1
                queue.append(cell)
    steps = {a: distance.get((start[0] + dx, start[1] + dy), len(distance)) for a, (dx, dy) in enumerate(MOVES)}
    return min(steps, key=lambda a: steps[a])


def _task(name: str, env_id: str, summary: str, **kwargs: int) -> Task:
    return Task(
        name=name,
        env_id=env_id,
        entry_point="letitcook.tasks.cook:CookEnv",
        summary=summary,
        actions=ACTIONS,
        wait=STAY,
        durations=(5, 15),
        horizon=200,
        finite=True,
        kwargs=kwargs,
        base_policy=CookPolicy,
    )


TASKS = (
    _task("cook", "letitcook/Cook-v0", "cook and serve an onion soup that takes 18 steps in the pot"),
    _task("cook-longer", "letitcook/CookLonger-v0", "the same soup, 36 steps in the pot", cook_time=36),
    _task("cook-twice", "letitcook/CookTwice-v0", "two soups, one after the other", soups=2),
)
HIDDEN_TASKS = tuple(with_hidden_clock(task) for task in TASKS)
