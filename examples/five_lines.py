"""Five lines: any Gymnasium environment, a policy that waits in it, its numbers, and a folder that keeps it.

    python examples/five_lines.py                     # a few minutes; --steps 2000 for a look

With few steps the policy does not reach the flag yet; the lines are the same.
"""

import argparse
import tempfile
from pathlib import Path

import gymnasium as gym

import letitcook

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200_000, help="primitive steps of training")
parser.add_argument("--episodes", type=int, default=100, help="episodes of the evaluation")
parser.add_argument("--out", type=Path, default=None, help="folder for the policy; a temporary one if not given")
arguments = parser.parse_args()

env = letitcook.WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4, 8))
result = letitcook.learn(env, steps=arguments.steps, seed=0)
evaluation = letitcook.evaluate(env, result.policy, episodes=arguments.episodes)
folder = result.save(arguments.out or Path(tempfile.mkdtemp()) / "mountain-car")
again = letitcook.load(folder)

print(
    f"task return {evaluation.task_return:.1f} in {evaluation.length:.1f} steps with {evaluation.queries:.1f} queries"
)
observation, _ = env.reset(seed=1)
first, _ = result.policy.predict(observation)
assert again.policy.predict(observation)[0] == first
print(f"the first decision, before and after saving: {env.decisions.label(int(first))}")
