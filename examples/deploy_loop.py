"""A control loop that senses only when it must, on a plant that is simulated here.

    python examples/deploy_loop.py

The plant is a tank that must not run low: a valve, a leak, and a slow sensor. The policy is exact; any other that
letitcook learns or loads takes its place. Leave `clock` out to run in real time.
"""

from typing import Any

import gymnasium as gym

import letitcook
from letitcook.deploy.control_loop import SimulatedClock

CLOSED, OPEN = 0, 1
FULL, LOW, HORIZON = 12, 3, 60


class Tank(gym.Env):
    """Level 0 to 12. An open valve adds 4 a step, the leak takes 1 every step; a level below 3 costs 1 a step."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Discrete(FULL + 1)

    def initial_states(self) -> Any:
        """Return the starts with their probabilities: a tank at level 5."""
        return [(1.0, 5)]

    def outcomes(self, state: Any, action: Any) -> Any:
        """Return the one outcome of an action: probability, next level, reward, terminated."""
        level = min(max(state + 4 * (action == OPEN) - 1, 0), FULL)
        return [(1.0, level, -float(level < LOW), False)]

    def observe(self, state: Any) -> Any:
        """Return what the policy sees: the level."""
        return state


class Plant:
    """Stands for the real thing: it has a level, a slow sensor, and a valve."""

    def __init__(self) -> None:
        self.level, self.valve = 5, CLOSED
        self.sensed, self.opened, self.lowest = 0, 0, 5

    def sense(self) -> int:
        """Read the level; on a real plant this takes its time."""
        self.sensed += 1
        return self.level

    def act(self, valve: int) -> None:
        """Send the valve's position for one period."""
        self.valve = valve
        self.opened += valve == OPEN
        self.level = min(max(self.level + 4 * (valve == OPEN) - 1, 0), FULL)
        self.lowest = min(self.lowest, self.level)

    def shut(self, counters: letitcook.Counters) -> None:
        """Leave the plant in a safe state, however the loop ended."""
        self.valve = CLOSED


env = letitcook.WaitingEnv(gym.wrappers.TimeLimit(Tank(), HORIZON), wait=CLOSED, durations=(2, 4, 8))
policy = letitcook.plan(env).policy
plant = Plant()
counters = letitcook.run(
    policy,
    plant.sense,
    plant.act,
    rate_hz=10,
    decisions=env.decisions,
    max_steps=HORIZON,
    on_stop=plant.shut,
    clock=SimulatedClock(),
)
print(f"{counters.steps} periods, sensed {plant.sensed} times, waited {counters.waited}, ended by {counters.ended}")
print(f"lowest level {plant.lowest}, valve open in {plant.opened} periods")
