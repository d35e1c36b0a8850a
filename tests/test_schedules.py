from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from letitcook import Decisions, PacedPolicy, SchedulePolicy, evaluate, wrap
from letitcook.deep.policy import NetworkPolicy
from letitcook.deploy.export import to_numpy, to_onnx
from letitcook.deploy.numpy_policy import load as load_exported
from letitcook.errors import FileFormatError, SettingError
from letitcook.evaluation.schedules import schedules

U = Decisions(("base", "wait"), wait=1, durations=(2, 4))


@pytest.mark.parametrize("period", [1, 2, 3, 4, 5, 7, 11])
def test_the_base_is_queried_every_so_many_steps(period: int) -> None:
    asked: list[float] = []

    def base(observation: np.ndarray) -> int:
        asked.append(float(observation[0]))
        return 2

    env = wrap(gym.make("MountainCar-v0", max_episode_steps=40), base, wait="hold", durations=(2, 4))
    policy = SchedulePolicy(period, env.decisions.durations)
    for played in (evaluate(env, policy, episodes=2), evaluate(env, SchedulePolicy.from_arrays(policy.arrays()), 2)):
        assert [episode.base_queries for episode in played.episodes] == [-(-40 // period)] * 2  # anew in each episode
        assert played.of("length").tolist() == [40.0, 40.0]
    assert len(asked) == 4 * -(-40 // period)


def test_the_periods_that_are_tried_fit_waits_and_episodes() -> None:
    assert [s.period for s in schedules(U, horizon=10)] == [2, 3]
    assert max(s.period for s in schedules(U)) == 8
    assert SchedulePolicy(1, (2,)).name == "the base itself"
    assert SchedulePolicy(6, (2,)).name == "every 6 steps"


def test_a_schedule_is_exported(tmp_path: Path) -> None:
    policy = SchedulePolicy(8, U.durations)
    exported = load_exported(to_numpy(policy, tmp_path / "robot", U) / "policy.npz")
    state, ours = None, None
    for _ in range(9):
        decision, state = exported.predict(np.zeros(2), state)
        expected, ours = policy.predict(np.zeros(2), ours)
        assert decision == expected
    assert [exported.decide(np.zeros(2)) for _ in range(5)] == [(0, 1), (1, 4), (1, 2), (1, 1), (0, 1)]
    with pytest.raises(SettingError, match="schedule cannot be written as an ONNX graph"):
        to_onnx(policy, tmp_path / "policy.onnx", U)


def test_mistakes() -> None:
    with pytest.raises(SettingError, match="period = 0"):
        SchedulePolicy(0, (2,))
    with pytest.raises(FileFormatError, match="durations is missing"):
        SchedulePolicy.from_arrays({"period": np.array([2])})
    for period in (10**12, -1):  # the first would be a list of 10^12 decisions
        with pytest.raises(FileFormatError, match=r"outside 1\.\.1000000"):
            SchedulePolicy.from_arrays({"period": np.array([period]), "durations": np.array([2])})


def waits_while(limit: float) -> NetworkPolicy:
    """Return networks that wait 2 steps while what they see is above a limit, and else query the base."""
    parameters = np.array([0.0, 0.0, 1.0, 0.0, 0.0, -9.0, -limit, -9.0], dtype=np.float32)
    return NetworkPolicy(parameters[None], (1, 4), 0.0)


def test_a_paced_policy_waits_its_period_and_then_as_long_as_its_networks_say(tmp_path: Path) -> None:
    policy = PacedPolicy(waits_while(0.5), 4, U.durations)
    exported = load_exported(to_numpy(policy, tmp_path / "robot", U) / "policy.npz")
    # The first decision asks, whatever is seen; the period is not cut short; then the networks decide.
    seen = [0.9, 0.0, 0.0, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9]
    expected = ["base", "wait 2", "wait", "wait 2", "wait 2", "base", "wait 2", "wait", "wait 2"]
    for one in (policy, PacedPolicy.from_arrays(policy.arrays()), exported):
        state, answers = None, []
        for x in seen:
            decision, state = one.predict(np.array([x], dtype=np.float32), state)
            answers.append(U.label(decision))
        assert answers == expected
    with pytest.raises(SettingError, match="cannot be written as an ONNX graph"):
        to_onnx(policy, tmp_path / "policy.onnx", U)
