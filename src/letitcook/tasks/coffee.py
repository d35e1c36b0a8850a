"""Make a coffee with sugar and cream: the machine has to heat up, then to brew.

**Room** (a 10x10 MiniGrid; x to the right, y down; the agent starts at the `>`, facing east)::

    #CM#######     M machine    C cream    S sugar
    #........#     all three are set into the wall
    #........#
    #........#
    S........#
    #........#
    #........#
    #........#
    #.....>..#
    ##########

**Actions**, MiniGrid's own: 0 left, 1 right (turns), 2 forward, 3 pickup, 4 drop (both without effect), 5 toggle,
6 done (wait). Walking into a wall or an object does nothing. Toggling uses the cell ahead:

- sugar or cream: collect it (it stays there, solid as before);
- machine, off: it begins to heat, which takes 8 steps;
- machine, hot: it begins to brew, which takes 18 steps;
- machine, coffee ready: collect the coffee.

Every step ends with a tick of the machine, the toggle's own step included: two toggles that do something are at least
8 (18) steps apart, with 7 (17) other steps between them.

**Observation**: x, y, direction (0 east, 1 south, 2 west, 3 north), sugar collected, cream collected, steps heated (0
off, 1-7 heating, 8 hot), steps brewed (0 not begun, 1-17 brewing, 18 ready), coffee collected.

**Random durations**: with several `heat_time` or `brew_time`, one is drawn at the toggle, each with the same
probability; steps are then counted so that the longest time is hot, or ready. **Hidden clock**: with `hidden`, the last
three numbers are one, what the machine does (0 off, 1 heating, 2 hot, 3 brewing, 4 ready, 5 empty).

**Reward** -1 per step. **Termination** when coffee, sugar and cream are collected.

Movement and toggling are MiniGrid's; the same rules stand below as a pure function of the state, for tables. The
paper's picture of the room is not available: this layout is a calibrated stand-in, found by search so that every
published number that is deterministic comes out.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Wall
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray

from letitcook.errors import SettingError, SpaceError
from letitcook.tasks.clocks import drawn, read_times
from letitcook.tasks.coffee_objects import (
    CLOCKS,
    HOT,
    PHASES,
    READY,
    Clocks,
    Ingredient,
    Machine,
    begins_to_brew,
    begins_to_heat,
    machine_after,
    machine_note,
    machine_of_phase,
    machine_phase,
)
from letitcook.tasks.task import AuxiliaryTask, Task, with_hidden_clock

ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")
LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, WAIT = range(7)
EAST, SOUTH, WEST, NORTH = range(4)
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Steps in x and y for the directions east, south, west and north."""

LAYOUT = (
    "#CM#######",
    "#........#",
    "#........#",
    "#........#",
    "S........#",
    "#........#",
    "#........#",
    "#........#",
    "#........#",
    "##########",
)
"""The room's rows; a dot is free floor."""

Pose = tuple[int, int, int]
"""x, y, direction."""
Outcome = tuple[float, "State", float, bool]
"""Probability, next state, reward, terminated."""


class State(NamedTuple):
    """All there is to know about the room, in the order of the observation."""

    x: int
    y: int
    direction: int
    sugar: int
    cream: int
    heated: int
    """Steps since the machine began to heat: 0 off, `hot` when done; it begins later where it takes less."""
    brewed: int
    """Steps since the machine began to brew: 0 not begun, `ready` when done; it begins later where it takes less."""
    coffee: int

    @property
    def pose(self) -> Pose:
        """Where the agent stands and how it faces."""
        return self.x, self.y, self.direction

    @property
    def complete(self) -> bool:
        """Whether coffee, sugar and cream are collected."""
        return all((self.coffee, self.sugar, self.cream))


ITEMS = ("coffee", "sugar", "cream")
"""What is to be collected: fields of the state."""

START = State(6, 8, EAST, sugar=0, cream=0, heated=0, brewed=0, coffee=0)


def _mission() -> str:
    """Return the sentence that MiniGrid shows below its window."""
    return "make a coffee with sugar and cream"


class CoffeeEnv(MiniGridEnv):  # type: ignore[misc]
    """The room as a MiniGrid environment that shows its full state.

    >>> env = CoffeeEnv()
    >>> env.reset(seed=0)[0].tolist()
    [6, 8, 0, 0, 0, 0, 0, 0]
    >>> observation, reward, terminated, truncated, info = env.step(FORWARD)
    >>> observation.tolist(), reward
    ([7, 8, 0, 0, 0, 0, 0, 0], -1.0)
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012
    action_names = ACTIONS

    def __init__(
        self,
        heat_time: int | Sequence[int] = HOT,
        brew_time: int | Sequence[int] = READY,
        hidden: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Set up the room; of several times, one is drawn at the toggle, and `hidden` hides the machine's clock.

        `render_mode` is None, `"ansi"` (text) or `"rgb_array"` (a picture).
        """
        self.heat_times, self.brew_times = read_times("heat_time", heat_time), read_times("brew_time", brew_time)
        self.clocks = Clocks(max(time for _, time in self.heat_times), max(time for _, time in self.brew_times))
        self.hidden = bool(hidden)
        width, height = len(LAYOUT[0]), len(LAYOUT)
        super().__init__(
            mission_space=MissionSpace(mission_func=_mission),
            width=width,
            height=height,
            max_steps=sys.maxsize,  # the horizon is the task's, kept by Gymnasium's TimeLimit
            see_through_walls=True,
            highlight=False,
            tile_size=48,
            render_mode=render_mode,
        )
        machine = [len(PHASES)] if self.hidden else [self.clocks.hot + 1, self.clocks.ready + 1, 2]
        self.observation_space = spaces.MultiDiscrete([width, height, len(STEPS), 2, 2, *machine])
        self.reset()

    # The rules, as pure functions of the state.

    def initial_states(self) -> tuple[tuple[float, State], ...]:
        """Return the starts as pairs of probability and state.

        >>> CoffeeEnv().initial_states()
        ((1.0, State(x=6, y=8, direction=0, sugar=0, cream=0, heated=0, brewed=0, coffee=0)),)
        """
        return ((1.0, START),)

    def outcomes(self, state: State, action: int) -> tuple[Outcome, ...]:
        """Return what `action` can lead to from `state`: probability, next state, reward, terminated.

        >>> [(p, state, reward, terminated)] = CoffeeEnv().outcomes(START, FORWARD)
        >>> p, state.pose, reward, terminated
        (1.0, (7, 8, 0), -1.0, False)
        """
        if state.complete:
            return ((1.0, state, 0.0, True),)
        x, y, direction = state.pose
        dx, dy = STEPS[direction]
        toggled = LAYOUT[y + dy][x + dx] if action == TOGGLE else None
        room = (*moved(state.pose, action), state.sugar or int(toggled == "S"), state.cream or int(toggled == "C"))
        machine = state.heated, state.brewed, state.coffee
        found = []
        for p, ahead in self._chances(state.heated, state.brewed, toggled == "M"):
            after = State(*room, *machine_after(*machine, toggled == "M", self.clocks, ahead))
            found.append((p, after, -1.0, after.complete))
        return tuple(found)

    def _chances(self, heated: int, brewed: int, toggled: bool) -> list[tuple[float, tuple[int, int]]]:
        """Return how far ahead heating or brewing may begin to count, with probabilities; see `machine_after`."""
        if begins_to_heat(heated, toggled):
            return [(p, (self.clocks.hot - time, 0)) for p, time in self.heat_times]
        if begins_to_brew(heated, brewed, toggled, self.clocks):
            return [(p, (0, self.clocks.ready - time)) for p, time in self.brew_times]
        return [(1.0, (0, 0))]

    def observe(self, state: State) -> NDArray[np.int64]:
        """Return the observation of `state`, laid out as in the module's description.

        >>> CoffeeEnv().observe(START._replace(sugar=1)).tolist()
        [6, 8, 0, 1, 0, 0, 0, 0]
        >>> CoffeeEnv(hidden=True).observe(START._replace(heated=3)).tolist()
        [6, 8, 0, 0, 0, 1]
        """
        if self.hidden:
            phase = machine_phase(state.heated, state.brewed, state.coffee, self.clocks)
            return np.array([*state[:5], phase], dtype=np.int64)
        return np.array(state, dtype=np.int64)

    def base_policy(self) -> CoffeePolicy:
        """Return the handwritten policy that knows this machine's clocks."""
        return CoffeePolicy(self.clocks)

    # MiniGrid's side.

    def _gen_grid(self, width: int, height: int) -> None:
        """Build the room."""
        self.grid = Grid(width, height)
        self.machine, self.sugar, self.cream = (
            Machine(self.clocks, self.hidden),
            Ingredient("sugar"),
            Ingredient("cream"),
        )
        objects = {"#": Wall(), "M": self.machine, "S": self.sugar, "C": self.cream}
        for y, row in enumerate(LAYOUT):
            for x, cell in enumerate(row):
                if cell in objects:
                    self.put_obj(objects[cell], x, y)
        self.set_state(START)

    @property
    def state(self) -> State:
        """Where the episode is, read from the MiniGrid world."""
        x, y = self.agent_pos
        machine = self.machine
        return State(
            int(x),
            int(y),
            int(self.agent_dir),
            self.sugar.collected,
            self.cream.collected,
            machine.heated,
            machine.brewed,
            machine.coffee,
        )

    def set_state(self, state: State) -> None:
        """Go on from `state`."""
        self.agent_pos, self.agent_dir = (state.x, state.y), state.direction
        self.sugar.collected, self.cream.collected = state.sugar, state.cream
        self.machine.heated, self.machine.brewed, self.machine.coffee = state.heated, state.brewed, state.coffee

    def gen_obs(self) -> NDArray[np.int64]:
        """Return the full state; MiniGrid calls this at the end of `reset` and `step`."""
        return self.observe(self.state)

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        """Carry out one action, then let the machine tick. MiniGrid's own reward and limit are not used."""
        if not self.action_space.contains(action):
            raise SpaceError(f"action {action!r} is not one of 0..{len(ACTIONS) - 1} ({', '.join(ACTIONS)})")
        if self.state.complete:
            return self.gen_obs(), 0.0, True, False, {}
        super().step(action)
        machine = self.machine
        chances = self._chances(machine.heated, machine.brewed, machine.toggled)
        machine.tick(drawn([(p, ahead, 0.0, False) for p, ahead in chances], self.np_random)[1])
        return self.gen_obs(), -1.0, self.state.complete, False, {}

    def render(self) -> NDArray[np.uint8] | str | None:
        """Return the room as MiniGrid's picture or as text, whichever was requested."""
        if self.render_mode == "ansi":
            return room_text(self.state, self.clocks, self.hidden)
        if self.clocks == CLOCKS and not self.hidden:
            return self._picture()
        Grid.tile_cache.clear()  # MiniGrid's pictures are of all rooms of the process, and this machine looks different
        pixels = self._picture()
        Grid.tile_cache.clear()
        return pixels

    def _picture(self) -> NDArray[np.uint8] | None:
        """Return MiniGrid's picture."""
        pixels: NDArray[np.uint8] | None = super().render()
        return pixels


def room_text(state: State, clocks: Clocks = CLOCKS, hidden: bool = False) -> str:
    """Return the room as text, the agent as an arrow, with what is collected and what the machine does.

    >>> print(room_text(START._replace(sugar=1, heated=3)))
    #CM#######
    #........#   coffee: no
    #........#   sugar: yes
    #........#   cream: no
    S........#   machine: heating, 5 left
    #........#
    #........#   M machine  S sugar  C cream  # wall
    #........#
    #.....>..#
    ##########
    """
    rows = [list(row) for row in LAYOUT]
    rows[state.y][state.x] = ">v<^"[state.direction]
    notes = {1 + i: f"{item}: {'yes' if getattr(state, item) else 'no'}" for i, item in enumerate(ITEMS)}
    notes[4] = f"machine: {machine_note(state.heated, state.brewed, state.coffee, clocks, hidden)}"
    notes[6] = "M machine  S sugar  C cream  # wall"
    return "\n".join(f"{''.join(row)}   {notes.get(y, '')}".rstrip() for y, row in enumerate(rows))


# Ways through the room.

USED_FROM: dict[str, Pose] = {"M": (2, 1, NORTH), "C": (1, 1, NORTH), "S": (1, 4, WEST)}
"""Where to stand, and how to face, to use an object; each has one such place."""


def moved(pose: Pose, action: int) -> Pose:
    """Return the pose after `action`.

    >>> moved((1, 1, NORTH), FORWARD), moved((1, 1, NORTH), RIGHT), moved((2, 2, NORTH), FORWARD)
    ((1, 1, 3), (1, 1, 0), (2, 1, 3))
    """
    x, y, direction = pose
    if action == LEFT:
        return x, y, (direction - 1) % 4
    if action == RIGHT:
        return x, y, (direction + 1) % 4
    dx, dy = STEPS[direction]
    if action == FORWARD and LAYOUT[y + dy][x + dx] == ".":
        return x + dx, y + dy, direction
    return pose


@cache
def distances(goal: Pose) -> dict[Pose, int]:
    """Return the number of actions from every pose to `goal`, by breadth-first search backwards.

    >>> distances(USED_FROM["M"])[START.pose]
    14
    """
    distance = {goal: 0}
    queue = deque([goal])
    while queue:
        x, y, direction = pose = queue.popleft()
        dx, dy = STEPS[direction]
        for before in ((x, y, (direction + 1) % 4), (x, y, (direction - 1) % 4), (x - dx, y - dy, direction)):
            if LAYOUT[before[1]][before[0]] == "." and before not in distance:
                distance[before] = distance[pose] + 1
                queue.append(before)
    return distance


def next_move(pose: Pose, goal: Pose) -> int:
    """Return the first action of a shortest way from `pose` to another one, ties in the order left, right, forward.

    >>> ACTIONS[next_move(START.pose, USED_FROM["M"])]
    'left'
    """
    distance = distances(goal)
    return min((LEFT, RIGHT, FORWARD), key=lambda action: distance[moved(pose, action)])


def way(pose: Pose, goal: Pose) -> list[int]:
    """Return the actions of a shortest way from `pose` to `goal`.

    >>> [ACTIONS[a] for a in way(USED_FROM["M"], USED_FROM["C"])]
    ['left', 'forward', 'right']
    """
    actions: list[int] = []
    while pose != goal:
        actions.append(next_move(pose, goal))
        pose = moved(pose, actions[-1])
    return actions


def seen_state(observation: Any) -> State:
    """Return the state that an observation shows; where the clock is hidden, one that looks the same.

    >>> seen_state([6, 8, 0, 1, 0, 1]) == START._replace(sugar=1, heated=1)
    True
    """
    values = [int(value) for value in observation]
    return State(*(values if len(values) == len(State._fields) else (*values[:5], *machine_of_phase(values[5]))))


class CoffeePolicy:
    """The handwritten barista: machine on, idle, brew, idle, collect the coffee, then sugar, then cream.

    It walks shortest ways and keeps no state. `clocks` are those of the machine, where its clock is seen.

    >>> ACTIONS[CoffeePolicy().predict(START)[0]]
    'left'
    """

    def __init__(self, clocks: Clocks = CLOCKS) -> None:
        self.clocks = clocks

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, None]:
        """Return the action at `observation`; the other arguments change nothing."""
        room = seen_state(observation)
        hot, ready = self.clocks if len(observation) == len(State._fields) else CLOCKS
        if 0 < room.heated < hot or 0 < room.brewed < ready:
            return WAIT, None
        goal = USED_FROM["M" if not room.coffee else "S" if not room.sugar else "C"]
        return (TOGGLE if room.pose == goal else next_move(room.pose, goal)), None


class Fetch:
    """Fetch sugar or cream; come back to the same place, facing the same way, or stay there (`returns=False`).

    >>> fetch = Fetch("sugar")
    >>> at_machine = START._replace(x=2, y=1, direction=NORTH)
    >>> fetch.duration(at_machine), fetch.finished(at_machine), fetch.finished(at_machine._replace(sugar=1))
    (15, False, True)
    >>> Fetch("sugar", returns=False).duration(at_machine)
    8
    """

    def __init__(self, item: str, returns: bool = True) -> None:
        """Fetch the `item`, `"sugar"` or `"cream"`."""
        if item not in ("sugar", "cream"):
            raise SettingError(f"no ingredient named {item!r}; there are 'sugar' and 'cream'")
        self.name = f"fetch-{item}"
        self.returns = returns
        self._item = item

    def finished(self, observation: Any) -> bool:
        """Return whether the ingredient is collected already."""
        return bool(getattr(seen_state(observation), self._item))

    def duration(self, observation: Any) -> int:
        """Count the steps there (and back), the toggle included; 0 if it is collected already."""
        return len(self.actions(observation))

    def actions(self, observation: Any) -> list[int]:
        """Return a shortest way to the ingredient, the toggle, and, if it comes back, a shortest way back."""
        if self.finished(observation):
            return []
        here = seen_state(observation).pose
        there = USED_FROM[self._item[0].upper()]
        return [*way(here, there), TOGGLE, *(way(there, here) if self.returns else ())]

    def undisturbed(self, before: Any, after: Any) -> bool:
        """Return whether nobody used the machine and, if it comes back, the agent is where it was."""
        same_place = seen_state(before).pose == seen_state(after).pose
        return machine_untouched(before, after) and (not self.returns or same_place)


def machine_untouched(before: Any, after: Any) -> bool:
    """Return whether the machine went on by itself from one observation to a later one: no toggle began anything.

    >>> heating = START._replace(heated=3)
    >>> machine_untouched(heating, heating._replace(heated=HOT))
    True
    >>> machine_untouched(heating, heating._replace(heated=HOT, brewed=1))
    False
    """
    was, now = seen_state(before), seen_state(after)
    return all(bool(getattr(was, name)) == bool(getattr(now, name)) for name in ("heated", "brewed", "coffee"))


def fetches(returns: bool = True) -> tuple[AuxiliaryTask, ...]:
    """Return the other work of this task: fetching sugar, fetching cream.

    >>> [task.name for task in fetches()]
    ['fetch-sugar', 'fetch-cream']
    """
    return Fetch("sugar", returns), Fetch("cream", returns)


TASK = Task(
    name="coffee",
    env_id="letitcook/Coffee-v0",
    entry_point="letitcook.tasks.coffee:CoffeeEnv",
    summary="heat up a machine, brew a coffee, collect it with sugar and cream",
    actions=ACTIONS,
    wait=WAIT,
    durations=(5, 15),
    horizon=200,
    finite=True,
    base_policy=CoffeePolicy,
    auxiliary=fetches,
)
HIDDEN_TASK = with_hidden_clock(TASK)
