"""Contenders whose updates are jitted by JAX, with the environment in Python: SBX, and CleanRL's form."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from peers.jax_loop import initial_parameters, loss, values
from peers.schedule import Contender, Schedule, gymnasiums_cartpole


@cache
def counting_sbx(target_interval: int) -> Any:
    """Return SBX's DQN with the benchmark's loss and target; one class, so that it is compiled once for all seeds."""
    from sbx.dqn import dqn as module

    # The one loss of all contenders; SBX has Huber's.
    module.optax = SimpleNamespace(
        huber_loss=lambda q, y: jnp.square(q - y), incremental_update=optax.incremental_update
    )

    class Counting(module.DQN):  # type: ignore[misc]
        """Copies to the target network after so many gradient steps; SBX itself counts steps of the environment."""

        @staticmethod
        @jax.jit  # type: ignore[untyped-decorator]
        def _train(carry: Any, indices: Any) -> Any:
            carry, _ = module.DQN._train(carry, indices)
            state = carry["qf_state"]
            copies = state.step % target_interval == 0
            target = jax.lax.cond(copies, lambda: state.params, lambda: state.target_params)
            return {**carry, "qf_state": state.replace(target_params=target)}, None

    return Counting


def sbx(schedule: Schedule) -> Contender:
    import torch

    torch.set_num_threads(1)
    model = counting_sbx(schedule.target_interval)(
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
        replay_buffer_kwargs={"handle_timeout_termination": False},
        policy_kwargs={"net_arch": list(schedule.hidden)},
        seed=schedule.seed,
    )

    def layers() -> Any:
        parameters = model.policy.qf_state.params["params"]
        names = [f"Dense_{i}" for i in range(len(schedule.hidden) + 1)]
        return [(np.array(parameters[name]["kernel"]).T, np.array(parameters[name]["bias"])) for name in names]

    return Contender(lambda steps: (model.learn(steps, reset_num_timesteps=False), None)[1], layers)


def cleanrl(schedule: Schedule) -> Contender:
    """DQN in the form of CleanRL's `dqn_jax.py`: one loop in Python, one jitted call to act and one to update."""
    adam = optax.adam(schedule.learning_rate)

    @jax.jit  # type: ignore[untyped-decorator]
    def act(parameters: Any, observation: Any) -> Any:
        return values(parameters, observation).argmax()

    @jax.jit  # type: ignore[untyped-decorator]
    def update(parameters: Any, target: Any, optimiser: Any, batch: Any) -> Any:
        found, gradient = jax.value_and_grad(loss)(parameters, target, batch, schedule.gamma)
        change, optimiser = adam.update(gradient, optimiser)
        return optax.apply_updates(parameters, change), optimiser, found

    env, dice, rows = gymnasiums_cartpole(), np.random.default_rng(schedule.seed), schedule.buffer_size
    replay = (
        np.zeros((rows, 4), np.float32),
        np.zeros(rows, np.int32),
        np.zeros((rows, 4), np.float32),
        np.zeros(rows, bool),
    )
    parameters = initial_parameters(jax.random.PRNGKey(schedule.seed), (4, *schedule.hidden, 2))
    target, optimiser, done, now = parameters, adam.init(parameters), 0, 0
    observation, _ = env.reset(seed=schedule.seed)

    def advance(steps: int) -> None:
        nonlocal parameters, target, optimiser, done, now, observation
        for _ in range(steps):
            explore = dice.random() < schedule.epsilon
            action = int(dice.integers(2)) if explore else int(act(parameters, observation))
            following, _, terminated, truncated, _ = env.step(action)
            for column, new in zip(replay, (observation, action, following, terminated or truncated), strict=True):
                column[now % rows] = new
            now += 1
            observation = env.reset()[0] if terminated or truncated else following
            if now > schedule.learning_starts and now % schedule.update_interval == 0:
                for _ in range(schedule.gradient_steps):
                    drawn = dice.integers(min(now, rows), size=schedule.batch_size)
                    batch = tuple(column[drawn] for column in replay)
                    parameters, optimiser, _ = update(parameters, target, optimiser, batch)
                    done += 1
                    if done % schedule.target_interval == 0:
                        target = jax.tree.map(jnp.copy, parameters)
        jax.block_until_ready(parameters)

    return Contender(advance, lambda: [(np.array(weights).T, np.array(bias)) for weights, bias in parameters])
