"""DQN as one program of JAX, in PureJaxRL's form (Lu et al. 2022): environment, replay and updates in `lax.scan`.

A round is a scan over 256 steps of the environment and a scan over 128 gradient steps; the replay is written once a
round, so no loop copies it. Batches of a round are drawn and gathered at once.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from peers.schedule import HORIZON, Contender, Layers, Schedule


class State(NamedTuple):
    """All that changes."""

    parameters: Any
    target: Any
    optimiser: Any
    replay: Any
    """Columns: observation, action, next observation, whether the episode ended."""
    observation: Any
    episode_step: Any
    steps: Any
    gradient_steps: Any
    key: Any


def reset(key: Any) -> Any:
    return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)


def step(state: Any, action: Any) -> Any:
    """Push the cart for 20 ms; returns the next state and whether it fell."""
    x, speed, angle, turning = state
    force = jnp.where(action == 1, 10.0, -10.0)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    push = (force + 0.05 * turning**2 * sin) / 1.1
    angular = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    linear = push - 0.05 * angular * cos / 1.1
    x, speed, angle, turning = x + 0.02 * speed, speed + 0.02 * linear, angle + 0.02 * turning, turning + 0.02 * angular
    return jnp.array([x, speed, angle, turning]), (jnp.abs(x) > 2.4) | (jnp.abs(angle) > 12 * 2 * np.pi / 360)


def initial_parameters(key: Any, sizes: tuple[int, ...]) -> Any:
    """Draw weights as PyTorch does, and as our learner: uniform within ±1/√inputs."""
    parameters = []
    for n_in, n_out in pairwise(sizes):
        key, for_weights, for_bias = jax.random.split(key, 3)
        bound = 1 / np.sqrt(n_in)
        weights = jax.random.uniform(for_weights, (n_in, n_out), minval=-bound, maxval=bound)
        parameters.append((weights, jax.random.uniform(for_bias, (n_out,), minval=-bound, maxval=bound)))
    return parameters


def values(parameters: Any, x: Any) -> Any:
    for weights, bias in parameters[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = parameters[-1]
    return x @ weights + bias


def loss(parameters: Any, target: Any, batch: Any, gamma: float) -> Any:
    observation, action, next_observation, ended = batch
    y = 1.0 + gamma * jnp.where(ended, 0.0, values(target, next_observation).max(axis=1))
    q = jnp.take_along_axis(values(parameters, observation), action[:, None], axis=1)[:, 0]
    return jnp.square(q - jax.lax.stop_gradient(y)).mean()


def collect(schedule: Schedule, state: State) -> State:
    """Take the steps of a round, and write them into the replay."""

    def one(carry: Any, key: Any) -> Any:
        observation, episode_step = carry
        for_dice, for_action, for_reset = jax.random.split(key, 3)
        greedy = jnp.argmax(values(state.parameters, observation))
        explore = jax.random.uniform(for_dice) < schedule.epsilon
        action = jnp.where(explore, jax.random.randint(for_action, (), 0, 2), greedy)
        following, fell = step(observation, action)
        ended = fell | (episode_step + 1 >= HORIZON)
        begun = jnp.where(ended, reset(for_reset), following)
        return (begun, jnp.where(ended, 0, episode_step + 1)), (observation, action, following, ended)

    key, for_steps = jax.random.split(state.key)
    keys = jax.random.split(for_steps, schedule.update_interval)
    (observation, episode_step), rows = jax.lax.scan(one, (state.observation, state.episode_step), keys)
    at = (state.steps + jnp.arange(schedule.update_interval)) % schedule.buffer_size
    replay = jax.tree.map(lambda column, new: column.at[at].set(new), state.replay, rows)
    steps = state.steps + schedule.update_interval
    return state._replace(replay=replay, observation=observation, episode_step=episode_step, steps=steps, key=key)


def learn(schedule: Schedule, state: State) -> State:
    """Take the gradient steps of a round."""
    key, for_batches = jax.random.split(state.key)
    filled = jnp.minimum(state.steps, schedule.buffer_size)
    drawn = jax.random.randint(for_batches, (schedule.gradient_steps, schedule.batch_size), 0, filled)
    batches = jax.tree.map(lambda column: column[drawn], state.replay)
    adam = optax.adam(schedule.learning_rate)

    def one(carry: Any, batch: Any) -> Any:
        parameters, target, optimiser, done = carry
        gradient = jax.grad(loss)(parameters, target, batch, schedule.gamma)
        change, optimiser = adam.update(gradient, optimiser)
        parameters, done = optax.apply_updates(parameters, change), done + 1
        copies = done % schedule.target_interval == 0
        target = jax.lax.cond(copies, lambda: parameters, lambda: target)
        return (parameters, target, optimiser, done), None

    carry = (state.parameters, state.target, state.optimiser, state.gradient_steps)
    (parameters, target, optimiser, done), _ = jax.lax.scan(one, carry, batches)
    return state._replace(parameters=parameters, target=target, optimiser=optimiser, gradient_steps=done, key=key)


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def rounds(schedule: Schedule, n: int, state: State) -> State:
    """Take `n` rounds."""

    def one(state: State, _: None) -> Any:
        state = collect(schedule, state)
        learned = jax.lax.cond(
            state.steps > schedule.learning_starts,
            lambda: learn(schedule, state)._replace(replay=None),
            lambda: state._replace(replay=None),
        )
        return learned._replace(replay=state.replay), None

    last: State
    last, _ = jax.lax.scan(one, state, None, length=n)
    return last


def new_state(schedule: Schedule) -> State:
    key, for_network, for_reset = jax.random.split(jax.random.PRNGKey(schedule.seed), 3)
    parameters = initial_parameters(for_network, (4, *schedule.hidden, 2))
    rows = schedule.buffer_size
    return State(
        parameters=parameters,
        target=jax.tree.map(jnp.copy, parameters),
        optimiser=optax.adam(schedule.learning_rate).init(parameters),
        replay=(
            jnp.zeros((rows, 4)),
            jnp.zeros(rows, dtype=jnp.int32),
            jnp.zeros((rows, 4)),
            jnp.zeros(rows, dtype=bool),
        ),
        observation=reset(for_reset),
        episode_step=jnp.array(0),
        steps=jnp.array(0),
        gradient_steps=jnp.array(0),
        key=key,
    )


class Loop:
    """The program and its state; it goes on by whole rounds."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.program = schedule, schedule.with_seed(0)  # compiled once for all seeds
        self.state = new_state(schedule)

    def advance(self, steps: int) -> None:
        n, rest = divmod(steps, self.schedule.update_interval)
        if rest:
            raise ValueError(f"{steps} steps are not whole rounds of {self.schedule.update_interval}")
        self.state = jax.block_until_ready(rounds(self.program, n, self.state))

    def layers(self) -> Layers:
        return [(np.array(weights).T, np.array(bias)) for weights, bias in self.state.parameters]

    def observations(self) -> Any:
        filled = min(int(self.state.steps), self.schedule.buffer_size)
        return np.array(self.state.replay[0])[:filled]


def contender(schedule: Schedule) -> Contender:
    loop = Loop(schedule)
    return Contender(loop.advance, loop.layers, loop.observations)
