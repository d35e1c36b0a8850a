"""Around a function that you already have: learn when it need not be queried, and see what that costs and saves.

    python examples/wrap_a_callable.py                # about a minute; --steps 2000 for a look

The function stands for whatever is expensive to ask. Here it pushes in the direction in which the car moves.
"""

import argparse

import gymnasium as gym
import numpy as np

import letitcook
from letitcook import compare_with_base

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100_000, help="primitive steps of training")
parser.add_argument("--episodes", type=int, default=100, help="episodes of the evaluations")
arguments = parser.parse_args()


def push(observation: np.ndarray) -> int:
    """Return the action: 0 pushes left, 1 does nothing, 2 pushes right."""
    return 2 if observation[1] > 0 else 0


env = letitcook.wrap(gym.make("MountainCar-v0"), push, wait=1, durations=(2, 4, 8))
result = letitcook.learn(env, steps=arguments.steps, seed=0)
savings = compare_with_base(env, result.policy, episodes=arguments.episodes, seed=7)
print("\n".join(savings.lines(per_query=0.2)))  # as if the base took 200 ms; without it, the time that was measured
