from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import Budget, SeedOnce, WaitingEnv, compare_with_base, evaluate, learn, wrap
from quick_choice import choose_quickly


class Slow(gym.Env[Any, Any]):
    """Ten steps whose rewards are luck; it counts how often it is seeded."""

    observation_space = spaces.Box(-9.0, 9.0, (1,))
    action_space = spaces.Discrete(2)
    seeds: list[int]

    def __init__(self) -> None:
        self.seeds, self.starts, self.t = [], [], 0  # type: ignore[var-annotated]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.seeds.append(seed)
        self.t, self.luck = 0, float(self.np_random.normal())
        self.starts.append(self.luck)
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.seen(), float(action) + self.luck, False, self.t >= 10, {}

    def seen(self) -> Any:
        return np.array([self.luck], dtype=np.float32)


def test_the_first_seed_is_the_only_one() -> None:
    plain, once = Slow(), Slow()
    for env in (plain, SeedOnce(once)):
        env.reset()  # without a seed: the first that is given is still to come
        evaluate(WaitingEnv(env, wait=0, durations=(2,)), lambda seen: 1, episodes=5)
    assert len(plain.seeds) == 5 and once.seeds == plain.seeds[:1]
    assert once.starts[1] == plain.starts[1] and len(set(once.starts)) == 6


def test_the_same_seed_gives_the_same_evaluation() -> None:
    played = [evaluate(WaitingEnv(SeedOnce(Slow()), 0, (2,)), lambda seen: 1, episodes=5, seed=3) for _ in range(2)]
    assert played[0].of("task_return").tolist() == played[1].of("task_return").tolist()


def test_a_wrapper_and_its_base_play_independent_episodes() -> None:
    slow = Slow()
    env = wrap(SeedOnce(slow), lambda seen: 1, wait=0, durations=(2,))
    savings = compare_with_base(env, lambda seen: 0, episodes=40)
    alone, wrapped = savings.base.of("task_return"), savings.wrapper.of("task_return")
    assert len(slow.seeds) == 1
    assert abs(np.corrcoef(alone, wrapped)[0, 1]) < 0.5  # 1 where they begin alike, as without it
    paired = compare_with_base(wrap(Slow(), lambda seen: 1, wait=0, durations=(2,)), lambda seen: 0, episodes=40)
    assert np.array_equal(paired.base.of("task_return"), paired.wrapper.of("task_return"))


@pytest.mark.parametrize("budget", [Budget(base_queries=30_000), Budget(base_queries=1_500)])
def test_wrappers_are_certified_with_it(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    slow = Slow()
    env = wrap(SeedOnce(slow), lambda seen: 1, wait="hold", durations=(2, 4))
    run = learn(env, steps=0, margin="100%", budget=budget, progress=False)
    assert run.certificate is not None and len(slow.seeds) == 1
