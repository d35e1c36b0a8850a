"""A replay buffer with which Stable-Baselines3's DQN learns the right values of waits where γ < 1.

A decision of a waiting environment lasts several steps, so the value after it counts `γ^elapsed`, which is
`info["discount"]`. Stable-Baselines3 multiplies by γ, unless its replay buffer gives the discount of each transition,
as those for n steps do. This one does:

    env = letitcook.ScalarisedEnv(letitcook.WaitingEnv(..., gamma=0.99), lam=0.1)
    model = DQN("MlpPolicy", env, gamma=0.99, replay_buffer_class=discounted_replay_buffer())

Needs `pip install 'letitcook[torch]'`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from letitcook.errors import SettingError


@cache
def discounted_replay_buffer() -> Any:
    """Return the class: Stable-Baselines3's `ReplayBuffer`, with the discount of each decision."""
    from stable_baselines3.common.buffers import ReplayBuffer, ReplayBufferSamples

    if "discounts" not in ReplayBufferSamples._fields:
        raise SettingError("this Stable-Baselines3 knows no discounts of transitions; install 2.7 or newer")

    class DiscountedReplayBuffer(ReplayBuffer):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.discounts = np.ones((self.buffer_size, self.n_envs), dtype=np.float32)

        def add(
            self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: list[dict[str, Any]]
        ) -> None:
            if any("discount" not in info for info in infos):
                raise SettingError("info has no discount; train on a ScalarisedEnv around a WaitingEnv")
            self.discounts[self.pos] = [info["discount"] for info in infos]
            super().add(obs, next_obs, action, reward, done, infos)

        def _get_samples(self, batch_inds: Any, env: Any = None) -> Any:
            before = np.random.get_state()  # noqa: NPY002 (Stable-Baselines3's)
            samples = super()._get_samples(batch_inds, env)
            np.random.set_state(before)  # noqa: NPY002 (to draw the same environments again)
            envs = np.random.randint(0, high=self.n_envs, size=(len(batch_inds),))  # noqa: NPY002
            return samples._replace(discounts=self.to_torch(self.discounts[batch_inds, envs].reshape(-1, 1)))

    return DiscountedReplayBuffer
