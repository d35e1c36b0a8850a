"""The coffee machine, the sugar and the cream of `letitcook.tasks.coffee` as MiniGrid objects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX
from minigrid.core.world_object import WorldObj
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

HOT = 8
"""Steps that heating takes, unless said otherwise."""
READY = 18
"""Steps that brewing takes, unless said otherwise."""
PHASES = ("off", "heating", "hot", "brewing", "ready", "empty")
"""What a machine does; all that is seen of it where its clock is hidden."""
OFF, HEATING, IS_HOT, BREWING, IS_READY, EMPTY = range(6)


class Clocks(NamedTuple):
    """When a machine is hot, and when its coffee is ready; the longest times where they are drawn at random."""

    hot: int = HOT
    ready: int = READY


CLOCKS = Clocks()


def machine_after(
    heated: int,
    brewed: int,
    coffee: int,
    toggled: bool,
    clocks: Clocks = CLOCKS,
    ahead: tuple[int, int] = (0, 0),
) -> tuple[int, int, int]:
    """Return the machine after a step: steps heated, steps brewed, coffee collected.

    `ahead` is where heating and brewing begin to count, above 0 if they take less than their longest time.

    >>> machine_after(0, 0, 0, toggled=True), machine_after(3, 0, 0, toggled=True)
    ((1, 0, 0), (4, 0, 0))
    >>> machine_after(HOT, 0, 0, toggled=True), machine_after(HOT, READY, 0, toggled=True)
    ((8, 1, 0), (8, 18, 1))
    """
    hot, ready = clocks
    if begins_to_heat(heated, toggled):
        heated = ahead[0] + 1
    elif heated:
        begins, heated = begins_to_brew(heated, brewed, toggled, clocks), min(heated + 1, hot)
        coffee = 1 if coffee or (toggled and brewed == ready) else 0
        brewed = ahead[1] + 1 if begins else min(brewed + 1, ready) if brewed else 0
    return heated, brewed, coffee


def begins_to_heat(heated: int, toggled: bool) -> bool:
    """Return whether a toggle switches the machine on."""
    return toggled and heated == 0


def begins_to_brew(heated: int, brewed: int, toggled: bool, clocks: Clocks = CLOCKS) -> bool:
    """Return whether a toggle begins to brew."""
    return toggled and heated == clocks.hot and brewed == 0


def machine_phase(heated: int, brewed: int, coffee: int, clocks: Clocks = CLOCKS) -> int:
    """Return what the machine does, an index of `PHASES`.

    >>> [PHASES[machine_phase(*machine)] for machine in ((0, 0, 0), (3, 0, 0), (8, 2, 0), (8, 18, 1))]
    ['off', 'heating', 'brewing', 'empty']
    """
    if coffee:
        return EMPTY
    if brewed:
        return IS_READY if brewed == clocks.ready else BREWING
    if heated:
        return IS_HOT if heated == clocks.hot else HEATING
    return OFF


def machine_of_phase(phase: int) -> tuple[int, int, int]:
    """Return some machine that does this: steps heated, steps brewed, coffee collected.

    >>> machine_of_phase(machine_phase(3, 0, 0))
    (1, 0, 0)
    """
    heated = 0 if phase == OFF else 1 if phase == HEATING else HOT
    return heated, 0 if phase < BREWING else 1 if phase == BREWING else READY, int(phase == EMPTY)


def machine_note(heated: int, brewed: int, coffee: int, clocks: Clocks = CLOCKS, hidden: bool = False) -> str:
    """Say what the machine does; of a hidden clock, not how long it still takes.

    >>> machine_note(0, 0, 0), machine_note(3, 0, 0), machine_note(8, 0, 0)
    ('off', 'heating, 5 left', 'hot')
    >>> machine_note(8, 1, 0), machine_note(8, 18, 0), machine_note(8, 18, 1)
    ('brewing, 17 left', 'coffee ready', 'empty')
    """
    phase = machine_phase(heated, brewed, coffee, clocks)
    if phase in (HEATING, BREWING):
        left = clocks.hot - heated if phase == HEATING else clocks.ready - brewed
        return f"{PHASES[phase]}, {'?' if hidden else left} left"
    return "coffee ready" if phase == IS_READY else PHASES[phase]


class WallObject(WorldObj):  # type: ignore[misc]
    """Something solid, set into the wall, that can be toggled."""

    def __init__(self, color: str) -> None:
        super().__init__("box", color)

    @property
    def look(self) -> int:
        """Number of the picture that shows it: one for each state that looks different."""
        raise NotImplementedError

    def encode(self) -> tuple[int, int, int]:
        """Return MiniGrid's code. MiniGrid keeps pictures by it: 100 on, so as to be no box of its own."""
        return OBJECT_TO_IDX[self.type], COLOR_TO_IDX[self.color], 100 + self.look

    def draw(self, pen: Brush) -> None:
        """Draw it."""
        raise NotImplementedError

    def render(self, img: NDArray[np.uint8]) -> None:
        """Draw it into MiniGrid's tile, on the colour of the wall."""
        pen = Brush(len(img))
        self.draw(pen)
        img[:] = np.asarray(pen.image)


class Ingredient(WallObject):
    """Sugar or cream."""

    def __init__(self, name: str) -> None:
        super().__init__({"sugar": "blue", "cream": "yellow"}[name])
        self.name = name
        self.collected = 0

    def toggle(self, env: Any, pos: tuple[int, int]) -> bool:
        """Collect it."""
        self.collected = 1
        return True

    @property
    def look(self) -> int:
        """0 there, 1 collected."""
        return self.collected

    def draw(self, pen: Brush) -> None:
        """Draw cubes of sugar or a jug of cream; collected, it is grey with a green tick."""
        light, shade, ink = ("#8b8b8b", "#7a7a7a", "#6a6a6a") if self.collected else ("#ffffff", "#d5dde6", "#3b6fb5")
        if self.name == "sugar":
            for x, y in ((0.18, 0.5), (0.52, 0.5), (0.35, 0.18)):
                pen.box((x, y, x + 0.3, y + 0.3), shade, 0.04)
                pen.box((x, y, x + 0.25, y + 0.25), light, 0.04)
        else:
            pen.ring((0.58, 0.38, 0.86, 0.7), shade, 0.06)
            pen.area(((0.25, 0.2), (0.66, 0.2), (0.74, 0.84), (0.2, 0.84)), light)
            pen.area(((0.25, 0.2), (0.14, 0.14), (0.3, 0.34)), light)
            pen.area(((0.228, 0.46), (0.692, 0.46), (0.714, 0.64), (0.216, 0.64)), ink)
        if self.collected:
            pen.tick()


class Machine(WallObject):
    """The coffee machine: off, heating, hot, brewing, ready, empty."""

    def __init__(self, clocks: Clocks = CLOCKS, hidden: bool = False) -> None:
        super().__init__("red")
        self.clocks, self.hidden = clocks, hidden
        self.heated, self.brewed, self.coffee = 0, 0, 0
        self.toggled = False

    def toggle(self, env: Any, pos: tuple[int, int]) -> bool:
        """Take note of the toggle; the tick at the end of the step acts on it."""
        self.toggled = True
        return True

    def tick(self, ahead: tuple[int, int] = (0, 0)) -> None:
        """Let a step of time pass; see `machine_after`."""
        self.heated, self.brewed, self.coffee = machine_after(
            self.heated, self.brewed, self.coffee, self.toggled, self.clocks, ahead
        )
        self.toggled = False

    @property
    def look(self) -> int:
        """How far it has come, 0 to 27 with the usual clocks."""
        return self.heated + self.brewed + self.coffee

    def draw(self, pen: Brush) -> None:
        """Draw the machine with its display (steps left), a bar that fills, and the cup; a green tick when empty."""
        clocks = self.clocks
        brewing, hot = self.brewed > 0, self.heated == clocks.hot
        done, full = (self.brewed, clocks.ready) if brewing else (self.heated, clocks.hot)
        unknown = self.hidden and 0 < done < full
        colour = "#46d160" if done == full else "#ffd27a" if brewing else "#ff9b2f"
        pen.box((0.08, 0.04, 0.92, 0.98), "#c0392b", 0.08)
        pen.box((0.16, 0.1, 0.84, 0.4), "#161616", 0.04)
        label = "ok" if done == full else "?" if unknown else str(full - done) if done else "off"
        pen.text((0.5, 0.25), "" if self.coffee else label, 0.32, colour if done else "#888888")
        pen.box((0.16, 0.44, 0.84, 0.51), "#5d1c15", 0.0)
        pen.box((0.16, 0.44, 0.16 + 0.68 * (0 if self.coffee or unknown else done / full), 0.51), colour, 0.0)
        pen.box((0.2, 0.55, 0.8, 0.92), "#2b2b2b", 0.04)
        pen.box((0.44, 0.55, 0.56, 0.61), "#9a9a9a", 0.0)
        if brewing and done < full:
            pen.line(((0.5, 0.6), (0.5, 0.7)), "#7a4a25", 0.05)
        if hot and not self.coffee:
            pen.ring((0.57, 0.7, 0.74, 0.84), "#e8e8e8", 0.04)
            pen.box((0.36, 0.66, 0.64, 0.89), "#f5f5f5", 0.05)
            pen.box(
                (0.4, 0.87 - 0.19 * (0.5 if unknown and brewing else self.brewed / clocks.ready), 0.6, 0.87),
                "#6b3e1f",
                0.02,
            )
        if self.coffee:
            pen.tick()


class Brush:
    """Draws a tile; all lengths are parts of its side."""

    def __init__(self, side: int) -> None:
        self.image = Image.new("RGB", (side, side), "#646464")
        self._side = side
        self._draw = ImageDraw.Draw(self.image)

    def box(self, corners: tuple[float, float, float, float], colour: str, radius: float) -> None:
        """Fill a rectangle given by left, top, right and bottom."""
        pixels = [value * self._side for value in corners]
        self._draw.rounded_rectangle(pixels, radius * self._side, fill=colour)

    def ring(self, corners: tuple[float, float, float, float], colour: str, width: float) -> None:
        """Draw the line of an ellipse."""
        pixels = [value * self._side for value in corners]
        self._draw.ellipse(pixels, outline=colour, width=round(width * self._side))

    def area(self, points: tuple[tuple[float, float], ...], colour: str) -> None:
        """Fill a polygon."""
        self._draw.polygon([value * self._side for point in points for value in point], fill=colour)

    def line(self, points: tuple[tuple[float, float], ...], colour: str, width: float) -> None:
        """Draw a line."""
        pixels = [value * self._side for point in points for value in point]
        self._draw.line(pixels, fill=colour, width=round(width * self._side), joint="curve")

    def tick(self) -> None:
        """Draw the green tick of what is collected."""
        self.line(((0.26, 0.56), (0.44, 0.74), (0.78, 0.3)), "#46d160", 0.1)

    def text(self, centre: tuple[float, float], words: str, height: float, colour: str) -> None:
        """Write around a point."""
        x, y = (value * self._side for value in centre)
        self._draw.text((x, y), words, fill=colour, font=ImageFont.load_default(height * self._side), anchor="mm")
