from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from letitcook import WaitingEnv, make, plan, rollout
from letitcook.deep.network import initial_parameters
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import SettingError, SpaceError
from letitcook.wrappers.vector import Finished, WaitingVectorEnv, play
from letitcook.wrappers.wrap import wrap

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

DURATIONS = (2, 5)
MODES = list(AutoresetMode)
N = 3


class Leaning:
    """A base policy for CartPole that notes how many observations it was shown in each call."""

    def __init__(self, batched: bool = True) -> None:
        self.batched = batched
        self.calls: list[int] = []
        self.told: list[bool] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        rows = np.reshape(observation, (-1, 4))
        self.calls.append(len(rows))
        self.told.append(deterministic)
        actions = (rows[:, 2] + 0.5 * rows[:, 3] > 0).astype(int)
        return (actions if np.ndim(observation) == 2 else actions[0]), None


class Alternating:
    """A base policy with a state: it pushes left and right in turns, beginning with left in each episode."""

    def __init__(self, batched: bool) -> None:
        self.batched = batched

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        turn = np.where(episode_start, 0, 0 if state is None else state)
        return (turn if np.ndim(observation) == 2 else turn[0]), 1 - turn


class Logged(gym.vector.VectorWrapper):
    """Notes all that goes in and comes out."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.log: list[Any] = []

    def step(self, actions: Any) -> Any:
        result = self.env.step(actions)
        self.log.append((actions.copy(), *[np.array(part) for part in result[:4]]))
        return result


BASES: dict[str, Callable[[], Any]] = {
    "scratch": lambda: None,
    "batched base": Leaning,
    "single base": lambda: Leaning(batched=False),
    "batched base with a state": lambda: Alternating(batched=True),
    "single base with a state": lambda: Alternating(batched=False),
}


def cartpole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1", max_episode_steps=30)


def waiting(envs: Any, base: Any = None, **kwargs: Any) -> WaitingVectorEnv:
    return WaitingVectorEnv(envs, wait=1, durations=DURATIONS, base=base, **kwargs)


def single(base: Any, gamma: float) -> WaitingEnv:
    if base is None:
        return WaitingEnv(cartpole(), wait=1, durations=DURATIONS, gamma=gamma)
    return wrap(cartpole(), base, wait=1, durations=DURATIONS, gamma=gamma)


def facts(
    decision: int, reward: Any, observation: Any, terminated: bool, truncated: bool, rest: Any
) -> tuple[Any, ...]:
    counts = (rest["elapsed"], rest["requested"], rest["discount"], rest["task_reward"], rest["base_queries"])
    return (decision, reward.tolist(), np.asarray(observation).tolist(), terminated, truncated, *counts)


def one_by_one(env: WaitingEnv, seed: int, script: list[int]) -> Iterator[tuple[Any, ...]]:
    """Yield what a single waiting environment does with the decisions."""
    env.reset(seed=seed)
    for decision in script:
        observation, reward, terminated, truncated, info = env.step(decision)
        yield facts(decision, reward, observation, terminated, truncated, info)
        if terminated or truncated:
            env.reset()


def side_by_side(env: WaitingVectorEnv, seed: int, scripts: list[list[int]]) -> list[list[tuple[Any, ...]]]:
    """Return what each sub-environment does with its decisions."""
    env.reset(seed=seed)
    done: list[list[Finished]] = [[] for _ in scripts]
    given = [0] * len(scripts)
    while any(len(d) < len(s) for d, s in zip(done, scripts, strict=True)):
        decisions = [s[min(g, len(s) - 1)] for s, g in zip(scripts, given, strict=True)]
        given = [g + bool(due) for g, due in zip(given, env.due, strict=True)]
        for finished in env.step(decisions):
            done[finished.index].append(finished)
    return [
        [facts(f.decision, f.reward, f.observation, f.terminated, f.truncated, f._asdict()) for f in d[: len(s)]]
        for d, s in zip(done, scripts, strict=True)
    ]


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        *[(SyncVectorEnv, base) for base in BASES],
        # Where the environments run says nothing about how a base is asked: two kinds of base are enough.
        *[(AsyncVectorEnv, base) for base in ("scratch", "batched base with a state")],
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_it_equals_single_waiting_environments(kind: Any, mode: AutoresetMode, base: str) -> None:
    rng = np.random.default_rng(7)
    scripts = [rng.integers(4, size=60).tolist() for _ in range(N)]
    with closing(kind([cartpole] * N, autoreset_mode=mode)) as envs:
        together = side_by_side(waiting(envs, BASES[base](), gamma=0.9), 5, scripts)
    alone = [list(one_by_one(single(BASES[base](), 0.9), 5 + i, script)) for i, script in enumerate(scripts)]
    assert together == alone
    everything = [fact for facts_of_one in alone for fact in facts_of_one]
    assert sum(terminated or truncated for _, _, _, terminated, truncated, *_ in everything) >= 6
    assert any(elapsed < requested for *_, elapsed, requested, _, _, _ in everything)  # a wait cut by the end


@pytest.mark.parametrize("mode", MODES)
def test_the_base_is_asked_once_for_all_who_ask(mode: AutoresetMode) -> None:
    base = Leaning()
    env = waiting(SyncVectorEnv([cartpole] * N, autoreset_mode=mode), base, deterministic=False)
    env.reset(seed=0)
    first = env.step([0, 0, 3])
    assert [f.index for f in first] == [0, 1]
    assert [f.base_queries for f in first] == [1, 1]
    assert all(f.base_seconds > 0 for f in first)
    assert env.due.tolist() == [True, True, False]
    assert env.step([1, 0, 0])[0].base_queries == 0
    assert base.calls == [2, 1]
    assert base.told == [False, False]


@pytest.mark.parametrize("mode", MODES)
def test_counts_of_primitive_steps_are_the_environments_own(mode: AutoresetMode) -> None:
    """Every step of every sub-environment belongs to one decision; those that only reset belong to none."""

    class Counted(gym.Wrapper[Any, Any, Any, Any]):
        steps = 0

        def step(self, action: Any) -> Any:
            self.steps += 1
            return self.env.step(action)

    envs = SyncVectorEnv([lambda: Counted(cartpole())] * N, autoreset_mode=mode)
    env = waiting(envs)
    env.reset(seed=0)
    elapsed = np.zeros(N, dtype=int)
    for _ in range(100):
        for finished in env.step([0, 2, 2]):
            elapsed[finished.index] += finished.elapsed
    under_way = [0 if due else running.elapsed for due, running in zip(env.due, env._running, strict=True)]
    under_way = [0 if resetting else n for resetting, n in zip(env._resetting, under_way, strict=True)]
    assert (elapsed + under_way).tolist() == list(envs.get_attr("steps"))


def test_a_new_episode_takes_a_vector_step_of_its_own_with_next_step_autoreset() -> None:
    lengths = (3, 9)
    envs = Logged(SyncVectorEnv([lambda n=n: gym.make("CartPole-v1", max_episode_steps=n) for n in lengths]))  # type: ignore[misc]
    env = waiting(envs)
    env.reset(seed=0)
    assert [(f.index, f.elapsed) for f in env.step([2, 2])] == [(0, 2), (1, 2)]
    first, second = env.step([3, 1])
    assert (first.index, first.elapsed, first.requested, first.truncated) == (0, 1, 5, True)
    assert (second.index, second.elapsed, second.truncated) == (1, 1, False)
    assert env.due.tolist() == [False, True]
    assert env.step([0, 3]) == []  # a vector step that begins an episode of the first, while the second waits
    assert env.due.tolist() == [True, False]
    assert np.abs(env.observations[0]).max() <= 0.05  # where CartPole starts
    assert [(f.index, f.elapsed, f.truncated) for f in env.step([3, 0])] == [(0, 3, True), (1, 5, False)]
    assert len(envs.log) == 8


def test_a_vectorised_environment() -> None:
    """CartPole's own vector form draws from one generator, so it is compared with its log."""
    envs = Logged(gym.make_vec("CartPole-v1", num_envs=4, vectorization_mode="vector_entry_point"))
    env = waiting(envs)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    finished: list[list[Finished]] = [[] for _ in range(4)]
    for _ in range(150):
        for f in env.step(rng.integers(4, size=4)):
            finished[f.index].append(f)
    for i, decisions in enumerate(finished):
        t = 0
        for f in decisions:
            steps = envs.log[t : t + f.elapsed]
            assert [int(actions[i]) for actions, *_ in steps] == [int(env.decisions.actions_of[f.decision])] * f.elapsed
            assert f.task_reward == sum(float(rewards[i]) for _, _, rewards, *_ in steps) == f.elapsed
            assert np.array_equal(steps[-1][1][i], f.observation)
            assert [bool(steps[-1][3][i]), bool(steps[-1][4][i])] == [f.terminated, f.truncated]
            t += f.elapsed + (f.terminated or f.truncated)  # the step that resets is nobody's
        assert sum(f.terminated for f in decisions) >= 3


class Rooms(gym.Env[Any, Any]):
    """Dict observations, actions from 5; one array is written into again and again."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict({"room": spaces.Discrete(9), "at": spaces.Box(0, 99, (2,), np.float32)})
        self.action_space = spaces.Discrete(3, start=5)
        self.at, self.t, self.actions = np.zeros(2, np.float32), 0, []  # type: ignore[var-annotated]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.actions = 0, []
        self.at[:] = 0
        return {"room": 0, "at": self.at}, {}

    def step(self, action: int) -> Any:
        self.t += 1
        self.actions.append(int(action))
        self.at += 1
        return {"room": self.t, "at": self.at}, 1.0, self.t == 8, False, {}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("copy", [True, False])
def test_dict_observations_and_actions_that_do_not_start_at_zero(mode: AutoresetMode, copy: bool) -> None:
    seen: list[Any] = []

    class Base:
        batched = True

        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> tuple[Any, Any]:
            seen.append(observation)
            return np.full(np.shape(observation["room"]), 7), None

    envs = SyncVectorEnv([Rooms, Rooms], copy=copy, autoreset_mode=mode)
    env = WaitingVectorEnv(envs, wait=5, durations=(2,), base=Base())
    env.reset()
    env.step([0, 0])
    early = env.step([0, 2])
    assert seen[0]["room"].tolist() == [0, 0]
    assert seen[0]["at"].tolist() == [[0, 0], [0, 0]]
    assert (seen[1]["room"], seen[1]["at"].tolist()) == (1, [1, 1])
    env.step([0, 0])
    assert [sub.actions for sub in envs.envs] == [[7, 7, 7], [7, 5, 5]]  # type: ignore[attr-defined]
    assert (early[0].observation["room"], early[0].observation["at"].tolist()) == (2, [2, 2])
    plain = WaitingVectorEnv(SyncVectorEnv([Rooms], autoreset_mode=mode), wait=6, durations=(2,))
    plain.reset()
    for decision in (0, 2, 3):
        plain.step([decision])
    assert plain.envs.envs[0].actions == [5, 7, 6, 6]  # type: ignore[attr-defined]
    assert [plain.decisions.label(u) for u in range(4)] == ["action 5", "action 6", "action 7", "wait 2"]


def test_continuous_actions_around_a_base() -> None:
    def pull(observation: Any) -> Any:
        return -2.0 * observation[..., 1:2]

    class Base(Leaning):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> tuple[Any, Any]:
            return pull(observation), None

    zero = np.zeros(1, np.float32)
    envs = gym.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync")
    env = WaitingVectorEnv(envs, wait=zero, durations=(3,), base=Base())
    script = [0, 2, 1, 0, 0, 2]
    together = side_by_side(env, 1, [script, script[::-1]])
    alone = wrap(gym.make("Pendulum-v1"), Base(), wait=zero, durations=(3,))
    assert together == [list(one_by_one(alone, 1, script)), list(one_by_one(alone, 2, script[::-1]))]


class Scripted:
    """A waiting policy: base or a wait, by the pole's lean."""

    def __init__(self, batched: bool) -> None:
        self.batched = batched
        self.calls: list[int] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        rows = np.reshape(observation, (-1, 4))
        self.calls.append(len(rows))
        answers = 3 - np.digitize(np.abs(rows[:, 3]), [0.2, 0.5, 0.8])
        return (answers if np.ndim(observation) == 2 else int(answers[0])), None


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("episodes", [2, 7])
def test_played_episodes_are_settled_in_advance(mode: AutoresetMode, batched: bool, episodes: int) -> None:
    env = waiting(SyncVectorEnv([cartpole] * N, autoreset_mode=mode), Leaning())
    policy = Scripted(batched)
    played = play(env, policy, episodes, seed=3)
    assert sum(policy.calls) == sum(episode.queries for episode in played)
    assert (max(policy.calls) > 1) == batched
    for i in range(N):
        alone = wrap(cartpole(), Leaning(), wait=1, durations=DURATIONS)
        for n, episode in enumerate(played[i::N]):
            expected = rollout(alone, Scripted(False), seed=3 + i if n == 0 else None)
            assert (episode.decisions, episode.elapsed) == (expected.decisions, expected.elapsed)
            assert (episode.task_return, episode.base_queries) == (expected.task_return, expected.base_queries)
            assert (episode.terminated, episode.truncated) == (expected.terminated, expected.truncated)
            assert episode.policy_seconds > 0
            assert (episode.base_seconds > 0) == (episode.base_queries > 0)


def test_a_policy_that_keeps_the_time_plays_side_by_side() -> None:
    best = plan(make("cook")).policy
    envs = SyncVectorEnv([lambda: gym.make("letitcook/Cook-v0")] * 2)
    env = WaitingVectorEnv(envs, wait=4, durations=(5, 15))
    assert env.decisions == make("cook").decisions
    assert [(e.length, e.queries) for e in play(env, best, episodes=3)] == [(33, 25)] * 3


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1"])
def test_networks_are_asked_for_a_batch(env_id: str) -> None:
    asked: list[int] = []

    class Networks(NetworkPolicy):
        batched = True

        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> tuple[Any, Any]:
            asked.append(np.size(observation) // (4 if env_id == "CartPole-v1" else 1))
            return super().predict(observation, state, episode_start, deterministic)

    alone = WaitingEnv(gym.make(env_id), wait=0, durations=DURATIONS)
    sizes = (spaces.flatdim(alone.observation_space), 8, alone.decisions.n)
    networks = initial_parameters(sizes, 2, np.random.default_rng(3))
    policy = Networks(networks, sizes, 0.01, alone.observation_space)
    env = WaitingVectorEnv(gym.make_vec(env_id, N, "sync"), wait=0, durations=DURATIONS)
    played = play(env, policy, episodes=N, seed=0)
    assert asked[0] == N
    assert sum(asked) == sum(episode.queries for episode in played)
    assert [e.decisions for e in played] == [rollout(alone, policy, seed=i).decisions for i in range(N)]


def test_mistakes() -> None:
    envs = SyncVectorEnv([cartpole] * 2)
    env = waiting(envs)
    with pytest.raises(SpaceError, match="call reset"):
        env.step([0, 0])
    env.reset(seed=[4, 9])
    assert np.array_equal(env.observations[1], cartpole().reset(seed=9)[0])
    with pytest.raises(SpaceError, match="3 decisions for 2 environments"):
        env.step([0, 0, 0])
    with pytest.raises(SpaceError, match=r"decision 4 is outside 0\.\.3"):
        env.step([0, 4])
    with pytest.raises(SettingError, match="episodes = 0"):
        play(env, Scripted(True), episodes=0)
    with pytest.raises(SpaceError, match="not a vector environment"):
        waiting(cartpole())
    with pytest.raises(SettingError, match="wait action 9"):
        WaitingVectorEnv(envs, wait=9, durations=(2,))
    with pytest.raises(SettingError, match="gamma"):
        waiting(envs, gamma=2.0)
    with pytest.raises(SpaceError, match="letitcook.wrap"):
        WaitingVectorEnv(gym.make_vec("Pendulum-v1", num_envs=1), wait=0, durations=(2,))
    with pytest.raises(SettingError, match="outside the action space Box"):
        WaitingVectorEnv(gym.make_vec("Pendulum-v1", num_envs=1), wait=[9.0], durations=(2,), base=Leaning())
    envs.metadata["autoreset_mode"] = None
    with pytest.raises(SpaceError, match="does not say how it begins new episodes"):
        waiting(envs)


def test_a_base_that_answers_too_little_or_nonsense_is_named() -> None:
    class One(Leaning):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> tuple[Any, Any]:
            return [1], None

    class Far(Leaning):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
        ) -> tuple[Any, Any]:
            return np.array([1, 7]), None

    for base, message in ((One(), "to 2 observations"), (Far(), "the base policy answered")):
        env = waiting(SyncVectorEnv([cartpole] * 2), base)
        env.reset(seed=0)
        with pytest.raises(SpaceError, match=message):
            env.step([0, 0])
