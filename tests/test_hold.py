"""Waits that send the last action again: around a base policy, from scratch, side by side, in a control loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from letitcook import Decisions, WaitingEnv, WaitingVectorEnv, learn, load, plan, rollout, run, wrap
from letitcook.core.decisions import WRAPPER
from letitcook.deploy.control_loop import SimulatedClock
from letitcook.deploy.export import to_numpy, to_onnx
from letitcook.deploy.numpy_policy import load as load_exported
from letitcook.errors import FinitenessError, SettingError, SpaceError, UnknownNameError
from letitcook.wrappers.hold import LastAction


class Noting(gym.Env[Any, Any]):
    """Twelve steps of an environment with any action space; notes what it is sent, and spoils arrays."""

    observation_space = spaces.Box(0.0, 12.0, (1,))

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        self.action_space = action_space
        self.sent: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.sent = []
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.sent.append(np.copy(action) if isinstance(action, np.ndarray) else action)
        if isinstance(action, np.ndarray):
            action[...] = 0  # the wrapper must not depend on what becomes of it
        t = len(self.sent)
        return np.array([t], dtype=np.float32), 1.0, False, t >= 12, {}


class Counting:
    """A base policy that answers with a new action each time it is asked, and notes what it sees."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        space.seed(3)
        self.answers = [space.sample() for _ in range(40)]
        self.seen: list[Any] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        self.seen.append(observation)
        return self.answers[len(self.seen) - 1], None


SPACES = [
    spaces.Discrete(5, start=2),
    spaces.Box(-2.0, 2.0, (3,)),
    spaces.MultiDiscrete([3, 4]),
    spaces.MultiBinary(3),
    spaces.Tuple((spaces.Discrete(3), spaces.Box(0.0, 1.0, (2,)))),
]


def same(a: Any, b: Any) -> bool:
    return all(map(same, a, b)) if isinstance(a, tuple) else np.array_equal(a, b)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_a_wait_around_a_base_sends_its_last_answer_again(space: spaces.Space[Any]) -> None:
    inside, base = Noting(space), Counting(space)
    env = wrap(inside, base, wait="hold", durations=(3,))
    seen, _ = env.reset(seed=0)
    assert not seen["last_action"].any()
    asked = []
    for decision in (0, 2, 0, 1, 2):  # ask, hold 3, ask, hold 1, hold 3
        seen, reward, _, _, info = env.step(decision)
        asked.append(info["base_queries"])
        assert reward[1] == -(info["base_queries"] or 0.01)
        assert env.observation_space.contains(seen)
        assert np.allclose(seen["last_action"], spaces.flatten(space, base.answers[sum(asked) - 1]))  # type: ignore[arg-type]
    assert asked == [1, 0, 1, 0, 0]
    expected = [base.answers[i] for i in (0, 0, 0, 0, 1, 1, 1, 1, 1)]
    assert len(inside.sent) == len(expected)
    assert all(map(same, inside.sent, expected))
    assert [o.tolist() for o in base.seen] == [[0.0], [4.0]]  # the base's own observations


def test_an_episode_that_begins_with_a_wait_asks_the_base() -> None:
    space = spaces.Box(-1.0, 1.0, (1,))
    inside, base = Noting(space), Counting(space)
    env = wrap(inside, base, wait="hold", durations=(4,))
    for episode in range(2):
        env.reset(seed=0)
        info = env.step(2)[4]
        assert (info["base_queries"], info["elapsed"]) == (1, 4)
        assert np.array_equal(np.array(inside.sent), np.array([base.answers[episode]] * 4))


def test_from_scratch_wrappers_inside_see_the_action_that_is_sent() -> None:
    class Heard(gym.ActionWrapper[Any, Any, Any]):
        def __init__(self, env: gym.Env[Any, Any]) -> None:
            super().__init__(env)
            self.heard: list[Any] = []

        def action(self, action: Any) -> Any:
            self.heard.append(action)
            return action

    heard = Heard(Noting(spaces.Discrete(3, start=1)))
    env = WaitingEnv(heard, wait="hold", durations=(2, 5))
    assert env.decisions == Decisions(("action 1", "action 2", "action 3", "hold"), 3, (2, 5), hold=True)
    env.reset(seed=0)
    for decision in (5, 1, 4, 2, 3):  # at first there is nothing to hold: the first action is sent
        seen, reward, *_ = env.step(decision)
        assert reward[1] == -1.0
    assert heard.heard == [1] * 5 + [2] + [2] * 2 + [3] * 2
    assert seen["last_action"].tolist() == [0.0, 0.0, 1.0]
    env = gym.make("MountainCar-v0", disable_env_checker=True)  # type: ignore[assignment]
    again = WaitingEnv(env, wait="hold", durations=(2,)).with_discount(0.9)
    assert again.decisions.hold and again.decisions.n == 5


def test_a_held_push_is_the_same_push() -> None:
    plain, env = gym.make("MountainCar-v0"), WaitingEnv(gym.make("MountainCar-v0"), wait="hold", durations=(7,))
    plain.reset(seed=1)
    env.reset(seed=1)
    env.step(2)
    held = env.step(4)[0]["observation"]
    for _ in range(8):
        there = plain.step(2)[0]
    assert np.array_equal(held, there)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("around", [True, False])
def test_side_by_side_equals_single_environments(mode: AutoresetMode, around: bool) -> None:
    def push(observation: Any) -> int:
        return 2 if observation[1] > 0 else 0

    def one() -> WaitingEnv:
        env = gym.make("MountainCar-v0", max_episode_steps=30)
        return wrap(env, push, "hold", (2, 5)) if around else WaitingEnv(env, "hold", (2, 5))

    vector = gym.make_vec(
        "MountainCar-v0",
        num_envs=3,
        max_episode_steps=30,
        vector_kwargs={"autoreset_mode": mode},
        vectorization_mode="sync",
    )
    envs = wrap(vector, push, "hold", (2, 5)) if around else WaitingVectorEnv(vector, "hold", (2, 5))
    singles = [one() for _ in range(3)]
    assert envs.decisions == singles[0].decisions
    assert envs.single_observation_space == singles[0].observation_space
    seen = [env.reset(seed=9 + i)[0] for i, env in enumerate(singles)]
    first = envs.reset(seed=9)
    generator, ended = np.random.default_rng(0), 0
    for i in range(3):
        assert np.array_equal(first[i]["observation"], seen[i]["observation"])
    while ended < 6:
        decisions = generator.integers(envs.decisions.n, size=3)
        for done in envs.step(decisions):
            env = singles[done.index]
            observation, reward, terminated, truncated, info = env.step(done.decision)
            assert np.array_equal(done.reward, reward)
            assert (done.elapsed, done.base_queries, done.truncated) == (
                info["elapsed"],
                info["base_queries"],
                truncated,
            )
            for part in ("observation", "last_action"):
                assert np.array_equal(done.observation[part], observation[part])
            if terminated or truncated:
                ended += 1
                env.reset()
    for env in (*singles, envs):  # type: ignore[assignment]
        env.close()


def test_a_control_loop_sends_and_sees_the_same() -> None:
    space = spaces.Box(-2.0, 2.0, (2,))

    def policy(seen: Any) -> int:
        return 0 if int(seen["observation"][0]) % 5 == 0 or not seen["last_action"].any() else 2

    inside = Noting(space)
    env = wrap(inside, Counting(space), wait="hold", durations=(2,))

    class Function:
        def predict(self, seen: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True) -> Any:
            return policy(seen), None

    episode = rollout(env, Function(), seed=0)
    sent: list[Any] = []
    counters = run(
        policy,
        sense=lambda: np.array([len(sent)], dtype=np.float32),
        act=sent.append,
        rate_hz=10,
        decisions=env.decisions,
        base=Counting(space),
        wait="hold",
        action_space=space,
        max_steps=12,
        clock=SimulatedClock(),
    )
    assert (counters.queries, counters.base_queries) == (episode.queries, episode.base_queries)
    assert np.array_equal(np.array(sent), np.array(inside.sent))


def test_a_control_loop_from_scratch_holds_the_last_action() -> None:
    decisions = Decisions(("left", "right", "hold"), 2, (3,), hold=True)
    seen: list[Any] = []
    sent: list[Any] = []
    answers = iter([3, 1, 3, 0])

    def policy(observation: Any) -> int:
        seen.append(observation["last_action"].tolist())
        return next(answers)

    run(policy, lambda: 0.0, sent.append, 10, decisions, max_steps=8, clock=SimulatedClock())
    assert sent == [0, 0, 0, 1, 1, 1, 1, 0]
    assert seen == [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]


def test_learning_saving_and_exports(tmp_path: Path) -> None:
    def controller(observation: Any) -> Any:
        return [np.clip(-2.0 * observation[1] - 0.5 * observation[2], -2.0, 2.0)]

    env = wrap(gym.make("Pendulum-v1", max_episode_steps=20), controller, wait="hold", durations=(2, 4))
    settings = {"learning_starts": 20, "hidden": (8,), "task_networks": 1}
    learned = learn(env, "scalar", lam=0.1, steps=60, preset="paper", settings=settings, progress=False)
    learned.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.info.decisions == Decisions(WRAPPER, 1, (2, 4), hold=True, cost="base")
    exported = load_exported(to_numpy(again, tmp_path / "numpy") / "policy.npz")
    assert exported.hold
    seen, _ = env.reset(seed=0)
    flat, decisions = [], []
    for _ in range(10):
        decisions.append(again.policy.predict(seen)[0])
        assert exported.predict(seen)[0] == decisions[-1]
        flat.append(spaces.flatten(env.observation_space, seen).astype(np.float32))  # type: ignore[union-attr]
        seen, *_ = env.step(decisions[-1])
    session = pytest.importorskip("onnxruntime").InferenceSession(to_onnx(again, tmp_path / "policy.onnx"))
    assert session.run(None, {"observation": np.stack(flat)})[0].tolist() == decisions


def test_queries_of_the_base_are_what_an_exact_plan_minimises() -> None:
    def push(observation: int) -> int:
        return 2 if observation % 4 < 3 else 3

    lake = gym.make("FrozenLake-v1", is_slippery=False, desc=["SFFF", "FFFF", "FFFF", "FFFG"])
    env = wrap(lake, push, wait=1, durations=(2, 3))  # waiting slides down, and the base never goes down
    few = plan(env)
    alone = rollout(env, few.policy, seed=0)
    assert np.allclose(few.values[0], [1.0, -3.01])  # three steps to the right are the base's, a wait the rest
    assert (alone.task_return, alone.base_queries) == (1.0, 3)
    learned = learn(env, steps=200_000, preset="exact", progress=False)
    assert learned.info.decisions.cost == "base"
    assert (learned.task_return, learned.fresh.base_queries) == (1.0, 3.0)


def test_mistakes() -> None:
    with pytest.raises(SpaceError, match="wait='hold'"):
        WaitingEnv(gym.make("Pendulum-v1"), wait="hold", durations=(2,))
    with pytest.raises(SpaceError, match="cannot be written as a vector"):
        LastAction(spaces.Sequence(spaces.Discrete(2)))
    with pytest.raises(SettingError, match="there is none here"):
        WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2,), cost="base")
    with pytest.raises(UnknownNameError, match="no cost named 'bases'"):
        wrap(gym.make("MountainCar-v0"), lambda o: 0, 1, (2,), cost="bases")  # type: ignore[call-overload]
    with pytest.raises(FinitenessError, match="the one before it"):
        plan(wrap(gym.make("FrozenLake-v1"), lambda o: 0, "hold", (2,)))
    held = Decisions(WRAPPER, 1, (2,), hold=True)
    with pytest.raises(SettingError, match="action_space"):
        run(lambda o: 0, lambda: 0, lambda a: None, 10, held, base=lambda o: 0)
    with pytest.raises(SettingError, match="hold the last action, and not"):
        run(lambda o: 0, lambda: 0, lambda a: None, 10, held, base=lambda o: 0, wait=1, action_space=spaces.Discrete(2))
    with pytest.raises(SettingError, match="leave it out"):
        run(lambda o: 0, lambda: 0, lambda a: None, 10, Decisions(("a", "b"), 1), action_space=spaces.Discrete(2))
