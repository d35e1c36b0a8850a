"""Contenders in PyTorch: Stable-Baselines3, skrl, tianshou, and a loop by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from peers.schedule import Contender, Layers, Schedule, gymnasiums_cartpole, pieces_to_copies

torch.set_num_threads(1)


def network(hidden: tuple[int, ...]) -> Any:
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    first, second = hidden
    return torch.nn.Sequential(linear(4, first), relu(), linear(first, second), relu(), linear(second, 2))


def layers_of(module: Any) -> Layers:
    linear = [each for each in module.modules() if isinstance(each, torch.nn.Linear)]
    return [(each.weight.detach().numpy().copy(), each.bias.detach().numpy().copy()) for each in linear]


def stable_baselines3(schedule: Schedule) -> Contender:
    from stable_baselines3.common.utils import polyak_update
    from stable_baselines3.dqn import dqn as module

    module.F = SimpleNamespace(smooth_l1_loss=functional.mse_loss)  # the one loss of all contenders; it has Huber's

    class Counting(module.DQN):  # type: ignore[misc]
        """Copies to the target network after so many gradient steps; the library counts steps of the environment."""

        def train(self, gradient_steps: int, batch_size: int = 100) -> None:
            for piece in pieces_to_copies(self._n_updates, gradient_steps, schedule.target_interval):
                super().train(piece, batch_size)
                if self._n_updates % schedule.target_interval == 0:
                    polyak_update(self.q_net.parameters(), self.q_net_target.parameters(), 1.0)

    model = Counting(
        "MlpPolicy",
        gymnasiums_cartpole(),
        learning_rate=schedule.learning_rate,
        buffer_size=schedule.buffer_size,
        learning_starts=schedule.learning_starts,
        batch_size=schedule.batch_size,
        gamma=schedule.gamma,
        train_freq=schedule.update_interval,
        gradient_steps=schedule.gradient_steps,
        target_update_interval=10**9,
        exploration_initial_eps=schedule.epsilon,
        exploration_final_eps=schedule.epsilon,
        max_grad_norm=math.inf,
        replay_buffer_kwargs={"handle_timeout_termination": False},
        policy_kwargs={"net_arch": list(schedule.hidden)},
        seed=schedule.seed,
        device="cpu",
    )
    return Contender(
        lambda steps: (model.learn(steps, reset_num_timesteps=False), None)[1], lambda: layers_of(model.q_net)
    )


def skrl(schedule: Schedule) -> Contender:
    from skrl import logger
    from skrl.agents.torch.dqn import DQN
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, Model
    from skrl.trainers.torch import StepTrainer

    logger.setLevel("ERROR")

    class Q(DeterministicMixin, Model):  # type: ignore[misc]
        def __init__(self, env: Any) -> None:
            Model.__init__(
                self, observation_space=env.observation_space, action_space=env.action_space, device=env.device
            )
            DeterministicMixin.__init__(self)
            self.net = network(schedule.hidden)

        def compute(self, inputs: Any, role: str = "") -> Any:
            return self.net(inputs["observations"]), {}

    torch.manual_seed(schedule.seed)
    env = wrap_env(gymnasiums_cartpole(), verbose=False)
    online = Q(env)
    agent = DQN(
        models={"q_network": online, "target_q_network": Q(env)},
        memory=RandomMemory(memory_size=schedule.buffer_size, num_envs=1, device=env.device),
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=env.device,
        cfg={
            "gradient_steps": schedule.gradient_steps,
            "batch_size": schedule.batch_size,
            "discount_factor": schedule.gamma,
            "polyak": 1.0,
            "learning_rate": schedule.learning_rate,
            "learning_starts": schedule.learning_starts,
            "update_interval": schedule.update_interval,
            "target_update_interval": schedule.target_interval,
            "exploration_scheduler": lambda timestep, timesteps: schedule.epsilon,
            "experiment": {"write_interval": 0, "checkpoint_interval": 0},
        },
    )
    trainer = StepTrainer(
        env=env, agents=agent, cfg={"timesteps": 10**9, "headless": True, "disable_progressbar": True}
    )

    def advance(steps: int) -> None:
        for _ in range(steps):
            trainer.train()

    return Contender(advance, lambda: layers_of(online))


def tianshou(schedule: Schedule) -> Contender:
    """Its collector and its updates, called by rounds as its trainer calls them."""
    from tianshou.algorithm import DQN
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, CollectStats, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.utils.net.common import Net
    from tianshou.utils.torch_utils import policy_within_training_step

    torch.manual_seed(schedule.seed)
    env = gymnasiums_cartpole()
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=(4,), action_shape=2, hidden_sizes=list(schedule.hidden)),
        action_space=env.action_space,
        observation_space=env.observation_space,
        eps_training=schedule.epsilon,
    )
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=schedule.learning_rate),
        gamma=schedule.gamma,
        target_update_freq=schedule.target_interval,
        is_double=False,
    )
    replay = VectorReplayBuffer(schedule.buffer_size, 1)
    collector = Collector[CollectStats](
        algorithm, DummyVectorEnv([gymnasiums_cartpole]), replay, exploration_noise=True
    )
    collector.reset()

    def advance(steps: int) -> None:
        for _ in range(steps // schedule.update_interval):
            with policy_within_training_step(policy):
                collector.collect(n_step=schedule.update_interval)
                for _ in range(schedule.gradient_steps if len(replay) > schedule.learning_starts else 0):
                    algorithm.update(buffer=replay, sample_size=schedule.batch_size)

    return Contender(advance, lambda: layers_of(policy.model))


def by_hand(schedule: Schedule) -> Contender:
    """DQN in a page of PyTorch, with the fused Adam and no library around it."""
    torch.manual_seed(schedule.seed)
    env, dice, rows = gymnasiums_cartpole(), np.random.default_rng(schedule.seed), schedule.buffer_size
    online, target = network(schedule.hidden), network(schedule.hidden)
    target.load_state_dict(online.state_dict())
    adam = torch.optim.Adam(online.parameters(), lr=schedule.learning_rate, fused=True)
    replay = (torch.zeros(rows, 4), torch.zeros(rows, 1, dtype=torch.int64), torch.zeros(rows, 4), torch.zeros(rows))
    columns = [column.numpy() for column in replay]
    now = done = 0
    observation, _ = env.reset(seed=schedule.seed)

    def learn() -> None:
        nonlocal done
        for _ in range(schedule.gradient_steps):
            drawn = torch.randint(min(now, rows), (schedule.batch_size,))
            before, action, after, ended = (column[drawn] for column in replay)
            with torch.no_grad():
                y = 1.0 + schedule.gamma * (1 - ended) * target(after).max(dim=1).values
            found = functional.mse_loss(online(before).gather(1, action)[:, 0], y)
            adam.zero_grad()
            found.backward()
            adam.step()
            done += 1
            if done % schedule.target_interval == 0:
                target.load_state_dict(online.state_dict())

    def advance(steps: int) -> None:
        nonlocal now, observation
        for _ in range(steps):
            if dice.random() < schedule.epsilon:
                action = int(dice.integers(2))
            else:
                with torch.inference_mode():
                    action = int(online(torch.from_numpy(observation)).argmax())
            following, _, terminated, truncated, _ = env.step(action)
            for column, new in zip(columns, (observation, action, following, terminated or truncated), strict=True):
                column[now % rows] = new
            now += 1
            observation = env.reset()[0] if terminated or truncated else following
            if now > schedule.learning_starts and now % schedule.update_interval == 0:
                learn()

    return Contender(advance, lambda: layers_of(online))
