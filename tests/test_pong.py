"""Pong's rules, and what is known to be best in them."""

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from letitcook.core.jit import seeded
from letitcook.tasks import pong
from letitcook.tasks.pong import AGENT, DOWN, HIT, LAST_ACTION, OPPONENT, TASK, UP, VX, WAIT, PongEnv, X, Y


def start() -> Any:
    state = np.zeros(pong.SIZE)
    pong.reset(state, seeded(0))
    return state


@pytest.fixture(scope="module")
def game() -> Any:
    """The game without sticky actions, enumerated: `layers[t]` maps each state after `t` steps to its number there,
    `after[t][number, action]` is its successor's number in layer t+1, -1 where the point was won."""
    layers, after = [{tuple(start()): 0}], []
    for _ in range(94):
        following: dict[Any, Any] = {}
        table = np.empty((len(layers[-1]), 4), dtype=np.int64)
        for key, number in layers[-1].items():
            for action in (UP, DOWN, WAIT, HIT):
                state = np.array(key)
                won = pong.move(state, action)
                state[LAST_ACTION] = WAIT  # means nothing without sticky actions
                table[number, action] = -1 if won else following.setdefault(tuple(state), len(following))
        layers.append(following)
        after.append(table)
    return layers, after


def test_the_fastest_win_takes_94_steps(game: Any) -> None:
    _, after = game
    assert all((table >= 0).all() for table in after[:93])
    assert (after[93] < 0).any()


def test_only_a_hit_from_the_corner_at_step_56_or_57_wins_at_once(game: Any) -> None:
    layers, after = game
    wins_at_94 = (after[93] < 0).any(axis=1)
    winning, returned = set(), set()
    for t in range(92, -1, -1):
        for key, number in layers[t].items():
            hit = after[t][number, HIT]
            is_return = key[VX] < 0 and list(layers[t + 1])[hit][VX] > 0 if t in (55, 56, 57) else False
            if is_return:
                returned.add((t + 1, key[AGENT]))
                if wins_at_94[hit]:
                    winning.add((t + 1, key[AGENT]))
        wins_at_94 = wins_at_94[after[t]].any(axis=1)
    assert winning == {(56, 2.0), (57, 2.0)}
    assert len(returned) > 2


def test_fewest_queries_of_the_fastest_win_is_18_without_sticky_actions(game: Any) -> None:
    layers, after = game
    # fewest[t][state]: queries from there to the win at step 94; inf where it is out of reach. Waits double: 2 is 1
    # after 1, 4 is 2 after 2, ..., so `waited[i][t]` is where a wait of 2**i from layer t ends.
    waited = [[table[:, WAIT] for table in after]]
    for i in range(1, 8):
        half = 2 ** (i - 1)
        last = waited[-1]
        waited.append([np.where(last[t] >= 0, last[t + half][last[t]], -1) for t in range(94 - 2**i + 1)])
    fewest = [np.full(len(layer), np.inf) for layer in layers]
    for t in range(93, -1, -1):
        for action in (UP, DOWN, WAIT, HIT):
            then = after[t][:, action]
            cost = np.where(then < 0, 1.0, 1.0 + fewest[t + 1][np.maximum(then, 0)])
            fewest[t] = np.minimum(fewest[t], cost)
        for i in range(1, 8):
            # A longer wait is cut by the win; it then cannot be better than one that ends exactly there or earlier.
            if t + 2**i <= 94:
                then = waited[i][t]
                cost = np.where(then < 0, 1.0, 1.0 + fewest[t + 2**i][np.maximum(then, 0)])
            else:
                cost = 1.0 + np.where(wins_by_waiting(after, t), 0.0, np.inf)
            fewest[t] = np.minimum(fewest[t], cost)
    assert fewest[0][0] == 18


def wins_by_waiting(after: Any, t: Any) -> Any:
    now = np.arange(len(after[t]))
    for later in range(t, 94):
        now = np.where(now >= 0, after[later][np.maximum(now, 0), WAIT], -1)
    return now < 0


def test_thirteen_ups_a_wait_and_a_hit_win() -> None:
    state = start()
    plan = [UP] * 13 + [WAIT] * 42 + [HIT] + [WAIT] * 38
    assert [pong.move(state, action) for action in plan] == [False] * 93 + [True]


def test_sticky_actions_repeat_a_quarter_of_the_time() -> None:
    rng, repeated = seeded(3), 0
    for _ in range(4000):
        state = start()
        state[LAST_ACTION] = DOWN
        pong.step(state, UP, rng)
        repeated += state[AGENT] == 16.0
    assert abs(repeated / 4000 - 0.25) < 0.03


def test_opponent_never_rests() -> None:
    state = start()
    for _ in range(30):
        before = state[OPPONENT]
        pong.move(state, WAIT)
        assert abs(state[OPPONENT] - before) == 1.0


def test_a_lost_point_is_served_again_and_paddles_stay() -> None:
    state = start()
    for _ in range(57):
        pong.move(state, UP)
    assert (state[AGENT], state[Y], state[X], state[VX]) == (2.0, 15.0, 20.0, 1.0)


def test_env_keeps_gymnasiums_contract() -> None:
    env = PongEnv(render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None and picture.shape == (360, 504, 3)
    dice = np.random.default_rng(0)
    for _ in range(5000):
        seen, reward, terminated, _, _ = env.step(dice.integers(4))
        assert reward == -1.0
        assert env.observation_space.contains(seen)
        if terminated:
            env.reset()


def test_task_is_the_papers() -> None:
    assert TASK.durations == (2, 4, 8, 16, 32, 64, 128)
    assert (TASK.horizon, TASK.decisions.n, TASK.decisions.label(WAIT)) == (1000, 11, "wait")
