from __future__ import annotations

from typing import Any

import gymnasium as gym

from letitcook import WaitingEnv, interleave, learn, make, plan, rollout, task_named


class Errand:
    """Other work in MountainCar: push right for some steps. It is done once."""

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps, self.asked = name, steps, 0

    def finished(self, observation: Any) -> bool:
        return self.asked > 0

    def duration(self, observation: Any) -> int:
        return self.steps

    def actions(self, observation: Any) -> list[int]:
        self.asked += 1
        return [2] * self.steps


class Script:
    """A waiting policy that reads its decisions from a list, then stays with the last."""

    def __init__(self, *decisions: int) -> None:
        self.decisions = decisions

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        n = 0 if state is None else state
        return self.decisions[min(n, len(self.decisions) - 1)], n + 1


def car() -> WaitingEnv:
    return WaitingEnv(gym.make("MountainCar-v0", max_episode_steps=30), wait=1, durations=(4, 8))


def test_coffee_as_in_the_paper() -> None:
    env = make("coffee", mode="wrap")
    policy = plan(env).policy
    assert (rollout(env, policy).length, rollout(env, policy).queries) == (54, 36)
    auxiliary = task_named("coffee").auxiliary
    assert auxiliary is not None
    episode = interleave(env, policy, auxiliary())
    assert (episode.length, episode.queries, episode.terminated) == (45, 27, True)
    assert [(f.task, f.time, f.wait, f.steps) for f in episode.fills] == [("fetch-sugar", 25, 15, 15)]


def test_coffee_with_a_learned_wrapper() -> None:
    env = make("coffee", mode="wrap")
    learned = learn(env, steps=100_000, preset="exact", progress=False)
    assert (learned.length, learned.queries) == (54, 36)
    auxiliary = task_named("coffee").auxiliary
    assert auxiliary is not None
    assert interleave(env, learned.policy, auxiliary()).length == 45


def test_the_longest_that_fits_is_done_and_the_rest_is_waited_out() -> None:
    tasks = [Errand("short", 3), Errand("long", 6), Errand("too long", 9)]
    episode = interleave(car(), Script(4, 4, 4, 1), tasks, seed=0)
    assert [(f.task, f.time, f.wait, f.steps) for f in episode.fills] == [("long", 0, 8, 6), ("short", 8, 8, 3)]
    assert episode.elapsed[:3] == [8, 8, 8]
    assert (episode.length, episode.truncated) == (30, True)


def test_a_wait_too_short_for_any_task_is_a_wait() -> None:
    plain = rollout(car(), Script(3, 0, 2), seed=3)
    episode = interleave(car(), Script(3, 0, 2), [Errand("long", 6)], seed=3)
    assert episode.fills == []
    assert (episode.decisions, episode.elapsed, episode.task_return) == (
        plain.decisions,
        plain.elapsed,
        plain.task_return,
    )


def test_the_horizon_cuts_work_too() -> None:
    episode = interleave(car(), Script(1, *[4] * 9), [Errand(f"e{n}", 8) for n in range(9)], seed=0)
    assert (episode.length, episode.truncated, episode.elapsed[-1]) == (30, True, 5)
