from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from letitcook import make
from letitcook.core.decisions import WRAPPER, Decisions
from letitcook.core.objective import Objective
from letitcook.errors import FileFormatError, FinitenessError, SettingError
from letitcook.finite import learner as finite_learner
from letitcook.finite.learner import QLearner
from letitcook.finite.plan import plan_tables
from letitcook.finite.policy import TablePolicy
from letitcook.finite.q_learning import EPISODES
from letitcook.finite.settings import EXACT, EXACT_RANDOM, PAPER, QSettings
from letitcook.finite.tables import enumerate_env
from letitcook.tasks import task_named
from worlds import random_decisions, random_tables

LEX = Objective.named("lexicographic")
VARIANTS = {
    "as printed": QSettings(),
    "paper": PAPER,
    "exact": EXACT,
    "random ties": replace(PAPER, ties="random"),
    "no bootstrap at the horizon": replace(PAPER, bootstrap_on_truncation=False),
    "discounted": replace(PAPER, gamma=0.9),
    "schedules": replace(PAPER, alpha_end=0.01, epsilon=0.5, epsilon_end=0.0, schedule=3_000),
    "initial values and slack": replace(PAPER, initial=-7.5, slack=0.5),
    "falling with visits": replace(PAPER, alpha=1.0, visit_power=0.6, intra_option=True),
    "intra-option and replay, discounted": replace(PAPER, gamma=0.95, intra_option=True, backward_replay=True),
    "full backups": replace(PAPER, backup="full", slack=0.1),
    "full backups of everything, discounted": replace(EXACT, backup="full", gamma=0.95, bootstrap_on_truncation=False),
}


@pytest.mark.parametrize("branching", [1, 3])
@pytest.mark.parametrize("objective", [LEX, Objective.named("scalar", 0.5), Objective.named("task")], ids=str)
@pytest.mark.parametrize("name", VARIANTS)
def test_kernel_equals_the_literal_algorithm_bit_for_bit(name: str, objective: Objective, branching: int) -> None:
    tables = random_tables(seed=3, states=7, actions=3, branching=branching, starts=2)
    decisions = random_decisions(3, (2, 5))
    learner = QLearner(tables, decisions, 17, objective, VARIANTS[name], seed=5)
    learner.advance(4_000)
    slow = naive.lq_learning(tables, decisions, 17, objective.weights.tolist(), VARIANTS[name], 4_000, seed=5)
    assert learner.decisions_taken > 1_000
    assert np.array_equal(learner.Q, slow)


def test_a_few_steps_of_every_variant() -> None:
    """As above, with a short horizon that cuts waits, and all that is counted; fast also where nothing is compiled."""
    count = replace(PAPER, alpha_end=0.01, epsilon=0.9, epsilon_end=0.1, schedule=90, timestep="decision")
    one = [replace(PAPER, alpha_end=0.01, schedule=90), replace(PAPER, epsilon=0.9, epsilon_end=0.1, schedule=90)]
    around = Decisions(WRAPPER, wait=1, durations=(2, 4), cost="base")
    for n, setting in enumerate([*VARIANTS.values(), count, *one]):
        for objective in (LEX, Objective.named("scalar", 0.5)):
            branching = 1 + 2 * (n % 2 == (objective is LEX))
            tables = random_tables(seed=n, states=5, actions=2, branching=branching, starts=2)
            for decisions in (random_decisions(2, (2, 3)), around):
                learner = QLearner(tables, decisions, 6, objective, setting, seed=n)
                assert learner.totals().episodes == 0
                learner.advance(150)
                ended: list[tuple[float, ...]] = []
                weights = objective.weights.tolist()
                slow = naive.lq_learning(tables, decisions, 6, weights, setting, 150, n, ended)
                assert np.array_equal(learner.Q, slow)
                assert learner.totals() == (len(ended), *np.sum(ended, axis=0).tolist())
                assert learner._memory.clock[EPISODES] == len(ended)
                played = learner.greedy_episodes(3, seed=8)
                expected = naive.greedy_episodes(tables, decisions, 6, slow, setting.slack, len(played), 8)
                assert np.array_equal(played, expected)
                assert len(played) == 3
                greedy = [naive.lex_argmax(row.tolist(), setting.slack) for row in slow]
                assert learner.policy().table.tolist() == greedy


def test_kernel_equals_the_literal_algorithm_in_the_kitchen() -> None:
    env = make("cook")
    tables = enumerate_env(env)
    learner = QLearner(tables, env.decisions, 200, LEX, PAPER, seed=1)
    learner.advance(20_000)
    slow = naive.lq_learning(tables, env.decisions, 200, LEX.weights.tolist(), PAPER, 20_000, seed=1)
    assert np.array_equal(learner.Q, slow)


def test_three_objectives_follow_the_same_rule() -> None:
    tables = random_tables(seed=8, states=5, actions=3)
    decisions = random_decisions(3, (2,))
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])

    class Three:
        pass

    three = Three()
    three.weights = weights  # type: ignore[attr-defined]
    learner = QLearner(tables, decisions, 20, three, PAPER, seed=2)  # type: ignore[arg-type]
    learner.advance(3_000)
    slow = naive.lq_learning(tables, decisions, 20, weights.tolist(), PAPER, 3_000, seed=2)
    assert np.array_equal(learner.Q, slow)


def test_task_values_are_written_before_waiting_values_bootstrap() -> None:
    # One state, an action that stays there: after one update of Q0 the admissible set of Q1's bootstrap has changed.
    tables = random_tables(seed=0, states=1, actions=2)
    tables.next_state[1] = 0
    decisions = random_decisions(2, (2,))
    settings_ = QSettings(alpha=1.0, epsilon=0.0, slack=0.0)
    learner = QLearner(tables, decisions, 50, LEX, settings_, seed=0)
    slow = naive.lq_learning(tables, decisions, 50, LEX.weights.tolist(), settings_, 40, seed=0)
    learner.advance(40)
    assert np.array_equal(learner.Q, slow)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 4))
def test_learned_return_equals_the_exact_optimum(seed: int, states: int, actions: int) -> None:
    tables = random_tables(seed, states, actions)
    decisions = random_decisions(actions, (2, 3))
    best = plan_tables(tables, decisions, 60, LEX)
    learner = QLearner(tables, decisions, 60, LEX, replace(EXACT, epsilon=0.3), seed)
    learner.advance(30_000)
    task_return, length, queries, _, *steps = learner.greedy_episodes(1, 0)[0]
    # Where several ways are equally good in both objectives they may differ in length, as rewards are not all -1.
    assert (task_return, queries) == (best.task_return, best.queries)
    assert sum(steps) == length


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", [Objective.named("scalar", 0.5), Objective.named("task")], ids=str)
def test_learned_return_is_near_the_exact_optimum_where_transitions_are_random(seed: int, objective: Objective) -> None:
    tables = random_tables(seed, states=6, actions=3, branching=3)
    decisions = random_decisions(3, (2, 3))
    best = plan_tables(tables, decisions, 60, objective)
    learner = QLearner(tables, decisions, 60, objective, EXACT_RANDOM, seed)
    learner.advance(400_000)
    played = learner.greedy_episodes(20_000, 0).mean(axis=0)
    learned = objective.of(played[0], -played[2])[0]
    exact = objective.of(best.task_return, -best.queries)[0]
    assert learned == pytest.approx(exact, rel=0.02, abs=0.05)


@pytest.mark.parametrize("values", [EXACT, EXACT_RANDOM], ids=["sample", "full"])
def test_stopping_and_going_on_gives_the_same_bits(values: QSettings) -> None:
    tables = random_tables(seed=1, states=6, actions=3, branching=2)
    decisions = random_decisions(3, (2, 4))
    through = QLearner(tables, decisions, 30, LEX, values, seed=4)
    through.advance(1_001)
    through.advance(2_000)
    first = QLearner(tables, decisions, 30, LEX, values, seed=4)
    first.advance(1_001)
    second = QLearner(tables, decisions, 30, LEX, values, seed=99)
    second.restore(first.arrays())
    second.advance(2_000)
    assert through.steps == second.steps
    for name, array in through.arrays().items():
        assert np.array_equal(array, second.arrays()[name]), name


def test_evaluation_does_not_disturb_learning() -> None:
    tables = random_tables(seed=1, states=6, actions=3, branching=2)
    decisions = random_decisions(3, (2, 4))
    one, two = (QLearner(tables, decisions, 30, LEX, PAPER, seed=4) for _ in range(2))
    for _ in range(5):
        one.advance(100)
        two.advance(100)
        two.greedy_episodes(7, seed=1)
    assert np.array_equal(one.Q, two.Q)


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    env = make("cook", mode="wrap")
    tables = enumerate_env(env)
    Q = []
    for seed in (0, 0, 1):
        learner = QLearner(tables, env.decisions, 200, LEX, PAPER, seed)
        learner.advance(5_000)
        Q.append(learner.Q)
    assert np.array_equal(Q[0], Q[1])
    assert not np.array_equal(Q[0], Q[2])


def test_a_hidden_field_shares_its_values() -> None:
    task = task_named("cook-twice")
    env = make("cook-twice", hide_delivered=True)
    tables = enumerate_env(env)
    learner = QLearner(tables, env.decisions, task.horizon, LEX, PAPER, seed=0)
    learner.advance(10_000)
    assert not tables.fully_observed
    assert len(learner.Q) == int(tables.rows.max()) + 1 < tables.n_states
    observation, _ = env.reset(seed=0)
    assert learner.policy().predict(observation)[0] in range(env.decisions.n)


def test_policy_of_a_batch_and_of_an_unknown_observation() -> None:
    policy = TablePolicy([(0, 0), (0, 1)], np.array([1, 2], dtype=np.int16))
    assert policy.predict(np.array([[0, 1], [0, 0], [0, 1]]))[0].tolist() == [2, 1, 2]
    with pytest.raises(FinitenessError, match="not one of the 2"):
        policy.predict(np.array([5, 5]))
    again = TablePolicy.from_arrays(policy.arrays())
    assert again.predict(np.array([0, 1]))[0] == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("alpha", 1.5),
        ("epsilon", -0.1),
        ("gamma", 0.0),
        ("slack", -1.0),
        ("ties", "last"),
        ("initial", float("nan")),
        ("schedule", 0),
        ("visit_power", 2.0),
    ],
)
def test_settings_outside_what_is_allowed_are_named(name: str, value: object) -> None:
    with pytest.raises(SettingError, match=name):
        QSettings(**{name: value})  # type: ignore[arg-type]


def test_a_saved_learner_of_another_world_does_not_fit() -> None:
    decisions = random_decisions(3, (2,))
    small = QLearner(random_tables(0, 3, 3), decisions, 10, LEX)
    large = QLearner(random_tables(0, 4, 3), decisions, 10, LEX)
    with pytest.raises(FileFormatError, match="has shape"):
        large.restore(small.arrays())
    counting = QLearner(random_tables(0, 3, 3), decisions, 10, LEX, EXACT_RANDOM)
    damaged = counting.arrays()
    damaged["followed"][0, 0, 0, 0] = 4
    with pytest.raises(FileFormatError, match="does not fit"):
        counting.restore(damaged)


def test_where_there_is_no_room_for_more_outcomes_the_rarest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_learner, "MOST_OUTCOMES", 4)
    tables = random_tables(seed=0, states=40, actions=2, branching=30)
    learner = QLearner(tables, random_decisions(2, (2,)), 30, Objective.named("task"), EXACT_RANDOM, seed=0)
    assert learner.arrays()["followed"].shape[-1] == 4
    learner.advance(50_000)
    after, times = learner.arrays()["followed"]
    assert (times[:-1, 1] > 0).all(), "every place is taken"
    assert all(len(set(rows.tolist())) == 4 for rows in after[:-1, 1]), "by different rows"
    assert np.isfinite(learner.Q).all()
