"""The handwritten controllers solve their tasks."""

from typing import Any

import gymnasium as gym
import pytest

from letitcook.tasks import controllers


@pytest.mark.parametrize(
    ("env_id", "name", "least"),
    [
        ("Pendulum-v1", "swing", -400.0),
        ("MountainCarContinuous-v0", "push", 80.0),
        ("Acrobot-v1", "pump", -200.0),
        ("CartPole-v1", "pole", 500.0),
    ],
)
def test_controllers_solve_their_tasks(env_id: str, name: str, least: float) -> None:
    controller = getattr(controllers, name)
    env: gym.Env[Any, Any] = gym.make(env_id)
    observation, _ = env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(controller(observation))
        total, over = total + float(reward), terminated or truncated
    assert total >= least


def test_no_force_leaves_the_pole_alone() -> None:
    cartpole: Any = gym.make("CartPole-v1").unwrapped
    cartpole.reset(seed=0)
    cartpole.state = (0.0, 0.5, 0.0, 0.0)
    force = cartpole.force_mag
    observation, *_ = controllers.no_force(cartpole)
    assert observation[1] == pytest.approx(0.5)  # an upright pole at rest and no push: the cart keeps its speed
    assert cartpole.force_mag == force
