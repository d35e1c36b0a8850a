"""The exact optimum of a finite environment: FrozenLake, dry and slippery.

    python examples/plan_frozen_lake.py

FrozenLake has no action that does nothing, so here waiting is to push left. On the slippery lake that is a way to move,
and it can be committed to where no hole is near.
"""

import gymnasium as gym

import letitcook

LEFT = 0
for slippery in (False, True):
    lake = gym.make("FrozenLake-v1", is_slippery=slippery)
    env = letitcook.WaitingEnv(lake, wait=LEFT, durations=(2, 4, 8))
    best = letitcook.plan(env)
    plain = letitcook.plan(env, objective="task")
    name = "slippery" if slippery else "dry"
    print(
        f"{name}: reaches the goal with probability {best.task_return:.4f}, as without waits: {plain.task_return:.4f}"
    )
    print(f"{name}: {best.length:.2f} steps, {best.queries:.2f} queries")
