"""The choice of a certified wrapper: who takes part, who is chosen, on which episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import Budget, SchedulePolicy, learn, load, wrap
from letitcook.deep.policy import NetworkPolicy
from letitcook.evaluation.certificate import Margin
from letitcook.evaluation.rollout import episode_seed
from letitcook.training import certified
from letitcook.training.budget import Spending
from letitcook.training.certified import choose_certified
from letitcook.wrappers.base_policy import base_env_of
from quick_choice import choose_quickly


class Lamp(gym.Env[Any, Any]):
    """Thirty steps; the right answer changes after 7 and after 19 of them, and each wrong step costs 1."""

    observation_space = spaces.Box(0.0, 30.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.starts: list[int | None] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.starts.append(seed)
        self.t = 0
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        reward = -float(action != right(self.t))
        self.t += 1
        return np.array([self.t], dtype=np.float32), reward, False, self.t >= 30, {}


def right(t: float) -> int:
    return int(not 7 <= t < 19)


def chosen(budget: Budget, margin: str = "0.5", **options: Any) -> tuple[Any, Lamp]:
    lamp = Lamp()
    env = wrap(lamp, lambda o: right(o[0]), wait="hold", durations=(2, 5))
    inside = base_env_of(env)
    assert inside is not None
    return choose_certified(env, [], Margin.read(margin), Spending([inside], budget), at_stake=10.0, **options), lamp


def test_persistence_is_certified_where_answers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certified, "ROUNDS", (4, 8))
    monkeypatch.setattr(certified, "RECORDED", 4)
    said: list[str] = []
    choice, _ = chosen(Budget(), phase=lambda name, *counts: said.append(name))
    assert choice.certificate is not None and choice.certificate.certified
    assert choice.chosen.kind == "persistence"
    rows = {row["name"]: row for row in choice.table()}
    assert rows[choice.chosen.name]["saved"] >= max(
        (row["saved"] for row in rows.values() if row["kind"] == "schedule" and row["difference"] == 0.0), default=0.0
    )
    assert choice.certificate.episodes == len(choice.fresh) == len(choice.fresh_base)
    assert said[0].startswith("recording")
    assert any(text.startswith("certifying") for text in said)


def test_the_three_sets_of_episodes_have_nothing_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    games = certified.Games(wrap(Lamp(), lambda o: 1, wait="hold", durations=(2,)), seed=3)
    seeds = [{episode_seed(games.seeds[name], n) for n in range(2_000)} for name in ("choosing", "certifying")]
    assert not seeds[0] & seeds[1]
    choice, lamp = chosen(Budget())
    tested = [episode_seed(certified.Games(games.env, 0).seeds["certifying"], n) for n in range(6)]
    assert set(tested) <= set(lamp.starts)
    first = lamp.starts.index(tested[0])
    assert not set(lamp.starts[:first]) & set(tested)  # they had no part before
    assert choice.chosen is not None


def test_without_certainty_the_result_is_the_base_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    choice, _ = chosen(Budget())  # six pairs cannot rule out a rare failure
    assert choice.certificate is None
    assert choice.chosen is choice.base
    assert isinstance(choice.chosen.policy, SchedulePolicy) and choice.chosen.policy.period == 1


def test_a_budget_is_kept_but_for_the_episode_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_quickly(monkeypatch)
    monkeypatch.setattr(certified, "MOST_PAIRS", 10_000)
    monkeypatch.setattr(certified, "LEAST_PAIRS", 10_000)
    lamp = Lamp()
    env = wrap(lamp, lambda o: right(o[0]), wait="hold", durations=(2, 5))
    inside = base_env_of(env)
    assert inside is not None
    spending = Spending([inside], Budget(base_queries=2_000))
    choice = choose_certified(env, [], Margin.read("0.01"), spending, at_stake=10.0)
    assert 1_500 < spending.queries <= 2_000 + 2 * 30
    assert choice.certificate is None


def test_learning_around_a_base_gives_a_certified_wrapper_that_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    choose_quickly(monkeypatch)
    monkeypatch.setattr(certified, "LEAST_PAIRS", 300)
    monkeypatch.setattr(certified, "MOST_PAIRS", 300)
    env = wrap(Lamp(), lambda o: 1, wait="hold", durations=(2, 5))  # it always answers the same
    run = learn(env, margin="20%", budget=Budget(base_queries=50_000), progress=False, out=tmp_path / "run")
    assert run.steps == 0  # so few queries teach more in the base's own episodes
    assert run.certified and run.certificate is not None and run.choice is not None
    assert run.savings is not None and run.savings.queries_saved.value > 0.5
    assert run.certificate["spent"]["base_queries"] <= 50_030
    again = load(tmp_path / "run")
    assert again.certificate == run.certificate
    assert again.choice == run.choice
    assert type(again.policy) is type(run.policy) and isinstance(again.policy, SchedulePolicy | NetworkPolicy)
    assert again.decisions == env.decisions


def test_without_a_certificate_learning_is_as_it_was() -> None:
    env = wrap(Lamp(), lambda o: 1, wait="hold", durations=(2, 5))
    settings = {"learning_starts": 20, "hidden": (8,)}
    run = learn(env, steps=100, settings=settings, preset="paper", certify=False, progress=False)
    assert run.certificate is None and not run.certified
