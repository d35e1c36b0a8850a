from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from letitcook import Learned, Memory, WaitingEnv, WaitingVectorEnv, evaluate, learn, load, make, rollout, run
from letitcook.core.decisions import Timesteps
from letitcook.deploy.control_loop import SimulatedClock
from letitcook.deploy.export import to_numpy, to_onnx
from letitcook.deploy.numpy_policy import load as load_exported
from letitcook.errors import SettingError
from letitcook.training.learn import prepare
from letitcook.training.spec import RunSpec
from letitcook.wrappers.memory import MemoryEnv
from letitcook.wrappers.remembering import RememberingPolicy
from signing import sign


@pytest.fixture(scope="module")
def table() -> Learned:
    """Return a wrapper of the hidden kitchen that remembers."""
    return learn(make("cook", "wrap", hidden=True), steps=60_000, preset="exact", memory="auto", progress=False)


class Position(gym.ObservationWrapper):
    """Shows a car's position, and not its speed."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def observation(self, observation: Any) -> Any:
        return observation[:1]


def car() -> WaitingEnv:
    return WaitingEnv(Position(gym.make("MountainCar-v0", max_episode_steps=60)), wait=1, durations=(2, 4))


@pytest.fixture(scope="module")
def network() -> Learned:
    """Return networks that remember two decisions."""
    small = {"hidden": (16,), "learning_starts": 100}
    return learn(car(), steps=1_500, preset="paper", settings=small, memory=2, progress=False)


def episodes(env: WaitingEnv, policy: Any) -> list[list[int]]:
    return [rollout(env, policy, seed).decisions for seed in range(3)]


def test_a_policy_remembers_by_itself_and_forgets_with_the_episode(table: Learned) -> None:
    env, policy = make("cook", "wrap", hidden=True), table.policy
    assert isinstance(policy, RememberingPolicy)
    assert (table.length, table.queries) == (53.0, 39.0)
    assert rollout(env, policy).queries == 39
    observation, _ = env.reset(seed=0)
    _, state = policy.predict(observation)
    cooking = np.array([2, 1, 1, 0, 1, 3])
    for _ in range(3):
        _, state = policy.predict(cooking, state)
    assert state.remembered.counts[0] > 0
    assert policy.predict(observation, state, np.array([True]))[1].remembered.counts == (0,)


def test_an_early_end_is_told(table: Learned) -> None:
    policy: Any = table.policy
    cooking = np.array([2, 1, 1, 0, 1, 3])
    _, state = policy.predict(cooking)
    state = state._replace(decision=3, elapsed=15)
    assert policy.predict(cooking, state)[1].remembered.counts == (15,)
    assert policy.predict(cooking, policy.ended_early(state, 11))[1].remembered.counts == (4,)


@pytest.mark.parametrize("kind", ["table", "network"])
def test_memory_is_saved_with_the_policy(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    learned: Learned = request.getfixturevalue(kind)
    env = make("cook", "wrap", hidden=True) if kind == "table" else car()
    again = load(learned.save(tmp_path / "run"))
    assert again.info == learned.info
    assert again.policy.memory == learned.policy.memory  # type: ignore[attr-defined]
    assert episodes(env, again.policy) == episodes(env, learned.policy)


@pytest.mark.parametrize("kind", ["table", "network"])
def test_memory_goes_with_an_export(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    learned: Learned = request.getfixturevalue(kind)
    env = make("cook", "wrap", hidden=True) if kind == "table" else car()
    exported = load_exported(to_numpy(learned, tmp_path / "robot") / "policy.npz")
    assert episodes(env, exported) == episodes(env, learned.policy)
    observation, _ = env.reset(seed=0)
    first = exported.decide(observation)
    exported.decide(observation)
    exported.reset()
    assert exported.decide(observation) == first
    with pytest.raises(SettingError, match="keeps no memory"):
        to_onnx(learned, tmp_path / "policy.onnx")


def test_to_load_a_policy_runs_no_code_that_its_file_names(
    table: Learned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hostile.py").write_text("raise SystemExit('code of a stranger')")
    monkeypatch.chdir(tmp_path)
    folder = table.save(tmp_path / "run")
    manifest = (folder / "manifest.json").read_text().replace('"parts": null', '"parts": "hostile:parts"')
    (folder / "manifest.json").write_text(manifest)
    sign(folder)
    policy: Any = load(folder).policy
    assert policy.memory.parts == "hostile:parts"
    assert "hostile" not in sys.modules
    with pytest.raises(SystemExit, match="stranger"):
        policy.predict(np.zeros(6, dtype=np.int64))


@pytest.mark.parametrize("alarms", [False, True])
def test_the_control_loop_counts_what_was_executed(table: Learned, alarms: bool) -> None:
    env = make("cook", "wrap", hidden=True)
    base = make("cook", "wrap").env.base  # type: ignore[attr-defined]
    observation, _ = env.reset(seed=0)
    states: list[Any] = []
    policy: Any = table.policy

    class Listening:
        def predict(self, seen: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True) -> Any:
            decision, after = policy.predict(seen, state, episode_start)
            states.append(after)
            return decision, after

        ended_early = staticmethod(policy.ended_early)

    now = {"seen": observation, "over": False, "steps": 0, "cooking": 0}

    def act(action: int) -> None:
        now["seen"], _, terminated, truncated, _ = env.act(action)
        now["over"] = terminated or truncated
        now["steps"] += 1

    counters = run(
        Listening(), lambda: now["seen"], act, 10, env.decisions, base=base, wait=4, stop=lambda: bool(now["over"]),
        clock=SimulatedClock(), wake=(lambda: now["steps"] == 30) if alarms else None,
    )  # fmt: skip
    assert now["steps"] == counters.steps
    assert (counters.alarms == 1) == alarms
    if alarms:  # woken five steps into a wait: what is remembered is five, and the loop still ends
        woken = [state for state in states if state.remembered.counts[0] not in (0, 15, 16, 17)]
        assert woken
    else:
        assert counters.queries == 39


def test_side_by_side_and_alone_networks_learn_with_a_memory() -> None:
    several = WaitingVectorEnv(
        gym.vector.SyncVectorEnv([lambda: Position(gym.make("MountainCar-v0", max_episode_steps=60))] * 2), 1, (2, 4)
    )
    small = {"hidden": (16,), "learning_starts": 100}
    learned = learn(several, steps=600, preset="paper", settings=small, memory=Memory(window=1), progress=False)
    assert isinstance(learned.policy, RememberingPolicy)
    assert evaluate(several, learned.policy, episodes=2).length > 0
    given = learn(MemoryEnv(car(), Memory(window=1)), steps=600, preset="paper", settings=small, progress=False)
    assert given.info.remembers is not None
    assert evaluate(car(), given.policy, episodes=2).length > 0


def test_a_stopped_run_goes_on_with_its_memory(tmp_path: Path) -> None:
    env = make("cook", "wrap", hidden=True)

    whole = learn(env, steps=40_000, preset="exact", memory="auto", progress=False)

    spec = RunSpec(preset="exact", length=Timesteps(40_000), memory="auto")
    first = prepare(env, spec)
    next(first.run())
    folder = first.stopped().save(tmp_path / "half")
    again = prepare(env, spec)
    again.resume(load(folder))
    for _ in again.run():
        pass
    assert again.result().curve == whole.curve
