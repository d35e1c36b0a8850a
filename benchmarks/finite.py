"""The tabular learner beside skrl's Q-learning, on the same tables, in one interleaved run.

    make benchmark        (or: python benchmarks/finite.py [--repeats 5])

Each round times every learner once, in CPU seconds of one thread; the table shows medians and the range over rounds.
skrl gets the waiting environment at its cheapest: states are numbers and a decision is one look into a table.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from letitcook import Objective, make
from letitcook.core.decisions import Decisions
from letitcook.experiments.jobs import world_of
from letitcook.finite.learner import QLearner
from letitcook.finite.settings import PAPER
from letitcook.finite.tables import Tables

STEPS = 4_000_000
SKRL_DECISIONS = 4_000
METHODS = {"lexicographic": Objective("lexicographic"), "scalar": Objective("scalar", 0.1)}
TARGETS = {
    ("cook", "lexicographic"): 12,
    ("cook", "scalar"): 25,
    ("coffee", "lexicographic"): 8,
    ("coffee", "scalar"): 12,
}
"""Millions of primitive steps per second and core that are asked for."""


class TableEnv(gym.Env[Any, Any]):
    """A deterministic waiting environment read from tables, with the scalarised reward."""

    def __init__(self, tables: Tables, decisions: Decisions, horizon: int, lam: float) -> None:
        self.observation_space = spaces.Discrete(tables.n_states + 1)
        self.action_space = spaces.Discrete(decisions.n)
        self.horizon, self.lam, self.start, self.end = horizon, lam, int(tables.start_state[0]), tables.end
        self.next = tables.next_state.reshape(tables.n_states, tables.n_actions).tolist()
        self.durations, self.actions = decisions.durations_of.tolist(), decisions.actions_of.tolist()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.s, self.t = self.start, 0
        return self.s, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        u, begun = int(action), self.t
        while self.t < min(begun + self.durations[u], self.horizon) and self.s != self.end:
            self.s = self.next[self.s][self.actions[u]]
            self.t += 1
        reward = float(begun - self.t) - self.lam
        return self.s, reward, self.s == self.end, self.t >= self.horizon, {}


def ours(task: str, objective: Objective) -> Callable[[], tuple[float, float]]:
    tables, decisions, horizon = world_of(task, "scratch")

    def once() -> tuple[float, float]:
        learner = QLearner(tables, decisions, horizon, objective, PAPER, seed=0)
        learner.advance(1)
        begun = time.process_time()
        learner.advance(STEPS)
        seconds = time.process_time() - begun
        return learner.steps / seconds, learner.decisions_taken / seconds

    return once


def skrl(task: str) -> Callable[[], tuple[float, float]]:
    import torch
    from skrl import logger
    from skrl.agents.torch.q_learning import Q_LEARNING, Q_LEARNING_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.models.torch import Model, TabularMixin
    from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg

    logger.setLevel("WARNING")
    torch.set_num_threads(1)

    class EpsilonGreedy(TabularMixin, Model):  # type: ignore[misc]
        def __init__(self, observation_space: Any, action_space: Any, device: Any, epsilon: float) -> None:
            Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
            TabularMixin.__init__(self)
            self.epsilon = epsilon
            table = torch.zeros((observation_space.n, action_space.n), dtype=torch.float32)
            self.table = torch.nn.Parameter(table, requires_grad=False)

        def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Any, dict[str, Any]]:
            actions = torch.argmax(self.table[inputs["observations"].long()[:, 0]], dim=-1, keepdim=True)
            if torch.rand(1) < self.epsilon:
                actions = torch.randint(self.table.shape[1], actions.shape)
            return actions, {}

    def once() -> tuple[float, float]:
        tables, decisions, horizon = world_of(task, "scratch")
        env = wrap_env(TableEnv(tables, decisions, horizon, lam=0.1), verbose=False)
        model = EpsilonGreedy(env.observation_space, env.action_space, env.device, epsilon=0.05)
        cfg = Q_LEARNING_CFG(discount_factor=1.0, learning_rate=0.1)
        cfg.experiment.write_interval = 0
        cfg.experiment.checkpoint_interval = 0
        agent = Q_LEARNING(
            models={"policy": model},
            memory=None,
            observation_space=env.observation_space,
            action_space=env.action_space,
            device=env.device,
            cfg=cfg,
        )
        trainer_cfg = SequentialTrainerCfg(
            timesteps=SKRL_DECISIONS, headless=True, disable_progressbar=True, close_environment_at_exit=False
        )
        trainer = SequentialTrainer(cfg=trainer_cfg, env=env, agents=agent)
        begun = time.process_time()
        trainer.train()
        seconds = time.process_time() - begun
        return float("nan"), SKRL_DECISIONS / seconds

    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    learners = {(task, method): ours(task, METHODS[method]) for task in ("cook", "coffee") for method in METHODS}
    learners |= {(task, "skrl"): skrl(task) for task in ("cook", "coffee")}
    rates: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in learners}
    for _ in range(repeats):
        for key, once in learners.items():
            rates[key].append(once())
    print(f"{'task':8} {'learner':14} {'steps/s':>8} {'(range)':>15} {'decisions/s':>12} {'times skrl':>11}  target")
    missed = False
    for (task, name), values in rates.items():
        steps, decisions = np.array(values).T
        peer = float(np.median([d for _, d in rates[task, "skrl"]]))
        line = f"{task:8} {'skrl Q-learning' if name == 'skrl' else name:14}"
        if name == "skrl":
            print(f"{line} {'':24} {np.median(decisions):12,.0f}")
            continue
        median, target = float(np.median(steps)) / 1e6, TARGETS[task, name]
        missed |= median < target or float(np.median(decisions)) < 2_000 * peer
        span = f"({steps.min() / 1e6:.1f}-{steps.max() / 1e6:.1f}M)"
        print(
            f"{line} {median:7.1f}M {span:>15} {np.median(decisions) / 1e6:11.1f}M "
            f"{np.median(decisions) / peer:10,.0f}x  {target}M, 2,000x"
        )
    sys.exit(missed)


if __name__ == "__main__":
    make("cook")  # registers the tasks
    main()
