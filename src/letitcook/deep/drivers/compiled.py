"""LDQN's compiled loop: the simulated tasks, the learner and, in a wrapper, the base network in one piece of code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, Transition
from letitcook.core.episode_stats import Totals, count, new_counts
from letitcook.core.jit import compiled, random_bits, seeded
from letitcook.core.pointer import Pointer, call
from letitcook.core.struct import Struct
from letitcook.deep.network import copy_row
from letitcook.deep.policy import NOBODY, BatchChooser, Chooser, NetworkPolicy, answers, chosen, new_batch_chooser
from letitcook.deep.replay import remember_intra_option
from letitcook.deep.state import (
    EPISODE_STEP,
    Learner,
    begin_episode,
    decide,
    is_before,
    is_wait,
    record_wait_steps,
    take_in,
)
from letitcook.deep.update import Methods, learn_pointer, methods
from letitcook.errors import FileFormatError
from letitcook.storage.array_checks import Expected, checked
from letitcook.tasks.simulated import SIMULATED, STATE_SIZE
from letitcook.tasks.task import Task

SIDE_BY_SIDE = 128
"""Episodes that run at once where each has random numbers of its own."""
BASE = -1
"""Stands for "what the base network says" among the actions."""


class World(Struct):
    """A task, what it takes to carry out a decision in it, and where an episode stands."""

    reset: Pointer
    step: Pointer
    observe: Pointer
    choose: Pointer
    """What asks a policy: the base network, and what is evaluated."""
    horizon: int
    actions: NDArray[np.int64]
    """Primitive action that each decision applies; `BASE` queries the base network."""
    state: NDArray[np.float64]
    observation: NDArray[np.float32]
    next_observation: NDArray[np.float32]
    reward: NDArray[np.float64]
    """`(task, waiting)` of the last decision; waiting is -1."""
    path: NDArray[np.float32]
    """Observations inside the last wait, where they are learned from; else empty."""
    path_rewards: NDArray[np.float64]
    counts: NDArray[np.float64]
    """What the training episodes were like, see `totals`."""
    base: Chooser
    """The base network, or `NOBODY`."""


def new_world(task: Task, decisions: Decisions, base: NetworkPolicy | None, keep_path: bool) -> World:
    """Make the world of a task, from scratch or around a base network."""
    size, reset, step, observe = SIMULATED[task.name]
    state, shown, rng = types.float64[::1], types.float32[::1], types.uint64[::1]
    actions = decisions.actions_of.copy()
    if base is not None:  # decisions {base, wait} ∪ W
        actions[:] = task.wait
        actions[0] = BASE
    longest = int(decisions.durations_of.max()) if keep_path else 0
    return World(
        reset=Pointer(reset, state, rng),
        step=Pointer(step, state, types.int64, rng),
        observe=Pointer(observe, state, shown),
        choose=Pointer(chosen, typeof(NOBODY), shown),
        horizon=task.horizon,
        actions=actions,
        state=np.zeros(STATE_SIZE),
        observation=np.zeros(size, dtype=np.float32),
        next_observation=np.zeros(size, dtype=np.float32),
        reward=np.array([0.0, -1.0]),
        path=np.zeros((longest + 1 if keep_path else 0, size), dtype=np.float32),
        path_rewards=np.zeros(longest),
        counts=new_counts(1),
        base=NOBODY if base is None else base.chooser,
    )


@compiled
def begin(world: World, rng: NDArray[np.uint64]) -> None:
    """Begin an episode."""
    call(world.reset, (world.state, rng))
    call(world.observe, (world.state, world.observation))


@compiled
def action_of(world: World, decision: int) -> int:
    """Return the primitive action that a decision means, and query the base network where the decision says so."""
    action = world.actions[decision]
    if action == BASE:
        action = call(world.choose, (world.base, world.observation))
    return int(action)


@compiled
def carry_out(
    world: World, action: int, duration: int, gamma: float, episode_step: int, rng: NDArray[np.uint64]
) -> tuple[float, float, float, int, bool, bool]:
    """Take an action for a duration, or to the episode's end; the state and `next_observation` move on.

    Returns the task reward, discounted and not; `γ^elapsed`; the steps elapsed; terminated; truncated.
    """
    keep = len(world.path) > 0
    if keep:
        copy_row(world.observation, world.path[0])
    discounted, total, discount, elapsed = 0.0, 0.0, 1.0, 0
    terminated = truncated = False
    while elapsed < duration and not terminated and not truncated:
        reward, terminated = call(world.step, (world.state, action, rng))
        elapsed += 1
        discounted += discount * reward
        total += reward
        discount *= gamma
        truncated = not terminated and episode_step + elapsed >= world.horizon
        if keep:
            call(world.observe, (world.state, world.path[elapsed]))
            world.path_rewards[elapsed - 1] = reward
    call(world.observe, (world.state, world.next_observation))
    return discounted, total, discount, elapsed, terminated, truncated


@compiled
def learn_inside(
    learner: Learner, world: World, decision: int, elapsed: int, terminated: bool, truncated: bool
) -> None:
    """Learn from the steps of a wait that is over."""
    if learner.rules.model_rows > 0:
        record_wait_steps(learner, world.path, world.path_rewards, elapsed, terminated)
    for _ in range(learner.rules.intra_option if learner.durations[decision] > 1 else 0):
        remember_intra_option(
            learner.replay,
            world.path,
            world.path_rewards,
            elapsed,
            min(learner.durations[decision], world.horizon - learner.counters[EPISODE_STEP]),
            terminated,
            truncated,
            learner.rules.gamma,
            learner.waits,
            learner.durations,
            learner.rng,
        )


class Teaching(Struct):
    """What the loop calls by address, so that it is compiled without what the settings do not need."""

    learn: Pointer
    methods: Methods
    inside: Pointer


def new_teaching(learner: Learner, world: World) -> Teaching:
    """Compile what the settings need, or load it."""
    rules, number, truth = learner.rules, types.int64, types.boolean
    of_inside = typeof(learner), typeof(world), number, number, truth, truth
    looks = rules.model_rows > 0 or rules.intra_option > 0
    return Teaching(
        learn=learn_pointer(learner),
        methods=methods(learner),
        inside=Pointer.where(looks, learn_inside, types.none, *of_inside),
    )


@compiled
def run(learner: Learner, world: World, teaching: Teaching, steps: int, decisions: int) -> None:
    """Train until that many primitive steps or decisions have passed, to the end of the decision then under way."""
    gamma, counters, rng = learner.rules.gamma, learner.counters, learner.rng
    while is_before(counters, steps, decisions):
        if counters[EPISODE_STEP] < 0:
            begin(world, rng)
            begin_episode(learner, 0)
            counters[EPISODE_STEP] = 0
        u = decide(learner, 0, world.observation)
        reward, total, discount, elapsed, terminated, truncated = carry_out(
            world, action_of(world, u), learner.durations[u], gamma, counters[EPISODE_STEP], rng
        )
        waits = is_wait(learner, u)
        if waits and (learner.rules.model_rows > 0 or learner.rules.intra_option):
            call(teaching.inside, (learner, world, u, elapsed, terminated, truncated))
        world.reward[0] = reward
        transition = Transition(
            world.observation, u, world.reward, elapsed, discount, world.next_observation, terminated, truncated
        )
        due = take_in(learner, 0, transition)
        if due > 0:
            call(teaching.learn, (learner, due, teaching.methods))
        count(world.counts, 1, elapsed, total, waits, terminated or truncated)
        copy_row(world.next_observation, world.observation)
        counters[EPISODE_STEP] = -1 if terminated or truncated else counters[EPISODE_STEP] + elapsed


@compiled
def run_policy(
    chooser: Chooser, durations: NDArray[np.int64], world: World, rng: NDArray[np.uint64], out: NDArray[np.float64]
) -> None:
    """Run episodes of a policy one after another; a row of `out` each, see `note`."""
    for episode in range(len(out)):
        begin(world, rng)
        row, over = out[episode], False
        while not over:
            u = call(world.choose, (chooser, world.observation))
            _, total, _, elapsed, terminated, truncated = carry_out(
                world, action_of(world, u), durations[u], 1.0, int(row[1]), rng
            )
            copy_row(world.next_observation, world.observation)
            note(row, u, world.actions[u] == BASE, total, elapsed)
            over = terminated or truncated


@compiled
def note(row: NDArray[np.float64], decision: int, asked: bool, task_reward: float, elapsed: int) -> None:
    """Add a decision to an episode's row: task return, length, queries, base queries, steps in each decision."""
    row[0] += task_reward
    row[1] += elapsed
    row[2] += 1
    row[3] += asked
    row[4 + decision] += elapsed


class Slots(Struct):
    """Episodes that run side by side, so that networks answer all of them at once."""

    episode: NDArray[np.int64]
    """Which episode each slot runs."""
    state: NDArray[np.float64]
    observation: NDArray[np.float32]
    rng: NDArray[np.uint64]
    """Random numbers of each episode's own, `(slots, 1)`."""
    decision: NDArray[np.int64]
    action: NDArray[np.int64]
    asking: NDArray[np.int64]
    """The slots that query the base network."""
    answer: NDArray[np.int64]


def new_slots(n: int, observation_size: int) -> Slots:
    """Make arrays for `n` episodes at once."""
    return Slots(
        episode=np.zeros(n, dtype=np.int64),
        state=np.zeros((n, STATE_SIZE)),
        observation=np.zeros((n, observation_size), dtype=np.float32),
        rng=np.zeros((n, 1), dtype=np.uint64),
        decision=np.zeros(n, dtype=np.int64),
        action=np.zeros(n, dtype=np.int64),
        asking=np.arange(n),
        answer=np.zeros(n, dtype=np.int64),
    )


@compiled
def run_side_by_side(
    policy: BatchChooser,
    base: BatchChooser,
    durations: NDArray[np.int64],
    world: World,
    slots: Slots,
    seeds: NDArray[np.uint64],
    out: NDArray[np.float64],
) -> None:
    """Run episodes of a policy, each with random numbers of its own; a row of `out` each, see `note`."""
    here = np.arange(len(slots.episode))
    begun = running = 0
    while True:
        while running < len(slots.episode) and begun < len(out):
            slots.episode[running] = begun
            slots.rng[running, 0] = random_bits(seeds)
            call(world.reset, (slots.state[running], slots.rng[running]))
            call(world.observe, (slots.state[running], slots.observation[running]))
            begun += 1
            running += 1
        if running == 0:
            return
        answers(policy, slots.observation, here[:running], slots.decision)
        asking = 0
        for i in range(running):
            slots.action[i] = world.actions[slots.decision[i]]
            if slots.action[i] == BASE:
                slots.asking[asking] = i
                asking += 1
        answers(base, slots.observation, slots.asking[:asking], slots.answer)
        for j in range(asking):
            slots.action[slots.asking[j]] = slots.answer[j]
        for i in range(running - 1, -1, -1):
            row, u = out[slots.episode[i]], slots.decision[i]
            copy_row(slots.state[i], world.state)
            _, total, _, elapsed, terminated, truncated = carry_out(
                world, slots.action[i], durations[u], 1.0, int(row[1]), slots.rng[i]
            )
            note(row, u, world.actions[u] == BASE, total, elapsed)
            copy_row(world.state, slots.state[i])
            copy_row(world.next_observation, slots.observation[i])
            if terminated or truncated:  # the last slot moves here
                running -= 1
                slots.episode[i] = slots.episode[running]
                slots.rng[i, 0] = slots.rng[running, 0]
                copy_row(slots.state[running], slots.state[i])
                copy_row(slots.observation[running], slots.observation[i])


class CompiledDriver:
    """Drives a learner through a simulated task in the compiled loop."""

    def __init__(
        self, task: Task, decisions: Decisions, learner: Learner, base: NetworkPolicy | None, keep_path: bool
    ) -> None:
        self._learner = learner
        self._world = new_world(task, decisions, base, keep_path)

    @cached_property
    def _teaching(self) -> Teaching:
        return new_teaching(self._learner, self._world)

    def advance(self, steps: int, decisions: int) -> None:
        """Train until that many primitive steps or decisions have passed."""
        run(self._learner, self._world, self._teaching, steps, decisions)

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended."""
        return Totals(*self._world.counts[0].tolist())

    def play(self, policy: NetworkPolicy, episodes: int, seed: int, common_random_numbers: bool) -> NDArray[np.float64]:
        """Run episodes of a policy, aside from the training."""
        w = self._world
        aside = w._replace(
            state=w.state.copy(), observation=w.observation.copy(), next_observation=w.observation.copy()
        )
        out = np.zeros((episodes, 4 + len(self._learner.durations)))
        if not common_random_numbers:
            run_policy(policy.chooser, self._learner.durations, aside, seeded(seed), out)
            return out
        n = min(episodes, SIDE_BY_SIDE)
        batch_chooser, slots = new_batch_chooser(policy.chooser, n), new_slots(n, len(w.observation))
        run_side_by_side(batch_chooser, self._base(n), self._learner.durations, aside, slots, seeded(seed), out)
        return out

    def _base(self, n: int) -> BatchChooser:
        return new_batch_chooser(self._world.base, n if len(self._world.base.networks) else 0)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return where the episode stands."""
        names = ("state", "observation", "counts")
        return {f"world.{name}": getattr(self._world, name).copy() for name in names}

    def check(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Raise if what `arrays` returned does not fit."""
        for name in ("state", "observation"):
            checked(arrays, f"world.{name}", Expected(getattr(self._world, name).shape, low=-1e9, high=1e9))
        if "world.counts" in arrays:
            checked(arrays, "world.counts", Expected(self._world.counts.shape))
        if int(arrays["counters"][EPISODE_STEP]) >= self._world.horizon:
            raise FileFormatError("the saved episode is longer than the task's; the file is damaged")

    def restore(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Go back to where the episode stood."""
        self._world.state[:] = arrays["world.state"]
        self._world.observation[:] = arrays["world.observation"]
        self._world.counts[:] = arrays.get("world.counts", 0.0)
