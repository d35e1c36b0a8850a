"""MountainCar is Gymnasium's."""

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env

from letitcook.core.jit import seeded
from letitcook.tasks import mountain_car
from letitcook.tasks.mountain_car import TASK, WAIT, MountainCarEnv


def test_equals_gymnasium_step_by_step() -> None:
    theirs, rng, dice = gym.make("MountainCar-v0").unwrapped, seeded(0), np.random.default_rng(0)
    goals = 0
    for episode in range(30):
        theirs.reset(seed=episode)
        state = np.array(theirs.get_wrapper_attr("state"), dtype=np.float64)
        for _ in range(200):
            # Every third episode swings up, so that the goal and the top speed are met as well.
            action = int(dice.integers(3)) if episode % 3 else (2 if state[1] > 0 else 0)
            reward, terminated = mountain_car.step(state, action, rng)
            seen, their_reward, their_terminated, _, _ = theirs.step(action)
            np.testing.assert_allclose(state, np.array(theirs.get_wrapper_attr("state")), rtol=1e-12, atol=1e-15)
            assert (reward, terminated) == (their_reward, their_terminated)
            out = np.zeros(2, dtype=np.float32)
            mountain_car.observe(state, out)
            np.testing.assert_allclose(out, seen, rtol=1e-6)
            if terminated:
                goals += 1
                break
    assert goals >= 10


def test_the_left_end_stops_the_car() -> None:
    state = np.array([-1.19, -0.07])
    mountain_car.step(state, 0, seeded(0))
    assert state.tolist() == [-1.2, 0.0]


def test_starts_as_gymnasium_does() -> None:
    rng, state = seeded(1), np.zeros(2)
    positions = []
    for _ in range(2000):
        mountain_car.reset(state, rng)
        assert state[1] == 0.0
        positions.append(state[0])
    assert -0.6 <= min(positions) < -0.59
    assert -0.41 < max(positions) < -0.4


def test_env_keeps_gymnasiums_contract() -> None:
    env = MountainCarEnv(render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None and picture.shape == (400, 600, 3)
    assert env.step(WAIT)[1] == -1.0


def test_task_is_the_papers() -> None:
    assert TASK.durations == tuple(range(2, 21, 2))
    assert (TASK.horizon, TASK.decisions.n, TASK.decisions.label(WAIT)) == (200, 13, "wait")
