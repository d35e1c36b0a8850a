"""The kitchens: their rules one by one, their sizes, their handwritten cook, their pictures."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from letitcook.errors import SettingError, SpaceError
from letitcook.tasks import kitchen_drawing, task_named
from letitcook.tasks.cook import TASKS, CookEnv, CookPolicy
from letitcook.tasks.kitchen import (
    ACTIONS,
    DISH,
    EAST,
    INTERACT,
    NORTH,
    NOTHING,
    ONION,
    SOUP,
    SOUTH,
    START,
    STAY,
    WEST,
    State,
)
from letitcook.tasks.task import Task

LETTERS = "NSEW.I"
AT_POT = State(2, 1, SOUTH, NOTHING, onions=0, left=0, delivered=0)


def make(task: Task) -> CookEnv:
    return CookEnv(**task.kwargs)


def layers(env: Any) -> list[set[Any]]:
    """States by the number of steps it takes to get to them; the last layers hold the terminal ones."""
    seen = {state for _, state in env.initial_states()}
    found = [set(seen)]
    while found[-1]:
        after = {
            after
            for state in found[-1]
            if state.delivered < env.soups
            for action in range(len(ACTIONS))
            for _, after, _, _ in env.outcomes(state, action)
        }
        found.append(after - seen)
        seen |= after
    return found


def step(state: State, actions: str, **kwargs: Any) -> State:
    env = CookEnv(**kwargs)
    for letter in actions:
        ((_, state, _, _),) = env.outcomes(state, LETTERS.index(letter))
    return state


# Sizes and lengths


@pytest.mark.parametrize(
    ("name", "states", "shortest"), [("cook", 1279, 33), ("cook-longer", 2575, 51), ("cook-twice", 2557, 69)]
)
def test_number_of_states_and_shortest_episode(name: str, states: Any, shortest: Any) -> None:
    env = make(task_named(name))
    found = layers(env)
    assert sum(map(len, found)) == states
    done = [steps for steps, layer in enumerate(found) for state in layer if state.delivered == env.soups]
    assert done == [shortest]


ONE_SOUP = "SWINESI WSWINESI WSWINESI"
SERVE = "WSSI NNESI ESEI"


@pytest.mark.parametrize(
    ("name", "trace", "length"),
    [
        ("cook", f"{ONE_SOUP} {'.' * 17} {SERVE}", 53),
        ("cook-longer", f"{ONE_SOUP} {'.' * 35} {SERVE}", 71),
        ("cook-twice", f"{ONE_SOUP} {'.' * 17} {SERVE} NWW{ONE_SOUP} {'.' * 17} {SERVE}", 109),
    ],
)
def test_handwritten_cook(name: str, trace: Any, length: Any) -> None:
    env, policy = make(task_named(name)), CookPolicy()
    observation, _ = env.reset(seed=0)
    lived, terminated = "", False
    while not terminated:
        action, _ = policy.predict(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        lived += LETTERS[action]
        assert reward == -1
        assert not truncated
    assert lived == trace.replace(" ", "")
    assert len(lived) == length


@pytest.mark.parametrize("hidden", [False, True])
def test_handwritten_cook_answers_everywhere_and_needs_no_count_of_soups(hidden: Any) -> None:
    env, policy = CookEnv(soups=2, hide_delivered=hidden), CookPolicy()
    for state in set().union(*layers(env)):
        action, kept = policy.predict(env.observe(state))
        assert action in range(6)
        assert kept is None


# Rules


def test_moving_turns_and_moves_where_free() -> None:
    assert step(START, "E") == START._replace(x=2, facing=EAST)
    assert step(START, "W") == START._replace(facing=WEST)
    assert step(AT_POT, "S") == AT_POT
    assert step(START, "SS") == START._replace(y=3, facing=SOUTH)
    assert step(START, ".") == START


def test_what_each_station_gives() -> None:
    at_onions, at_dishes = START._replace(y=2, facing=WEST), START._replace(y=3, facing=SOUTH)
    assert step(at_onions, "I").held == ONION
    assert step(at_dishes, "I").held == DISH
    for held in (ONION, DISH, SOUP):
        assert step(at_onions._replace(held=held), "I").held == held
        assert step(at_dishes._replace(held=held), "I").held == held


@pytest.mark.parametrize("held", [NOTHING, ONION, DISH, SOUP])
def test_nothing_is_put_on_counters(held: Any) -> None:
    state = START._replace(held=held)
    assert step(state, "I") == state


def test_only_onions_go_into_the_pot_and_only_three() -> None:
    assert step(AT_POT._replace(held=ONION), "I") == AT_POT._replace(onions=1)
    for held in (NOTHING, DISH, SOUP):
        assert step(AT_POT._replace(held=held, onions=2), "I") == AT_POT._replace(held=held, onions=2)
    assert step(AT_POT._replace(held=ONION, onions=3, left=5), "I").held == ONION
    assert step(AT_POT._replace(held=ONION, onions=3), "I").held == ONION


@pytest.mark.parametrize("cook_time", [1, 2, 18, 36])
def test_a_pot_filled_at_step_f_can_be_emptied_at_f_plus_cook_time(cook_time: Any) -> None:
    filled = step(AT_POT._replace(held=ONION, onions=2), "I", cook_time=cook_time)
    assert filled == AT_POT._replace(onions=3, left=cook_time - 1)
    with_dish = filled._replace(held=DISH)
    if cook_time > 1:
        too_early = step(with_dish, "." * (cook_time - 2) + "I", cook_time=cook_time)
        assert too_early.held == DISH
        assert too_early.onions == 3
    in_time = step(with_dish, "." * (cook_time - 1) + "I", cook_time=cook_time)
    assert in_time == AT_POT._replace(held=SOUP)


def test_a_soup_that_is_done_waits() -> None:
    done = AT_POT._replace(onions=3)
    assert step(done, "....") == done


def test_only_soup_is_delivered() -> None:
    at_hatch = State(3, 2, EAST, SOUP, onions=0, left=0, delivered=0)
    env = CookEnv(soups=2)
    assert env.outcomes(at_hatch, INTERACT) == ((1.0, at_hatch._replace(held=NOTHING, delivered=1), -1.0, False),)
    last = at_hatch._replace(delivered=1)
    assert env.outcomes(last, INTERACT) == ((1.0, last._replace(held=NOTHING, delivered=2), -1.0, True),)
    assert step(at_hatch._replace(held=DISH), "I") == at_hatch._replace(held=DISH)


def test_nothing_happens_after_the_end() -> None:
    over = START._replace(delivered=1)
    assert {CookEnv().outcomes(over, action) for action in range(6)} == {((1.0, over, 0.0, True),)}


# Gymnasium's side


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_check_env(task: Task, render_mode: Any) -> None:
    check_env(gym.make(task.env_id, render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_steps_are_the_outcomes_and_observations_tell_states_apart(task: Task) -> None:
    env = make(task)
    states = [state for layer in layers(env) for state in layer if state.delivered < env.soups]
    for state in states:
        assert env.observation_space.contains(env.observe(state))
        for action in range(6):
            env.set_state(state)
            observation, reward, terminated, truncated, _ = env.step(action)
            assert env.outcomes(state, action) == ((1.0, env.state, reward, terminated),)
            assert observation.tolist() == env.observe(env.state).tolist()
            assert not truncated
    assert len({tuple(env.observe(state)) for state in states}) == len(states)


def test_hidden_count_of_soups() -> None:
    shown, hidden = CookEnv(soups=2), CookEnv(soups=2, hide_delivered=True)
    state = START._replace(delivered=1)
    assert shown.observe(state).tolist() == [*hidden.observe(state).tolist(), 1]
    assert hidden.observation_space == CookEnv().observation_space
    assert hidden.observe(state).tolist() == hidden.observe(START).tolist()


def test_the_horizon_is_the_time_limit_and_nothing_else() -> None:
    env = gym.make("letitcook/Cook-v0")
    env.reset(seed=0)
    ends = [env.step(STAY)[2:4] for _ in range(200)]
    assert ends == [(False, False)] * 199 + [(False, True)]


def test_spec_round_trip() -> None:
    env = gym.make("letitcook/CookLonger-v0")
    assert gym.make(env.spec).unwrapped.cook_time == env.unwrapped.cook_time == 36  # type: ignore[arg-type, attr-defined]


@pytest.mark.parametrize(
    "settings",
    [
        {"cook_time": 0},
        {"cook_time": 1.5},
        {"cook_time": float("nan")},
        {"cook_time": "18"},
        {"soups": 0},
        {"soups": -1},
    ],
)
def test_settings_out_of_range(settings: Any) -> None:
    with pytest.raises(SettingError, match="whole number of at least 1"):
        CookEnv(**settings)


@pytest.mark.parametrize("action", [-1, 6, 1.0, "north"])
def test_actions_out_of_range(action: Any) -> None:
    with pytest.raises(SpaceError, match="not one of"):
        CookEnv().step(action)


# Pictures


def test_text() -> None:
    env = CookEnv(render_mode="ansi")
    env.set_state(State(3, 3, NORTH, DISH, onions=3, left=4, delivered=0))
    assert str(env.render()).splitlines() == [
        "X X X X X",
        "X · · · X   holding: dish",
        "O · P · S   pot: cooking, 4 left",
        "X · · ^ X   delivered: 0 of 1",
        "X D X X X   O onions  P pot  D dishes  S serving  X counter",
    ]


def test_every_difference_shows_in_the_picture() -> None:
    env = CookEnv(soups=2, render_mode="rgb_array")
    states = [
        START,
        START._replace(x=2),
        *(START._replace(facing=facing) for facing in (SOUTH, EAST, WEST)),
        *(START._replace(held=held) for held in (ONION, DISH, SOUP)),
        *(START._replace(onions=onions) for onions in (1, 2, 3)),
        *(START._replace(onions=3, left=left) for left in (1, 9, 17)),
        *(START._replace(delivered=delivered) for delivered in (1, 2)),
    ]
    pictures = set()
    for state in states:
        env.set_state(state)
        picture = env.render()
        assert isinstance(picture, np.ndarray) and picture.shape == (444, 400, 3)
        assert picture.dtype == np.uint8
        pictures.add(picture.tobytes())
    assert len(pictures) == len(states)


def test_no_render_mode_draws_nothing() -> None:
    assert CookEnv().render() is None


def test_a_random_cook_time_is_drawn_when_cooking_begins() -> None:
    env = CookEnv(cook_time=(14, 22))
    filled = START._replace(x=2, y=1, facing=SOUTH, held=ONION, onions=2)
    assert [(p, after.left) for p, after, _, _ in env.outcomes(filled, INTERACT)] == [(0.5, 13), (0.5, 21)]
    seen = set()
    for seed in range(20):
        env.reset(seed=seed)
        env.set_state(filled)
        env.step(INTERACT)
        seen.add(env.state.left)
    assert seen == {13, 21}


@pytest.mark.parametrize("soups", [1, 2])
def test_a_hidden_clock_is_neither_seen_nor_drawn(soups: int) -> None:
    env = CookEnv(soups=soups, hidden=True, render_mode="ansi")
    early, late = (START._replace(onions=3, left=left) for left in (2, 17))
    assert env.observe(early).tolist() == env.observe(late).tolist()
    assert env.observation_space.contains(env.observe(early))
    env.set_state(early)
    assert "cooking, ? left" in str(env.render())
    pictures = [kitchen_drawing.picture(state, 18, soups, hidden=True) for state in (early, late)]
    assert np.array_equal(*pictures)  # type: ignore[arg-type]
    assert not np.array_equal(pictures[0], kitchen_drawing.picture(early, 18, soups))
    assert CookPolicy().predict(env.observe(early))[0] == STAY
