"""Labels at points of a panel: near them where there is room, at the end of a thin line where there is not.

Places are in typographic points from the lower left corner of the figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import hypot
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.textpath import TextPath

SIZE = 5.8
"""Height of the letters."""
NEAR = 3.5
"""Points that are nearer than this share a label."""
MARKER = 3.2
"""Half the width of what stands at a point."""
DISTANCES = (3.5, 8.0, 12.0, 17.0, 23.0, 30.0, 38.0)
"""How far from its point a label begins; from the second on a line leads to it."""
DIRECTIONS = (
    *((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)),
    *((0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7)),
    *((0.4, 0.9), (-0.4, 0.9), (0.4, -0.9), (-0.4, -0.9)),
    *((0.9, 0.4), (-0.9, 0.4), (0.9, -0.4), (-0.9, -0.4)),
)
"""Where a label is tried, in this order: above, below, right, left, and between them."""
Place = tuple[float, float]


class Box(NamedTuple):
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Return whether they overlap.

        >>> Box(0, 0, 2, 2).meets(Box(1, 1, 3, 3)), Box(0, 0, 2, 2).meets(Box(2, 0, 3, 2))
        (True, False)
        """
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top

    def holds(self, other: Box) -> bool:
        """Return whether the other one is inside.

        >>> Box(0, 0, 2, 2).holds(Box(1, 1, 2, 2)), Box(0, 0, 2, 2).holds(Box(1, 1, 3, 2))
        (True, False)
        """
        across = self.left <= other.left and other.right <= self.right
        return across and self.bottom <= other.bottom and other.top <= self.top


class Label(NamedTuple):
    """Where a label could stand."""

    offset: Place
    """Its middle, seen from its point."""
    box: Box
    line: tuple[Box, ...]
    """What the line to it covers; empty where it needs none."""


def place_labels(
    axes: Axes, points: Sequence[tuple[float, Place]], among: Sequence[float], taken: Sequence[Place]
) -> None:
    """Write numbers at data points of a panel whose place and limits are final, none over another or over a point.

    Points that lie on one another share a label, which is short where its numbers follow one another `among` others.
    What finds no room has no label. `taken` are further points to be kept free.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().add_subplot()
    >>> place_labels(axes, [(0.1, (0.5, 0.5)), (0.5, (0.5, 0.5)), (1.0, (0.2, 0.2))], [0.1, 0.5, 1.0], taken=[])
    >>> [text.get_text() for text in axes.texts]
    ['0.1, 0.5', '1']
    """
    inside = _panel(axes)
    marks = [_around(_place(axes, point), MARKER) for point in (*taken, *(point for _, point in points))]
    written: list[Box] = []
    for numbers, place in groups([(number, _place(axes, point)) for number, point in points]):
        text = short_list(numbers, among)
        for label in _candidates(place, text):
            free = not any(label.box.meets(other) for other in (*marks, *written))
            crossed = any(piece.meets(other) for piece in label.line for other in written)
            if free and not crossed and inside.holds(label.box):
                written += [label.box, *label.line]
                _write(axes, text, place, label)
                break


def groups(points: Sequence[tuple[float, Place]]) -> list[tuple[list[float], Place]]:
    """Return numbers with the place they share: that of the first of those that are near one another.

    >>> groups([(0.1, (10.0, 10.0)), (0.5, (30.0, 10.0)), (1.0, (11.0, 10.0))])
    [([0.1, 1.0], (10.0, 10.0)), ([0.5], (30.0, 10.0))]
    """
    found: list[tuple[list[float], Place]] = []
    for number, (x, y) in points:
        near = next((numbers for numbers, (x1, y1) in found if hypot(x - x1, y - y1) < NEAR), None)
        if near is None:
            found.append(([number], (x, y)))
        else:
            near.append(number)
    return found


def short_list(numbers: Sequence[float], among: Sequence[float]) -> str:
    """Return numbers as text, three or more that follow one another `among` others as a range.

    >>> short_list([0.01, 0.1, 0.5, 5.0, 10.0], among=[0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0])
    '0.01–0.5, 5, 10'
    """
    parts: list[list[float]] = []
    for number in sorted(numbers):
        if parts and among.index(number) == among.index(parts[-1][-1]) + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        f"{part[0]:g}–{part[-1]:g}" if len(part) > 2 else ", ".join(f"{number:g}" for number in part) for part in parts
    )


def _place(axes: Axes, point: Place) -> Place:
    x, y = axes.transData.transform(point) * 72.0 / axes.figure.dpi
    return float(x), float(y)


def _panel(axes: Axes) -> Box:
    return Box(*(edge * 72.0 / axes.figure.dpi for edge in axes.get_window_extent().extents))


def _around(place: Place, half_width: float, half_height: float | None = None) -> Box:
    (x, y), half_height = place, half_width if half_height is None else half_height
    return Box(x - half_width, y - half_height, x + half_width, y + half_height)


def _candidates(place: Place, text: str) -> Iterator[Label]:
    """Yield where a label could be, near places first."""
    half_width = TextPath((0, 0), text, size=SIZE).get_extents().width / 2 + 1.8
    half_height = SIZE / 2 + 0.3
    for distance in DISTANCES:
        for dx, dy in DIRECTIONS:
            x, y = dx * (distance + half_width), dy * (distance + half_height)
            ways = (n / 8 for n in range(2, 7)) if distance > DISTANCES[0] else ()
            line = tuple(_around((place[0] + way * x, place[1] + way * y), 0.5) for way in ways)
            yield Label((x, y), _around((place[0] + x, place[1] + y), half_width, half_height), line)


def _write(axes: Axes, text: str, place: Place, label: Label) -> None:
    """Write a label at its offset, with the line to it where it has one."""
    line = {"arrowstyle": "-", "linewidth": 0.4, "color": "#777777", "shrinkA": 0.0, "shrinkB": 2.0}
    axes.annotate(
        text,
        place,
        label.offset,
        xycoords="figure points",
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=SIZE,
        bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.3},
        arrowprops=line if label.line else None,
    )
