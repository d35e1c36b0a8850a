from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, RepeatAction, TimeLimit

from letitcook import WaitingEnv, make
from letitcook.errors import SettingError, SpaceError, UnknownNameError
from letitcook.wrappers.added_wait import AddedWait, passive_named
from letitcook.wrappers.waiting import horizon_of


def no_force(cartpole: Any) -> Any:
    force, cartpole.force_mag = cartpole.force_mag, 0.0
    try:
        return cartpole.step(0)
    finally:
        cartpole.force_mag = force


class Walk(gym.Env[Any, Any]):
    """A position; the only actions are left and right, and it can idle."""

    action_names = ("left", "right")

    def __init__(self, start: int = 0) -> None:
        self.observation_space = spaces.Box(-99, 99, (1,), np.float32)
        self.action_space = spaces.Discrete(2, start=start)
        self.x = self.t = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = self.t = 0
        return self._seen(), {}

    def step(self, action: int) -> Any:
        self.x += 2 * (int(action) - int(self.action_space.start)) - 1  # type: ignore[attr-defined]
        self.t += 1
        return self._seen(), -1.0, False, False, {}

    def idle(self) -> Any:
        self.t += 1
        return self._seen(), -0.5, self.t == 50, False, {"idle": True}

    def _seen(self) -> Any:
        return np.array([self.x], dtype=np.float32)


def test_cartpole_with_zero_force_is_the_cartpole_task() -> None:
    theirs = AddedWait(gym.make("CartPole-v1", max_episode_steps=200), no_force)
    ours = gym.make("letitcook/CartPole-v0")
    assert theirs.action_space == ours.action_space
    dice = np.random.default_rng(0)
    waits, ended = 0, []
    for episode in range(12):
        seen, _ = theirs.reset(seed=episode)
        ours.reset(seed=episode)
        ours.unwrapped.state[:] = theirs.unwrapped.state  # type: ignore[attr-defined]
        over = False
        while not over:
            # Pushes against the lean, so that some episodes reach the horizon; else waits, or anything.
            action = int(seen[2] + seen[3] > 0) if dice.random() < 0.7 else int(dice.integers(3))
            waits += action == 2
            seen, reward, terminated, truncated, _ = theirs.step(action)
            same, our_reward, our_terminated, our_truncated, _ = ours.step(action)
            np.testing.assert_allclose(same, seen, rtol=1e-6, atol=1e-9)
            assert (reward, terminated, truncated) == (our_reward, our_terminated, our_truncated)
            over = terminated or truncated
        ended.append(truncated)
    assert waits > 100
    assert any(ended)
    assert not all(ended)


def test_the_wrappers_in_between_see_the_passive_step() -> None:
    env = AddedWait(RecordEpisodeStatistics(TimeLimit(Walk(), 4)), "idle")
    with pytest.raises(gym.error.ResetNeeded):
        AddedWait(gym.make("CartPole-v1"), no_force).step(2)  # OrderEnforcing
    env.reset()
    results = [env.step(action) for action in (1, 2, 1, 2)]
    assert [float(r[0][0]) for r in results] == [1, 1, 2, 2]
    assert [r[1] for r in results] == [-1.0, -0.5, -1.0, -0.5]
    assert [r[3] for r in results] == [False, False, False, True]
    assert results[1][4] == {"idle": True}
    assert (results[3][4]["episode"]["l"], results[3][4]["episode"]["r"]) == (4, -3.0)
    assert horizon_of(env) == 4


def test_a_wrapper_that_repeats_the_action_repeats_the_passive_step() -> None:
    env = AddedWait(RepeatAction(Walk(), num_repeats=3), "idle")
    env.reset()
    assert env.step(2)[1] == -1.5
    assert env.step(0)[0].tolist() == [-3]


def test_the_environments_own_step_comes_back_even_after_an_error() -> None:
    def broken(walk: Any) -> Any:
        raise RuntimeError("broken")

    env = AddedWait(Walk(), broken)
    env.reset()
    with pytest.raises(RuntimeError, match="broken"):
        env.step(2)
    assert "step" not in vars(env.unwrapped)
    assert env.step(1)[0].tolist() == [1]
    inside: Any = env.unwrapped
    replaced = inside.step = lambda action: "somebody else's"
    with pytest.raises(RuntimeError, match="broken"):
        env.step(2)
    assert inside.step is replaced


def test_an_action_space_that_does_not_start_at_zero() -> None:
    env = AddedWait(Walk(start=5), "idle")
    assert (env.wait, env.action_space) == (7, spaces.Discrete(3, start=5))
    waiting = WaitingEnv(env, wait=env.wait, durations=(2,))
    waiting.reset()
    assert [waiting.step(u)[0].tolist() for u in (1, 2, 3, 0)] == [[1], [1], [1], [0]]
    assert [waiting.decisions.label(u) for u in range(4)] == ["left", "right", "wait", "wait 2"]


def test_it_can_be_copied_and_made_again_from_its_spec() -> None:
    env = AddedWait(gym.make("CartPole-v1"), no_force)
    env.reset(seed=0)
    twin = deepcopy(env)
    a = env.step(2)[0]
    assert np.array_equal(twin.step(2)[0], a)
    assert env.spec is not None
    again = gym.make(env.spec)
    assert isinstance(again, AddedWait)
    again.reset(seed=0)
    assert np.array_equal(again.step(2)[0], a)


def test_it_waits_inside_a_vector_environment() -> None:
    envs = SyncVectorEnv(
        [lambda: AddedWait(gym.make("CartPole-v1"), no_force)] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    env = AddedWait(gym.make("CartPole-v1"), no_force)
    envs.reset(seed=[3, 3])
    env.reset(seed=3)
    batch = envs.step(np.array([2, 0]))[0]
    assert np.array_equal(batch[0], env.step(2)[0])
    assert not np.array_equal(batch[0], batch[1])


@pytest.mark.parametrize("answer", [None, (1, 2), [0, 0.0, False, False, {}]])
def test_a_passive_step_that_does_not_answer_as_step_does_is_named(answer: Any) -> None:
    env = AddedWait(Walk(), lambda walk: answer)
    env.reset()
    with pytest.raises(SpaceError, match="it must return what step returns"):
        env.step(2)


def test_mistakes() -> None:
    with pytest.raises(SpaceError, match=r"discrete actions only.*letitcook\.wrap"):
        AddedWait(gym.make("Pendulum-v1"), no_force)
    with pytest.raises(SettingError, match="'idel' is not a method of Walk"):
        AddedWait(Walk(), "idel")
    with pytest.raises(SettingError, match="3 is neither a function nor the name of a method"):
        AddedWait(Walk(), 3)  # type: ignore[arg-type]
    assert AddedWait(make("cook").env, "render").action_space == spaces.Discrete(7)


def test_passive_steps_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_passive_steps.py").write_text("def drift(env):\n    return env.idle()\n\nspeed = 3\n")
    (tmp_path / "my_broken_steps.py").write_text("def drift(env:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    env = AddedWait(Walk(), passive_named("my_passive_steps:drift"))
    env.reset()
    assert env.step(2)[1] == -0.5
    assert passive_named("idle") == "idle"
    with pytest.raises(UnknownNameError, match="no function in the module .* named 'drfit'. Did you mean 'drift'"):
        passive_named("my_passive_steps:drfit")
    with pytest.raises(SettingError, match="which is not a function"):
        passive_named("my_passive_steps:speed")
    with pytest.raises(SettingError, match="no module named 'nothing_of_that_name'"):
        passive_named("nothing_of_that_name:drift")
    with pytest.raises(SettingError, match="SyntaxError"):
        passive_named("my_broken_steps:drift")
    with pytest.raises(SettingError, match="is not a name"):
        passive_named("no force")
