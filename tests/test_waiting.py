from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RepeatAction

from letitcook import TASKS, ScalarisedEnv, WaitingEnv, make
from letitcook.errors import SettingError, SpaceError
from letitcook.wrappers.waiting import horizon_of, waiting_env_of


class Counting(gym.Env[Any, Any]):
    """Rewards 1, 2, 3, ...; ends after `last` steps."""

    def __init__(self, last: int = 100, start: int = 0) -> None:
        self.observation_space = spaces.Box(0.0, np.inf, (1,), np.float32)
        self.action_space = spaces.Discrete(3, start=start)
        self.last, self.t, self.actions = last, 0, []  # type: ignore[var-annotated]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.actions = 0, []
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.actions.append(action)
        return self._seen(), float(self.t), self.t >= self.last, False, {}

    def _seen(self) -> Any:
        return np.array([self.t], dtype=np.float32)


def test_discount_inside_and_after_a_wait_by_hand() -> None:
    env = WaitingEnv(Counting(), wait=1, durations=(3,), gamma=0.9)
    env.reset()
    _, reward, _, _, info = env.step(3)
    assert reward.tolist() == pytest.approx([1 + 0.9 * 2 + 0.81 * 3, -1.0])
    assert info["discount"] == pytest.approx(0.9**3)
    assert (info["elapsed"], info["requested"], info["task_reward"]) == (3, 3, 6.0)
    _, reward, _, _, info = env.step(0)
    assert (reward.tolist(), info["discount"], info["elapsed"]) == ([4.0, -1.0], 0.9, 1)


def test_a_wait_is_cut_by_the_end_and_by_the_horizon() -> None:
    env = WaitingEnv(Counting(last=5), wait=1, durations=(4,))
    env.reset()
    env.step(3)
    _, _, terminated, truncated, info = env.step(3)
    assert (terminated, truncated, info["elapsed"], info["requested"]) == (True, False, 1, 4)
    env = WaitingEnv(gym.wrappers.TimeLimit(Counting(), 6), wait=1, durations=(4,), gamma=0.5)
    env.reset()
    env.step(3)
    _, _, terminated, truncated, info = env.step(3)
    assert (terminated, truncated, info["elapsed"], info["discount"]) == (False, True, 2, 0.25)


def test_intermediate_observations_only_on_request() -> None:
    env = WaitingEnv(Counting(), wait=1, durations=(3,))
    env.reset()
    assert "intermediate" not in env.step(3)[4]
    env = WaitingEnv(Counting(), wait=1, durations=(3,), intermediate=True)
    env.reset()
    assert [(float(o[0]), r) for o, r in env.step(3)[4]["intermediate"]] == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    ("env_id", "wait"), [("FrozenLake-v1", 0), ("Taxi-v4", 5), ("CartPole-v1", 1), ("MountainCar-v0", 1)]
)
def test_the_wait_loop_equals_gymnasiums_repeat_action(env_id: str, wait: int) -> None:
    for duration in (2, 5):
        ours = WaitingEnv(gym.make(env_id), wait=wait, durations=(duration,))
        theirs = RepeatAction(gym.make(env_id), num_repeats=duration)
        decision = ours.decisions.n - 1
        for seed in range(5):
            a, _ = ours.reset(seed=seed)
            b, _ = theirs.reset(seed=seed)
            over = False
            while not over:
                a, reward, terminated, truncated, _ = ours.step(decision)
                b, total, *ended, _ = theirs.step(wait)
                assert np.array_equal(a, b)
                assert reward[0] == pytest.approx(float(total))
                assert [terminated, truncated] == list(ended)
                over = terminated or truncated


def test_primitive_decisions_are_the_environments_own() -> None:
    ours, theirs = WaitingEnv(gym.make("CartPole-v1"), wait=0, durations=(2,)), gym.make("CartPole-v1")
    ours.reset(seed=3)
    theirs.reset(seed=3)
    for action in (0, 1, 1, 0, 1):
        a, b = ours.step(action), theirs.step(action)
        assert np.array_equal(a[0], b[0])
        assert a[1].tolist() == [b[1], -1.0]
        assert a[2:4] == b[2:4]


def test_an_action_space_that_does_not_start_at_zero() -> None:
    env = WaitingEnv(Counting(start=5), wait=6, durations=(2,))
    env.reset()
    env.step(0)
    env.step(3)
    assert env.unwrapped.actions == [5, 6, 6]  # type: ignore[attr-defined]
    with pytest.raises(SettingError, match=r"wait action 1 is outside the action space 5\.\.7"):
        WaitingEnv(Counting(start=5), wait=1, durations=(2,))


@pytest.mark.parametrize("task", [*TASKS, "MountainCar-v0"])
def test_spec_round_trip(task: str) -> None:
    if task in TASKS:
        env: gym.Env[Any, Any] = make(task)
    else:
        env = WaitingEnv(gym.make(task), wait=1, durations=(2, 4), gamma=0.99, intermediate=True)
    env = ScalarisedEnv(env, lam=0.3)
    assert env.spec is not None
    again = gym.make(env.spec)
    assert isinstance(again, ScalarisedEnv)
    assert again.lam == 0.3
    assert waiting_env_of(again).decisions == waiting_env_of(env).decisions
    assert waiting_env_of(again).gamma == waiting_env_of(env).gamma
    assert horizon_of(again) == horizon_of(env)
    assert again.spec == env.spec
    a, b = env.reset(seed=1)[0], again.reset(seed=1)[0]
    assert np.array_equal(a, b)
    for decision in range(env.action_space.n):  # type: ignore[attr-defined]
        one, two = env.step(decision), again.step(decision)
        assert np.array_equal(one[0], two[0])
        assert one[1:4] == two[1:4]


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
@pytest.mark.filterwarnings("ignore:.*A Box observation space m..imum value is -?infinity:UserWarning")
@pytest.mark.parametrize("task", TASKS)
def test_gymnasiums_checker_on_the_task_and_its_waiting_view(task: str) -> None:
    check_env(gym.make(TASKS[task].env_id).unwrapped, skip_render_check=True)
    check_env(ScalarisedEnv(make(task), lam=0.1), skip_render_check=True)


def test_seeded_resets() -> None:
    env = make("cook")
    env.reset(seed=1)
    first = [env.step(u)[0].tolist() for u in (1, 3, 5, 6)]
    env.reset(seed=1)
    assert [env.step(u)[0].tolist() for u in (1, 3, 5, 6)] == first


def test_vector_reward_convention() -> None:
    env = make("cook")
    env.reset()
    reward = env.step(7)[1]
    assert isinstance(reward, np.ndarray)
    assert env.reward_space.contains(reward)
    assert env.reward_space.contains(reward.astype(np.float32))
    assert env.reward_space.shape == (2,) == (env.reward_dim,)


@pytest.mark.parametrize(
    ("durations", "message"),
    [((), "empty"), ((4, 2), "strictly increasing; write them as 2,4"), ((2, 2), "strictly increasing"),
     ((1, 2), "duration 1 is below 2"), ((2.5,), "not a whole number"), (("x",), "not a whole number"),
     ((-3,), "below 2"), ((True,), "not a whole number"), ((float("nan"),), "not a whole number"),
     ((float("inf"),), "not a whole number")],
)  # fmt: skip
def test_wrong_durations_are_named(durations: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=durations)


def test_whole_floats_are_fine() -> None:
    assert WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2.0, 4)).decisions.durations == (2, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("wait", [3, -1, 1.5, None, True])
def test_wrong_wait_actions_are_named(wait: Any) -> None:
    with pytest.raises(SettingError, match="outside the action space"):
        WaitingEnv(gym.make("MountainCar-v0"), wait=wait, durations=(2,))


def test_the_queries_of_a_base_are_added_up() -> None:
    class Asked(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            *rest, _ = self.env.step(action)
            return (*rest, {"base_queries": 1})

    env = WaitingEnv(Asked(Counting()), wait=1, durations=(3,))
    env.reset()
    assert env.step(3)[4]["base_queries"] == 3
    env = WaitingEnv(Counting(), wait=1, durations=(3,))
    env.reset()
    assert env.step(3)[4]["base_queries"] == 0


def test_action_names_are_found_through_other_wrappers() -> None:
    class Named(Counting):
        action_names = ("left", "stay", "right")

    env = WaitingEnv(gym.wrappers.TimeLimit(Named(), 9), wait=1, durations=(2,))
    assert [env.decisions.label(u) for u in range(4)] == ["left", "stay", "right", "wait 2"]
    env = WaitingEnv(gym.wrappers.TimeLimit(Counting(start=5), 9), wait=6, durations=(2,))
    assert [env.decisions.label(u) for u in range(4)] == ["action 5", "action 6", "action 7", "wait 2"]


def test_the_horizon_counts_primitive_steps() -> None:
    limited = gym.wrappers.TimeLimit(gym.wrappers.TimeLimit(Counting(), 50), 80)
    assert horizon_of(limited) == 50
    assert horizon_of(gym.wrappers.TimeLimit(WaitingEnv(limited, wait=1, durations=(2,)), 7)) == 50
    assert horizon_of(gym.wrappers.TimeLimit(WaitingEnv(Counting(), wait=1, durations=(2,)), 7)) is None


def test_dict_observations_and_pictures_pass_through() -> None:
    class Seen(gym.ObservationWrapper[Any, Any, Any]):
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            self.observation_space = spaces.Dict({"t": env.observation_space})

        def observation(self, observation: Any) -> Any:
            return {"t": observation}

    env = WaitingEnv(Seen(Counting()), wait=1, durations=(3,))
    assert isinstance(env.observation_space, spaces.Dict)
    env.reset()
    assert env.step(3)[0]["t"].tolist() == [3.0]
    filmed = make("cook", render_mode="rgb_array")
    inside = WaitingEnv(gym.wrappers.RenderCollection(filmed.env), wait=4, durations=(5,))
    inside.reset()
    inside.step(6)
    frames: Any = inside.render()
    assert len(frames) == 6  # the first, and one for each primitive step


def test_other_mistakes() -> None:
    with pytest.raises(
        SpaceError, match=r"discrete actions.*letitcook\.wrap\(env, base, wait=np\.zeros\(\(1,\), 'float32'\)"
    ):
        WaitingEnv(gym.make("Pendulum-v1"), wait=0, durations=(2,))
    with pytest.raises(SpaceError, match=r"letitcook\.WaitingVectorEnv"):
        WaitingEnv(gym.make_vec("CartPole-v1", num_envs=2), wait=0, durations=(2,))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"letitcook\.AddedWait"):
        WaitingEnv(gym.make("CartPole-v1"), wait=2, durations=(2,))
    twice = WaitingEnv(WaitingEnv(Counting(), wait=1, durations=(2,)), wait=1, durations=(2,))
    twice.reset()
    with pytest.raises(SpaceError, match="must be one number"):
        twice.step(0)
    with pytest.raises(SettingError, match="gamma"):
        WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2,), gamma=0.0)
    with pytest.raises(SettingError, match="λ = -1"):
        ScalarisedEnv(make("cook"), lam=-1.0)
    with pytest.raises(SpaceError, match="not a waiting environment"):
        waiting_env_of(gym.make("MountainCar-v0"))
    env = make("cook")
    env.reset()
    with pytest.raises(SpaceError, match=r"outside 0\.\.7"):
        env.step(8)


def test_what_a_waiting_environment_says_of_itself() -> None:
    env = WaitingEnv(gym.make("CartPole-v1"), wait=0, durations=(2,))
    assert not env.decisions.hold
    assert env.reward_space.low.tolist() == [-np.inf, -1.0]
    assert env.reward_space.high.tolist() == [np.inf, -1.0]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_waits_inside_gymnasiums_vector_environments_equal_single_ones(kind: Any, mode: AutoresetMode) -> None:
    inside: list[Any] = [partial(WaitingEnv, wait=1, durations=(2, 5)), partial(ScalarisedEnv, lam=0.5)]
    envs = gym.make_vec(
        "MountainCar-v0",
        num_envs=2,
        max_episode_steps=12,
        vectorization_mode=kind,
        vector_kwargs={"autoreset_mode": mode},
        wrappers=inside,
    )
    singles = [inside[1](inside[0](gym.make("MountainCar-v0", max_episode_steps=12))) for _ in range(2)]
    seen = np.stack([env.reset(seed=3 + i)[0] for i, env in enumerate(singles)])
    np.testing.assert_array_equal(envs.reset(seed=3)[0], seen)
    generator, begins, ended = np.random.default_rng(0), [False, False], 0
    for _ in range(30):
        decisions = generator.integers(5, size=2)
        shown, rewards, _, truncated, info = envs.step(decisions)
        for i, env in enumerate(singles):
            if begins[i]:  # the decision of this step is not carried out
                np.testing.assert_array_equal(shown[i], env.reset()[0])
                assert rewards[i] == 0.0 and not info["_elapsed"][i]
                begins[i] = False
                continue
            observation, reward, _, over, known = env.step(decisions[i])
            assert (rewards[i], bool(truncated[i])) == (reward, over)
            told = info["final_info"] if over and mode is AutoresetMode.SAME_STEP else info
            assert told["elapsed"][i] == known["elapsed"]
            np.testing.assert_array_equal(told["vector_reward"][i], known["vector_reward"])
            ended += over
            if over and mode is AutoresetMode.SAME_STEP:
                observation = env.reset()[0]
            begins[i] = over and mode is AutoresetMode.NEXT_STEP
            np.testing.assert_array_equal(shown[i], observation)
    assert ended > 6
    envs.close()
