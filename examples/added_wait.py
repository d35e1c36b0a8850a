"""A wait for an environment that has none: CartPole only knows left and right.

    python examples/added_wait.py                     # a few minutes; --steps 2000 for a look

`AddedWait` adds an action that lets one step pass. What that means only you know: here the cart gets no push.
"""

import argparse

import gymnasium as gym

import letitcook
from letitcook.tasks.controllers import no_force

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200_000, help="primitive steps of training")
parser.add_argument("--episodes", type=int, default=100, help="episodes of the evaluation")
arguments = parser.parse_args()

cartpole = letitcook.AddedWait(gym.make("CartPole-v1"), passive=no_force)
env = letitcook.WaitingEnv(cartpole, wait=cartpole.wait, durations=(2, 4, 8))
print("decisions:", ", ".join(env.decisions.label(u) for u in range(env.decisions.n)))
result = letitcook.learn(env, steps=arguments.steps, seed=0)
played = letitcook.evaluate(env, result.policy, episodes=arguments.episodes)
print(f"balanced for {played.length:.1f} steps with {played.queries:.1f} queries")
