"""LDQN: lexicographic deep Q-learning for waiting MDPs; with one objective it is DQN, plain or scalarised.

What the learner consists of is in `state.py`, how it learns in `update.py`, its networks are in `network.py`. This is
what a user holds: the learner with one of three drivers. The simulated tasks run in a compiled loop
(`drivers/compiled.py`), every other environment in a Python loop (`drivers/python.py`), vector environments in a loop
of their own (`drivers/vector.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import FOREVER, Decisions, Unit
from letitcook.core.episode_stats import Totals
from letitcook.core.objective import Objective
from letitcook.deep.conditioning import policy_network
from letitcook.deep.drivers.compiled import CompiledDriver
from letitcook.deep.drivers.python import PythonDriver
from letitcook.deep.drivers.vector import VectorDriver
from letitcook.deep.network import forward
from letitcook.deep.normalisation import Inputs, set_target_bounds
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.replay import FILLED, NONE
from letitcook.deep.settings import PAPER, LDQNSettings
from letitcook.deep.state import (
    BEFORE,
    DECISIONS,
    EPISODE_STEP,
    GRADIENT_STEPS,
    LEFT,
    NEXT_UPDATE,
    REPEATED,
    STEPS,
    Learner,
    exploration,
    learning_rate,
    new_learner,
)
from letitcook.errors import FileFormatError, NotFiniteError, SettingError, SpaceError
from letitcook.storage.array_checks import MOST_STEPS, Expected, Kind, checked
from letitcook.storage.spaces import can_be_flat, numbers_in
from letitcook.tasks.simulated import SIMULATED
from letitcook.tasks.task import Task
from letitcook.wrappers.vector import WaitingVectorEnv

__all__ = ["LDQN", "PAPER", "LDQNSettings"]

Env = gym.Env[Any, Any]


class LDQN:
    """A learner with `K` objectives on a simulated task, or on any environment.

    `task_or_env` is a `Task` that the compiled loop knows, an environment, a list of them that take turns, or a vector
    environment. An environment's reward is `(task, waiting)`, and its info has `elapsed` and `discount`, as those of
    `WaitingEnv`; a plain environment counts as one whose decisions all take one step. `base` is a network policy to
    wrap in a task: the decisions are then `{base, wait} ∪ W`.

    >>> from letitcook.tasks.cartpole import TASK
    >>> learner = LDQN(TASK, TASK.decisions, Objective.named("lexicographic"), PAPER["cartpole"], seed=0)
    >>> learner.advance(500)
    >>> 500 <= learner.steps < 520
    True
    >>> learner.greedy_episodes(3, seed=1)[:, :4].shape  # task return, length, queries, base queries
    (3, 4)
    """

    def __init__(
        self,
        task_or_env: Task | Env | Sequence[Env] | WaitingVectorEnv,
        decisions: Decisions,
        objective: Objective,
        settings: LDQNSettings,
        seed: int,
        base: NetworkPolicy | None = None,
    ) -> None:
        self.settings = settings
        self.objective = objective
        self.decisions = decisions
        self._space: spaces.Space[Any] | None = None
        self._driver: CompiledDriver | PythonDriver | VectorDriver
        if isinstance(task_or_env, Task):
            size = _observation_size(task_or_env, decisions, base)
            self._learner = new_learner(size, decisions, objective.weights, settings, seed)
            self._driver = CompiledDriver(task_or_env, decisions, self._learner, base, settings.uses_intermediate)
        elif isinstance(task_or_env, WaitingVectorEnv):
            self._space = _flattenable(task_or_env.single_observation_space)
            size, n = spaces.flatdim(self._space), task_or_env.num_envs
            self._learner = new_learner(size, decisions, objective.weights, settings, seed, n)
            self._driver = VectorDriver(task_or_env, self._learner)
        else:
            envs = [task_or_env] if isinstance(task_or_env, gym.Env) else list(task_or_env)
            self._space = _checked_space(envs, decisions, settings, base)
            size = spaces.flatdim(self._space)
            self._learner = new_learner(size, decisions, objective.weights, settings, seed, len(envs))
            self._driver = PythonDriver(envs, self._learner)

    @property
    def steps(self) -> int:
        """Primitive steps so far."""
        return int(self._learner.counters[STEPS])

    @property
    def decisions_taken(self) -> int:
        """Decisions so far."""
        return int(self._learner.counters[DECISIONS])

    @property
    def timestep(self) -> Unit:
        """What its schedules count."""
        return self.settings.timestep

    @property
    def gradient_steps(self) -> int:
        """Gradient steps so far."""
        return int(self._learner.counters[GRADIENT_STEPS])

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended so far."""
        return self._driver.totals()

    def rates(self) -> dict[str, float]:
        """Return how much it explores and learns now, by Stable-Baselines3's names."""
        rules, counters = self._learner.rules, self._learner.counters
        rates = {
            "rollout/exploration_rate": exploration(rules, counters),
            "train/learning_rate": learning_rate(rules, counters),
            "train/n_updates": float(self.gradient_steps),
        }
        return {**rates, "train/loss": self._loss()} if self.gradient_steps else rates

    def _loss(self) -> float:
        """Return the loss on the batch that was drawn last, summed over the objectives."""
        learner, workspace, rows = self._learner, self._learner.workspace, self._learner.rules.batch_size
        q, total = np.zeros((rows, self.decisions.n), dtype=np.float32), 0.0
        for k, parameters in enumerate(learner.networks.parameters):
            forward(parameters, learner.sizes, workspace.x[:rows], workspace.scratch, q)
            error = np.abs(q[np.arange(rows), workspace.batch.decision[:rows]] - workspace.y[k, :rows]).astype(
                np.float64
            )
            huber = np.where(error < 1.0, 0.5 * error**2, error - 0.5)
            total += float(np.mean(huber if learner.rules.loss == 1 else error**2))
        return total

    def advance(self, steps: int = FOREVER, decisions: int = FOREVER) -> None:
        """Train for that many more primitive steps or decisions, whichever comes first, to the end of a decision."""
        self._driver.advance(self.steps + int(steps), self.decisions_taken + int(decisions))
        if not np.isfinite(self._learner.networks.parameters).all():
            raise NotFiniteError(
                f"the networks diverged before step {self.steps}: their parameters are no longer finite; "
                "lower learning_rate, or use loss='huber'"
            )

    def greedy_episodes(self, episodes: int, seed: int) -> NDArray[np.float64]:
        """Run episodes with the greedy policy, aside from the training.

        Returns a row for each, `(episodes, 4 + U)`: task return, length, queries, base queries, steps in each decision.
        """
        return self.play(self.policy(), episodes, seed)

    def play(
        self, policy: NetworkPolicy, episodes: int, seed: int, common_random_numbers: bool = False
    ) -> NDArray[np.float64]:
        """Run the same with any policy; with common random numbers, those of an episode are equal for every policy."""
        if (policy.observation_size, policy.sizes[-1]) != (len(self._learner.inputs.mean), self.decisions.n):
            raise SpaceError(
                f"the policy takes {policy.observation_size} numbers and has {policy.sizes[-1]} decisions, where "
                f"{len(self._learner.inputs.mean)} and {self.decisions.n} are needed; was it learned elsewhere?"
            )
        return self._driver.play(policy, episodes, seed, common_random_numbers)

    @property
    def log_lambda_range(self) -> tuple[float, float] | None:
        """The range of log10 λ whose policies are offered; None if there is one policy."""
        return self.settings.log_lambda_range

    def policy(self, z: float | None = None) -> NetworkPolicy:
        """Return a copy of the greedy policy; of log10 λ = z (or the middle) where the networks know several."""
        networks, span = self._deciding().copy(), self.settings.log_lambda_range
        if span is None:
            return NetworkPolicy(networks, self._learner.sizes, self.settings.slack, self._space, self._inputs())
        rules = self._learner.rules
        network, sizes = policy_network(
            networks,
            self._learner.sizes.tolist(),
            sum(span) / 2 if z is None else z,
            rules.wait_margin,
            rules.acting,
            float(self._learner.bounds[0, 1]),
        )
        return NetworkPolicy(network, sizes, 0.0, self._space, self._inputs())

    def _deciding(self) -> NDArray[np.float32]:
        networks = self._learner.networks
        return networks.averaged if self.settings.ema_steps else networks.parameters

    def _inputs(self) -> Inputs:
        return Inputs(*(array.copy() for array in self._learner.inputs))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all that it takes to go on later to the same bits."""
        saved = {name: array.copy() for name, array in _state(self._learner).items()}
        for name, array in saved.items():
            if _is_ring(name):
                filled = int(saved[f"{name.split('.')[0]}.cursor"][FILLED])
                saved[name] = array[:filled]
        return {**saved, **self._driver.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go back to a state that `arrays()` returned; all of it is checked first, for the kernels check nothing."""
        state = _state(self._learner)
        missing = sorted(set(state) - set(arrays))
        if missing:
            raise FileFormatError(f"the saved learner lacks {', '.join(missing)}; was it saved by another version?")
        for name, expected in _expected(self._learner, arrays).items():
            checked(arrays, name, expected)
        _check_counters(self._learner, arrays)
        self._driver.check(arrays)
        for name, array in state.items():
            array[: len(arrays[name])] = arrays[name]
        if self.settings.normalise:
            set_target_bounds(
                self._learner.statistics, self.settings.gamma, self._learner.weights, self._learner.bounds
            )
        self._driver.restore(dict(arrays))


def _state(learner: Learner) -> dict[str, NDArray[Any]]:
    """Return the arrays that a learner is made of, by name."""
    return {
        **{f"networks.{name}": array for name, array in learner.networks._asdict().items()},
        **{f"replay.{name}": array for name, array in learner.replay._asdict().items()},
        **{f"wait_steps.{name}": array for name, array in learner.wait_steps._asdict().items()},
        **{f"wait_model.{name}": array for name, array in learner.wait_model._asdict().items()},
        **{f"inputs.{name}": array for name, array in learner.inputs._asdict().items()},
        **{f"statistics.{name}": array for name, array in learner.statistics._asdict().items()},
        **{f"lambdas.{name}": getattr(learner.lambdas, name) for name in ("counts", "means", "seen")},
        "episodes": learner.episodes,
        "counters": learner.counters,
        "rng": learner.rng,
    }


def _is_ring(name: str) -> bool:
    """Return whether an array is a column of a ring, of which only the filled part is saved."""
    return name.startswith(("replay.", "wait_steps.")) and not name.endswith(".cursor")


def _expected(learner: Learner, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Expected]:
    """Return what each saved array of a learner has to be; a ring is as long as its cursor says."""
    found, n = {}, len(learner.durations)
    for name, array in _state(learner).items():
        kind: Kind = {"f": "real", "b": "truth"}.get(array.dtype.kind, "whole")  # type: ignore[assignment]
        low, high, shape = None, None, array.shape
        ring = name.partition(".")[0]
        if name.endswith(".cursor"):
            low, high = 0, len(getattr(learner, ring).decision)
        elif _is_ring(name):
            cursor = checked(arrays, f"{ring}.cursor", Expected((2,), "whole", 0, shape[0])).tolist()
            shape = (cursor[FILLED], *shape[1:])
        if name.endswith(".decision"):
            low, high = 0, n - 1
        elif name.endswith(".following"):
            low, high = NONE, shape[0] - 1
        elif name in ("lambdas.counts", "statistics.seen", "wait_model.counters"):
            low, high = 0, MOST_STEPS
        elif name == "counters":
            low, high = -1, MOST_STEPS
        found[name] = Expected(shape, kind, low, high, nan=name.endswith(".z"))
    return found


def _check_counters(learner: Learner, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise if counters, cursors or episodes of a saved learner point where there is nothing."""
    counters, rules, rows = arrays["counters"].tolist(), learner.rules, len(learner.replay.decision)
    now = counters[DECISIONS] if rules.timestep == 1 else counters[STEPS]
    furthest = now + rules.learning_starts + 2 * rules.update_interval
    good = min(counters[:EPISODE_STEP]) >= 0 and now < counters[NEXT_UPDATE] <= furthest
    good = good and np.array_equal(arrays["wait_model.sizes"], learner.wait_model.sizes)
    for ring in ("replay", "wait_steps"):
        position, filled = arrays[f"{ring}.cursor"].tolist()
        length = len(getattr(learner, ring).decision)
        good = good and position == (filled if filled < length else position) % length and position < length
    for episode in arrays["episodes"].tolist():
        good = good and 0 <= episode[REPEATED] < len(learner.durations) and NONE <= episode[BEFORE] < rows
        good = good and 0 <= episode[LEFT] <= max(1, rules.max_action_repeat)
    if not good:
        raise FileFormatError("the saved learner's counters do not fit together; the file is damaged")


def _observation_size(task: Task, decisions: Decisions, base: NetworkPolicy | None) -> int:
    if task.name not in SIMULATED:
        raise SettingError(
            f"{task.name} has no compiled simulation; give the environment itself: LDQN(letitcook.make(...), ...)"
        )
    size = SIMULATED[task.name].observation_size
    if base is None:
        if len(decisions.actions) > len(task.actions):
            raise SpaceError(f"{task.name} has {len(task.actions)} actions, and the decisions {len(decisions.actions)}")
        return size
    if not decisions.has_base:
        raise SettingError(
            "around a base policy the decisions are {base, wait} ∪ W; "
            'give Decisions(("base", "wait"), wait=1, durations=...)'
        )
    if (base.observation_size, base.sizes[-1]) != (size, len(task.actions)):
        raise SpaceError(
            f"the base policy takes {base.observation_size} numbers and has {base.sizes[-1]} actions, where "
            f"{task.name} shows {size} and has {len(task.actions)}; was it trained for another task, or with waits?"
        )
    return size


def _checked_space(
    envs: Sequence[Env], decisions: Decisions, settings: LDQNSettings, base: NetworkPolicy | None
) -> spaces.Space[Any]:
    if not envs:
        raise SettingError("the list of environments is empty; give at least one")
    if base is not None:
        raise SettingError(
            "a base policy goes with a task; around an environment: LDQN(letitcook.wrap(env, base, ...))"
        )
    space = envs[0].observation_space
    for env in envs:
        if env.observation_space != space:
            raise SpaceError(f"the environments show different things: {space} and {env.observation_space}")
        if not isinstance(env.action_space, spaces.Discrete) or not _fits(int(env.action_space.n), decisions):
            raise SpaceError(f"{decisions.n} decisions do not fit the action space {env.action_space}")
        if env.has_wrapper_attr("gamma") and env.get_wrapper_attr("gamma") != settings.gamma:
            raise SettingError(
                f"the environment discounts by {env.get_wrapper_attr('gamma')} and the settings by {settings.gamma}; "
                "give both the same gamma"
            )
    return _flattenable(space)


def _fits(n: int, decisions: Decisions) -> bool:
    """Return whether an environment with `n` decisions has these, or these and waits: vanilla takes none of them."""
    return n >= decisions.n if not decisions.durations else n == decisions.n


def _flattenable(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Return what networks can read of a space: without text, see `numbers_in`."""
    readable = numbers_in(space)
    if not can_be_flat(readable):
        raise SpaceError(
            f"observations of {space} cannot be flattened to a vector; wrap the environment so that they can"
        )
    return readable
