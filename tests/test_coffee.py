"""The coffee room: MiniGrid against the pure rules, the published lengths, the errands, the pictures."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from letitcook import make, rollout
from letitcook.errors import SettingError, SpaceError
from letitcook.evaluation.savings import BaseAlone
from letitcook.tasks.coffee import (
    ACTIONS,
    DROP,
    FORWARD,
    LAYOUT,
    NORTH,
    PICKUP,
    START,
    TASK,
    TOGGLE,
    USED_FROM,
    WAIT,
    CoffeeEnv,
    CoffeePolicy,
    Fetch,
    State,
    distances,
    fetches,
    moved,
    room_text,
)
from letitcook.tasks.coffee_objects import HOT, READY

LETTERS = "LRFpdTw"
OPTIMUM = "L L F F F F R F F F F F F F T L R w w w w w T L L F F F R F F T R F F F T R F L T"
AT_MACHINE = START._replace(x=2, y=1, direction=NORTH)
POSES = [(x, y, d) for y, row in enumerate(LAYOUT) for x, cell in enumerate(row) if cell == "." for d in range(4)]


@pytest.fixture(scope="module")
def layers() -> list[list[State]]:
    """Reachable states by the number of steps it takes to get to them, terminal ones included."""
    env = CoffeeEnv()
    seen, found = {START}, [[START]]
    while found[-1]:
        after = [
            after
            for state in found[-1]
            if not state.complete
            for action in range(len(ACTIONS))
            for _, after, _, _ in env.outcomes(state, action)
        ]
        found.append([state for state in dict.fromkeys(after) if state not in seen])
        seen.update(after)
    return found


def play(env: Any, policy: Any, steps: int = 200) -> str:
    """Follow `policy` from where `env` is."""
    lived = ""
    while not env.state.complete and len(lived) < steps:
        action, _ = policy.predict(env.observe(env.state))
        env.step(action)
        lived += LETTERS[action]
    return lived


# Sizes and lengths


def test_number_of_states_and_shortest_episode(layers: Any) -> None:
    assert sum(map(len, layers)) == 12_475
    assert sum(state.complete for layer in layers for state in layer) == 3
    assert min(steps for steps, layer in enumerate(layers) for state in layer if state.complete) == 41


def test_the_optimum_replayed() -> None:
    env = CoffeeEnv()
    env.reset(seed=0)
    ends = [env.step(LETTERS.index(letter))[2] for letter in OPTIMUM.split()]
    assert ends == [False] * 40 + [True]


def test_handwritten_barista() -> None:
    lived = play(CoffeeEnv(), CoffeePolicy())
    assert lived == "LLFFFFRFFFFFFFT" + "w" * 7 + "T" + "w" * 17 + "T" + "LLFFFRFT" + "RFFFT"
    assert len(lived) == 54


def test_fetching_sugar_while_the_coffee_brews_saves_nine_steps() -> None:
    env, policy = CoffeeEnv(), CoffeePolicy()
    steps = play(env, policy, steps=23)
    assert env.state.brewed == 1
    for action in Fetch("sugar").actions(env.observe(env.state)):
        env.step(action)
        steps += LETTERS[action]
    assert env.state.pose == AT_MACHINE.pose
    steps += play(env, policy)
    assert len(steps) == 45
    assert env.state.complete


# Rules


def test_minigrid_and_the_pure_rules_agree_everywhere(layers: Any) -> None:
    env = CoffeeEnv()
    pairs = 0
    for state in (state for layer in layers for state in layer if not state.complete):
        for action in range(len(ACTIONS)):
            env.set_state(state)
            observation, reward, terminated, truncated, _ = env.step(action)
            ((_, *expected),) = env.outcomes(state, action)
            assert [env.state, reward, terminated] == expected
            assert tuple(observation) == env.state
            assert not truncated
            pairs += 1
    assert pairs == 87_304


def test_toggles_are_at_least_8_and_18_steps_apart() -> None:
    env = CoffeeEnv()
    env.set_state(AT_MACHINE)
    toggled = []
    for step in range(100):
        before = env.state
        env.step(TOGGLE)
        begins = (before.heated == 0, before.brewed == 0 and env.state.brewed == 1, before.coffee != env.state.coffee)
        toggled += [step] * any(begins)
    assert toggled == [0, 8, 26]


def test_the_machine_ticks_wherever_the_agent_is() -> None:
    env = CoffeeEnv()
    env.set_state(AT_MACHINE)
    env.step(TOGGLE)
    for action in (FORWARD, PICKUP, DROP, WAIT, WAIT, WAIT, WAIT):
        assert env.state.heated < HOT
        env.step(action)
    assert env.state.heated == HOT
    assert env.carrying is None


@pytest.mark.parametrize("place", USED_FROM)
def test_objects_are_solid_and_stay(place: Any) -> None:
    x, y, direction = USED_FROM[place]
    env = CoffeeEnv()
    env.set_state(START._replace(x=x, y=y, direction=direction))
    for action in (FORWARD, PICKUP, TOGGLE, PICKUP, FORWARD):
        env.step(action)
    assert env.state.pose == (x, y, direction)


@pytest.mark.parametrize("missing", ["coffee", "sugar", "cream"])
def test_all_three_are_needed(missing: Any) -> None:
    everything = AT_MACHINE._replace(sugar=1, cream=1, heated=HOT, brewed=READY, coffee=1)
    assert everything.complete
    assert not everything._replace(**{missing: 0}).complete


def test_nothing_happens_after_the_end() -> None:
    over = AT_MACHINE._replace(sugar=1, cream=1, heated=HOT, brewed=READY, coffee=1)
    env = CoffeeEnv()
    for action in range(len(ACTIONS)):
        env.set_state(over)
        assert env.outcomes(over, action) == ((1.0, over, 0.0, True),)
        assert env.step(action)[1:3] == (0.0, True)
        assert env.state == over


# Errands


def test_what_the_errands_cost_at_the_machine() -> None:
    sugar, cream = fetches()
    assert (sugar.name, cream.name) == ("fetch-sugar", "fetch-cream")
    assert (sugar.duration(AT_MACHINE), cream.duration(AT_MACHINE)) == (15, 7)


@pytest.mark.parametrize("item", ["sugar", "cream"])
def test_errands_from_anywhere_come_back_and_take_the_shortest_way(item: Any) -> None:
    env, fetch, there = CoffeeEnv(), Fetch(item), USED_FROM[item[0].upper()]
    for x, y, direction in POSES:
        before = START._replace(x=x, y=y, direction=direction)
        env.set_state(before)
        observation = env.observe(before)
        actions = fetch.actions(observation)
        assert len(actions) == fetch.duration(observation)
        assert len(actions) == distances(there)[before.pose] + 1 + distances(before.pose)[there]
        assert not fetch.finished(observation)
        for action in actions:
            env.step(action)
        assert env.state == before._replace(**{item: 1})
        assert fetch.finished(env.observe(env.state))
        assert fetch.duration(env.observe(env.state)) == 0


def test_distances_are_the_shortest() -> None:
    """By relaxation, the slow way: `d(pose) = 1 + min d(pose after an action)`."""
    goal = USED_FROM["S"]
    slow = dict.fromkeys(POSES, 1000) | {goal: 0}
    for _ in range(30):
        slow = {pose: min(slow[pose], 1 + min(slow[moved(pose, a)] for a in range(3))) for pose in POSES}
    assert slow == distances(goal)


def test_unknown_errand() -> None:
    with pytest.raises(SettingError, match="'sugar' and 'cream'"):
        Fetch("milk")


# Gymnasium's side


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_check_env(render_mode: Any) -> None:
    check_env(gym.make(TASK.env_id, render_mode=render_mode).unwrapped)


def test_the_horizon_is_the_time_limit_and_nothing_else() -> None:
    env = gym.make(TASK.env_id)
    env.reset(seed=0)
    ends = [env.step(WAIT)[2:4] for _ in range(200)]
    assert ends == [(False, False)] * 199 + [(False, True)]
    assert not any(env.unwrapped.step(WAIT)[3] for _ in range(500))


def test_reset_begins_again() -> None:
    env = CoffeeEnv()
    play(env, CoffeePolicy())
    assert env.state.complete
    observation, info = env.reset(seed=1)
    assert (tuple(observation), info, env.state) == (START, {}, START)


@pytest.mark.parametrize("action", [-1, 7, 1.0, "left"])
def test_actions_out_of_range(action: Any) -> None:
    with pytest.raises(SpaceError, match="not one of"):
        CoffeeEnv().step(action)


# Pictures


def test_text() -> None:
    env = CoffeeEnv(render_mode="ansi")
    env.set_state(AT_MACHINE._replace(cream=1, heated=HOT, brewed=4))
    lines = str(env.render()).splitlines()
    assert lines[:5] == [
        "#CM#######",
        "#.^......#   coffee: no",
        "#........#   sugar: no",
        "#........#   cream: yes",
        "S........#   machine: brewing, 14 left",
    ]


def test_every_difference_shows_in_the_picture() -> None:
    env = CoffeeEnv(render_mode="rgb_array")
    states = [START, AT_MACHINE, START._replace(sugar=1), START._replace(cream=1)]
    states += [START._replace(heated=heated) for heated in range(1, HOT + 1)]
    states += [START._replace(heated=HOT, brewed=brewed) for brewed in range(1, READY + 1)]
    states.append(START._replace(heated=HOT, brewed=READY, coffee=1))
    pictures = set()
    for state in states:
        env.set_state(state)
        picture = env.render()
        assert isinstance(picture, np.ndarray) and picture.shape == (480, 480, 3)
        assert picture.dtype == np.uint8
        pictures.add(picture.tobytes())
    assert len(pictures) == len(states)


def test_no_render_mode_draws_nothing() -> None:
    assert CoffeeEnv().render() is None


def test_random_times_are_drawn_at_the_toggle_by_rules_and_by_minigrid() -> None:
    env = CoffeeEnv(heat_time=(4, 8), brew_time=(10, 18))
    at_machine = START._replace(x=2, y=1, direction=NORTH)
    for begins, steps, field in ((at_machine, (4, 8), "heated"), (at_machine._replace(heated=8), (10, 18), "brewed")):
        outcomes = env.outcomes(begins, TOGGLE)
        full = max(steps)
        assert sorted((p, full - getattr(after, field)) for p, after, _, _ in outcomes) == [(0.5, s - 1) for s in steps]
        met = set()
        for seed in range(20):
            env.reset(seed=seed)
            env.set_state(begins)
            env.step(TOGGLE)
            met.add(env.state)
        assert met == {after for _, after, _, _ in outcomes}


def test_a_hidden_machine_shows_what_it_does_alone() -> None:
    env = CoffeeEnv(hidden=True, render_mode="rgb_array")
    early, late = (START._replace(heated=heated) for heated in (1, 7))
    pictures = []
    for state in (early, late, START._replace(heated=8)):
        env.reset(seed=0)
        env.set_state(state)
        pictures.append(env.render())
        assert env.observation_space.contains(env.gen_obs())
    assert np.array_equal(pictures[0], pictures[1])  # type: ignore[arg-type]
    assert not np.array_equal(pictures[1], pictures[2])  # type: ignore[arg-type]
    assert env.observe(early).tolist() == env.observe(late).tolist() == [6, 8, 0, 0, 0, 1]
    assert "heating, ? left" in room_text(early, hidden=True)
    plain = CoffeeEnv(render_mode="rgb_array")
    plain.set_state(early)
    assert not np.array_equal(plain.render(), pictures[0])  # type: ignore[arg-type]


@pytest.mark.parametrize("kwargs", [{}, {"hidden": True}, {"brew_time": (10, 26)}, {"hidden": True, "heat_time": 3}])
def test_the_base_policy_and_the_errands_know_the_clock(kwargs: dict[str, Any]) -> None:
    env = make("coffee", mode="wrap", **kwargs)
    episode = rollout(env, BaseAlone(), seed=1)
    assert episode.terminated
    assert episode.length == 54 or kwargs.get("brew_time") or kwargs.get("heat_time")
    brewing = env.unwrapped.observe(AT_MACHINE._replace(heated=env.unwrapped.clocks.hot, brewed=2))  # type: ignore[attr-defined]
    assert [errand.duration(brewing) for errand in fetches()] == [15, 7]
    assert fetches()[0].undisturbed(brewing, brewing)
