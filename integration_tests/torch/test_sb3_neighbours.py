"""What Stable-Baselines3's users bring along: VecNormalize, folders of rl-baselines3-zoo, DQN with γ < 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from letitcook import ScalarisedEnv, WaitingEnv, wrap
from letitcook.adapters import named_policy
from letitcook.adapters.sb3_replay import discounted_replay_buffer
from letitcook.errors import FileFormatError, SettingError, SpaceError
from letitcook.training.env_spec import fingerprint

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class Late(gym.Env[Any, Any]):
    """Seven steps, and the last one pays 1."""

    observation_space = spaces.Box(0.0, 1.0, (8,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.seen(), float(self.t == 7), self.t >= 7, False, {}

    def seen(self) -> Any:
        return np.eye(8, dtype=np.float32)[self.t]


GAMMA, LAM = 0.9, (0.9**6 - 0.504) / (1.0 + 0.9**6)
"""With these, to wait 6 steps from the beginning is worth 0.504: -λ + γ⁶ (1 - λ)."""


def value_of_waiting(buffer: Any) -> float:
    env = ScalarisedEnv(WaitingEnv(Late(), wait=0, durations=(6,), gamma=GAMMA), LAM)
    model = DQN(
        "MlpPolicy",
        env,
        gamma=GAMMA,
        learning_rate=5e-3,
        learning_starts=100,
        train_freq=1,
        target_update_interval=50,
        exploration_fraction=1.0,
        exploration_final_eps=1.0,
        policy_kwargs={"net_arch": [32]},
        replay_buffer_class=buffer,
        seed=0,
        device="cpu",
    )
    model.learn(1_500)
    with torch.no_grad():
        return float(model.q_net(torch.as_tensor(np.eye(8, dtype=np.float32)[:1]))[0, 2])


def test_dqn_learns_the_exact_value_of_a_wait() -> None:
    assert pytest.approx(0.504, abs=0.02) == value_of_waiting(discounted_replay_buffer())
    assert value_of_waiting(None) > 0.7  # as if the wait had lasted one step


def test_several_environments_have_their_own_discounts() -> None:
    buffer = discounted_replay_buffer()(40, Late.observation_space, Late.action_space, "cpu", n_envs=2)
    for i in range(20):
        seen = np.array([[i / 20] * 8, [-i / 20] * 8], dtype=np.float32)
        infos = [{"discount": 0.5}, {"discount": 0.25}]
        buffer.add(seen, seen, np.zeros((2, 1)), np.array([1.0, 2.0]), np.zeros(2), infos)
    samples = buffer.sample(64)
    expected = torch.where(samples.rewards == 1.0, 0.5, 0.25)
    assert torch.equal(samples.discounts, expected)
    with pytest.raises(SettingError, match="info has no discount"):
        buffer.add(seen, seen, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])


@pytest.fixture
def normalised(tmp_path: Path) -> tuple[PPO, VecNormalize, Path]:
    """A model with its normalisation, saved as rl-baselines3-zoo does."""
    envs = VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1")]))
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(128)
    folder = tmp_path / "ppo" / "Pendulum-v1_1"
    (folder / "Pendulum-v1").mkdir(parents=True)
    model.save(folder / "Pendulum-v1.zip")
    envs.save(str(folder / "Pendulum-v1" / "vecnormalize.pkl"))
    return model, envs, folder


@pytest.mark.parametrize("named", ["", "Pendulum-v1.zip"])
@pytest.mark.parametrize("trust", [False, True])
def test_a_folder_of_the_zoo_is_read_with_its_normalisation(normalised: Any, named: str, trust: bool) -> None:
    model, envs, folder = normalised
    policy = named_policy(f"sb3:ppo:{folder / named}", trust_pickle=trust)
    for seen in np.random.default_rng(0).uniform(-1.0, 1.0, (20, 3)).astype(np.float32):
        expected, _ = model.predict(envs.normalize_obs(seen), deterministic=True)
        assert np.allclose(policy.predict(seen)[0], expected, atol=1e-5)
        plain, _ = model.predict(seen, deterministic=True)
        assert not np.allclose(plain, expected, atol=1e-5)


def test_a_model_in_memory_is_shown_what_its_normalisation_shows(normalised: Any) -> None:
    model, envs, _ = normalised
    env = wrap(gym.make("Pendulum-v1"), model, wait=0.0, durations=(2,))
    seen, _ = env.reset(seed=0)
    assert np.allclose(env.env.base.predict(seen)[0], model.predict(envs.normalize_obs(seen), deterministic=True)[0])  # type: ignore[attr-defined]
    with pytest.raises(SpaceError, match="VecNormalize is not an environment of Gymnasium"):
        wrap(envs, model, wait=0.0, durations=(2,))


def test_the_normalisation_is_part_of_the_fingerprint(normalised: Any) -> None:
    _, envs, folder = normalised
    before = fingerprint(f"sb3:ppo:{folder}")
    envs.obs_rms.mean = envs.obs_rms.mean + 1.0
    envs.save(str(folder / "Pendulum-v1" / "vecnormalize.pkl"))
    assert fingerprint(f"sb3:ppo:{folder}") != before
    (folder / "second.zip").write_bytes(b"")
    with pytest.raises(FileFormatError, match="holds 2 models"):
        named_policy(f"sb3:ppo:{folder}")
