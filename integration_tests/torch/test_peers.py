"""Libraries of the field work on waiting environments."""

from typing import Any

import gymnasium as gym
import mo_gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from mo_gymnasium.wrappers.vector import MOSyncVectorEnv
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env

from letitcook import ScalarisedEnv, WaitingEnv, evaluate, make, rollout
from letitcook.adapters import as_policy
from letitcook.wrappers.added_wait import AddedWait
from letitcook.wrappers.vector import WaitingVectorEnv, play
from letitcook.wrappers.wrap import wrap
from test_added_wait import no_force

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def mountain_car() -> Any:
    return WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4, 8))


def cartpole() -> Any:
    env = AddedWait(gym.make("CartPole-v1"), no_force)
    return WaitingEnv(env, env.wait, durations=(2, 4))


def frozen_lake() -> Any:
    return WaitingEnv(gym.make("FrozenLake-v1", is_slippery=False), wait=0, durations=(2,))


def around_a_policy() -> Any:
    return wrap(gym.make("Pendulum-v1"), lambda o: [-o[1]], wait=0.0, durations=(2, 4))


USERS = {make_env.__name__: make_env for make_env in (mountain_car, cartpole, frozen_lake, around_a_policy)}


@pytest.mark.parametrize("task", ["cook", "coffee", "pong", "cartpole", "mountain-car"])
def test_stable_baselines_checker(task: str) -> None:
    check_env(ScalarisedEnv(make(task), lam=0.1), warn=False)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
@pytest.mark.filterwarnings("ignore:.*A Box observation space m..imum value is -?infinity:UserWarning")
@pytest.mark.parametrize("name", USERS)
def test_checkers_on_environments_of_users(name: str) -> None:
    check_env(ScalarisedEnv(USERS[name](), lam=0.1), warn=False)
    gymnasium_check_env(ScalarisedEnv(USERS[name](), lam=0.1), skip_render_check=True)
    # MO-Gymnasium has no checker of its own, and Gymnasium's wants one number: this is how it sees the vector view.
    first = gym.wrappers.TransformReward(USERS[name](), lambda reward: float(reward[0]))  # type: ignore[index]
    gymnasium_check_env(first, skip_render_check=True)


@pytest.mark.parametrize("name", USERS)
def test_vector_rewards_are_in_their_space(name: str) -> None:
    env = USERS[name]()
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(30):
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.unwrapped.reward_space.contains(reward)
        if terminated or truncated:
            env.reset()


def test_stable_baselines_trains_on_the_scalarised_view_and_its_policy_waits() -> None:
    env = make("cartpole")
    model = DQN("MlpPolicy", ScalarisedEnv(env, lam=0.5), learning_starts=50, seed=0, device="cpu")
    model.learn(300)
    result = evaluate(env, model, episodes=2)
    assert result.queries == np.mean([len(episode.decisions) for episode in result.episodes])
    assert result.length == np.mean([sum(episode.elapsed) for episode in result.episodes])


@pytest.mark.parametrize("name", ["mountain_car", "cartpole"])
@pytest.mark.parametrize(
    ("algorithm", "settings"), [(DQN, {"learning_starts": 50}), (PPO, {"n_steps": 64, "batch_size": 32, "n_epochs": 2})]
)
def test_stable_baselines_trains_on_environments_of_users(name: str, algorithm: Any, settings: Any) -> None:
    env = USERS[name]()
    model = algorithm("MlpPolicy", ScalarisedEnv(env, lam=0.5), seed=0, device="cpu", **settings)
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(256)
    assert model.num_timesteps == 256
    assert any((value != before[key]).any() for key, value in model.policy.state_dict().items())
    result = evaluate(env, model, episodes=2)
    assert result.queries == np.mean([len(episode.decisions) for episode in result.episodes])
    assert result.length == np.mean([sum(episode.elapsed) for episode in result.episodes])


def test_a_model_of_stable_baselines_is_asked_by_several_environments_at_once() -> None:
    model = PPO("MlpPolicy", gym.make("CartPole-v1"), seed=0, device="cpu", n_steps=64)
    base = as_policy(model)
    assert base.batched  # type: ignore[attr-defined]
    envs = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    env = WaitingVectorEnv(envs, wait=0, durations=(2, 4), base=base)

    def mostly(observation: Any) -> Any:
        return 0 if observation[2] > 0 else 2

    played = play(env, as_policy(mostly), episodes=4, seed=1)
    for i, episode in enumerate(played[:3]):
        alone = wrap(gym.make("CartPole-v1"), model, wait=0, durations=(2, 4))
        expected = rollout(alone, as_policy(mostly), seed=1 + i)
        assert (episode.decisions, episode.elapsed) == (expected.decisions, expected.elapsed)
        assert episode.base_queries == expected.base_queries == episode.decisions.count(0)


@pytest.mark.parametrize("lam", [0.0, 0.5, 3.0])
def test_mo_gymnasiums_linear_reward_is_our_scalarised_view(lam: float | None) -> None:
    ours, theirs = (
        ScalarisedEnv(make("cook"), lam),  # type: ignore[arg-type]
        mo_gymnasium.wrappers.LinearReward(make("cook"), np.array([1.0, lam])),
    )
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for decision in (1, 6, 3, 7, 5):
        a, b = ours.step(decision), theirs.step(decision)
        assert np.array_equal(a[0], b[0])
        assert a[1] == pytest.approx(b[1])
        assert a[2:4] == b[2:4]


def test_mo_gymnasiums_statistics_see_the_vector_reward() -> None:
    env = mo_gymnasium.wrappers.MORecordEpisodeStatistics(make("cook", mode="wrap"))

    class Base:
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: Any = True
        ) -> Any:
            return 0, None

    episode = rollout(env, Base())
    assert episode.length == 53
    assert env.return_queue[0].tolist() == [-53.0, -53.0]


def test_mo_gymnasiums_reward_wrappers_change_one_objective() -> None:
    env = mo_gymnasium.wrappers.MOClipReward(mountain_car(), idx=0, min_r=-3.0, max_r=0.0)
    env.reset(seed=0)
    assert [env.step(u)[1].tolist() for u in (0, 3, 5)] == [[-1, -1], [-2, -1], [-3, -1]]
    env = mo_gymnasium.wrappers.MONormalizeReward(mountain_car(), idx=0)
    env.reset(seed=0)
    rewards = np.array([env.step(u)[1] for u in (0, 3, 5, 0, 5)])
    assert rewards[:, 1].tolist() == [-1] * 5
    assert np.isfinite(rewards).all()
    assert not np.array_equal(rewards[:, 0], [-1, -2, -8, -1, -8])


def test_mo_gymnasiums_vector_environment_holds_waiting_environments() -> None:
    envs = MOSyncVectorEnv([mountain_car] * 2)
    envs.reset(seed=0)
    _, rewards, _, _, infos = envs.step([0, 5])
    assert rewards.tolist() == [[-1, -1], [-8, -1]]
    assert infos["elapsed"].tolist() == [1, 8]


class Pot(gym.Env):
    """Light the fire, let it cook for 4 steps, serve; -1 a step. Too early to serve: nothing happens."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.MultiDiscrete([6])
        self.action_space = gym.spaces.Discrete(3)
        self.cooked = 0  # 0: the fire is out; 5: done

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cooked = 0
        return np.array([0]), {}

    def step(self, action: Any) -> Any:
        served = action == 2 and self.cooked == 5
        self.cooked = min(self.cooked + 1, 5) if self.cooked or action == 0 else 0
        return np.array([self.cooked]), -1.0, served, False, {}


def test_morl_baselines_learns_to_wait_on_the_vector_view() -> None:
    q_learning = pytest.importorskip("morl_baselines.single_policy.ser.mo_q_learning")
    env = WaitingEnv(gym.wrappers.TimeLimit(Pot(), 40), wait=1, durations=(2, 4))
    env.action_space.seed(0)
    agent = q_learning.MOQLearning(env, weights=np.array([1.0, 0.1]), gamma=1.0, learning_rate=0.5, log=False, seed=0)
    agent.train(start_time=0.0, total_timesteps=800)
    assert agent.reward_dim == 2
    result = evaluate(env, as_policy(agent.eval), episodes=1)
    assert (result.length, result.queries) == (6.0, 3.0)
    assert [env.decisions.label(u) for u in result.episodes[0].decisions[1:]] == ["wait 4", "action 2"]
