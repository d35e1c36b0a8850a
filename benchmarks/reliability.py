"""What reliability costs: checkpoints at the default interval, and checks of what an environment returns.

python benchmarks/reliability.py

Times of training are seconds of the processor, so that other work on the machine counts little; those of checkpoints,
which write to the disk, are of the wall clock.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np

from letitcook import Objective, WaitingEnv, make
from letitcook.core.decisions import Timesteps
from letitcook.deep.agent import LDQN
from letitcook.deep.drivers import python as driver
from letitcook.deep.replay import FILLED, POSITION
from letitcook.deep.settings import BEST
from letitcook.training.keeping import CHECKPOINT_SECONDS, SHARE, RunFolder
from letitcook.training.learn import prepare
from letitcook.training.spec import RunSpec
from letitcook.wrappers import waiting

ROUNDS = 12
STEPS = 1_500


def checkpoint(task: str, preset: str, full: bool) -> None:
    """Print what a checkpoint of a run takes, with a replay that is full if asked."""
    training = prepare(make(task), RunSpec(preset=preset, length=Timesteps(30_000)))
    next(training.run())
    learner: Any = training.learner
    if full:
        for ring in (learner._learner.replay, learner._learner.wait_steps):
            rng, rows = np.random.default_rng(0), len(ring.decision)
            ring.observation[:] = rng.normal(size=ring.observation.shape)
            ring.next_observation[:] = rng.normal(size=ring.observation.shape)
            ring.cursor[POSITION], ring.cursor[FILLED] = 0, rows
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place), CHECKPOINT_SECONDS)
        taken = []
        for _ in range(5):
            began = time.monotonic()
            folder.keep(training.stopped())
            taken.append(time.monotonic() - began)
        size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file()) / 2e6
    took = statistics.median(taken)
    share = took / (max(CHECKPOINT_SECONDS, took / SHARE) + took)
    print(f"checkpoint of {task}, {preset}{', full replay' if full else ''}: {size:.1f} MB, {took:.2f} s, {share:.2%}")


def unchecked(space: Any, observation: Any, step: int) -> Any:
    """Return an observation as a vector without looking at it, but for NaN."""
    return driver.finite_observation(np.asarray(observation, dtype=np.float32).reshape(-1), step)


def seconds_of(checks: bool) -> float:
    """Return processor seconds of training in a Python environment, with the checks or without them."""
    env = WaitingEnv(gym.make("CartPole-v1", disable_env_checker=True).unwrapped, wait=0, durations=(2, 4), gamma=0.99)
    learner = LDQN(env.with_discount(0.99, True), env.decisions, Objective.named("lexicographic"), BEST, seed=0)
    with ExitStack() as stack:
        if not checks:
            for module, name in ((waiting, "step_parts"), (driver, "step_parts")):
                stack.enter_context(patch.object(module, name, lambda returned, step: returned))
            stack.enter_context(patch.object(driver, "seen", unchecked))
        learner.advance(1_100)  # up to the first gradient step
        began = time.process_time()
        learner.advance(STEPS)
        return time.process_time() - began


def main() -> None:
    """Measure both."""
    checkpoint("cook", "paper", full=False)
    checkpoint("cartpole", "paper", full=True)
    checkpoint("cartpole", "best", full=True)
    seconds_of(True)  # compiles
    with_checks, without = [], []
    for _ in range(ROUNDS):
        with_checks.append(seconds_of(True))
        without.append(seconds_of(False))
    more = statistics.median(checked / plain - 1 for checked, plain in zip(with_checks, without, strict=True))
    print(f"checks of observations: {more:+.2%} of {min(without):.3f} s for {STEPS:,} steps, median of {ROUNDS} pairs")


if __name__ == "__main__":
    main()
