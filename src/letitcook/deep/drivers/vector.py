"""LDQN's loop for vector environments: decisions in all sub-environments at once, each waiting for its own time.

Sub-environments are seeded once and then begin new episodes by themselves, so an episode that is under way cannot be
run again: an evaluation, which borrows the environments, and a stopped run that is taken up again begin new ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Transition
from letitcook.core.episode_stats import Totals, count, new_counts
from letitcook.core.jit import random_below
from letitcook.deep.drivers.python import SEEDS, finite_reward, seen
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.state import STEPS, Learner, begin_episode, decide, is_before, is_wait, record_wait_steps, take_in
from letitcook.deep.update import learn
from letitcook.errors import SettingError
from letitcook.storage.array_checks import Expected, checked
from letitcook.storage.spaces import numbers_in
from letitcook.wrappers.vector import Finished, WaitingVectorEnv, play


class VectorDriver:
    """Drives a learner through the sub-environments of a vector environment."""

    def __init__(self, env: WaitingVectorEnv, learner: Learner) -> None:
        if learner.rules.intra_option:
            raise SettingError("intra_option needs the states inside a wait, which vector environments do not keep")
        self._env = env
        self._space = numbers_in(env.single_observation_space)
        self._learner = learner
        self._seen: list[NDArray[np.float32]] = []
        """Where the decision under way of each sub-environment was taken; empty if episodes have to begin."""
        self._counts = new_counts(env.num_envs)

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended."""
        return Totals(*self._counts[0].tolist())

    def advance(self, steps: int, decisions: int) -> None:
        """Train until that many primitive steps or decisions have passed, in all sub-environments together."""
        learner, env = self._learner, self._env
        if not self._seen:
            self._begin()
        taken = np.zeros(env.num_envs, dtype=np.int64)
        while is_before(learner.counters, steps, decisions):
            for i in np.flatnonzero(env.due).tolist():
                self._seen[i] = self._flat(env.observations[i])
                taken[i] = decide(learner, i, self._seen[i])
            for done in env.step(taken):
                self._take_in(done)

    def _begin(self) -> None:
        self._counts[1:] = 0.0
        firsts = self._env.reset(seed=random_below(self._learner.rng, SEEDS))
        self._seen = [self._flat(first) for first in firsts]
        for i in range(self._env.num_envs):
            begin_episode(self._learner, i)

    def _take_in(self, done: Finished) -> None:
        learner, i, step = self._learner, done.index, int(self._learner.counters[STEPS]) + done.elapsed
        task, waiting = finite_reward(done.reward, done.discount, step)
        truncates, over = done.truncated and not done.terminated, done.terminated or done.truncated
        after = self._flat(done.observation)
        waits = is_wait(learner, done.decision)
        if waits and learner.rules.model_rows and done.elapsed == 1:
            record_wait_steps(learner, np.stack([self._seen[i], after]), np.array([task]), 1, done.terminated)
        reward = np.array([task, waiting])
        transition = Transition(
            self._seen[i], done.decision, reward, done.elapsed, done.discount, after, done.terminated, truncates
        )
        due = take_in(learner, i, transition)
        if due:
            learn(learner, due)
        count(self._counts, i + 1, done.elapsed, done.task_reward, bool(waits), over)
        if over:
            begin_episode(learner, i)

    def _flat(self, observation: object) -> NDArray[np.float32]:
        return seen(self._space, observation, int(self._learner.counters[STEPS]))

    def play(self, policy: NetworkPolicy, episodes: int, seed: int, common_random_numbers: bool) -> NDArray[np.float64]:
        """Run episodes of a policy in the sub-environments; the training then goes on with new ones.

        Only the first episode of each sub-environment is seeded, whatever `common_random_numbers` says.
        """
        self._seen = []
        out = np.zeros((episodes, 4 + len(self._learner.durations)))
        for row, episode in zip(out, play(self._env, policy, episodes, seed % SEEDS), strict=True):
            row[:4] = episode.task_return, episode.length, episode.queries, episode.base_queries
            np.add.at(row, 4 + np.array(episode.decisions), episode.elapsed)
        return out

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what was counted; where episodes stand cannot be kept."""
        return {"vector.counts": self._counts.copy()}

    def check(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Raise if what `arrays` returned does not fit."""
        if "vector.counts" in arrays:
            checked(arrays, "vector.counts", Expected(self._counts.shape))

    def restore(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Go on with new episodes."""
        self._counts[:] = arrays.get("vector.counts", 0.0)
        self._seen = []
