from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from letitcook import Policy, evaluate, make, rollout, wrap
from letitcook.errors import SettingError, SpaceError, UnknownNameError
from letitcook.wrapping import CallablePolicy, checked_action


class Constant:
    """A waiting policy that always takes the same decision."""

    def __init__(self, decision: int) -> None:
        self.decision = decision

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        return self.decision, None


class Remembering:
    """A base policy that keeps a count of its calls in its state, and notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, bool]] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        self.calls.append((state, bool(episode_start[0])))
        return np.array(2), (state or 0) + 1


@pytest.mark.parametrize(("task", "length"), [("cook", 53), ("cook-longer", 71), ("cook-twice", 109), ("coffee", 54)])
def test_base_alone_is_the_base_policy(task: str, length: int) -> None:
    episode = rollout(make(task, mode="wrap"), Constant(0))
    assert (episode.length, episode.queries, episode.base_queries) == (length, length, length)
    assert episode.terminated


def test_both_kinds_of_query_are_counted() -> None:
    env = wrap(gym.make("MountainCar-v0"), lambda o: 2 if o[1] > 0 else 0, wait=1, durations=(2, 4))
    env.reset(seed=0)
    counts = [env.step(u)[4] for u in (0, 1, 3, 0)]
    assert [c["base_queries"] for c in counts] == [1, 0, 0, 1]
    assert [c["elapsed"] for c in counts] == [1, 1, 4, 1]


def test_a_base_with_a_state_is_reset_with_each_episode() -> None:
    base = Remembering()
    env = wrap(gym.make("MountainCar-v0"), base, wait=1, durations=(2,))
    for _ in range(2):
        env.reset(seed=0)
        for decision in (0, 2, 0):
            env.step(decision)
    assert base.calls == [(None, True), (1, False), (None, True), (1, False)]


def test_a_stochastic_base_is_asked_to_draw() -> None:
    seen = []

    class Drawing(Constant):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> Any:
            seen.append(deterministic)
            return 1, None

    env = wrap(gym.make("MountainCar-v0"), Drawing(0), wait=1, durations=(2,), deterministic=False)
    env.reset(seed=0)
    env.step(0)
    assert seen == [False]


def test_a_continuous_environment_can_be_wrapped() -> None:
    env = wrap(gym.make("Pendulum-v1"), lambda o: np.array([1.0]), wait=np.zeros(1, np.float32), durations=(2,))
    assert evaluate(env, Constant(2), episodes=1).base_queries == 0
    assert evaluate(env, Constant(0), episodes=1).base_queries == 200


@pytest.mark.parametrize("answer", [7, -1, 1.5, float("nan"), [1, 2]])
def test_a_base_that_answers_nonsense_is_named(answer: Any) -> None:
    env = wrap(gym.make("MountainCar-v0"), lambda o: answer, wait=1, durations=(2,))
    env.reset(seed=0)
    with pytest.raises(SpaceError, match="the base policy answered"):
        env.step(0)


def test_actions_are_brought_into_the_spaces_form() -> None:
    space = gym.spaces.Discrete(3)
    assert checked_action(np.array([2]), space) == 2
    assert checked_action(np.int64(1), space) == 1


def test_mistakes() -> None:
    with pytest.raises(SettingError, match="outside the action space"):
        wrap(gym.make("MountainCar-v0"), lambda o: 0, wait=9, durations=(2,))
    with pytest.raises(SettingError, match="mode 'wrapped' is not known"):
        make("cook", mode="wrapped")
    with pytest.raises(UnknownNameError, match="no task named 'cofee'. Did you mean 'coffee'"):
        make("cofee")
    env = wrap(gym.make("MountainCar-v0"), lambda o: 0, wait=1, durations=(2,))
    with pytest.raises(SpaceError, match="call reset"):
        env.env.base_action()  # type: ignore[attr-defined]
    assert isinstance(CallablePolicy(lambda o: 0), Policy)
