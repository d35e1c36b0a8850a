"""LDQN's Python loop: any Gymnasium environment, one or several, taking turns.

Every episode is begun with a seed of its own, and its decisions are kept. So an evaluation can borrow the environment,
and a stopped run can be taken up again in a new process: the episode is begun again with its seed and run again to
where it stood. An environment that does not repeat itself under a seed begins a new episode instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import Transition
from letitcook.core.episode_stats import Totals, count, new_counts
from letitcook.core.jit import random_below
from letitcook.deep.policy import NetworkPolicy, chosen, flat
from letitcook.deep.replay import remember_intra_option
from letitcook.deep.state import STEPS, Learner, begin_episode, decide, is_before, is_wait, record_wait_steps, take_in
from letitcook.deep.update import learn
from letitcook.errors import NotFiniteError, SettingError, SpaceError
from letitcook.storage.array_checks import MOST_STEPS, Expected, checked
from letitcook.storage.spaces import numbers_in
from letitcook.wrappers.env_returns import check_length, number_of, reset_parts, step_parts
from letitcook.wrappers.waiting import horizon_of

SEEDS = 2**31 - 1


class Slot:
    """An environment and the episode it is in."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env
        self.space = numbers_in(env.observation_space)
        """What it shows; kept, for an environment that changes its space must be noticed."""
        self.seed = 0
        self.decisions: list[int] = []
        self.observation: NDArray[np.float32] | None = None
        """Where the next decision is due; None if an episode has to begin."""

    def begin(self, seed: int, step: int) -> NDArray[np.float32]:
        """Begin the episode of a seed."""
        self.seed, self.decisions = seed, []
        raw, _ = reset_parts(self.env.reset(seed=seed))
        self.observation = seen(self.space, raw, step)
        return self.observation

    def replay_episode(self) -> None:
        """Bring the environment back to where the episode stood, or give the episode up."""
        if self.observation is None:
            return
        stood, decisions = self.observation, self.decisions
        now = self.begin(self.seed, 0)
        for u in decisions:
            raw, _, terminated, truncated, _ = self.env.step(u)
            if terminated or truncated:
                self.observation = None
                return
            now = flat(self.space, raw)
        self.decisions = decisions
        self.observation = stood if np.array_equal(now, stood) else None


class PythonDriver:
    """Drives a learner through environments, a decision in each by turns."""

    def __init__(self, envs: Sequence[gym.Env[Any, Any]], learner: Learner) -> None:
        self._learner = learner
        self._slots = [Slot(env) for env in envs]
        self._turn = 0
        self._counts = new_counts(len(self._slots))

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended."""
        return Totals(*self._counts[0].tolist())

    def advance(self, steps: int, decisions: int) -> None:
        """Train until that many primitive steps or decisions have passed."""
        learner, rng = self._learner, self._learner.rng
        while is_before(learner.counters, steps, decisions):
            slot, at, row = self._slots[self._turn], self._turn, self._turn + 1
            self._turn = (self._turn + 1) % len(self._slots)
            x = slot.observation
            step = int(learner.counters[STEPS])
            if x is None:
                self._counts[row] = 0.0
                x = slot.begin(random_below(rng, SEEDS), step)
                begin_episode(learner, at)
            u = decide(learner, at, x)
            slot.observation = None  # until all of what follows has gone well
            raw, reward, terminated, truncated, info = step_parts(slot.env.step(u), len(slot.decisions) + 1)
            elapsed, discount = info.get("elapsed", 1), info.get("discount", learner.rules.gamma)
            step += elapsed
            task, waiting = finite_reward(reward, discount, step)
            after = seen(slot.space, raw, step)
            waits = is_wait(learner, u)
            if waits and (learner.rules.model_rows or learner.rules.intra_option):
                self._learn_inside(slot, x, info, task, after, terminated, truncated)
            truncates, reward = bool(truncated and not terminated), np.array([task, waiting])
            transition = Transition(x, u, reward, int(elapsed), float(discount), after, bool(terminated), truncates)
            due = take_in(learner, at, transition)
            if due:
                learn(learner, due)
            gained = float(info.get("task_reward", task))
            count(self._counts, row, int(elapsed), gained, bool(waits), bool(terminated or truncated))
            slot.decisions.append(u)
            if not (terminated or truncated):
                slot.observation = after

    def _learn_inside(
        self,
        slot: Slot,
        x: NDArray[np.float32],
        info: dict[str, Any],
        task: float,
        after: NDArray[np.float32],
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Take in the steps of a wait; of an environment that does not tell them, only waits of a single step."""
        learner, requested = self._learner, info.get("requested", 1)
        if "intermediate" in info:
            path, rewards = self._path(slot, x, info)
        elif requested > 1 and learner.rules.intra_option:
            raise SettingError(
                "intra_option needs the states inside a wait; "
                "make the environment with WaitingEnv(..., intermediate=True)"
            )
        elif info.get("elapsed", 1) == 1:
            path, rewards = np.stack([x, after]), np.array([task])
        else:
            return
        if learner.rules.model_rows:
            record_wait_steps(learner, path, rewards, len(rewards), terminated)
        planned = len(rewards) if truncated else requested
        for _ in range(learner.rules.intra_option if requested > 1 else 0):
            remember_intra_option(
                learner.replay,
                path,
                rewards,
                len(rewards),
                planned,
                terminated,
                truncated and not terminated,
                learner.rules.gamma,
                learner.waits,
                learner.durations,
                learner.rng,
                learner.rules.wait_cost,
            )

    def _path(
        self, slot: Slot, x: NDArray[np.float32], info: dict[str, Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the observations inside a wait, from the first to the last, and the rewards of its steps."""
        step = int(self._learner.counters[STEPS])
        inside = [seen(slot.space, raw, step + 1 + t) for t, (raw, _) in enumerate(info["intermediate"])]
        return np.stack([x, *inside]), np.array([float(reward) for _, reward in info["intermediate"]])

    def play(self, policy: NetworkPolicy, episodes: int, seed: int, common_random_numbers: bool) -> NDArray[np.float64]:
        """Run episodes of a policy in the first environment, then bring its training episode back.

        Each episode has a seed of its own in any case, so that two policies meet the same random numbers.
        """
        slot = self._slots[0]
        limit = horizon_of(slot.env)
        env, out = slot.env, np.zeros((episodes, 4 + len(self._learner.durations)))
        seeds = np.random.default_rng(seed).integers(SEEDS, size=episodes)
        for episode, episode_seed in enumerate(seeds.tolist()):
            raw, _ = reset_parts(env.reset(seed=episode_seed))
            over = False
            while not over:
                x = seen(slot.space, raw, int(self._learner.counters[STEPS]))
                raw, reward, terminated, truncated, info = env.step(u := chosen(policy.chooser, x))
                task_reward, elapsed = info.get("task_reward", rewards_of(reward)[0]), info.get("elapsed", 1)
                out[episode, :4] += (task_reward, elapsed, 1, info.get("base_queries", 0))
                out[episode, 4 + u] += elapsed
                over = terminated or truncated
                check_length(int(out[episode, 1]), limit)
        slot.replay_episode()
        return out

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return where the episodes stand."""
        slots = self._slots
        observations = [slot.observation for slot in slots]
        blank = np.zeros(len(self._learner.inputs.mean), dtype=np.float32)
        return {
            "slots.turn": np.array([self._turn]),
            "slots.counts": self._counts.copy(),
            "slots.seed": np.array([slot.seed for slot in slots]),
            "slots.running": np.array([x is not None for x in observations]),
            "slots.observation": np.stack([blank if x is None else x for x in observations]),
            "slots.length": np.array([len(slot.decisions) for slot in slots]),
            "slots.decisions": np.array([u for slot in slots for u in slot.decisions], dtype=np.int64),
        }

    def check(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise if what `arrays` returned does not fit."""
        n, size, last = len(self._slots), len(self._learner.inputs.mean), len(self._learner.durations) - 1
        checked(arrays, "slots.turn", Expected((1,), "whole", 0, n - 1))
        checked(arrays, "slots.seed", Expected((n,), "whole", 0, SEEDS))
        checked(arrays, "slots.running", Expected((n,), "truth"))
        checked(arrays, "slots.observation", Expected((n, size)))
        lengths = checked(arrays, "slots.length", Expected((n,), "whole", 0, MOST_STEPS))
        checked(arrays, "slots.decisions", Expected((int(lengths.sum(dtype=np.int64)),), "whole", 0, last))
        if "slots.counts" in arrays:
            checked(arrays, "slots.counts", Expected(self._counts.shape))

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Run the episodes again to where they stood."""
        self._turn = int(arrays["slots.turn"][0])
        self._counts[:] = arrays.get("slots.counts", 0.0)
        ends = np.cumsum(arrays["slots.length"], dtype=np.int64)
        for i, slot in enumerate(self._slots):
            slot.seed = int(arrays["slots.seed"][i])
            slot.decisions = arrays["slots.decisions"][ends[i] - arrays["slots.length"][i] : ends[i]].tolist()
            slot.observation = arrays["slots.observation"][i].astype(np.float32) if arrays["slots.running"][i] else None
            slot.replay_episode()


def seen(space: spaces.Space[Any], observation: Any, step: int) -> NDArray[np.float32]:
    """Return an observation as a vector, or raise if it is not one of the space, or not finite, at that step."""
    try:
        x = flat(space, observation)
    except SpaceError as error:
        raise SpaceError(f"{error}; the environment gave it at primitive step {step} of the training") from error
    return finite_observation(x, step)


def rewards_of(reward: Any) -> tuple[float, float]:
    """Return `(task, waiting)`; a plain environment's reward is the task's, and each decision is a query."""
    if isinstance(reward, np.ndarray) and reward.shape == (2,):
        return float(reward[0]), float(reward[1])
    return number_of(reward, 0), -1.0


def finite_reward(reward: Any, discount: float, step: int) -> tuple[float, float]:
    """Return `(task, waiting)`, or say at which step they stopped being finite."""
    task, waiting = rewards_of(reward)
    if not (math.isfinite(task) and math.isfinite(waiting) and math.isfinite(discount)):
        raise NotFiniteError(
            f"the environment gave the reward {reward} at primitive step {step}; rewards must be finite numbers"
        )
    return task, waiting


def finite_observation(x: NDArray[np.float32], step: int) -> NDArray[np.float32]:
    """Return `x`, or say at which step it stopped being finite."""
    if not np.isfinite(x).all():
        raise NotFiniteError(
            f"the environment gave the observation {x.tolist()} at primitive step {step}; observations must be finite"
        )
    return x
