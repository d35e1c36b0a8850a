"""The kitchen of `letitcook.tasks.cook` as text and as a picture.

Both are pure functions of the state. The picture is drawn at three times its size and scaled down, in units of tiles:
(1.5, 2.5) is the middle of the cell x = 1, y = 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from letitcook.tasks.kitchen import DISH, DONE, FILLING, HELD, LAYOUT, MOVES, NOTHING, ONION, PHASES, SOUP, State

TILE = 80
"""Pixels of a tile's side."""
SMOOTH = 3
"""Pixels drawn for each pixel shown, along each side."""
CAPTION = 0.55
"""Height of the line of text below the kitchen, in tiles."""

FLOOR, TILES = "#efe4d0", "#e5d7bd"
WOOD, WOOD_TOP, WOOD_EDGE = "#8a5f3c", "#c69768", "#d9b48a"
STEEL, STEEL_DARK, STOVE = "#aeb6bf", "#6d7681", "#3d434b"
BULB, BULB_LIGHT, SHOOT = "#c98a2b", "#e9bd6a", "#7aa05a"
PLATE, RIM = "#fbfbf8", "#c3ccd4"
BROTH, BROTH_DONE, RING, RING_DONE = "#d9a441", "#e8862e", "#f2b035", "#57b368"
SKIN, JACKET, SLEEVE, SCARF, SHADOW = "#e3ad83", "#4f7fb0", "#3f6a96", "#d8453c", "#b9a98c"
HATCH, HATCH_LIGHT = "#2f7f79", "#8fd3c7"
INK, PAPER = "#2c2a28", "#fffaf0"

Point = tuple[float, float]


def text(state: State, soups: int, hidden: bool = False) -> str:
    """Return the kitchen as text, the cook as an arrow, with a line on what it holds and what the pot does.

    >>> print(text(State(2, 1, 1, ONION, onions=2, left=0, delivered=0), soups=1))
    X X X X X
    X · v · X   holding: onion
    O · P · S   pot: filling, 2 of 3 onions
    X · · · X   delivered: 0 of 1
    X D X X X   O onions  P pot  D dishes  S serving  X counter
    """
    rows = [[cell if cell != " " else "·" for cell in row] for row in LAYOUT]
    rows[state.y][state.x] = "^v><"[state.facing]
    notes = [
        "",
        f"holding: {HELD[state.held]}",
        f"pot: {pot_note(state, hidden)}",
        f"delivered: {state.delivered} of {soups}",
    ]
    notes.append("O onions  P pot  D dishes  S serving  X counter")
    return "\n".join(f"{' '.join(row)}   {note}".rstrip() for row, note in zip(rows, notes, strict=True))


def pot_note(state: State, hidden: bool = False) -> str:
    """Say what the pot does; of a hidden clock, not how long it still takes.

    >>> pot_note(State(1, 1, 0, 0, onions=3, left=7, delivered=0))
    'cooking, 7 left'
    >>> pot_note(State(1, 1, 0, 0, onions=3, left=7, delivered=0), hidden=True)
    'cooking, ? left'
    """
    if state.phase == FILLING:
        return f"filling, {state.onions} of 3 onions" if state.onions else "empty"
    return PHASES[DONE] if state.phase == DONE else f"cooking, {'?' if hidden else state.left} left"


def picture(state: State, cook_time: int, soups: int, hidden: bool = False) -> NDArray[np.uint8]:
    """Return the kitchen as pixels, `(height, width, 3)`; a hidden clock is a ring with a question mark.

    >>> picture(State(1, 1, 0, NOTHING, onions=0, left=0, delivered=0), cook_time=18, soups=1).shape
    (444, 400, 3)
    """
    pen = Pen(_empty_kitchen().copy())
    _pot(pen, state, cook_time, hidden)
    if state.delivered:
        _soup(pen, _centre("S"), 0.3)
    _cook(pen, state)
    notes = [f"holding {HELD[state.held]}", f"pot {pot_note(state, hidden)}", f"soups {state.delivered}/{soups}"]
    pen.text((len(LAYOUT[0]) / 2, len(LAYOUT) + CAPTION / 2), "   ·   ".join(notes), 0.18, PAPER)
    return pen.pixels()


class Pen:
    """Draws on an image in units of tiles."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self._draw = ImageDraw.Draw(image)

    @staticmethod
    def _px(values: Iterable[float]) -> list[float]:
        return [value * TILE * SMOOTH for value in values]

    def box(self, corner: Point, size: Point, colour: str, radius: float = 0.0) -> None:
        """Fill a rectangle with rounded corners."""
        (x, y), (w, h) = corner, size
        self._draw.rounded_rectangle(self._px((x, y, x + w, y + h)), radius * TILE * SMOOTH, fill=colour)

    def oval(self, centre: Point, radii: Point, colour: str) -> None:
        """Fill an ellipse."""
        (x, y), (rx, ry) = centre, radii
        self._draw.ellipse(self._px((x - rx, y - ry, x + rx, y + ry)), fill=colour)

    def disc(self, centre: Point, radius: float, colour: str) -> None:
        """Fill a circle."""
        self.oval(centre, (radius, radius), colour)

    def arc(self, centre: Point, radius: float, turn: float, width: float, colour: str) -> None:
        """Draw `turn` (0 to 1) of a circle's line, clockwise from the top."""
        (x, y), r = centre, radius
        box = self._px((x - r, y - r, x + r, y + r))
        self._draw.arc(box, -90, -90 + 360 * turn, fill=colour, width=round(width * TILE * SMOOTH))

    def line(self, points: list[Point], width: float, colour: str) -> None:
        """Draw a line with round ends."""
        pixels = self._px(value for point in points for value in point)
        self._draw.line(pixels, fill=colour, width=round(width * TILE * SMOOTH), joint="curve")
        for end in (points[0], points[-1]):
            self.disc(end, width / 2, colour)

    def area(self, points: list[Point], colour: str) -> None:
        """Fill a polygon."""
        self._draw.polygon(self._px(value for point in points for value in point), fill=colour)

    def text(self, centre: Point, words: str, height: float, colour: str) -> None:
        """Write around a point."""
        font = ImageFont.load_default(height * TILE * SMOOTH)
        x, y = self._px(centre)
        self._draw.text((x, y), words, fill=colour, font=font, anchor="mm")

    def pixels(self) -> NDArray[np.uint8]:
        """Return the image at the size it is shown."""
        small = self.image.resize((self.image.width // SMOOTH, self.image.height // SMOOTH), Image.Resampling.BOX)
        return np.array(small, dtype=np.uint8)


@cache
def _empty_kitchen() -> Image.Image:
    """Draw what never changes."""
    width, height = len(LAYOUT[0]), len(LAYOUT)
    size = width * TILE * SMOOTH, round((height + CAPTION) * TILE) * SMOOTH
    pen = Pen(Image.new("RGB", size, INK))
    for y, row in enumerate(LAYOUT):
        for x, cell in enumerate(row):
            if cell == " ":
                pen.box((x, y), (1, 1), FLOOR)
                pen.box((x, y), (0.5, 0.5), TILES)
                pen.box((x + 0.5, y + 0.5), (0.5, 0.5), TILES)
            else:
                pen.box((x, y), (1, 1), WOOD)
                pen.box((x + 0.02, y + 0.02), (0.96, 0.88), WOOD_EDGE, 0.06)
                pen.box((x + 0.05, y + 0.05), (0.9, 0.82), WOOD_TOP, 0.05)
            if cell in STATIONS:
                STATIONS[cell](pen, _centre(cell))
    return pen.image


def _centre(station: str) -> Point:
    """Return the middle of a station."""
    y, row = next((y, row) for y, row in enumerate(LAYOUT) if station in row)
    return row.index(station) + 0.5, y + 0.47


def _crate(pen: Pen, centre: Point) -> None:
    """Onions in a crate."""
    x, y = centre
    pen.box((x - 0.38, y - 0.36), (0.76, 0.68), WOOD, 0.06)
    pen.box((x - 0.32, y - 0.30), (0.64, 0.56), "#6b4a2f", 0.04)
    for dx, dy in ((-0.16, -0.12), (0.15, -0.13), (0.0, 0.1), (-0.21, 0.13), (0.2, 0.12)):
        _onion(pen, (x + dx, y + dy), 0.13)


def _rack(pen: Pen, centre: Point) -> None:
    """Two piles of dishes."""
    x, y = centre
    pen.box((x - 0.41, y - 0.34), (0.82, 0.64), STEEL_DARK, 0.08)
    pen.box((x - 0.37, y - 0.30), (0.74, 0.56), STEEL, 0.06)
    for dx in (-0.18, 0.18):
        for lift in (0.06, 0.0, -0.06):
            _dish(pen, (x + dx, y + lift), 0.165)


def _hatch(pen: Pen, centre: Point) -> None:
    """A serving hatch with arrows that point out of the kitchen."""
    x, y = centre
    pen.box((x - 0.4, y - 0.38), (0.9, 0.7), HATCH, 0.06)
    for dx in (-0.22, 0.02, 0.26):
        pen.line([(x + dx - 0.07, y - 0.2), (x + dx + 0.08, y - 0.03), (x + dx - 0.07, y + 0.14)], 0.07, HATCH_LIGHT)


def _stove(pen: Pen, centre: Point) -> None:
    """A stove; its pot is drawn with the state."""
    x, y = centre
    pen.box((x - 0.46, y - 0.46), (0.92, 0.86), STOVE, 0.08)
    for dx in (-0.36, 0.36):
        pen.disc((x + dx, y + 0.33), 0.045, STEEL)


STATIONS = {"O": _crate, "D": _rack, "S": _hatch, "P": _stove}


def _onion(pen: Pen, centre: Point, r: float) -> None:
    x, y = centre
    pen.area([(x - 0.35 * r, y - 0.7 * r), (x, y - 1.6 * r), (x + 0.35 * r, y - 0.7 * r)], SHOOT)
    pen.disc((x, y), r, BULB)
    pen.oval((x - 0.25 * r, y - 0.05 * r), (0.5 * r, 0.75 * r), BULB_LIGHT)
    pen.oval((x + 0.05 * r, y + 0.05 * r), (0.42 * r, 0.72 * r), BULB)


def _dish(pen: Pen, centre: Point, r: float) -> None:
    pen.disc(centre, r, RIM)
    pen.disc((centre[0], centre[1] - 0.08 * r), 0.93 * r, PLATE)
    pen.disc((centre[0], centre[1] - 0.08 * r), 0.62 * r, "#e6ebef")


def _soup(pen: Pen, centre: Point, r: float) -> None:
    _dish(pen, centre, r)
    pen.disc((centre[0], centre[1] - 0.08 * r), 0.7 * r, BROTH_DONE)
    pen.disc((centre[0] - 0.2 * r, centre[1] - 0.25 * r), 0.2 * r, BULB_LIGHT)


def _pot(pen: Pen, state: State, cook_time: int, hidden: bool) -> None:
    """Draw the pot, what is in it, and how far it is, or a question mark."""
    x, y = _centre("P")
    if state.left:
        pen.disc((x, y), 0.44, "#d9531e")
    for dx in (-0.36, 0.36):
        pen.box((x + dx - 0.07, y - 0.06), (0.14, 0.12), STEEL_DARK, 0.04)
    pen.disc((x, y), 0.35, STEEL_DARK)
    pen.disc((x, y), 0.32, STEEL)
    pen.disc((x, y), 0.27, {FILLING: "#50565e", DONE: BROTH_DONE}.get(state.phase, BROTH))
    if state.phase == FILLING:
        for dx, dy in ((-0.11, 0.07), (0.11, 0.07), (0.0, -0.1))[: state.onions]:
            _onion(pen, (x + dx, y + dy), 0.11)
    elif state.left:
        pen.arc((x, y), 0.37, 1.0, 0.09, STOVE)
        if not hidden:
            pen.arc((x, y), 0.37, 1 - state.left / cook_time, 0.09, RING)
        pen.text((x, y), "?" if hidden else str(state.left), 0.3, INK)
    else:
        pen.arc((x, y), 0.37, 1.0, 0.09, RING_DONE)
        for dx in (-0.13, 0.0, 0.13):
            puff = [(x + dx + 0.03 * wave, y + 0.12 - 0.05 * i) for i, wave in enumerate((0, 1, 0.6, -0.6, -1, 0))]
            pen.line(puff, 0.045, PAPER)


def _cook(pen: Pen, state: State) -> None:
    """Draw the cook from above, facing its way, with what it holds in its hands."""
    x, y = state.x + 0.5, state.y + 0.5
    (fx, fy), (rx, ry) = MOVES[state.facing], (-MOVES[state.facing][1], MOVES[state.facing][0])

    def at(forward: float, right: float) -> Point:
        return x + forward * fx + right * rx, y + forward * fy + right * ry

    def radii(forward: float, right: float) -> Point:
        return (forward, right) if fx else (right, forward)

    pen.oval((x + 0.02, y + 0.06), radii(0.26, 0.38), SHADOW)
    for side in (-1, 1):
        pen.line([at(0.0, 0.27 * side), at(0.27, 0.17 * side)], 0.13, SLEEVE)
        pen.disc(at(0.31, 0.15 * side), 0.07, SKIN)
    pen.oval(at(-0.02, 0), radii(0.22, 0.35), JACKET)
    pen.disc(at(0.07, 0), 0.21, SCARF)
    pen.disc(at(0.06, 0), 0.19, SKIN)
    for side in (-1, 1):
        pen.disc(at(0.2, 0.07 * side), 0.028, INK)
    for forward, right in ((-0.14, 0.09), (-0.14, -0.09), (0.02, 0.1), (0.02, -0.1), (-0.06, 0.0)):
        pen.disc(at(forward, right), 0.125, "#d5d9dd")
    for forward, right in ((-0.14, 0.08), (-0.14, -0.08), (0.0, 0.09), (0.0, -0.09), (-0.06, 0.0)):
        pen.disc(at(forward, right), 0.11, "#ffffff")
    held = {ONION: (_onion, 0.13), DISH: (_dish, 0.18), SOUP: (_soup, 0.18)}
    if state.held != NOTHING:
        draw, size = held[state.held]
        draw(pen, at(0.38, 0), size)
