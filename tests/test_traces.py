from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from letitcook import make, rollout, task_named, task_names
from letitcook.adapters import CallablePolicy
from letitcook.cli.terminal.text_worlds import text_world
from letitcook.errors import SettingError
from letitcook.evaluation.savings import BaseAlone
from letitcook.report.traces import Trace, drawing, episodes_of, exact_policy, interleaved_trace, scene, trace
from letitcook.tasks import pong
from tiny_sweep import tiny_sweep


def longest_wait(task: str) -> CallablePolicy:
    return CallablePolicy(lambda observation: task_named(task).decisions.n - 1)


def check_times(episode: Trace) -> None:
    """Every query begins where the one before ended, and together they are the episode."""
    assert episode.queries[0].time == 0
    assert all(b.time == a.time + a.steps for a, b in pairwise(episode.queries))
    assert sum(query.steps for query in episode.queries) == episode.length == len(episode.states) - 1


def test_exact_cook_waits_twice_and_stands_still_meanwhile() -> None:
    episode = trace("cook", "scratch", exact_policy("cook", "scratch"))
    assert (episode.length, len(episode.queries), len(episode.states), episode.task_return) == (33, 25, 34, -33.0)
    assert episode.terminated and episode.frames == []
    check_times(episode)
    waits = [query for query in episode.queries if query.wait]
    assert [(query.label, query.steps) for query in waits] == [("wait 5", 5), ("wait 5", 5)]
    for query in waits:
        inside = episode.states[query.time : query.time + query.steps + 1]
        assert len({(s["x"], s["y"], s["facing"], s["held"]) for s in inside}) == 1
        assert [s["left"] for s in inside] == list(range(inside[0]["left"], inside[0]["left"] - 6, -1))
    assert episode.states[-1]["delivered"] == 1
    moved = [b for a, b in pairwise(episode.states) if (a["x"], a["y"]) != (b["x"], b["y"])]
    assert len(moved) == 5, "the others turn, use something or wait"


@pytest.mark.parametrize("task", task_names())
def test_every_task_gives_states_that_are_plain_data(task: str) -> None:
    episode = trace(task, "scratch", longest_wait(task), seed=3)
    check_times(episode)
    assert json.loads(json.dumps([episode.states, scene(task)])) == [episode.states, scene(task)]
    assert {tuple(state) for state in episode.states} == {tuple(episode.states[0])}
    assert scene(task)["actions"] == list(task_named(task).actions)
    assert all(query.wait for query in episode.queries)


def test_a_wait_that_the_horizon_cuts_keeps_its_name() -> None:
    last = trace("pong", "scratch", longest_wait("pong")).queries[-1]
    assert (last.label, last.steps, last.time) == ("wait 128", 1000 - 7 * 128, 7 * 128)


def test_same_seed_same_trace() -> None:
    first, again, other = (trace("mountain-car", "scratch", longest_wait("mountain-car"), seed=s) for s in (5, 5, 6))
    assert first == again
    assert first.states[0] != other.states[0]


def test_around_a_base_policy_labels_say_what_it_answered() -> None:
    episode = trace("cook", "wrap", exact_policy("cook", "wrap"))
    played = rollout(make("cook", mode="wrap"), exact_policy("cook", "wrap"), seed=0)
    assert (episode.length, len(episode.queries)) == (played.length, played.queries) == (53, 39)
    labels = [query.label for query in episode.queries]
    assert labels[:3] == ["base → south", "base → west", "base → interact"]
    assert (labels.count("wait 15"), labels.count("base → stay"), labels.count("wait 1")) == (1, 2, 0)
    assert [query.wait for query in episode.queries] == [label.startswith("wait") for label in labels]


def test_one_step_waits_are_waits() -> None:
    episode = trace("coffee", "scratch", CallablePolicy(lambda observation: task_named("coffee").wait))
    assert {(query.label, query.steps, query.wait) for query in episode.queries} == {("wait 1", 1, True)}


def test_other_durations() -> None:
    policy = CallablePolicy(lambda observation: 6)
    assert {query.label for query in trace("cook", "scratch", policy, durations=(4,)).queries} == {"wait 4"}


def test_a_base_of_ones_own() -> None:
    always_right = CallablePolicy(lambda observation: 1)
    episode = trace("cartpole", "wrap", CallablePolicy(lambda observation: 0), base=always_right)
    assert {query.label for query in episode.queries} == {"base → right"}
    assert episode.states[-1]["x"] != episode.states[0]["x"]


def test_other_work_in_the_waits() -> None:
    episode = interleaved_trace("coffee", exact_policy("coffee", "wrap"))
    check_times(episode)
    assert (episode.length, len(episode.queries)) == (45, 27)
    (filled,) = [query for query in episode.queries if query.work]
    assert (filled.label, filled.work) == ("wait 15", "fetch-sugar")
    before, after = episode.states[filled.time], episode.states[filled.time + 15]
    assert (before["sugar"], after["sugar"]) == (0, 1)
    assert all(before[name] == after[name] for name in ("x", "y", "direction"))


def test_pong_shows_the_action_that_was_executed() -> None:
    state = [0.0] * pong.SIZE
    state[pong.LAST_ACTION] = pong.HIT
    assert drawing("pong", state, action=pong.UP)["action"] == pong.HIT
    assert drawing("pong", state, action=None)["action"] is None


def test_pictures_if_they_are_asked_for() -> None:
    episode = trace("cook", "scratch", exact_policy("cook", "scratch"), frames=True)
    assert len(episode.frames) == 34
    assert {frame.shape for frame in episode.frames} == {episode.frames[0].shape} and episode.frames[0].ndim == 3
    assert (episode.frames[0] != episode.frames[-1]).any()


def test_what_cannot_be_played() -> None:
    with pytest.raises(SettingError, match="pong has no handwritten base policy"):
        trace("pong", "wrap", longest_wait("pong"))
    with pytest.raises(SettingError, match="mode 'both' is not known"):
        trace("cook", "both", longest_wait("cook"))
    with pytest.raises(SettingError, match="no other work"):
        interleaved_trace("cook", exact_policy("cook", "wrap"))


def test_episodes_of_a_sweep(tmp_path: Path) -> None:
    rows = ("cook/lexicographic/*", "cook/vanilla/*", "cartpole/lexicographic/wrap")
    results = tiny_sweep(tmp_path / "sweep", rows)
    named = episodes_of(results)
    assert [(e.trace.task, e.name, e.source) for e in named] == [
        ("cook", "exact", "plan"),
        ("cook", "lexicographic", "cook/lexicographic/scratch/seed0"),
        ("cook", "vanilla", "cook/vanilla/scratch/seed0"),
        ("cook", "exact wrapped", "plan"),
        ("cook", "wrapped", "cook/lexicographic/wrap/seed0"),
        ("cook", "base", "handwritten"),
        ("cartpole", "wrapped", "cartpole/lexicographic/wrap/seed0"),
    ]
    by_source = {e.source: e.trace for e in named}
    for row in results.runs.filter(results.runs["task"] == "cook").to_dicts():
        episode = by_source[row["id"]]  # nothing is random in the kitchen
        assert (episode.length, len(episode.queries)) == (row["length"], row["queries"])
    assert all("base → " in q.label or q.wait for q in by_source["cartpole/lexicographic/wrap/seed0"].queries)


def test_the_best_run_of_a_method_is_shown(tmp_path: Path) -> None:
    results = tiny_sweep(tmp_path / "sweep", ("cook/lexicographic/scratch",))
    (run,) = results.runs.to_dicts()
    worse = {**run, "id": "not/there", "seed": -1, "task_return": run["task_return"] - 1.0}
    asks_more = {**run, "id": "nor/there", "seed": -1, "queries": run["queries"] + 1.0}
    variant = {**run, "id": "nor/here", "variant": "slack=1", "task_return": 0.0}
    frame = pl.DataFrame([worse, asks_more, variant, run], schema=results.runs.schema)
    named = episodes_of(replace(results, runs=frame))
    assert [e.source for e in named if e.name == "lexicographic"] == [run["id"]]


@pytest.mark.parametrize("task", ["cook-hidden", "cook-twice-hidden", "coffee-hidden", "job"])
def test_a_hidden_clock_stays_hidden_in_the_player_and_in_text(task: str) -> None:
    about = scene(task)
    assert about["hidden"] is True
    episode = trace(task, "wrap", BaseAlone())
    assert any("?" in text_world(task, state, 80) for state in episode.states)
    assert not scene("cook")["hidden"]
