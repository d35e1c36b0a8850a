"""One episode to watch: as a GIF, or as text in the terminal.

Both show every primitive step, also those inside waits, with a timeline of queries and waits underneath. A frame
stands between two steps: it shows the world after `time` steps, and the decision that comes next or is under way.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.live import Live
from rich.text import Text

from letitcook.cli.terminal.text_worlds import text_world
from letitcook.errors import SettingError
from letitcook.evaluation.rollout import check_seed
from letitcook.report.traces import Query, Trace, trace
from letitcook.storage.folders import write_file
from letitcook.tasks import task_named
from letitcook.training.run import Learned

ACT, WAIT, WORK = "#4c78a8", "#f2b134", "#59a14f"
INK, FAINT, EMPTY, PAPER = "#333333", "#8a8a86", "#e6e4df", "#fbfaf7"
COLOURS = 128
SECONDS_AT_THE_END = 2.0
LINES = 3
"""Lines of the timeline in the terminal; a longer one shows its last lines."""
PLAIN = str.maketrans("·●█─→▁▂▃▄▅▆▇", ".o#->....###")
"""What a terminal without Unicode shows instead."""


class Moment(NamedTuple):
    """Where an episode stands after `time` steps."""

    time: int
    asked: int
    """Queries so far, the one for the next step included."""
    query: Query | None
    """The decision that comes next or is under way; None at the end."""
    doing: str
    """The same in words; of a wait, which step of it comes next."""

    @property
    def place(self) -> str:
        """How far it is, in words."""
        return f"step {self.time} · query {self.asked}"


def moments(episode: Trace) -> Iterator[Moment]:
    """Yield where an episode stands, once for each of its states.

    >>> from letitcook.report.traces import exact_policy
    >>> shown = list(moments(trace("cook", "scratch", exact_policy("cook", "scratch"))))
    >>> [f"{moment.place}: {moment.doing}" for moment in (shown[0], shown[21], shown[33])]
    ['step 0 · query 1: south', 'step 21 · query 21: wait 5 · 2 of 5', 'step 33 · query 25: the end']
    """
    for asked, query in enumerate(episode.queries, start=1):
        asked_for = int(query.label.split()[-1]) if query.wait else 1
        for time in range(query.time, query.time + query.steps):
            passed = f" · {time - query.time + 1} of {asked_for}" if asked_for > 1 else ""
            yield Moment(time, asked, query, f"{query.label}{passed}{query.work and f' · {query.work}'}")
    yield Moment(episode.length, len(episode.queries), None, "the end" if episode.terminated else "time is up")


def run_trace(run: Learned, seed: int = 0, frames: bool = False) -> Trace:
    """Play one episode of a run that was saved, as it was trained."""
    info = run.info
    if info.task is None:
        raise SettingError("this run was not trained on one of letitcook's tasks; there is no drawing of its world")
    durations = info.decisions.durations or None
    return trace(info.task, info.mode, run.policy, run.base, check_seed(seed), frames, durations)


def default_fps(task: str) -> float:
    """Return the frames per second at which a task is best watched.

    >>> default_fps("cook"), default_fps("pong")
    (5.0, 25.0)
    """
    return 5.0 if task_named(task).finite else 25.0


def check_fps(fps: float) -> float:
    """Return the frames per second, or raise if something is wrong with them."""
    if not 0.1 <= fps <= 50.0:
        raise SettingError(f"fps = {fps:g} is not allowed; give 0.1 to 50 frames per second")
    return fps


# The GIF.


def watch_gif(episode: Trace, path: Path, fps: float) -> None:
    """Write an episode that was recorded with `frames` as a GIF, whole or not at all; it repeats for ever."""
    if not episode.frames:
        raise SettingError("this episode was recorded without pictures; record it with frames=True")
    delay = 10 * round(100 / check_fps(fps))  # in milliseconds; a GIF counts hundredths of a second
    strip, shown = Strip(episode), list(moments(episode))

    def picture(moment: Moment) -> Image.Image:
        return Image.fromarray(np.vstack([episode.frames[moment.time], strip.pixels(moment)]))

    palette = _palette([picture(moment) for moment in [*shown[:: len(shown) // 12 + 1], shown[-1]]])
    frames = (picture(moment).quantize(palette=palette, dither=Image.Dither.NONE) for moment in shown)
    delays = [delay] * episode.length + [max(delay, round(1000 * SECONDS_AT_THE_END))]
    data = BytesIO()
    next(frames).save(data, "GIF", save_all=True, append_images=frames, duration=delays, loop=0)
    write_file(path, data.getvalue())


def _palette(pictures: list[Image.Image]) -> Image.Image:
    """Return one palette for all pictures: differences between frames stay small, and the file with them."""
    return Image.fromarray(np.vstack([np.asarray(picture) for picture in pictures])).quantize(COLOURS)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


class Strip:
    """What stands below the pictures: step and query, the decision, the timeline so far with a tick a query."""

    HEIGHT, MARGIN, TOP, BAR = 92, 14, 42, 18

    def __init__(self, episode: Trace) -> None:
        self._episode = episode
        self._width = int(episode.frames[0].shape[1])
        self._empty = Image.new("RGB", (self._width, self.HEIGHT), PAPER)
        pen = ImageDraw.Draw(self._empty)
        pen.rectangle((self._x(0), self.TOP, self._x(episode.length) - 1, self.TOP + self.BAR - 1), EMPTY)
        pen.line((0, 0, self._width, 0), EMPTY)
        x = self.MARGIN
        for colour, name in ((ACT, "action"), (WAIT, "wait"), *([(WORK, "other work")] if self._works() else [])):
            pen.rectangle((x, 73, x + 8, 81), colour)
            pen.text((x + 14, 77), name, INK, _font(12), "lm")
            x += 30 + int(pen.textlength(name, _font(12)))
        pen.text((self._width - self.MARGIN, 77), f"{episode.task}, {episode.mode}", FAINT, _font(12), "rm")
        self._full = self._empty.copy()
        for query in episode.queries:
            self._cell(ImageDraw.Draw(self._full), query)

    def _works(self) -> bool:
        return any(query.work for query in self._episode.queries)

    def _x(self, time: int) -> int:
        """Return where a time stands on the timeline."""
        return self.MARGIN + round(time * (self._width - 2 * self.MARGIN) / self._episode.length)

    def _cell(self, pen: ImageDraw.ImageDraw, query: Query) -> None:
        left, right = self._x(query.time), self._x(query.time + query.steps)
        gap = 1 if right - left > 2 else 0  # where cells are narrow, gaps would be all there is to see
        pen.rectangle((left, self.TOP, max(left, right - 1 - gap), self.TOP + self.BAR - 1), _colour(query))
        pen.line((left, self.TOP + self.BAR + 2, left, self.TOP + self.BAR + 4), FAINT)

    def pixels(self, moment: Moment) -> Any:
        """Return the strip at a moment, `(height, width, 3)`."""
        image, now = self._empty.copy(), self._x(moment.time)
        bar = (self.MARGIN, self.TOP, now, self.TOP + self.BAR + 5)
        image.paste(self._full.crop(bar), bar)
        pen = ImageDraw.Draw(image)
        pen.rectangle((now - 1, self.TOP - 3, now, self.TOP + self.BAR + 2), INK)
        pen.text((self.MARGIN, 21), moment.place, INK, _font(17), "lm")
        self._chip(image, moment)
        return np.asarray(image, dtype=np.uint8)

    def _chip(self, image: Image.Image, moment: Moment) -> None:
        """Write the decision on its colour, in the upper right corner."""
        text, font = moment.doing.replace("→", "»"), _font(15)  # the font has no arrows
        width, high = round(font.getlength(text)) + 20, 26
        chip = Image.new("RGB", (4 * width, 4 * high), PAPER)  # drawn larger, for smooth corners
        colour = INK if moment.query is None else _colour(moment.query)
        ImageDraw.Draw(chip).rounded_rectangle((0, 0, 4 * width - 1, 4 * high - 1), 4 * 8, colour)
        left = self._width - self.MARGIN - width
        image.paste(chip.resize((width, high), Image.Resampling.BOX), (left, 8))
        ink = INK if colour == WAIT else "white"
        ImageDraw.Draw(image).text((left + width / 2, 8 + high / 2), text, ink, font, "mm")


def _colour(query: Query) -> str:
    return WORK if query.work else WAIT if query.wait else ACT


# The terminal.


def watch_terminal(episode: Trace, console: Console, fps: float) -> bool:
    """Play an episode in the terminal; returns whether it was watched to its end, and not stopped by ctrl-C.

    Where the console is no terminal, or one that cannot move its cursor, the frames are printed one after the other.
    """
    pause, live = 1.0 / check_fps(fps), console.is_terminal and not console.is_dumb_terminal
    with Live(console=console, auto_refresh=False) if live else nullcontext() as screen:
        try:
            for moment in moments(episode):
                frame = text_frame(episode, moment, console.width)
                if console.options.ascii_only:
                    frame = Text(frame.plain.translate(PLAIN), no_wrap=True)
                if screen is None:
                    console.print(frame, no_wrap=True, overflow="crop", end="\n\n")
                    continue
                screen.update(frame, refresh=True)
                clock.sleep(pause)
        except KeyboardInterrupt:
            return False
    return True


def text_frame(episode: Trace, moment: Moment, width: int) -> Text:
    """Return one frame as text: the world, step and query with the decision, the timeline so far."""
    world = text_world(episode.task, episode.states[moment.time], width)
    frame = Text(world + "\n\n", no_wrap=True, overflow="crop")
    frame.append(f"{moment.place} · ", "bold")
    frame.append(moment.doing, "bold" if moment.query is None else f"bold {_colour(moment.query)}")
    return frame.append("\n").append_text(text_timeline(episode, moment.time, width))


def text_timeline(episode: Trace, time: int, width: int) -> Text:
    """Return the timeline so far, a character a step: `|` an action, `w` a wait and `─` the rest of it.

    >>> queries = [Query(0, "north", 1, False), Query(1, "wait 5", 5, True), Query(6, "south", 1, False)]
    >>> episode = Trace("cook", "scratch", [], queries, -7.0, 7, [], True)
    >>> print(text_timeline(episode, 7, width=80))
    |w────|
    """
    line = Text(no_wrap=True)
    for query in episode.queries:
        steps = min(query.steps, time - query.time)
        if steps > 0:
            line.append("w" + "─" * (steps - 1) if query.wait else "|", _colour(query))
    lines = list(line.divide(range(width, len(line), width)))[-LINES:]
    return Text("\n").join(lines)
