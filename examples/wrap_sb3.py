"""Around a model of Stable-Baselines3.

    python examples/train_bases.py dqn-mountain-car --out dqn-mountain-car.zip
    python examples/wrap_sb3.py dqn-mountain-car.zip  # --steps 2000 for a look

Needs `pip install "letitcook[torch]"`. Without a file, a model is trained for a moment, just to show the lines.
"""

import argparse
from pathlib import Path

import gymnasium as gym
from stable_baselines3 import DQN

import letitcook
from letitcook import compare_with_base

parser = argparse.ArgumentParser()
parser.add_argument("model", type=Path, nargs="?", help="a file that DQN.save wrote; open only files that you trust")
parser.add_argument("--steps", type=int, default=100_000, help="primitive steps of training")
parser.add_argument("--episodes", type=int, default=100, help="episodes of the evaluations")
arguments = parser.parse_args()

mountain_car = gym.make("MountainCar-v0")
if arguments.model is None:
    model = DQN("MlpPolicy", mountain_car, learning_starts=100, seed=0, device="cpu").learn(500)
else:
    model = DQN.load(arguments.model, device="cpu")

env = letitcook.wrap(mountain_car, model, wait=1, durations=(2, 4, 8))
result = letitcook.learn(env, steps=arguments.steps, seed=0)
print("\n".join(compare_with_base(env, result.policy, episodes=arguments.episodes).lines()))
