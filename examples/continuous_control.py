"""Continuous actions: a controller for Pendulum, and a wait that is a torque of zero.

    python examples/continuous_control.py             # about a minute; --steps 2000 for a look

Decisions are {base, wait} and the longer waits, whatever the action space is; the wait is one fixed action of it.
"""

import argparse
import math

import gymnasium as gym
import numpy as np

import letitcook
from letitcook import compare_with_base

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60_000, help="primitive steps of training")
parser.add_argument("--episodes", type=int, default=50, help="episodes of the evaluations")
arguments = parser.parse_args()

GRAVITY, MASS, LENGTH = 10.0, 1.0, 1.0
UPRIGHT = MASS * GRAVITY * LENGTH / 2
"""Energy of the pendulum at rest at the top, in joules."""


def controller(observation: np.ndarray) -> np.ndarray:
    """Return a torque: pump energy until the top is near, then balance."""
    cosine, sine, speed = (float(x) for x in observation)
    angle = math.atan2(sine, cosine)
    if cosine > 0.9:
        torque = -20.0 * angle - 4.0 * speed
    else:
        energy = MASS * LENGTH**2 / 6 * speed**2 + UPRIGHT * cosine
        torque = 2.0 * math.copysign(1.0, speed) * (1.0 if energy < UPRIGHT else -1.0)
    return np.clip([torque], -2.0, 2.0).astype(np.float32)


env = letitcook.wrap(gym.make("Pendulum-v1"), controller, wait=0.0, durations=(2, 4, 8))
result = letitcook.learn(env, steps=arguments.steps, seed=0)
savings = compare_with_base(env, result.policy, episodes=arguments.episodes, seed=7)
print("\n".join(savings.lines()))
