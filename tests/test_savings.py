from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from letitcook import Decisions, Episode, WaitingEnv, make, plan, wrap
from letitcook.errors import SettingError
from letitcook.evaluation.rollout import Evaluation
from letitcook.evaluation.savings import BaseAlone, Savings, compare_with_base, duration, ratio_interval
from letitcook.wrappers.vector import WaitingVectorEnv

WRAPPER = Decisions(("base", "wait"), wait=1, durations=(2, 4))


class Push:
    """A base policy that reaches the goal; says at which observations it was asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        self.asked.append(float(observation[0]))
        return (2 if observation[1] > 0 else 0), None


class Rest:
    """Waits where the car is slow."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        return (2 if abs(observation[1]) < 0.002 else 0), None


def evaluation(returns: list[float], asked: list[int], policy: float = 0.0, base: float = 0.0) -> Evaluation:
    """Episodes with these returns and queries of the base; each query of it took `base` seconds."""
    played = [
        Episode([0] * n, [1] * n, r, n, policy_seconds=policy, base_seconds=base * n, terminated=True)
        for r, n in zip(returns, asked, strict=True)
    ]
    return Evaluation(played, WRAPPER)


def test_a_wrapper_and_its_base_play_the_same_episodes() -> None:
    base = Push()
    env = wrap(gym.make("MountainCar-v0"), base, wait=1, durations=(2, 4))
    savings = compare_with_base(env, BaseAlone(), episodes=3, seed=4)
    asked = base.asked[1:]  # the first is to warm up
    half = len(asked) // 2
    assert asked[:half] == asked[half:]
    assert half == savings.base.of("base_queries").sum()
    assert savings.return_difference == (0.0, 0.0, 0.0)
    assert savings.relative_difference == (0.0, 0.0, 0.0)
    assert savings.queries_saved.value == 0.0
    assert savings.base.base_queries == savings.base.length == savings.wrapper.queries
    assert len(set(savings.base.of("length").tolist())) > 1


def test_the_difference_is_the_paired_interval_of_scipy() -> None:
    env = wrap(gym.make("MountainCar-v0"), Push(), wait=1, durations=(2, 4))
    savings = compare_with_base(env, Rest(), episodes=12)
    paired = stats.ttest_rel(savings.wrapper.of("task_return"), savings.base.of("task_return"))
    expected = paired.confidence_interval(0.95)
    value, low, high = savings.return_difference
    assert value == pytest.approx(savings.wrapper.task_return - savings.base.task_return)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert low is not None
    assert high is not None
    assert low < value < high
    saved = savings.queries_saved
    asked, alone = savings.wrapper.of("base_queries").sum(), savings.base.of("base_queries").sum()
    assert saved.value == pytest.approx(1 - asked / alone)
    assert savings.wrapper.longest_wait == 2
    assert json.loads(json.dumps(savings.summary(), allow_nan=False)) == savings.summary()


def test_the_interval_of_a_ratio_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(1_000):
        bottom = random.uniform(50, 150, size=20)
        top = 0.4 * bottom + random.normal(0, 8, size=20)
        _, low, high = ratio_interval(top, bottom)
        assert low is not None
        assert high is not None
        hits += low <= 0.4 <= high
    assert 930 <= hits <= 970


def test_episodes_that_agree_have_no_width_and_one_has_no_interval() -> None:
    assert ratio_interval(np.full(7, 0.1), np.ones(7)) == (0.1, 0.1, 0.1)
    assert ratio_interval(np.array([3.0]), np.array([4.0])) == (0.75, None, None)
    one = Savings(evaluation([-5.0], [2]), evaluation([-4.0], [4]))
    assert one.return_difference == (-1.0, None, None)
    assert "-1.00, -25.0% of the base's" in one.lines()[1]
    json.dumps(one.summary(), allow_nan=False)


def test_no_more_than_all_queries_can_be_saved() -> None:
    savings = Savings(evaluation([0.0, 0.0], [1, 9]), evaluation([0.0, 0.0], [10, 10]))
    value, low, high = savings.queries_saved
    assert (value, high) == (0.5, 1.0)
    assert low is not None
    assert low < 0.0


def test_returns_of_either_sign_and_none() -> None:
    worse = Savings(evaluation([-12.0, -12.0], [3, 3]), evaluation([-10.0, -10.0], [6, 6]))
    assert worse.relative_difference == (-0.2, -0.2, -0.2)
    better = Savings(evaluation([12.0, 12.0], [3, 3]), evaluation([10.0, 10.0], [6, 6]))
    assert better.relative_difference == (0.2, 0.2, 0.2)
    nothing = Savings(evaluation([1.0, 1.0], [3, 3]), evaluation([0.0, 0.0], [6, 6]))
    assert nothing.relative_difference is None
    assert nothing.summary()["relative_difference"] is None
    assert nothing.lines()[1].endswith("+1.00 (+1.00 to +1.00)")


def test_time_saved_is_that_of_the_queries_avoided_less_the_wrappers_own() -> None:
    savings = Savings(
        evaluation([0.0, 0.0], [10, 30], policy=0.5, base=0.25), evaluation([0.0, 0.0], [50, 70], base=0.25)
    )
    assert savings.seconds_per_query == 0.25
    assert savings.seconds() == (60 * 0.25, 20 * 0.25 + 0.5)
    assert savings.seconds_saved() == 9.5
    assert savings.seconds(1.0) == (60.0, 20.5)
    assert savings.seconds_saved(0.0) == -0.5
    assert savings.queries_saved.value == pytest.approx(2 / 3)
    assert "9.5 s saved an episode, at 250 ms a base query (measured)" in savings.lines()[5]
    assert "500 ms lost an episode, at 0 µs a base query (given)" in savings.lines(0.0)[5]
    assert savings.summary(1.0)["seconds_saved"] == 39.5
    for cost in (-1.0, float("nan"), float("inf")):
        with pytest.raises(SettingError, match="cannot take"):
            savings.seconds(cost)


def test_a_finite_task_saves_what_its_plan_says() -> None:
    env = make("cook", mode="wrap")
    savings = compare_with_base(env, plan(env).policy, episodes=2)
    assert (savings.base.length, savings.wrapper.length, savings.wrapper.queries) == (53, 53, 39)
    assert savings.return_difference == (0.0, 0.0, 0.0)
    assert (savings.wrapper.base_queries, savings.queries_saved.value) == (38, 15 / 53)
    assert savings.lines()[-2].endswith("longest wait 15 steps")


def test_side_by_side() -> None:
    base = Push()
    base.batched = False  # type: ignore[attr-defined]
    envs = gym.make_vec("MountainCar-v0", num_envs=2, vectorization_mode="sync")
    savings = compare_with_base(WaitingVectorEnv(envs, 1, (2, 4), base=base), BaseAlone(), episodes=4)
    assert savings.return_difference == (0.0, 0.0, 0.0)
    assert savings.base.base_queries == savings.base.length
    with pytest.raises(SettingError, match="no base policy"):
        compare_with_base(WaitingVectorEnv(envs, 1, (2, 4)), BaseAlone(), episodes=1)


def test_from_scratch_there_is_nothing_to_compare_with() -> None:
    with pytest.raises(SettingError, match="no base policy, so there is nothing to compare with; wrap one first"):
        compare_with_base(WaitingEnv(gym.make("MountainCar-v0"), 1, (2, 4)), BaseAlone(), episodes=1)
    with pytest.raises(SettingError, match="episodes = 0"):
        compare_with_base(make("cook", mode="wrap"), BaseAlone(), episodes=0)


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0 µs"), (0.2, "200 ms"), (99.96, "100 s"), (3600.0, "3600 s")])
def test_times_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
