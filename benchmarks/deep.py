"""How fast the deep learner is: beside its peers, and beside what the processor can do.

    python benchmarks/deep.py                  # both tables, as in docs/performance
    python benchmarks/deep.py --rounds 3       # a quick look

CartPole with the paper's schedule (batch 64, two hidden layers of 256, 128 gradient steps per 256 steps, target every
10 gradient steps), one thread. All contenders run in one process and take turns, a piece each by rounds, so that a busy
machine slows them alike; the time is CPU time. Needs PyTorch, stable-baselines3 and skrl for the peers.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from letitcook.core.decisions import Decisions
from letitcook.core.jit import compiled
from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN, PAPER
from letitcook.deep.blas import one_thread, product
from letitcook.deep.update import learn
from letitcook.tasks import cartpole, mountain_car, pong
from letitcook.wrappers.waiting import WaitingEnv

PIECE = 2_560
"""Steps of one turn: ten rounds of learning."""
LIMIT_SHAPE = (1024, 512, 512)
"""The product that measures the processor: large enough for its best speed, small enough for its caches."""

PUSHES = Decisions(("left", "right"), wait=0)
Contender = Callable[[int], None]


def gymnasiums_cartpole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1", max_episode_steps=200)


def ours(task_or_env: Any, decisions: Decisions, objective: str) -> Contender:
    return LDQN(task_or_env, decisions, Objective.named(objective), PAPER["cartpole"], seed=0).advance


def ours_waiting_env() -> Contender:
    env = WaitingEnv(gymnasiums_cartpole(), wait=0, durations=tuple(range(2, 21, 2)))
    return ours(env, env.decisions, "lexicographic")


def stable_baselines3() -> Contender:
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)

    s = PAPER["cartpole"]
    model = DQN(
        "MlpPolicy",
        gymnasiums_cartpole(),
        learning_rate=s.learning_rate,
        buffer_size=s.buffer_size,
        learning_starts=s.learning_starts,
        batch_size=s.batch_size,
        gamma=s.gamma,
        train_freq=s.update_interval,
        gradient_steps=s.gradient_steps,
        target_update_interval=s.target_interval,
        exploration_initial_eps=s.epsilon_end,
        exploration_final_eps=s.epsilon_end,
        policy_kwargs={"net_arch": list(s.hidden)},
        seed=0,
        device="cpu",
    )
    return lambda steps: (model.learn(steps, reset_num_timesteps=False), None)[1]


def skrl() -> Contender:
    import torch
    from skrl import logger
    from skrl.agents.torch.dqn import DQN
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, Model
    from skrl.trainers.torch import StepTrainer

    torch.set_num_threads(1)
    logger.setLevel("ERROR")

    class Q(DeterministicMixin, Model):  # type: ignore[misc]
        def __init__(self, env: Any) -> None:
            Model.__init__(
                self, observation_space=env.observation_space, action_space=env.action_space, device=env.device
            )
            DeterministicMixin.__init__(self)
            linear, relu = torch.nn.Linear, torch.nn.ReLU
            self.net = torch.nn.Sequential(linear(4, 256), relu(), linear(256, 256), relu(), linear(256, 2))

        def compute(self, inputs: Any, role: str = "") -> Any:
            return self.net(inputs["observations"]), {}

    s = PAPER["cartpole"]
    env = wrap_env(gymnasiums_cartpole(), verbose=False)
    agent = DQN(
        models={"q_network": Q(env), "target_q_network": Q(env)},
        memory=RandomMemory(memory_size=s.buffer_size, num_envs=1, device=env.device),
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=env.device,
        cfg={
            "gradient_steps": s.gradient_steps,
            "batch_size": s.batch_size,
            "discount_factor": s.gamma,
            "polyak": s.polyak,
            "learning_rate": s.learning_rate,
            "learning_starts": s.learning_starts,
            "update_interval": s.update_interval,
            "target_update_interval": s.target_interval,
            "exploration_scheduler": lambda timestep, timesteps: s.epsilon_end,
            "experiment": {"write_interval": 0, "checkpoint_interval": 0},
        },
    )
    trainer = StepTrainer(
        env=env, agents=agent, cfg={"timesteps": 10**9, "headless": True, "disable_progressbar": True}
    )

    def advance(steps: int) -> None:
        for _ in range(steps):
            trainer.train()

    return advance


CONTENDERS: dict[str, Callable[[], Contender]] = {
    "stable-baselines3 DQN": stable_baselines3,
    "skrl DQN": skrl,
    "DQN, compiled loop": lambda: ours(cartpole.TASK, PUSHES, "task"),
    "DQN, Python loop (Gymnasium's CartPole)": lambda: ours(gymnasiums_cartpole(), PUSHES, "task"),
    "LDQN (2 networks, 13 decisions), compiled loop": lambda: ours(
        cartpole.TASK, cartpole.TASK.decisions, "lexicographic"
    ),
    "LDQN (2 networks, 12 decisions), Python loop": ours_waiting_env,
}


def rates(rounds: int) -> dict[str, list[float]]:
    """Return primitive steps per CPU second of each contender, a number for each round."""
    running = {}
    for name, make in CONTENDERS.items():
        try:
            running[name] = make()
        except ModuleNotFoundError as error:
            print(f"{name}: left out, {error.name} is not installed")
    for advance in running.values():
        advance(2 * PIECE)  # past the start of learning, and compiled
    measured: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, advance in running.items():
            begun = time.process_time()
            advance(PIECE)
            measured[name].append(PIECE / (time.process_time() - begun))
    return measured


def peers_table(rounds: int) -> list[str]:
    measured = rates(rounds)
    lines = [
        "| CartPole, the paper's schedule | steps / CPU s, median (min-max) | x stable-baselines3 | x skrl |",
        "|---|---|---|---|",
    ]
    for name, values in measured.items():
        cells = [f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"]
        for peer in ("stable-baselines3 DQN", "skrl DQN"):
            if peer not in measured:
                cells.append("")
                continue
            ratios = [a / b for a, b in zip(values, measured[peer], strict=True)]
            cells.append(f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


@compiled
def many_products(a: Any, b: Any, out: Any, n: int) -> None:
    for _ in range(n):
        product(a, b, out)


def flops_of_update(settings: Any, inputs: int, decisions: int, networks: int) -> float:
    """Return the multiplications and additions of one update's products: the target's forward, forward, backward.

    The last layer counts for all decisions in the target, and for the decision that was taken elsewhere.
    """
    sizes = (inputs, *settings.hidden)
    layers = [a * b for a, b in itertools.pairwise(sizes)]
    last = settings.hidden[-1]
    target = sum(layers) + last * decisions
    online = sum(layers) + last
    back = sum(layers) + sum(layers[1:]) + 2 * last
    return float(2.0 * settings.batch_size * networks * (target + online + back))


def limit_table(rounds: int) -> list[str]:
    m, k, n = LIMIT_SHAPE
    dice = np.random.default_rng(0)
    a, b = dice.normal(size=(m, k)).astype(np.float32), dice.normal(size=(k, n)).astype(np.float32)
    out = np.zeros((m, n), dtype=np.float32)
    learners = {}
    for task in (cartpole.TASK, mountain_car.TASK, pong.TASK):
        learner = LDQN(task, task.decisions, Objective.named("lexicographic"), PAPER[task.name], seed=0)
        learner.advance(5_000)
        learners[task.name] = learner
    times: dict[str, list[float]] = {name: [] for name in learners}
    speeds: list[float] = []
    with one_thread():
        many_products(a, b, out, 1)
        for _ in range(rounds):
            begun = time.process_time()
            many_products(a, b, out, 20)
            speeds.append(20 * 2.0 * m * k * n / (time.process_time() - begun))
            for name, learner in learners.items():
                rows = 120  # whole blocks of gradient steps for every task
                begun = time.process_time()
                # As training calls it: so many gradient steps in a round.
                per_round = learner.settings.gradient_steps
                for _ in range(max(1, rows // per_round)):
                    learn(learner._learner, per_round)
                done = max(1, rows // per_round) * per_round
                times[name].append((time.process_time() - begun) / done)
    best = max(speeds)
    lines = [
        f"Best single-precision product of one core: {best / 1e9:.0f} GFLOP/s.",
        "",
        "| one LDQN update | µs, median (min-max) | at the processor's limit | ratio |",
        "|---|---|---|---|",
    ]
    for name, learner in learners.items():
        sizes = learner._learner.sizes
        limit = flops_of_update(learner.settings, int(sizes[0]), int(sizes[-1]), 2) / best
        middle = statistics.median(times[name])
        spread = f"{min(times[name]) * 1e6:,.0f}-{max(times[name]) * 1e6:,.0f}"
        lines.append(f"| {name} | {middle * 1e6:,.0f} ({spread}) | {limit * 1e6:,.0f} | {middle / limit:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=("peers", "limit"))
    arguments = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, one thread\n")
    if arguments.only != "limit":
        print("\n".join(peers_table(arguments.rounds)), end="\n\n")
    if arguments.only != "peers":
        print("\n".join(limit_table(arguments.rounds)))


if __name__ == "__main__":
    main()
