"""Wait for a real process without polling it to death: a schedule from how long such jobs took before.

    python examples/wait_for_a_job.py [--jobs 10]

A job here is a Python process that sleeps. The first ones are waited for by checking often; their durations give the
schedule for the others, which is computed anew after each. Then the same trade-off as a waiting MDP: the exact optimum
of the task `job`, and what LQ with a memory learns by experience.
"""

import argparse
import random
import subprocess
import sys
from functools import partial

import letitcook
from letitcook.poll import every, schedule, wait_for


def is_over(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended: the check."""
    return process.poll() is not None


parser = argparse.ArgumentParser()
parser.add_argument("--jobs", type=int, default=10)
parser.add_argument("--steps", type=int, default=600_000)
parser.add_argument("--episodes", type=int, default=1_000)
arguments = parser.parse_args()

draw, past, checks = random.Random(0), list[float](), list[int]()
for job in range(arguments.jobs):
    seconds = draw.choice((0.2, 0.6)) * draw.lognormvariate(0.0, 0.05)
    process = subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep({seconds})"])
    # A check costs as much as finding the end a twentieth of a second late.
    when = every(0.01) if job < 4 else schedule(past, check_cost=1.0, lateness_cost=20.0)
    waited = wait_for(partial(is_over, process), when, timeout=60.0)
    past.append(waited.seconds)
    checks.append(waited.checks)
    print(f"job {job}: done after {waited.seconds:.2f} s, {waited.checks} checks")
print(
    f"checks a job: {sum(checks[:4]) / 4:.1f} at first, {sum(checks[4:]) / max(len(checks[4:]), 1):.1f} by the schedule"
)

env = letitcook.make("job")
best = letitcook.plan(env)
learned = letitcook.learn(env, steps=arguments.steps, preset="exact", memory="auto", progress=False)
played = letitcook.evaluate(env, learned.policy, episodes=arguments.episodes)
print(f"the task job: exact optimum {best.task_return:.3f}, learned {played.task_return:.3f}")
