"""LDQN's compiled loop: the simulated tasks, the learner and, in a wrapper, the base network in one piece of code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letitcook.deep.learner import EPISODE_STEP, STEPS, Learner, begin_episode, decide, learn, take_in
from letitcook.deep.network import copy_row
from letitcook.deep.policy import NOBODY, Chooser, NetworkPolicy, chosen
from letitcook.deep.replay import remember_sub_wait
from letitcook.envs import physics
from letitcook.envs.task import Task
from letitcook.kernels import compiled, random_bits, seeded
from letitcook.totals import Totals, count, new_counts
from letitcook.wmdp import Decisions

BASE = -1
"""Stands for "what the base network says" among the actions."""


class World(NamedTuple):
    """A task, what it takes to carry out a decision in it, and where an episode stands."""

    number: int
    horizon: int
    actions: NDArray[np.int64]
    """Primitive action that each decision applies; `BASE` asks the base network."""
    state: NDArray[np.float64]
    observation: NDArray[np.float32]
    next_observation: NDArray[np.float32]
    path: NDArray[np.float32]
    """Observations inside the last wait, for sub-wait learning; else empty."""
    path_rewards: NDArray[np.float64]
    counts: NDArray[np.float64]
    """What the training episodes were like, see `totals`."""
    base: Chooser
    """The base network, or `NOBODY`."""


def new_world(task: Task, decisions: Decisions, base: NetworkPolicy | None, keep_path: bool) -> World:
    """Make the world of a task, from scratch or around a base network."""
    number = physics.NUMBER_OF[task.name]
    size = physics.OBSERVATION_SIZE[number]
    actions = decisions.actions_of.copy()
    if base is not None:  # decisions {base, wait} ∪ W
        actions[:] = task.wait
        actions[0] = BASE
    longest = int(decisions.durations_of.max()) if keep_path else 0
    return World(
        number=number,
        horizon=task.horizon,
        actions=actions,
        state=np.zeros(physics.STATE_SIZE),
        observation=np.zeros(size, dtype=np.float32),
        next_observation=np.zeros(size, dtype=np.float32),
        path=np.zeros((longest + 1 if keep_path else 0, size), dtype=np.float32),
        path_rewards=np.zeros(longest),
        counts=new_counts(1),
        base=NOBODY if base is None else base.chooser,
    )


@compiled
def begin(world: World, rng: NDArray[np.uint64]) -> None:
    """Begin an episode."""
    physics.reset(world.number, world.state, rng)
    physics.observe(world.number, world.state, world.observation)


@compiled
def carry_out(
    world: World, decision: int, duration: int, gamma: float, episode_step: int, rng: NDArray[np.uint64]
) -> tuple[float, float, float, int, bool, bool]:
    """Carry out a decision to its end or the episode's; the state and `next_observation` move on.

    Returns the task reward, discounted and not; `γ^elapsed`; the steps elapsed; terminated; truncated.
    """
    action = world.actions[decision]
    if action == BASE:
        action = chosen(world.base, world.observation)
    keep = len(world.path) > 0
    if keep:
        copy_row(world.observation, world.path[0])
    discounted, total, discount, elapsed = 0.0, 0.0, 1.0, 0
    terminated = truncated = False
    while elapsed < duration and not terminated and not truncated:
        reward, terminated = physics.step(world.number, world.state, action, rng)
        elapsed += 1
        discounted += discount * reward
        total += reward
        discount *= gamma
        truncated = not terminated and episode_step + elapsed >= world.horizon
        if keep:
            physics.observe(world.number, world.state, world.path[elapsed])
            world.path_rewards[elapsed - 1] = reward
    physics.observe(world.number, world.state, world.next_observation)
    return discounted, total, discount, elapsed, terminated, truncated


@compiled
def run(learner: Learner, world: World, goal: int) -> None:
    """Train until `goal` primitive steps have passed, to the end of the decision that passes it."""
    gamma, counters, rng = learner.rules.gamma, learner.counters, learner.rng
    while counters[STEPS] < goal:
        if counters[EPISODE_STEP] < 0:
            begin(world, rng)
            begin_episode(learner, 0)
            counters[EPISODE_STEP] = 0
        u = decide(learner, 0, world.observation)
        reward, total, discount, elapsed, terminated, truncated = carry_out(
            world, u, learner.durations[u], gamma, counters[EPISODE_STEP], rng
        )
        if learner.durations[u] > 1:
            for _ in range(learner.rules.sub_waits):
                remember_sub_wait(
                    learner.replay,
                    world.path,
                    world.path_rewards,
                    elapsed,
                    min(learner.durations[u], world.horizon - counters[EPISODE_STEP]),
                    terminated,
                    truncated,
                    gamma,
                    learner.waits,
                    learner.durations,
                    rng,
                )
        due = take_in(
            learner,
            0,
            world.observation,
            u,
            reward,
            -1.0,
            elapsed,
            discount,
            world.next_observation,
            terminated,
            truncated,
        )
        learn(learner, due)
        waits = u == learner.waits[0] or learner.durations[u] > 1
        count(world.counts, 1, elapsed, total, waits, terminated or truncated)
        copy_row(world.next_observation, world.observation)
        counters[EPISODE_STEP] = -1 if terminated or truncated else counters[EPISODE_STEP] + elapsed


@compiled
def run_policy(
    chooser: Chooser,
    durations: NDArray[np.int64],
    world: World,
    rng: NDArray[np.uint64],
    apart: bool,
    out: NDArray[np.float64],
) -> None:
    """Live episodes of a policy.

    A row of `out` each: task return, length, queries, base queries, steps in each decision. `apart` gives each episode
    random numbers of its own, so that two policies meet the same chances.
    """
    seeds = rng.copy()
    for episode in range(len(out)):
        if apart:
            rng[0] = random_bits(seeds)
        begin(world, rng)
        row = out[episode]
        row[:] = 0.0
        over = False
        while not over:
            u = chosen(chooser, world.observation)
            _, total, _, elapsed, terminated, truncated = carry_out(world, u, durations[u], 1.0, int(row[1]), rng)
            copy_row(world.next_observation, world.observation)
            row[0] += total
            row[1] += elapsed
            row[2] += 1
            row[3] += 1 if world.actions[u] == BASE else 0
            row[4 + u] += elapsed
            over = terminated or truncated


class Simulation:
    """Drives a learner through a simulated task in the compiled loop."""

    def __init__(
        self, task: Task, decisions: Decisions, learner: Learner, base: NetworkPolicy | None, keep_path: bool
    ) -> None:
        self._learner = learner
        self._world = new_world(task, decisions, base, keep_path)

    def advance(self, goal: int) -> None:
        """Train until `goal` steps have passed."""
        run(self._learner, self._world, goal)

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended."""
        return Totals(*self._world.counts[0].tolist())

    def play(self, policy: NetworkPolicy, episodes: int, seed: int, apart: bool) -> NDArray[np.float64]:
        """Live episodes of a policy, aside from the training."""
        w = self._world
        aside = w._replace(
            state=w.state.copy(), observation=w.observation.copy(), next_observation=w.observation.copy()
        )
        out = np.zeros((episodes, 4 + len(self._learner.durations)))
        run_policy(policy.chooser, self._learner.durations, aside, seeded(seed), apart, out)
        return out

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return where the episode stands."""
        names = ("state", "observation", "counts")
        return {f"world.{name}": getattr(self._world, name).copy() for name in names}

    def restore(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        """Go back to where the episode stood."""
        self._world.state[:] = arrays["world.state"]
        self._world.observation[:] = arrays["world.observation"]
        self._world.counts[:] = arrays.get("world.counts", 0.0)
