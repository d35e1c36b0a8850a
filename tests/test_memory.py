from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from letitcook import Decisions, Memory, MemoryEnv, MemoryVectorEnv, Timer, WaitingEnv, WaitingVectorEnv, make
from letitcook.errors import FileFormatError, SettingError, SpaceError
from letitcook.wrappers.memory import Recall, every_timer, number_of_parts, read_memory

U = Decisions(("go", "stay"), 1, (3, 5))


def halves(observation: Any) -> list[bool]:
    """Return whether each number is above a half."""
    return [bool(x > 0.5) for x in observation]


def test_a_wait_counts_all_its_steps_and_a_change_counts_from_when_it_is_seen() -> None:
    recall = Recall(Memory(clock=True, timers=(Timer(1),), actions=(0,)), U, spaces.MultiDiscrete([9, 3]))
    now = recall.begin([0, 1])
    counts = []
    for decision, elapsed, seen in ((1, 1, [0, 1]), (3, 5, [4, 1]), (2, 2, [4, 2]), (0, 1, [5, 2])):
        now = recall.decided(now, decision, elapsed, seen)
        counts.append(now.counts)
    assert counts == [(1, 1, 1), (6, 6, 6), (8, 0, 8), (9, 1, 0)]


def test_a_timer_with_values_rests_at_others() -> None:
    recall = Recall(Memory(timers=(Timer(0, values=(1,)),), cap=4), U, spaces.Discrete(3))
    now = recall.begin(0)
    counts = []
    for seen in (0, 1, 1, 1, 1, 1, 1, 2, 2):
        now = recall.after(now, 1, 1, seen)
        counts.append(now.counts[0])
    assert counts == [0, 0, 1, 2, 3, 4, 4, 0, 0]


def test_a_window_keeps_what_was_done_how_long_and_what_was_seen_before() -> None:
    recall = Recall(Memory(window=2), U, spaces.Box(-1.0, 1.0, (1,)))
    now = recall.begin(np.array([0.1]))
    assert recall.vector(np.array([0.1]), now).tolist() == pytest.approx([0.1, *[0.0] * 8])
    now = recall.decided(now, 3, 4, np.array([0.2]))
    now = recall.decided(now, 0, 1, np.array([0.3]))
    vector = recall.vector(np.array([0.3]), now)
    # Of real numbers, the change in a step: (0.3 - 0.2) / 1 and (0.2 - 0.1) / 4.
    assert vector.tolist() == pytest.approx([0.3, 1.0, 0.0, 0.2, 0.1, 0.0, 1.0, 0.8, 0.025])
    assert recall.vector_space.shape == vector.shape
    discrete = Recall(Memory(window=1), U, spaces.Discrete(2))
    then = discrete.decided(discrete.begin(1), 3, 4, 0)
    assert discrete.vector(0, then).tolist() == pytest.approx([1.0, 0.0, 0.0, 1.0, 0.8, 0.0, 1.0])


def test_a_function_of_the_users_gives_the_parts() -> None:
    memory = Memory(timers=(Timer(1),), parts=halves)
    recall = Recall(memory, U, spaces.Box(0.0, 1.0, (2,)))
    now = recall.after(recall.begin([0.1, 0.1]), 1, 5, [0.9, 0.2])
    assert now.counts == (5,)
    assert recall.after(now, 1, 5, [0.9, 0.9]).counts == (0,)
    assert Memory.of_data(memory.data()).parts == f"{__name__}:halves"


def test_data_comes_back() -> None:
    memory = Memory(clock=True, timers=(Timer(2, (1, 3)), Timer(0)), actions=(1,), window=3, cap=50)
    assert Memory.of_data(memory.data()) == memory
    with pytest.raises(FileFormatError, match="damaged"):
        Memory.of_data({"clock": True})


def test_mistakes_are_named() -> None:
    with pytest.raises(SettingError, match="holds nothing"):
        Memory()
    with pytest.raises(SettingError, match="window = -1"):
        Memory(window=-1)
    with pytest.raises(SettingError, match="window = 1001"):
        Memory(window=1_001)
    with pytest.raises(SettingError, match="parts=function"):
        Recall(Memory(timers=(Timer(0),)), U, spaces.Box(0.0, 1.0, (2,)))
    with pytest.raises(SettingError, match="part 7 of an observation that has 2"):
        Recall(Memory(timers=(Timer(7),)), U, spaces.MultiDiscrete([2, 2])).begin([0, 0])
    with pytest.raises(SettingError, match="times action 2"):
        Recall(Memory(actions=(2,)), U, spaces.Discrete(2))
    with pytest.raises(SettingError, match="cannot be saved"):
        Memory(timers=(Timer(0),), parts=lambda observation: observation).data()
    with pytest.raises(SettingError, match="not named module:function"):
        Recall(Memory(timers=(Timer(0),), parts="halves"), U, spaces.Box(0.0, 1.0, (2,)))
    with pytest.raises(SettingError, match="memory = 'long' is not allowed"):
        read_memory("long")
    with pytest.raises(SettingError, match="say what to remember"):
        every_timer(spaces.Box(0.0, 1.0, (2,)))
    assert read_memory("3") == read_memory(3) == Memory(window=3)
    assert number_of_parts(spaces.MultiBinary(4)) == 4


def test_an_environment_forgets_with_each_episode() -> None:
    env = MemoryEnv(make("cook", hidden=True), Memory(clock=True))
    env.reset(seed=0)
    assert env.step(7)[0][-1] == 1.0  # a wait of 15, in units of the longest
    assert env.observation_space.contains(env.step(0)[0])
    assert env.reset(seed=0)[0][-1] == 0.0
    with pytest.raises(SpaceError, match="call reset"):
        MemoryEnv(make("cook"), Memory(clock=True)).step(0)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_side_by_side_each_has_a_memory_of_its_own(mode: AutoresetMode) -> None:
    def one() -> gym.Env[Any, Any]:
        return gym.make("MountainCar-v0", max_episode_steps=9)

    memory = Memory(clock=True, window=1)
    several = WaitingVectorEnv(SyncVectorEnv([one, one], autoreset_mode=mode), wait=1, durations=(2, 4))
    env = MemoryVectorEnv(several, memory)
    alone = MemoryEnv(WaitingEnv(one(), wait=1, durations=(2, 4)), memory)
    env.reset(seed=3)
    alone.reset(seed=4)
    rng, ends = np.random.default_rng(0), 0
    while ends < 1:
        decisions = rng.integers(0, 5, 2)
        for done in env.step(decisions):
            if done.index != 1:
                continue
            after, _, terminated, truncated, info = alone.step(done.decision)
            assert done.observation == pytest.approx(after)
            assert done.elapsed == info["elapsed"]
            ends += terminated or truncated
    while not env.due[1]:
        env.step(np.zeros(2, dtype=int))
    assert env.observations[1][2] == 0.0  # the clock of the new episode
    assert env.single_observation_space.shape == alone.observation_space.shape
