from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from letitcook import evaluate, learn, make, plan
from letitcook.errors import SettingError, SpaceError
from letitcook.tasks.job import CHECK, WAIT, JobEnv, PollingPolicy, State, job_text, picture


def test_it_is_a_gymnasium_environment() -> None:
    check_env(JobEnv(), skip_render_check=True)


def test_lateness_counts_from_when_it_is_done_until_it_is_found() -> None:
    env = JobEnv(durations=(3,), check_cost=2.0, lateness_cost=0.5)
    env.reset(seed=0)
    rewards, ended = zip(*[env.step(action)[1:3] for action in (CHECK, WAIT, WAIT, WAIT, WAIT, CHECK)], strict=True)
    assert rewards == (-2.0, 0.0, 0.0, -0.5, -0.5, -2.5)
    assert ended == (False,) * 5 + (True,)


def test_a_check_after_a_long_wait_costs_more() -> None:
    env = JobEnv(durations=(9,), lateness_cost=0.0, cache_steps=2, cache_cost=5.0)
    env.reset(seed=0)
    rewards = [env.step(action)[1] for action in (WAIT, CHECK, WAIT, WAIT, CHECK, CHECK)]
    assert rewards == [0.0, -1.0, 0.0, 0.0, -6.0, -1.0]


def test_durations_are_drawn_as_often_as_they_were_given() -> None:
    env = JobEnv(durations=(4, 9, 9, 9))
    drawn = []
    for seed in range(400):
        env.reset(seed=seed)
        drawn.append(env.state.duration)
    assert set(drawn) == {4, 9}
    assert abs(drawn.count(9) / 400 - 0.75) < 0.1


def test_a_hidden_job_shows_whether_it_was_looked_at() -> None:
    assert JobEnv().observe(State(3, 0, 0, 8)).tolist() == JobEnv().observe(State(7, 0, 0, 30)).tolist() == [0]
    assert JobEnv(hidden=False).observe(State(3, 0, 0, 8)).tolist() == [0, 5]
    assert np.array_equal(picture(State(3, 0, 0, 8)), picture(State(3, 0, 0, 30)))
    assert not np.array_equal(picture(State(3, 0, 0, 8), hidden=False), picture(State(3, 0, 0, 30), hidden=False))
    assert "? left" in job_text(State(3, 0, 0, 8))


def test_seen_a_job_needs_one_check() -> None:
    best = plan(make("job", hidden=False, lateness_cost=1.0))
    assert best.task_return == pytest.approx(-1.0)
    assert isinstance(make("job", "wrap").env.base, PollingPolicy)  # type: ignore[attr-defined]


def test_the_schedule_is_learned_from_experience() -> None:
    env = make("job")
    best = plan(env)
    learned = learn(env, steps=600_000, seed=0, preset="exact", memory="auto", progress=False)
    played = evaluate(env, learned.policy, episodes=1_000, seed=1)
    assert played.task_return >= 1.05 * best.task_return
    never = evaluate(env, PollingPolicy(), episodes=200)
    assert played.task_return > 0.3 * never.task_return


def test_mistakes_are_named() -> None:
    wrong: list[dict[str, Any]] = [{"check_cost": -1}, {"lateness_cost": np.nan}, {"cache_steps": 0}, {"durations": 0}]
    for kwargs in wrong:
        with pytest.raises(SettingError, match=next(iter(kwargs))):
            JobEnv(**kwargs)
    with pytest.raises(SpaceError, match="check, wait"):
        JobEnv().step(2)
