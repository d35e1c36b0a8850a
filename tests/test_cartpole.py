"""CartPole is Gymnasium's, plus a push of nothing."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from letitcook.core.jit import seeded
from letitcook.errors import SettingError, SpaceError
from letitcook.tasks import cartpole
from letitcook.tasks.cartpole import LEFT, RIGHT, TASK, WAIT, CartPoleEnv


def test_left_and_right_equal_gymnasium_step_by_step() -> None:
    theirs, rng, dice = gym.make("CartPole-v1").unwrapped, seeded(0), np.random.default_rng(0)
    for episode in range(150):
        seen, _ = theirs.reset(seed=episode)
        state, terminated = np.array(theirs.get_wrapper_attr("state")), False
        while not terminated:
            action = int(dice.integers(2))
            reward, terminated = cartpole.step(state, action, rng)
            seen, their_reward, their_terminated, _, _ = theirs.step(action)
            np.testing.assert_allclose(state, theirs.get_wrapper_attr("state"), rtol=1e-12, atol=1e-14)
            assert (reward, terminated) == (their_reward, their_terminated)
            out = np.zeros(4, dtype=np.float32)
            cartpole.observe(state, out)
            np.testing.assert_allclose(out, seen, rtol=1e-6)


def test_wait_applies_no_force() -> None:
    x, v, angle, spin = 0.3, -0.4, 0.05, 0.6
    state = np.array([x, v, angle, spin])
    cartpole.step(state, WAIT, seeded(0))
    temp = 0.05 * spin**2 * math.sin(angle) / 1.1
    angular = (9.8 * math.sin(angle) - math.cos(angle) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
    linear = temp - 0.05 * angular * math.cos(angle) / 1.1
    np.testing.assert_allclose(state, [x + 0.02 * v, v + 0.02 * linear, angle + 0.02 * spin, spin + 0.02 * angular])


def test_wait_lies_between_left_and_right() -> None:
    after = []
    for action in (LEFT, WAIT, RIGHT):
        state = np.array([0.0, 0.0, 0.02, 0.0])
        cartpole.step(state, action, seeded(0))
        after.append(state[1])
    assert after[0] < after[1] < after[2]


def test_starts_as_gymnasium_does() -> None:
    rng, state = seeded(1), np.zeros(4)
    seen = []
    for _ in range(2000):
        cartpole.reset(state, rng)
        seen.append(state.copy())
    starts = np.array(seen)
    assert np.abs(starts).max() < 0.05
    np.testing.assert_allclose(starts.std(axis=0), 0.1 / 12**0.5, rtol=0.05)


@pytest.mark.filterwarnings("ignore:.*A Box observation space (min|max)imum value is")  # as in Gymnasium's own
def test_env_keeps_gymnasiums_contract() -> None:
    env = CartPoleEnv(render_mode="rgb_array")
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None and picture.shape == (300, 600, 3)
    assert picture.std() > 5


def test_seed_decides() -> None:
    env = CartPoleEnv()
    first, again, other = (env.reset(seed=s)[0] for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert (env.reset()[0] != other).any()


def test_mistakes_are_explained() -> None:
    env = CartPoleEnv()
    env.reset(seed=0)
    with pytest.raises(SpaceError, match=r"action 3 is outside Discrete\(3\)"):
        env.step(3)
    with pytest.raises(SettingError, match="rgb_array"):
        CartPoleEnv(render_mode="human")


def test_task_is_the_papers() -> None:
    assert TASK.durations == tuple(range(2, 21, 2))
    assert (TASK.horizon, TASK.decisions.n, TASK.decisions.label(WAIT), TASK.return_per_step) == (200, 13, "wait", 1.0)
