"""Train the policies that the documentation and the suite `zoo` wrap, with Stable-Baselines3.

    python examples/train_bases.py dqn-cartpole --out dqn-cartpole.zip

Needs `pip install "letitcook[torch]"`. The hyperparameters are near those of rl-zoo, with fewer steps. The best of
the evaluations during training is kept, for these algorithms forget. Each takes a few minutes of one core. The last
line is the mean task return of 100 episodes that had no part in the choice.
"""

import argparse
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env


@dataclass(frozen=True)
class Recipe:
    """How one policy is trained, and what differs from the algorithm's defaults."""

    algorithm: type[BaseAlgorithm]
    env: str
    steps: int
    seed: int = 0
    copies: int = 1
    network: tuple[int, ...] = (256, 256)
    settings: dict[str, Any] = field(default_factory=dict)


RECIPES = {
    "dqn-mountain-car": Recipe(
        DQN,
        "MountainCar-v0",
        steps=120_000,
        settings={
            "learning_rate": 4e-3,
            "batch_size": 128,
            "buffer_size": 10_000,
            "learning_starts": 1_000,
            "gamma": 0.98,
            "target_update_interval": 600,
            "train_freq": 16,
            "gradient_steps": 8,
            "exploration_fraction": 0.2,
            "exploration_final_eps": 0.07,
        },
    ),
    "dqn-cartpole": Recipe(
        DQN,
        "CartPole-v1",
        steps=60_000,
        settings={
            "learning_rate": 1e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1_000,
            "gamma": 0.99,
            "target_update_interval": 500,
            "train_freq": 16,
            "gradient_steps": 8,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
        },
    ),
    "ppo-acrobot": Recipe(
        PPO,
        "Acrobot-v1",
        steps=200_000,
        copies=16,
        network=(64, 64),
        settings={
            "n_steps": 256,
            "batch_size": 128,
            "gae_lambda": 0.94,
            "gamma": 0.99,
            "n_epochs": 4,
            "learning_rate": 1e-3,
        },
    ),
    "sac-pendulum": Recipe(
        SAC,
        "Pendulum-v1",
        steps=12_000,
        network=(64, 64),
        settings={"learning_rate": 2e-3, "batch_size": 128, "learning_starts": 500},
    ),
    "ppo-hopper": Recipe(
        PPO,
        "Hopper-v5",
        steps=400_000,
        copies=4,
        network=(64, 64),
        settings={
            "n_steps": 512,
            "batch_size": 64,
            "n_epochs": 10,
            "learning_rate": 3e-4,
            "gamma": 0.99,
            "gae_lambda": 0.95,
            "normalize_advantage": True,
        },
    ),
}


def train(recipe: Recipe) -> BaseAlgorithm:
    """The best model of twelve evaluations; equal seeds give an equal one on the same machine."""
    envs = make_vec_env(recipe.env, n_envs=recipe.copies, seed=recipe.seed)
    model = recipe.algorithm(
        "MlpPolicy",
        envs,
        seed=recipe.seed,
        device="cpu",
        policy_kwargs={"net_arch": list(recipe.network)},
        **recipe.settings,
    )
    with tempfile.TemporaryDirectory() as folder:
        judge = EvalCallback(
            make_vec_env(recipe.env, seed=recipe.seed + 500),
            n_eval_episodes=20,
            eval_freq=max(recipe.steps // 12 // recipe.copies, 1),
            best_model_save_path=folder,
            verbose=0,
        )
        model.learn(recipe.steps, callback=judge)
        return recipe.algorithm.load(Path(folder) / "best_model.zip", device="cpu")


def returns(model: BaseAlgorithm, env: gym.Env[Any, Any], episodes: int, seed: int = 1_000) -> list[float]:
    """The task return of each episode, actions taken deterministically."""
    totals = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        totals.append(total)
    return totals


def main() -> None:
    """Train one policy, save it, and say how good it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.zip")
    parser.add_argument("--seed", type=int, default=None, help="in place of the recipe's")
    parser.add_argument("--steps", type=int, default=None, help="in place of the recipe's")
    parser.add_argument("--episodes", type=int, default=100, help="episodes for the mean return")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # networks this small gain nothing from a second one, and one gives equal bits
    recipe = RECIPES[arguments.name]
    changes = {key: getattr(arguments, key) for key in ("seed", "steps") if getattr(arguments, key) is not None}
    recipe = Recipe(**(vars(recipe) | changes))
    model = train(recipe)
    model.save(arguments.out)
    totals = returns(model, gym.make(recipe.env), arguments.episodes)
    deviation = statistics.stdev(totals) if len(totals) > 1 else 0.0
    print(f"{arguments.name}: mean return {statistics.mean(totals):.2f}, sd {deviation:.2f}, {len(totals)} episodes")


if __name__ == "__main__":
    main()
