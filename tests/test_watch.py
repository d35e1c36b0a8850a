from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from letitcook import learn, make, task_named
from letitcook.adapters import CallablePolicy
from letitcook.cli.terminal import watch
from letitcook.cli.terminal.text_worlds import text_world
from letitcook.cli.terminal.watch import ACT, EMPTY, WAIT, moments, run_trace, text_timeline, watch_gif, watch_terminal
from letitcook.errors import OutputError, SettingError
from letitcook.report.traces import Query, Trace, exact_policy, interleaved_trace, trace


@cache
def cook_episode() -> Trace:
    """The exact Cook episode: 33 steps, 25 queries, waits of 5 from steps 20 and 25."""
    return trace("cook", "scratch", exact_policy("cook", "scratch"), frames=True)


def cut(episode: Trace, length: int) -> Trace:
    """Return the first steps of an episode, as if its time were up then."""
    queries = [replace(q, steps=min(q.steps, length - q.time)) for q in episode.queries if q.time < length]
    return replace(episode, queries=queries, length=length, terminated=False)


def test_there_is_a_moment_for_every_state() -> None:
    episode = cook_episode()
    shown = list(moments(episode))
    first_wait = next(q for q in episode.queries if q.wait)
    assert [moment.time for moment in shown] == list(range(34))
    assert [moment.asked for moment in shown] == sorted(moment.asked for moment in shown)
    inside = shown[first_wait.time : first_wait.time + 5]
    assert [moment.doing for moment in inside] == [f"wait 5 · {n} of 5" for n in range(1, 6)]
    assert {moment.asked for moment in inside} == {first_wait.time + 1}
    assert (shown[-1].place, shown[-1].doing) == ("step 33 · query 25", "the end")
    assert list(moments(cut(episode, 22)))[-2].doing == "wait 5 · 2 of 5"
    assert list(moments(cut(episode, 22)))[-1].doing == "time is up"


def read_gif(path: Path) -> tuple[list[Any], list[int]]:
    with Image.open(path) as image:
        frames, delays = [], []
        for n in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(n)
            delays.append(image.info["duration"])
            frames.append(np.asarray(image.convert("RGB")).astype(int))
        assert image.info["loop"] == 0
    return frames, delays


def is_near(pixels: Any, colour: str) -> Any:
    """Say where pixels have a colour, but for what the palette costs."""
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return np.abs(pixels - wanted).max(axis=-1) <= 12


def test_a_gif_has_every_step_and_its_timeline_fills(tmp_path: Path) -> None:
    episode = cook_episode()
    watch_gif(episode, tmp_path / "cook.gif", fps=8)
    frames, delays = read_gif(tmp_path / "cook.gif")
    assert len(frames) == 34
    assert delays == [120] * 33 + [2000]  # 1/8 s in hundredths of a second
    height, width = episode.frames[0].shape[:2]
    assert all(frame.shape == (height + watch.Strip.HEIGHT, width, 3) for frame in frames)
    for frame, drawn in zip(frames, episode.frames, strict=True):
        assert np.abs(frame[:height] - drawn).mean() < 4.0
    line = [frame[height + watch.Strip.TOP + 9] for frame in frames]
    acting, waiting, empty = (np.array([is_near(row, c).sum() for row in line]) for c in (ACT, WAIT, EMPTY))
    step = (width - 2 * watch.Strip.MARGIN) / 33
    assert acting[0] == waiting[0] == 0 and empty[0] > 32 * step
    assert waiting[20] == 0 and abs(acting[20] - 20 * step) < 23  # there are gaps between the cells
    assert abs(waiting[25] - 5 * step) < 4 and abs(waiting[30] - 10 * step) < 4
    assert empty[33] < 26 and waiting[33] == waiting[30]  # what is left are the gaps
    assert (tmp_path / "cook.gif").stat().st_size < 300_000
    assert [path.name for path in tmp_path.iterdir()] == ["cook.gif"]


def test_other_work_has_a_colour_of_its_own(tmp_path: Path) -> None:
    episode = interleaved_trace("coffee", exact_policy("coffee", "wrap"), frames=True)
    work = next(query for query in episode.queries if query.work)
    strip = watch.Strip(episode).pixels(list(moments(episode))[-1])
    bar = strip[watch.Strip.TOP + 9]
    step = (bar.shape[0] - 2 * watch.Strip.MARGIN) / episode.length
    assert abs(is_near(bar, watch.WORK).sum() - work.steps * step) < 4


def test_a_gif_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    short = cut(cook_episode(), 2)
    short = replace(short, frames=short.frames[:3])
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        watch_gif(short, tmp_path / "file" / "x.gif", fps=5)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="folder cannot be written"):
        watch_gif(short, tmp_path / "folder", fps=5)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
    with pytest.raises(SettingError, match="without pictures"):
        watch_gif(replace(short, frames=[]), tmp_path / "x.gif", fps=5)


@pytest.mark.parametrize("fps", [0.0, -1.0, 51.0, float("nan")])
def test_frames_per_second_that_cannot_be(fps: float) -> None:
    with pytest.raises(SettingError, match="is not allowed; give 0.1 to 50"):
        watch_terminal(cook_episode(), Console(file=io.StringIO()), fps)


def test_where_there_is_no_terminal_the_frames_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waited"))
    file = io.StringIO()
    assert watch_terminal(cook_episode(), Console(file=file, width=80), fps=5)
    printed = file.getvalue()
    assert [int(n) for n in re.findall(r"^step (\d+) · query \d+ · ", printed, re.MULTILINE)] == list(range(34))
    assert printed.count("X X X X X\n") == 34
    assert "\x1b" not in printed
    assert printed.endswith("step 33 · query 25 · the end\n||||||||||||||||||||w────w────|||\n\n")


@pytest.mark.parametrize("stop_after", [None, 3])
def test_a_terminal_is_animated_and_left_clean(monkeypatch: pytest.MonkeyPatch, stop_after: int | None) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == stop_after:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setenv("TERM", "xterm-256color")
    file = io.StringIO()
    console = Console(file=file, width=80, height=30, force_terminal=True)
    assert watch_terminal(cook_episode(), console, fps=4) is (stop_after is None)
    assert slept == [0.25] * (stop_after or 34)
    written = file.getvalue()
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1  # the cursor is hidden, and comes back
    assert written.rindex("\x1b[?25h") > written.rindex("query")
    assert ("the end" in written) is (stop_after is None)


def test_a_terminal_without_unicode() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    for task in ("cook", "coffee", "pong", "cartpole", "mountain-car"):
        wait = task_named(task).decisions.n - 1
        episode = cut(trace(task, "scratch", CallablePolicy(lambda observation, wait=wait: wait)), 3)  # type: ignore[misc]
        watch_terminal(episode, Console(file=file, width=80), fps=5)
    file.flush()
    assert raw.getvalue().count(b"step 3 . query 1 . time is up\nw--") == 5


def test_a_long_timeline_keeps_its_last_lines() -> None:
    queries = [Query(4 * n, "wait 4", 4, True) for n in range(30)]
    episode = Trace("pong", "scratch", [], queries, -120.0, 120, [], False)
    lines = text_timeline(episode, 119, width=30).plain.split("\n")
    whole = ("w───" * 30)[:119]
    assert lines == [whole[30:60], whole[60:90], whole[90:119]]
    assert text_timeline(episode, 0, width=30).plain == ""


def drawn(task: str, width: int = 61, **state: float) -> list[str]:
    return text_world(task, {**state, "action": None}, width).split("\n")


def test_pong_as_text() -> None:
    rows = drawn("pong", agent=2, opponent=27, x=20, y=15)
    assert len(rows) == 17 and rows[0] == rows[-1] == "─" * 61
    assert [y for y, row in enumerate(rows) if row.startswith("█")] == [1, 2]
    assert [y for y, row in enumerate(rows) if len(row) == 61 and row.endswith("█")] == [13, 14, 15]
    assert rows[8].index("●") == 30
    assert [row.index("●") for row in drawn("pong", agent=2, opponent=2, x=-1, y=29) if "●" in row] == [1]
    assert [row.index("●") for row in drawn("pong", agent=2, opponent=2, x=40, y=0) if "●" in row] == [59]


def test_cartpole_as_text() -> None:
    upright, leaning = drawn("cartpole", x=0, theta=0), drawn("cartpole", x=0, theta=0.2)
    assert [row.index("|") for row in upright[:7]] == [30] * 7
    assert upright[7].strip() == "█████" and upright[7].index("█") == 28
    columns = [row.index("/") for row in leaning[:7]]
    assert columns == sorted(columns, reverse=True) and columns[0] == 33
    assert "\\" in drawn("cartpole", x=0, theta=-0.2)[0]
    assert drawn("cartpole", x=2.5, theta=0.2)[7].endswith("█")


def test_mountain_car_as_text() -> None:
    valley, goal = drawn("mountain-car", x=-0.5), drawn("mountain-car", x=0.5)
    height, column = next((y, row.index("●")) for y, row in enumerate(valley) if "●" in row)
    assert (height, column) == (8, 23)
    assert [y for y, row in enumerate(goal) if "●" in row] == [1]
    assert valley[0].index(">") == valley[0].index("|") + 1 == 58


@pytest.mark.parametrize("width", [20, 33, 80, 200])
@pytest.mark.parametrize("task", ["cook", "coffee", "pong", "cartpole", "mountain-car"])
def test_no_world_is_wider_than_the_terminal(task: str, width: int) -> None:
    state = trace(task, "scratch", CallablePolicy(lambda observation: 0)).states[0]
    rows = text_world(task, state, width).split("\n")
    assert 0 < max(len(row) for row in rows) <= width


def test_a_run_is_played_as_it_was_trained() -> None:
    learned = learn(make("cook", mode="wrap", durations=(3, 9)), steps=20_000, preset="exact", progress=False)
    episode = run_trace(learned)
    assert (episode.mode, episode.length, len(episode.queries)) == ("wrap", learned.length, learned.queries)
    assert {query.label for query in episode.queries if query.wait} <= {"wait 1", "wait 3", "wait 9"}
    vanilla = learn(make("cartpole"), method="vanilla", steps=1_200, progress=False)
    assert vanilla.info.decisions.durations == ()
    played = run_trace(vanilla, seed=3)
    assert played.length == len(played.queries) == len(played.states) - 1
    with pytest.raises(SettingError, match="not trained on one of letitcook's tasks"):
        run_trace(replace(learned, info=replace(learned.info, task=None)))
    with pytest.raises(SettingError, match="seed = -1"):
        run_trace(learned, seed=-1)
