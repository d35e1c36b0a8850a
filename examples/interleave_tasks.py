"""Other work inside the waits: fetch the sugar while the coffee brews.

python examples/interleave_tasks.py
"""

import letitcook
from letitcook import Errand

env = letitcook.make("coffee", mode="wrap")
policy = letitcook.plan(env).policy
alone = letitcook.rollout(env, policy)
print(f"waiting: {alone.length} steps, {alone.queries} queries")

fetches = letitcook.task_named("coffee").auxiliary()  # type: ignore[misc]
filled = letitcook.interleave(env, policy, fetches)
print(f"with errands: {filled.length} steps, {filled.queries} queries")
for fill in filled.fills:
    print(f"  step {fill.begun}: {fill.task}, {fill.steps} steps in a wait of {fill.wait}")

turn = Errand(  # an errand of one's own: turn left four times, and look the same way again
    name="look around",
    do=lambda observation: [0, 0, 0, 0],
    duration=lambda observation: 4,
    finished=lambda observation: False,
    undisturbed=lambda before, after: tuple(before[:3]) == tuple(after[:3]),
)
busy = letitcook.interleave(env, policy, [turn])
print(f"looking around {len(busy.fills)} times: {busy.length} steps, as without")
