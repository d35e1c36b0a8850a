from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from letitcook import WaitingEnv, evaluate, learn, make, plan
from letitcook.errors import SettingError, UnknownNameError
from letitcook.train import Training, decisions_of, objective_of


class Scripted:
    """A learner whose evaluations are given."""

    def __init__(self, *results: tuple[float, float]) -> None:
        self.results, self.steps = results, 0

    def advance(self, steps: int) -> None:
        self.steps += steps + 3  # decisions do not end where evaluations are due

    def greedy_episodes(self, episodes: int, seed: int) -> np.ndarray:
        task, queries = self.results[(self.steps - 1) // 10 - 1]
        return np.array([[task, -task, queries, 0.0]] * episodes)

    def policy(self) -> int:
        return self.steps


RESULTS = ((-40.0, 30.0), (-33.0, 29.0), (-33.0, 25.0), (-33.0, 25.0), (-34.0, 3.0))


@pytest.mark.parametrize(
    ("method", "lam", "best"),
    [("lexicographic", None, 2), ("scalar", 0.01, 2), ("scalar", 5.0, 4), ("vanilla", None, 1)],
)
def test_the_best_by_the_methods_own_objective_is_kept(method: str, lam: float | None, best: int) -> None:
    training = Training(Scripted(*RESULTS), objective_of(method, lam), every=10)
    points = list(training.run(50))
    assert [p.step for p in points] == [13, 23, 33, 43, 53]
    assert training.best == points[best]
    assert training.policy == points[best].step


@pytest.mark.parametrize(
    ("task", "mode", "steps"),
    [("cook", "scratch", 800_000), ("cook", "wrap", 50_000), ("cook-longer", "wrap", 50_000),
     ("cook-twice", "wrap", 80_000), ("coffee", "wrap", 50_000)],
)  # fmt: skip
def test_the_exact_preset_reaches_the_exact_optimum(task: str, mode: str, steps: int) -> None:
    env = make(task, mode=mode)
    best = plan(env)
    for seed in range(3):
        learned = learn(env, steps=steps, seed=seed, preset="exact", progress=False)
        assert (learned.length, learned.queries) == (best.length, best.queries), seed


def test_what_was_learned_is_what_the_real_environment_shows() -> None:
    env = make("coffee", mode="wrap")
    learned = learn(env, steps=30_000, seed=1, progress=False)
    played = evaluate(env, learned.policy, episodes=1)
    assert (played.length, played.queries, played.base_queries) == (
        learned.length,
        learned.queries,
        learned.best.base_queries,
    )
    assert learned.curve[-1].step >= 30_000
    assert learned.about["task"] == "coffee"


def test_vanilla_never_waits() -> None:
    env = make("cook")
    learned = learn(env, method="vanilla", steps=100_000, preset="exact", progress=False)
    assert learned.length == learned.queries
    assert decisions_of("vanilla", env.decisions).durations == ()


def test_toy_text_with_random_transitions() -> None:
    env = WaitingEnv(gym.make("FrozenLake-v1", is_slippery=True), wait=0, durations=(2,))
    best = plan(env, objective="task")
    learned = learn(env, method="scalar", lam=0.0, steps=600_000, preset="exact", progress=False)
    played = evaluate(env, learned.policy, episodes=1_500, seed=5)
    assert played.task_return > 0.9 * best.task_return
    assert learned.about["settings"]["visit_power"] > 0


def test_same_seed_same_result() -> None:
    one, two, other = (learn(make("cook"), steps=40_000, seed=s, progress=False) for s in (1, 1, 2))
    assert one.curve == two.curve != other.curve


def test_mistakes() -> None:
    env = make("cook")
    with pytest.raises(UnknownNameError, match="Did you mean 'scalar'"):
        learn(env, method="scaler")
    with pytest.raises(UnknownNameError, match="no preset named 'exakt'. Did you mean 'exact'"):
        learn(env, preset="exakt")
    with pytest.raises(SettingError, match="needs a λ"):
        learn(env, method="scalar")
    with pytest.raises(SettingError, match="steps = 0"):
        learn(env, steps=0)
    with pytest.raises(SettingError, match="seed = -1"):
        learn(env, seed=-1)
    with pytest.raises(SettingError, match="no time limit"):
        learn(WaitingEnv(gym.make("FrozenLake-v1", max_episode_steps=-1), wait=0, durations=(2,)))
