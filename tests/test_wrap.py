from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import Policy, evaluate, make, rollout, wrap
from letitcook.adapters import CallablePolicy
from letitcook.adapters.actions import checked_action, wait_action
from letitcook.errors import SettingError, SpaceError, UnknownNameError
from letitcook.wrappers.vector import WaitingVectorEnv


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


class Noting(gym.Env[Any, Any]):
    """An environment with any action space; it notes each action, and then spoils the array that it was given."""

    observation_space = spaces.Box(-1.0, 1.0, (2,))

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        self.action_space = action_space
        self.taken: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.taken.append(action if isinstance(action, int) else action.tolist())
        if isinstance(action, np.ndarray):
            action += 1
        return np.zeros(2, np.float32), -1.0, False, False, {}


BELOW = spaces.Discrete(3, start=-1)
TORQUES = spaces.Box(-2.0, 2.0, (2,))
KNOBS = spaces.MultiDiscrete([3, 4])
SWITCHES = spaces.MultiBinary(3)


@pytest.mark.parametrize(
    ("space", "wait", "answer", "taken"),
    [
        (BELOW, 0, np.array([-1]), [-1, 0, 0, 0]),
        (KNOBS, [0, 2], [2, 3], [[2, 3], [0, 2], [0, 2], [0, 2]]),
        (KNOBS, 1, np.array([[2.0, 3.0]]), [[2, 3], [1, 1], [1, 1], [1, 1]]),
        (SWITCHES, 0, (1, 0, 1), [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]),
        (TORQUES, 0.5, [2.0, -2], [[2.0, -2.0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
        (TORQUES, [0, 1], np.array([0.0, 1.0]), [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]),
        (spaces.Box(0, 255, (1,), np.uint8), 7, 255, [[255], [7], [7], [7]]),
    ],
)
def test_any_action_space_has_a_fixed_wait(space: spaces.Space[Any], wait: Any, answer: Any, taken: list[Any]) -> None:
    inside = Noting(space)
    env = wrap(inside, lambda o: answer, wait=wait, durations=(2,))
    env.reset(seed=0)
    for decision in (0, 1, 2):
        env.step(decision)
    assert inside.taken == taken


@pytest.mark.parametrize(
    ("space", "wait", "why"),
    [
        (BELOW, 2, "outside"),
        (BELOW, 0.5, "not whole numbers"),
        (BELOW, "stay", "not a number"),
        (BELOW, None, "not a number"),
        (TORQUES, 2.1, "outside the bounds"),
        (TORQUES, 2.0000005, "outside the bounds"),
        (TORQUES, float("nan"), "not finite"),
        (TORQUES, [0.0, 0.0, 0.0], r"its shape is \(3,\), not \(2,\)"),
        (KNOBS, [0, 4], "outside"),
        (KNOBS, [0.5, 1], "not whole numbers"),
        (KNOBS, [[0], [0, 1]], "not an array of numbers"),
        (SWITCHES, 2, "outside"),
        (SWITCHES, 300, "outside"),
    ],
)
def test_a_wait_outside_the_space_is_named(space: spaces.Space[Any], wait: Any, why: str) -> None:
    with pytest.raises(SettingError, match=f"wait action .* is outside the action space .*{why}.*does nothing"):
        wrap(Noting(space), lambda o: 0, wait=wait, durations=(2,))


@pytest.mark.parametrize("answer", [7, -1, 1.5, float("nan"), [1, 2], None, "left", object(), 2**70, 1e300, [[1], 2]])
def test_a_base_that_answers_nonsense_is_named(answer: Any) -> None:
    env = wrap(gym.make("MountainCar-v0"), lambda o: answer, wait=1, durations=(2,))
    env.reset(seed=0)
    with pytest.raises(SpaceError, match="the base policy answered .*, which is not one action of Discrete"):
        env.step(0)


@pytest.mark.parametrize(
    ("space", "answer", "why"),
    [
        (TORQUES, [np.nan, 0], r"answered \[nan, 0\].*not finite"),
        (TORQUES, [np.inf, 0], "not finite"),
        (spaces.Box(-np.inf, np.inf, (2,)), [np.inf, 0], "not finite"),
        (TORQUES, [2.00001, 0], "outside the bounds"),
        (TORQUES, 1.0, r"its shape is \(\), not \(2,\)"),
        (TORQUES, [[0.0], [0.0]], r"its shape is \(2, 1\)"),
        (TORQUES, [0j, 1], "not a number"),
        (KNOBS, [0.5, 0], "not whole numbers"),
        (KNOBS, [-1, 0], "outside"),
        (SWITCHES, [0, 1, 2], "outside"),
    ],
)
def test_an_answer_outside_a_space_of_arrays_is_named(space: spaces.Space[Any], answer: Any, why: str) -> None:
    with pytest.raises(SpaceError, match=why):
        checked_action(answer, space)


def test_actions_are_brought_into_the_spaces_form() -> None:
    space = gym.spaces.Discrete(3)
    assert checked_action(np.array([2]), space) == 2
    assert checked_action(np.int64(1), space) == 1
    assert checked_action(np.bool_(True), space) == 1
    assert type(checked_action(np.float32(1), space)) is int
    answer = checked_action([2.0000015, -1.0], TORQUES)  # the rounding of a float32 at 2
    assert answer.dtype == np.float32
    assert answer.tolist() == [2.0, -1.0]
    assert wait_action(0, TORQUES).dtype == np.float32
    pair = spaces.Tuple((space, space))
    assert checked_action((1, 2), pair) == (1, 2)
    assert wait_action((0, 0), pair) == (0, 0)
    with pytest.raises(SpaceError, match="outside"):
        checked_action((1, 3), pair)


def test_the_bases_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("letitcook.wrappers.base_policy.perf_counter", lambda: clock[0])

    def slow(observation: Any) -> int:
        clock[0] += 0.25
        return 2

    env = wrap(gym.make("MountainCar-v0"), slow, wait=1, durations=(2,)).env
    env.reset(seed=0)
    told = [(env.step(u)[4]["base_queries"], env.base_seconds) for u in (0, 1, 0)]  # type: ignore[attr-defined]
    assert told == [(1, 0.25), (0, 0.25), (1, 0.5)]


class ForOther(Constant):
    """A policy with spaces of its own."""

    def __init__(self, observation_space: Any = None, action_space: Any = None) -> None:
        super().__init__(0)
        self.observation_space, self.action_space = observation_space, action_space


IMAGE, CHANNELS_FIRST = spaces.Box(0, 255, (8, 9, 3), np.uint8), spaces.Box(0, 255, (3, 8, 9), np.uint8)


@pytest.mark.parametrize(
    ("own", "other", "fits"),
    [
        (ForOther(), spaces.Discrete(3), True),
        (ForOther(action_space="any"), spaces.Discrete(3), True),
        (ForOther(action_space=spaces.Discrete(3)), spaces.Discrete(3), True),
        (ForOther(action_space=spaces.Discrete(2)), spaces.Discrete(3), False),
        (ForOther(action_space=spaces.Discrete(3)), BELOW, False),
        (ForOther(action_space=spaces.Discrete(3)), KNOBS, False),
        (ForOther(action_space=spaces.MultiDiscrete([3, 4])), KNOBS, True),
        (ForOther(action_space=spaces.Box(-2.0, 2.0 + 2e-7, (2,))), TORQUES, True),
        (ForOther(action_space=spaces.Box(-1.0, 1.0, (2,))), TORQUES, False),
        (ForOther(action_space=spaces.Box(-2.0, 2.0, (3,))), TORQUES, False),
    ],
)
def test_a_policy_for_another_action_space_is_refused_when_it_is_wrapped(own: Any, other: Any, fits: bool) -> None:
    wait = other.start if isinstance(other, spaces.Discrete) else 0
    if fits:
        wrap(Noting(other), own, wait=wait, durations=(2,))
    else:
        with pytest.raises(SpaceError, match="a policy for another action space: its actions are"):
            wrap(Noting(other), own, wait=wait, durations=(2,))


@pytest.mark.parametrize(
    ("n", "start", "wait", "fits"), [(3, 0, 2, True), (3, 0, 1, False), (4, 0, 3, False), (3, 1, 3, False)]
)
def test_a_policy_need_not_know_a_wait_that_was_added(n: int, start: int, wait: int, fits: bool) -> None:
    env, own = Noting(spaces.Discrete(n, start=start)), ForOther(action_space=spaces.Discrete(2))
    if fits:
        wrap(env, own, wait=wait, durations=(2,))
    else:
        with pytest.raises(SpaceError, match="a policy for another action space"):
            wrap(env, own, wait=wait, durations=(2,))


@pytest.mark.parametrize(
    ("own", "given", "fits"),
    [
        (spaces.Box(-9, 9, (2,)), spaces.Box(-1, 1, (2,)), True),
        (spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (2,)), False),
        (CHANNELS_FIRST, IMAGE, True),
        (IMAGE, CHANNELS_FIRST, True),
        (spaces.Box(0, 255, (9, 8, 3), np.uint8), IMAGE, False),
        (spaces.Discrete(4), spaces.Discrete(4), True),
        (spaces.Discrete(4), spaces.Discrete(5), False),
        (spaces.Dict(a=IMAGE), spaces.Dict(a=CHANNELS_FIRST), True),
        (spaces.Dict(a=IMAGE), spaces.Dict(b=IMAGE), False),
    ],
)
def test_a_policy_for_other_observations_is_refused_when_it_is_wrapped(own: Any, given: Any, fits: bool) -> None:
    env = Noting(KNOBS)
    env.observation_space = given
    if fits:
        wrap(env, ForOther(own), wait=0, durations=(2,))
    else:
        with pytest.raises(SpaceError, match="a policy for other observations: it takes"):
            wrap(env, ForOther(own), wait=0, durations=(2,))


def test_vector_environments_are_wrapped_too() -> None:
    envs = gym.make_vec("MountainCar-v0", num_envs=2, vectorization_mode="sync")
    env = wrap(envs, lambda o: 2, wait=1, durations=(2, 4), gamma=0.9)
    assert isinstance(env, WaitingVectorEnv)
    assert env.gamma == 0.9
    env.reset(seed=0)
    assert [(done.index, done.base_queries) for done in env.step([0, 2])] == [(0, 1)]
    with pytest.raises(SpaceError, match="a policy for another action space"):
        wrap(envs, ForOther(action_space=spaces.Discrete(2)), wait=1, durations=(2,))
    with pytest.raises(SettingError, match="outside the action space"):
        wrap(envs, lambda o: 2, wait=3, durations=(2,))
    pendulums = gym.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync")
    around = wrap(pendulums, lambda o: [1.0], wait=0, durations=(2,))
    around.reset(seed=0)
    assert [done.base_queries for done in around.step([0, 0])] == [1, 1]


def test_mistakes() -> None:
    with pytest.raises(SettingError, match="outside the action space"):
        wrap(gym.make("MountainCar-v0"), lambda o: 0, wait=9, durations=(2,))
    with pytest.raises(UnknownNameError, match="no mode named 'wrapped'. Did you mean 'wrap'"):
        make("cook", mode="wrapped")
    with pytest.raises(UnknownNameError, match="no task named 'cofee'. Did you mean 'coffee'"):
        make("cofee")
    env = wrap(gym.make("MountainCar-v0"), lambda o: 0, wait=1, durations=(2,))
    with pytest.raises(SpaceError, match="call reset"):
        env.env.base_action()  # type: ignore[attr-defined]
    assert isinstance(CallablePolicy(lambda o: 0), Policy)
