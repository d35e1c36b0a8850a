"""LQ-learning on tables, as a user holds it: the kernels of `q_learning.py` with their tables and values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import FOREVER, Decisions, Unit
from letitcook.core.episode_stats import Totals
from letitcook.core.jit import kernel_settings, seeded
from letitcook.core.objective import Objective
from letitcook.errors import FileFormatError, SettingError
from letitcook.finite.beyond import beyond_the_paper
from letitcook.finite.policy import TablePolicy
from letitcook.finite.q_learning import (
    DECISIONS,
    NOTHING_REMEMBERED,
    STATE,
    STEPS,
    Beyond,
    Memory,
    RecallTables,
    Rule,
    Weights,
    World,
    draw,
    evaluate,
    greedy_table,
    learn,
    start_row,
)
from letitcook.finite.recall import Remembered
from letitcook.finite.settings import CHOICES, PAPER, QSettings
from letitcook.finite.tables import Tables, observation_key
from letitcook.storage.array_checks import MOST_STEPS, Expected, checked

OUTCOMES, FEWEST_OUTCOMES, MOST_OUTCOMES = 1_000_000, 4, 32
"""What full backups count in all, and the fewest and the most outcomes of a row and decision, whatever their number."""

_NO_CHANCE = np.zeros(1, dtype=np.uint64)
"""Stands for a random state where nothing is random."""


class QLearner:
    """Q-learning with `K` objectives; advances by primitive steps, and can stop and go on anywhere.

    >>> from letitcook import make
    >>> from letitcook.finite.settings import EXACT
    >>> from letitcook.finite.tables import enumerate_env
    >>> env = make("cook", mode="wrap")
    >>> learner = QLearner(enumerate_env(env), env.decisions, 200, Objective.named("lexicographic"), EXACT, seed=0)
    >>> learner.advance(50_000)
    >>> learner.greedy_episodes(1, seed=0)[0, :4].tolist()  # task return, length, queries, base queries
    [-53.0, 53.0, 39.0, 38.0]
    """

    def __init__(
        self,
        tables: Tables,
        decisions: Decisions,
        horizon: int,
        objective: Objective,
        settings: QSettings = PAPER,
        seed: int = 0,
        remembered: Remembered | None = None,
    ) -> None:
        if horizon < 1:
            raise SettingError(f"horizon = {horizon} is not allowed; give at least 1 primitive step")
        self.tables = tables
        self.decisions = decisions
        self.objective = objective
        self.settings = settings
        self.remembered = remembered
        rows = int(tables.rows.max()) + 1 if remembered is None else len(remembered.keys)
        seen = np.append(tables.rows, rows)
        K, U, H = len(objective.weights), decisions.n, horizon
        self._world = World(
            offsets=tables.offsets,
            cumulative=_cumulative(tables.probability, tables.offsets),
            next_state=tables.next_state,
            reward=tables.reward,
            deterministic=tables.deterministic,
            start_state=tables.start_state,
            start_cumulative=np.cumsum(tables.start_probability),
            rows=seen,
            next_row=seen[tables.next_state],
            recall=NOTHING_REMEMBERED if remembered is None else RecallTables(*remembered.arrays),
            n_actions=tables.n_actions,
            durations=decisions.durations_of,
            actions=decisions.actions_of,
            costs=decisions.costs_of,
            horizon=H,
            base=0 if decisions.has_base else -1,
        )
        self._weights: Weights = tuple((float(task), float(waiting)) for task, waiting in objective.weights)
        self._rule = kernel_settings(
            Rule,
            settings,
            CHOICES,
            alpha_end=settings.alpha if settings.alpha_end is None else settings.alpha_end,
            epsilon_end=settings.epsilon if settings.epsilon_end is None else settings.epsilon_end,
            wait=decisions.wait,
            horizon=horizon,
        )
        Q = np.full((rows + 1, K, U), float(settings.initial))
        Q[rows] = 0.0
        outcomes = min(max(OUTCOMES // (rows * U), FEWEST_OUTCOMES), MOST_OUTCOMES)
        counted = (2, rows + 1, U, outcomes) if settings.backup == "full" else (2, 1, 1, 1)
        self._memory = Memory(
            Q=Q,
            visits=np.zeros((rows + 1, U) if settings.visit_power > 0.0 else (1, 1), dtype=np.int64),
            clock=np.zeros(6, dtype=np.int64),
            rng=seeded(seed),
            path=np.zeros(H + 1, dtype=np.int64),
            seen=np.zeros(H + 1, dtype=np.int64),
            rewards=np.zeros(H),
            taken=np.zeros((2, H), dtype=np.int64),
            value=np.zeros(K),
            bar=np.zeros(K),
            followed=np.zeros(counted, dtype=np.int64),
            gained=np.zeros(counted),
        )
        self._counts: NDArray[np.float64] | None = None
        starts = len(tables.start_state)
        start = 0 if starts == 1 else draw(self._world.start_cumulative, 0, starts, self._memory.rng)
        self._memory.clock[STATE] = tables.start_state[start]
        self._memory.seen[0] = start_row(self._world, start)

    @property
    def Q(self) -> NDArray[np.float64]:  # noqa: N802 (the paper's name)
        """The values, `(rows, K, decisions)`, without the end's."""
        return self._memory.Q[:-1]

    @property
    def steps(self) -> int:
        """Primitive steps so far."""
        return int(self._memory.clock[STEPS])

    @property
    def decisions_taken(self) -> int:
        """Decisions so far."""
        return int(self._memory.clock[DECISIONS])

    @property
    def timestep(self) -> Unit:
        """What its schedules count."""
        return self.settings.timestep

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended since the first call, which begins the counting.

        An episode that was under way then is left out, unless the settings have a record of it.
        """
        if self._counts is None:
            self._counts = np.zeros(len(Totals._fields))
        return Totals(*self._counts.tolist())

    def rates(self) -> dict[str, float]:
        """Return how much it explores and learns now, by Stable-Baselines3's names."""
        rule = self._rule
        done = min(1.0, (self.decisions_taken if self.timestep == "decision" else self.steps) / rule.schedule)
        return {
            "rollout/exploration_rate": rule.epsilon + done * (rule.epsilon_end - rule.epsilon),
            "train/learning_rate": rule.alpha + done * (rule.alpha_end - rule.alpha),
        }

    def advance(self, steps: int = FOREVER, decisions: int = FOREVER) -> None:
        """Learn for that many more primitive steps or decisions, whichever comes first, to the end of a decision."""
        until = self.steps + steps, self.decisions_taken + decisions
        learn(self._world, self._rule, self._weights, self._memory, self._beyond, self._counts, *until)

    @cached_property
    def _beyond(self) -> Beyond | None:
        return beyond_the_paper(self._world, self._rule, self._weights, self._memory)

    def greedy_episodes(self, episodes: int, seed: int) -> NDArray[np.float64]:
        """Return task return, length, queries, base queries and steps in each decision, `(episodes, 4 + U)`.

        Where all of them would be the same, it is one.
        """
        return self._episodes(self._memory.Q, self._rule.slack, episodes, seed)

    def _episodes(self, Q: NDArray[np.float64], slack: float, episodes: int, seed: int) -> NDArray[np.float64]:
        if self._world.deterministic and len(self._world.start_state) == 1:
            return evaluate(self._world, Q, self._weights, slack, 1, _NO_CHANCE)
        return evaluate(self._world, Q, self._weights, slack, episodes, seeded(seed))

    def play(
        self, policy: TablePolicy, episodes: int, seed: int, common_random_numbers: bool = False
    ) -> NDArray[np.float64]:
        """Return the same of a policy that was kept; `common_random_numbers` means nothing here."""
        if len(policy.table) != len(self._memory.Q) - 1 or policy.table.max() >= self._memory.Q.shape[2]:
            raise FileFormatError("this policy is one of another environment, or of other decisions")
        Q = np.zeros_like(self._memory.Q)
        Q[np.arange(len(policy.table)), 0, policy.table] = 1.0
        return self._episodes(Q, 0.0, episodes, seed)

    @property
    def log_lambda_range(self) -> None:
        """None: there is but one policy."""
        return None

    def policy(self, z: float | None = None) -> TablePolicy:
        """Return the greedy policy as it is now; there is but one."""
        table = greedy_table(self.Q, self._weights, self._rule.slack).astype(np.int16)
        return TablePolicy(self._keys, table)

    @cached_property
    def _keys(self) -> list[tuple[Any, ...]]:
        """What the policy knows each row by; made once, for a policy may be kept after every evaluation."""
        if self.remembered is not None:
            return self.remembered.keys
        first = np.unique(self.tables.rows, return_index=True)[1]
        return [observation_key(self.tables.observations[s]) for s in first]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is needed to go on later, to the same bits."""
        return {name: np.array(array) for name, array in self._kept().items()}

    def _kept(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the memory that hold something."""
        memory = self._memory._asdict()
        unused = () if self.settings.backup == "full" else ("followed", "gained")
        return {name: array for name, array in memory.items() if name not in unused}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` returned; all of it is checked first, for the kernels check nothing."""
        memory, expected = self._kept(), self._expected()
        saved = {name: checked(arrays, name, expected[name]) for name in memory}
        state, time, taken = saved["clock"][STATE:].tolist()
        fits = state < len(self._world.rows) - 1 and taken <= time < self._world.horizon
        decisions, times = saved["taken"].max(axis=1).tolist()
        fits = fits and ("followed" not in saved or saved["followed"][0].max() < len(self._memory.Q))
        if not (fits and decisions < self.decisions.n and times < self._world.horizon):
            raise FileFormatError("the saved episode does not fit the environment; the file is damaged")
        for name, array in memory.items():
            array[...] = saved[name]

    def _expected(self) -> dict[str, Expected]:
        """Return what each array of the memory has to be."""
        ends = {
            "visits": (0, MOST_STEPS),
            "clock": (0, MOST_STEPS),
            "path": (0, len(self._world.rows) - 1),
            "seen": (0, len(self._memory.Q) - 1),
            "taken": (0, max(self._world.horizon, self.decisions.n) - 1),
            "followed": (0, MOST_STEPS),
        }
        expected = {}
        for name, array in self._kept().items():
            low, high = ends.get(name, (None, None))
            expected[name] = Expected(array.shape, "real" if array.dtype.kind == "f" else "whole", low, high)
        return expected


def _cumulative(probability: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the running sums of each action's outcomes; the last one is exactly 1."""
    total = np.concatenate([[0.0], np.cumsum(probability)])
    counts = np.diff(offsets)
    cumulative: NDArray[np.float64] = total[1:] - np.repeat(total[offsets[:-1]], counts)
    cumulative[offsets[1:] - 1] = 1.0
    return cumulative
