"""Libraries of the field work on waiting environments."""

import mo_gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN
from stable_baselines3.common.env_checker import check_env

from letitcook import ScalarisedEnv, evaluate, make, rollout

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.mark.parametrize("task", ["cook", "coffee", "pong", "cartpole", "mountain-car"])
def test_stable_baselines_checker(task):
    check_env(ScalarisedEnv(make(task), lam=0.1), warn=False)


def test_stable_baselines_trains_on_the_scalarised_view_and_its_policy_waits():
    env = make("cartpole")
    model = DQN("MlpPolicy", ScalarisedEnv(env, lam=0.5), learning_starts=50, seed=0, device="cpu")
    model.learn(300)
    result = evaluate(env, model, episodes=2)
    assert result.queries <= result.length <= 200


@pytest.mark.parametrize("lam", [0.0, 0.5, 3.0])
def test_mo_gymnasiums_linear_reward_is_our_scalarised_view(lam):
    ours, theirs = (
        ScalarisedEnv(make("cook"), lam),
        mo_gymnasium.wrappers.LinearReward(make("cook"), np.array([1.0, lam])),
    )
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for decision in (1, 6, 3, 7, 5):
        a, b = ours.step(decision), theirs.step(decision)
        assert np.array_equal(a[0], b[0])
        assert a[1] == pytest.approx(b[1])
        assert a[2:4] == b[2:4]


def test_mo_gymnasiums_statistics_see_the_vector_reward():
    env = mo_gymnasium.wrappers.MORecordEpisodeStatistics(make("cook", mode="wrap"))

    class Base:
        def predict(self, observation, state=None, episode_start=None, deterministic=True):
            return 0, None

    episode = rollout(env, Base())
    assert episode.length == 53
