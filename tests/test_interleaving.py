from __future__ import annotations

import doctest
from collections.abc import Callable
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from letitcook import WaitingEnv, interleave, learn, make, plan, rollout, task_named
from letitcook.adapters import CallablePolicy
from letitcook.errors import ErrandError, SettingError
from letitcook.evaluation.interleaving import Errand, Interleaved, fullest
from letitcook.tasks.coffee import NORTH, START, TOGGLE, Fetch, fetches, machine_untouched

DOCS = Path(__file__).parents[1] / "docs" / "interleaving.md"
LEFT, RIGHT, USE, WAIT = range(4)


class Kettle(gym.Env[Any, Any]):
    """A kettle at place 0 of a corridor, shelves at the others. Using the kettle starts it, and ends when it boils.

    Observation: place, how warm the kettle is (0 off, 1.., `boils`), what was taken from each shelf. It warms with
    probability `warming` in a step, whatever is done, so the same seed gives the same kettle.
    """

    def __init__(self, place: int = 0, boils: int = 9, warming: float = 1.0, first: int = 0) -> None:
        self.action_space = spaces.Discrete(4, start=first)
        self.observation_space = spaces.MultiDiscrete([6, boils + 1, 2, 2, 2, 2, 2])
        self.place, self.boils, self.warming, self.first = place, boils, warming, first

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = np.zeros(7, dtype=np.int64)
        self.state[0] = self.place
        return self.state, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move, use or wait; the observation is always the same array, as in some environments it is."""
        place, warm = int(self.state[0]), int(self.state[1])
        assert self.action_space.contains(int(action))
        move = int(action) - self.first
        served = move == USE and place == 0 and warm == self.boils
        if self.np_random.random() < self.warming and 0 < warm < self.boils:
            self.state[1] += 1
        if move == USE and place == 0 and warm == 0:
            self.state[1] = 1
        elif move == USE and place > 0:
            self.state[1 + place] = 1
        elif move in (LEFT, RIGHT):
            self.state[0] = min(max(place + (1 if move == RIGHT else -1), 0), 5)
        return self.state, -1.0, served, False, {}


class Script:
    """A waiting policy that reads its decisions from a list, then stays with the last."""

    def __init__(self, *decisions: int) -> None:
        self.decisions = decisions

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        n = 0 if state is None else state
        return self.decisions[min(n, len(self.decisions) - 1)], n + 1


class Tea(Script):
    """Waits as the script says where it stands, walks to the kettle, starts it, waits as it says, serves the tea."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        n = 0 if state is None else state
        place, warm = int(observation[0]), int(observation[1])
        if n >= 2 and warm == 0:
            return (LEFT if place > 0 else USE), n
        return (USE, n) if warm == 9 else (self.decisions[n % len(self.decisions)], n + 1)


def kettle(horizon: int = 60, durations: tuple[int, ...] = (4, 8), **settings: Any) -> WaitingEnv:
    env = gym.wrappers.TimeLimit(Kettle(**settings), horizon)
    return WaitingEnv(env, wait=WAIT + settings.get("first", 0), durations=durations)


def same_place(before: Any, after: Any) -> bool:
    return bool(before[0] == after[0])


def from_shelf(shelf: int, slack: int = 0, first: int = 0) -> Errand:
    """Take what is on a shelf, and come back; it is predicted to take up to `slack` steps more."""

    def actions(observation: Any) -> list[int]:
        steps = shelf - int(observation[0])
        there, back = (RIGHT, LEFT) if steps > 0 else (LEFT, RIGHT)
        return [a + first for a in (*[there] * abs(steps), USE, *[back] * abs(steps))]

    return Errand(
        name=f"shelf {shelf}",
        do=actions,
        duration=lambda observation: len(actions(observation)) + slack,
        finished=lambda observation: bool(observation[1 + shelf]),
        undisturbed=same_place,
    )


def push(
    name: str, predicted: int, actions: int | None = None, undisturbed: Any = lambda before, after: True
) -> Errand:
    """Go right in the corridor for some steps; never finished."""
    steps = predicted if actions is None else actions
    return Errand(name, lambda _: [RIGHT] * steps, lambda _: predicted, lambda _: False, undisturbed)


def seen(episode: Interleaved) -> list[tuple[str, int, int, int]]:
    return [(fill.task, fill.begun, fill.wait, fill.steps) for fill in episode.fills]


def lived(episode: Any, env: WaitingEnv) -> tuple[Any, ...]:
    warm = int(env.get_wrapper_attr("state")[1])
    return episode.decisions, episode.elapsed, episode.task_return, episode.terminated, episode.truncated, warm


# Coffee


def test_coffee_as_in_the_paper_and_with_a_learned_wrapper() -> None:
    env = make("coffee", mode="wrap")
    learned = learn(env, steps=100_000, preset="exact", progress=False)
    auxiliary = task_named("coffee").auxiliary
    assert auxiliary is not None
    for policy in (plan(env).policy, learned.policy):
        assert (rollout(env, policy).length, rollout(env, policy).queries) == (54, 36)
        episode = interleave(env, policy, auxiliary())
        assert (episode.length, episode.queries, episode.terminated) == (45, 27, True)
        (fill,) = episode.fills
        assert (fill.task, fill.wait, fill.steps, fill.predicted) == ("fetch-sugar", 15, 15, 15)
        assert (fill.late, fill.finished, fill.undisturbed) == (False, True, True)


def test_the_page_on_interleaving() -> None:
    """Its examples run, and every row of its table is what its line gives."""
    text = DOCS.read_text(encoding="utf-8")
    globs: dict[str, Any] = {}
    examples = doctest.DocTestParser().get_doctest(text, globs, DOCS.name, str(DOCS), 0)
    result = doctest.DocTestRunner().run(examples, clear_globs=False)
    assert (result.failed, result.attempted) == (0, 21)
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `play((")]
    assert len(rows) == 15
    for line, *numbers in rows:
        assert eval(line.strip("`"), examples.globs) == tuple(int(n) for n in numbers), line


def test_what_coffees_errands_promise() -> None:
    at_machine = START._replace(x=2, y=1, direction=NORTH, heated=3)
    at_cream = at_machine._replace(x=1, cream=1, heated=7)
    comes_back, stays = Fetch("cream"), Fetch("cream", returns=False)
    assert (comes_back.duration(at_machine), stays.duration(at_machine)) == (7, 4)
    assert not comes_back.undisturbed(at_machine, at_cream) and stays.undisturbed(at_machine, at_cream)
    assert not stays.undisturbed(at_machine, at_cream._replace(heated=8, brewed=1))
    assert [task.returns for task in (*fetches(), *fetches(returns=False))] == [True, True, False, False]


def test_whoever_uses_the_machine_is_named() -> None:
    env = make("coffee", mode="wrap")
    meddler = Errand("meddle", lambda _: [TOGGLE], lambda _: 1, lambda _: False, machine_untouched)
    at_machine_then_wait = CallablePolicy(lambda observation: 0 if tuple(observation[:3]) != (2, 1, NORTH) else 2)
    with pytest.raises(
        ErrandError, match="meddle disturbed the waiting task: begun at step 14, it led from .2 1 3 0 0 0"
    ):
        interleave(env, at_machine_then_wait, [meddler])


# The paper's rule


def test_the_longest_that_fits_is_done_and_the_rest_is_waited_out() -> None:
    tasks = [from_shelf(1), from_shelf(2), from_shelf(3), from_shelf(4)]  # 3, 5, 7 and 9 steps
    episode = interleave(kettle(horizon=30), Script(5, 5, 5, 5), tasks)
    assert seen(episode) == [("shelf 3", 0, 8, 7), ("shelf 2", 8, 8, 5), ("shelf 1", 16, 8, 3)]
    assert (episode.elapsed, episode.length, episode.truncated) == ([8, 8, 8, 6], 30, True)


def test_a_wait_too_short_for_any_task_is_a_wait() -> None:
    one, other = kettle(horizon=20), kettle(horizon=20)
    plain, episode = rollout(one, Script(4, RIGHT, WAIT)), interleave(other, Script(4, RIGHT, WAIT), [from_shelf(2)])
    assert episode.fills == []
    assert lived(episode, other) == lived(plain, one)


def test_the_horizon_cuts_work_too() -> None:
    for task in (
        from_shelf(3),
        Errand("walk", CallablePolicy(lambda _: RIGHT), lambda _: 7, lambda _: False, same_place),
    ):
        episode = interleave(kettle(horizon=5), Script(WAIT, 5), [task])
        assert (episode.length, episode.truncated, episode.elapsed, episode.task_return) == (5, True, [1, 4], -5.0)
        (fill,) = episode.fills
        assert (fill.steps, fill.predicted, fill.late, fill.undisturbed) == (4, 7, False, None)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_where_promises_hold_the_waiting_task_goes_as_if_it_had_waited(data: st.DataObject) -> None:
    draw: Callable[..., Any] = data.draw
    first, slack, seed = draw(st.sampled_from([0, 5])), draw(st.integers(0, 2)), draw(st.integers(0, 10**6))
    durations = tuple(sorted(draw(st.sets(st.integers(2, 20), min_size=2, max_size=3))))
    world = {
        "horizon": draw(st.integers(5, 60)),
        "durations": durations,
        "place": draw(st.integers(0, 5)),
        "warming": draw(st.sampled_from([0.5, 1.0])),
        "first": first,
    }
    tea = Tea(*draw(st.lists(st.integers(WAIT, WAIT + len(durations)), min_size=1, max_size=5)))
    tasks = [from_shelf(shelf, slack, first) for shelf in draw(st.lists(st.integers(1, 5), unique=True))]
    one, other = kettle(**world), kettle(**world)
    plain = rollout(one, tea, seed)
    episode = interleave(other, tea, tasks, seed, pack=draw(st.booleans()))
    assert lived(episode, other) == lived(plain, one)
    if not (episode.truncated and episode.fills and episode.fills[-1].undisturbed is None):  # cut in the midst of work
        assert other.get_wrapper_attr("state")[0] == one.get_wrapper_attr("state")[0]
    for fill in episode.fills:
        assert not fill.late and fill.undisturbed is not False
        assert fill.undisturbed is None or (fill.finished and fill.steps == fill.predicted - slack)
        assert fill.time <= fill.begun and fill.begun + fill.steps <= fill.time + fill.wait
    taken = int(other.get_wrapper_attr("state")[2:].sum())
    assert taken == sum(fill.finished for fill in episode.fills)


# Several tasks in a wait


@given(st.lists(st.integers(1, 12), max_size=7), st.integers(0, 40))
def test_fullest_against_all_subsets(durations: list[int], room: int) -> None:
    chosen = fullest(durations, room)
    sums = [sum(c) for n in range(len(durations) + 1) for c in combinations(durations, n)]
    assert sum(durations[i] for i in chosen) == max(s for s in sums if s <= room)
    assert chosen == sorted(set(chosen))


def test_pack_fills_a_wait_with_those_that_fill_it_best() -> None:
    tasks = [push("a", 5), push("b", 6), push("c", 5)]
    policy = Script(4, WAIT)
    assert seen(interleave(kettle(20, (10,)), policy, tasks, pack=True)) == [("a", 0, 10, 5), ("c", 5, 10, 5)]
    assert seen(interleave(kettle(20, (10,)), policy, tasks)) == [("b", 0, 10, 6)]
    assert seen(interleave(kettle(20, (18,)), policy, tasks, pack=True)) == [
        ("b", 0, 18, 6),
        ("a", 6, 18, 5),
        ("c", 11, 18, 5),
    ]


def test_each_task_once_in_a_wait_also_if_it_never_finishes() -> None:
    episode = interleave(kettle(16), Script(5), [push("a", 2)], pack=True)
    assert seen(episode) == [("a", 0, 8, 2), ("a", 8, 8, 2)]


# Asking again


def test_requery_asks_right_after_the_work() -> None:
    for requery, elapsed in ((False, [8, 1]), (True, [7, 1])):
        episode = interleave(kettle(), Script(5, USE, 5), [from_shelf(3)], requery=requery)
        assert episode.elapsed[:2] == elapsed
        assert seen(episode) == [("shelf 3", 0, 8, 7)]


def test_a_task_that_stays_there_needs_requery() -> None:
    one_way = Errand(
        "stroll", lambda _: [RIGHT] * 3, lambda _: 3, lambda o: o[0] == 3, lambda b, a: True, returns=False
    )
    with pytest.raises(SettingError, match="stroll does not come back .* requery=True"):
        interleave(kettle(), Script(5), [from_shelf(1), one_way])
    episode = interleave(kettle(horizon=10), Script(5, WAIT), [one_way], requery=True)
    assert (episode.elapsed[0], seen(episode)) == (3, [("stroll", 0, 8, 3)])


def test_work_of_no_steps_is_a_wait_and_not_an_endless_loop() -> None:
    episode = interleave(kettle(horizon=20), Script(5), [push("nothing", 3, actions=0)], requery=True, pack=True)
    assert (episode.elapsed, {fill.steps for fill in episode.fills}) == ([8, 8, 4], {0})


class Clock:
    """A policy that always waits 8 steps, and whose state is the time."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        self.times.append(0 if state is None else state)
        return 5, self.times[-1] + 8

    def ended_early(self, state: Any, steps: int) -> int:
        return int(state) - steps


def test_a_policy_is_told_that_a_wait_ended_early() -> None:
    clock = Clock()
    episode = interleave(kettle(), clock, [from_shelf(shelf) for shelf in (1, 2, 3)], requery=True)
    assert episode.elapsed == [7, 5, 3, 8, 8, 8, 8, 8, 5]
    assert clock.times == list(accumulate([0, *episode.elapsed[:-1]]))


# Work that follows a policy


def walker(name: str = "walk", predicted: int = 7, promise: Any = same_place) -> Errand:
    """Take what is on shelf 3 and come back, one observation at a time."""
    walk = CallablePolicy(lambda o: LEFT if o[4] else USE if o[0] == 3 else RIGHT)
    return Errand(name, walk, lambda _: predicted, lambda o: bool(o[4]), promise)


def test_a_policy_is_followed_until_the_work_is_over() -> None:
    for promise, steps in ((same_place, 7), (lambda before, after: True, 4)):
        episode = interleave(kettle(), Script(5, 5), [walker(promise=promise)])
        (fill,) = episode.fills
        assert (fill.steps, fill.predicted, fill.late, fill.finished, fill.undisturbed) == (steps, 7, False, True, True)


# Broken promises


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (push("dawdle", 3, actions=5), "dawdle was predicted to take 3 steps in the wait of 8 at step 1, .* 5 actions"),
        (walker("lag", predicted=3), "lag was predicted to take 3 steps in the wait of 8 at step 1, .* not finished"),
        (walker("drag", predicted=5), "drag was predicted to take 5 steps .* the other task is disturbed still"),
        (
            push("stray", 3, undisturbed=same_place),
            "stray disturbed the waiting task: begun at step 1, .*0 0 .* to .3 0",
        ),
        (Errand("guess", lambda _: [], lambda _: 2.5, lambda _: False, same_place), "guess predicts a duration of 2.5"),  # type: ignore[arg-type, return-value]
    ],
)
def test_who_breaks_his_word_is_named(task: Errand, message: str) -> None:
    with pytest.raises(ErrandError, match=message):
        interleave(kettle(), Script(WAIT, 5), [task])


@pytest.mark.parametrize(
    ("task", "steps", "finished", "undisturbed"),
    [
        (push("late, within the wait", 3, actions=5), 5, False, True),
        (push("cut at the end of the wait", 3, actions=50), 8, False, True),
        (walker("late, within the wait", predicted=3), 7, True, True),
        (walker("never back", predicted=3, promise=lambda before, after: False), 8, True, False),
    ],
)
def test_broken_words_can_be_noted(task: Errand, steps: int, finished: bool, undisturbed: bool) -> None:
    episode = interleave(kettle(horizon=9), Script(5, WAIT), [task], strict=False)
    (fill,) = episode.fills
    assert (fill.steps, fill.predicted, fill.late) == (steps, task.duration(None), True)
    assert (fill.finished, fill.undisturbed) == (finished, undisturbed)
    assert episode.elapsed == [8, 1]


def test_nothing_more_is_begun_in_a_wait_that_was_disturbed() -> None:
    tasks = [push("stray", 4, undisturbed=same_place), push("next", 2)]
    episode = interleave(kettle(horizon=9), Script(5, WAIT), tasks, pack=True, strict=False)
    assert [(fill.task, fill.late, fill.undisturbed) for fill in episode.fills] == [("stray", False, False)]
