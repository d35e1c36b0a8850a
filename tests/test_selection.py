"""Choosing among policies by playing them."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from letitcook.errors import SettingError
from letitcook.training.selection import (
    BASE_ITSELF,
    BASE_QUERIES,
    LEVEL,
    SETTLED,
    Candidate,
    Tolerance,
    choose,
    choose_best,
    front,
    leading,
    lost,
    met,
    passing,
    promising,
    spread,
    worse,
)

LOOKS = (50, 50, 100, 200)


class Bandit:
    """Policies are `(loss, spread, queries)`; episodes differ by seed, in common to all policies."""

    def __init__(self) -> None:
        self.played = 0

    def play(self, policy: Any, look: Any, episodes: Any) -> Any:
        loss, spread, queries = policy
        self.played += episodes
        common = np.random.default_rng([7, look]).normal(200.0, 30.0, episodes)
        own = np.random.default_rng([int(1000 * loss + 7), int(queries), look]).normal(0.0, spread, episodes)
        out = np.zeros((episodes, 4))
        out[:, 0] = common - loss + own
        out[:, 2] = queries
        return out

    def candidate(self, loss: Any, queries: Any, spread: Any = 1.0, step: Any = 10) -> Any:
        policy = (loss, spread, queries)
        return Candidate(step, 0.0, policy, self.play(policy, 99, 20))


def test_the_fewest_queries_without_a_measurable_loss_win() -> None:
    bandit = Bandit()
    candidates = [bandit.candidate(loss, q) for loss, q in ((0.0, 90), (0.0, 40), (3.0, 20), (60.0, 5))]
    choice = choose(candidates, bandit.play, LOOKS)
    assert choice.candidate.queries == 40
    assert choice.tested <= 2


def test_a_tolerance_lets_a_worse_one_pass_and_no_more_than_that() -> None:
    bandit = Bandit()
    candidates = [bandit.candidate(loss, q) for loss, q in ((0.0, 90), (3.0, 20), (60.0, 5))]
    assert choose(candidates, bandit.play, LOOKS, tolerance=Tolerance(4.0)).candidate.queries == 20
    assert choose(candidates, bandit.play, LOOKS, tolerance=Tolerance(share=0.5)).candidate.queries == 5


def test_a_loss_that_fresh_episodes_cannot_show_is_accepted() -> None:
    """Returns spread by 30: the mean of 400 episodes is known to ±2.9, that of 100,000 to ±0.2."""
    bandit = Bandit()
    candidates = [bandit.candidate(loss, q) for loss, q in ((0.0, 90), (2.0, 20), (8.0, 5))]
    assert choose(candidates, bandit.play, LOOKS, fresh_episodes=400).candidate.queries == 20
    assert choose(candidates, bandit.play, LOOKS, fresh_episodes=100_000).candidate.queries == 90
    assert choose(candidates, bandit.play, LOOKS).candidate.queries == 90


def test_the_reference_is_the_choice_if_nothing_passes() -> None:
    bandit = Bandit()
    candidates = [bandit.candidate(0.0, 90), bandit.candidate(20.0, 20), bandit.candidate(30.0, 10)]
    choice = choose(candidates, bandit.play, LOOKS)
    assert choice.candidate is choice.reference is candidates[0]


def test_more_queries_than_the_reference_are_never_chosen() -> None:
    bandit = Bandit()
    candidates = [bandit.candidate(0.5, 90), bandit.candidate(0.0, 10)]
    assert choose(candidates, bandit.play, LOOKS).candidate.queries == 10


def test_a_policy_that_loses_nothing_is_seldom_ruled_out_and_a_lucky_one_is_found_out() -> None:
    kept = found = 0
    for seed in range(40):
        dice = np.random.default_rng(seed)
        b = dice.normal(0.0, 5.0, (4, 100))
        equal, bad = b + dice.normal(0.0, 3.0, b.shape), b - 1.5 + dice.normal(0.0, 3.0, b.shape)
        looks = [b[: n + 1].ravel() for n in range(4)]
        kept += not any(worse(equal[: n + 1].ravel(), looks[n], 0.0, 0.05 / 4) for n in range(4))
        found += any(worse(bad[: n + 1].ravel(), looks[n], 0.0, 0.05 / 4) for n in range(4))
    assert kept >= 36
    assert found == 40


@pytest.mark.parametrize(("shift", "tolerance", "is_worse"), [(0.0, 0.0, False), (-1.0, 0.0, True), (-1.0, 1.0, False)])
def test_equal_differences_need_no_test(shift: Any, tolerance: Any, is_worse: Any) -> None:
    b = np.array([3.0, 5.0, 9.0])
    assert worse(b + shift, b, tolerance, 0.01) is is_worse


def test_hopeless_candidates_are_dropped_and_those_that_may_be_chosen_are_kept() -> None:
    bandit = Bandit()
    hopeless = [bandit.candidate(100.0, q, spread=0.0) for q in range(1, 10)]
    good = [bandit.candidate(0.0, q, spread=0.0) for q in range(30, 60)]
    left = promising([*hopeless, *good], most=5)
    assert [c in left for c in hopeless] == [True] + [False] * 8  # the first is on the front
    assert [c for c in left if c in spread(good, 5)] == spread(good, 5)
    assert [c.queries for c in spread(good, 5)] == [30, 37, 44, 51, 59]  # from the fewest queries to the most
    assert len(left) <= 1 + 5 + 16
    assert [c.queries for c in front(left)] == [1, 30]


@pytest.mark.parametrize("text", ["-1", "-1%", "nan", "inf", "many", "", "%"])
def test_tolerances_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match="tolerance"):
        Tolerance.read(text)


def scripted(task_return: Any, queries: Any, step: Any = 1) -> Any:
    return Candidate(step, 0.0, (task_return, queries), np.array([[task_return, 0.0, queries]] * 5))


def test_most_trade_offs_are_met_where_a_loss_begins() -> None:
    asked = []

    def meet(z: Any) -> Any:
        asked.append(z)
        return scripted(100.0 if z < 0.6 else 90.0, 50.0 - z)

    new = met(meet, (-3.0, 3.0), [])
    assert asked[:7] == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
    assert asked[7:] == [0.5, 0.75, 0.625]
    assert passing(new)[0].queries == 49.5
    # What is known from before sets the standard: then nothing passes, and there is no gap to look into.
    asked.clear()
    met(meet, (-3.0, 3.0), [scripted(101.0, 60.0)])
    assert len(asked) == 7


def test_of_many_equals_some_with_few_and_some_with_many_queries_become_the_reference() -> None:
    equal = [scripted(200.0, q) for q in range(40)]
    chosen = [c.queries for c in leading([*equal, scripted(199.0, 0.0)])]
    assert len(chosen) == SETTLED[0]
    assert (chosen[0], chosen[-1]) == (0, 39)
    assert [c.queries for c in leading([scripted(199.0, 3.0), scripted(200.0, 7.0)])] == [7, 3]
    assert [c.queries for c in leading([scripted(199.0, 3.0), scripted(200.0, 7.0)], price=1.0)] == [3, 7]


def test_a_single_objective_takes_the_best_mean() -> None:
    bandit = Bandit()
    candidates = [bandit.candidate(loss, q) for loss, q in ((0.0, 90), (0.5, 10), (3.0, 5))]
    assert choose_best(candidates, bandit.play, LOOKS, price=0.0).candidate.queries == 90
    assert choose_best(candidates, bandit.play, LOOKS, price=0.1).candidate.queries == 10


def test_the_base_itself_is_a_reference_even_if_others_looked_as_good() -> None:
    """Twenty candidates lose in one episode of two hundred, which few episodes do not show; the base never loses."""

    def play(policy: Any, look: Any, episodes: Any) -> Any:
        out = np.zeros((episodes, 4))
        out[:, 0] = 200.0
        if policy != "base" and look >= 2:
            out[:: 100 + policy, 0] = 100.0
        out[:, 2] = 200.0 if policy == "base" else 50.0 + policy
        return out

    candidates = [Candidate(5, 0.0, n, play(n, 0, 20)) for n in range(20)]
    base = Candidate(0, None, "base", play("base", 0, 20))
    looks = (50, 50, 400, 400)
    assert choose(candidates, play, looks).candidate is not base
    assert choose([*candidates, base], play, looks).candidate is base


def test_a_loss_is_measured_as_by_students_paired_test() -> None:
    dice = np.random.default_rng(3)
    for n in (2, 3, 10):
        b = dice.normal(100.0, 10.0, n)
        a = b - 1.0 + dice.normal(0.0, 2.0, n)
        p = float(stats.ttest_rel(a + 0.5, b, alternative="less").pvalue)
        assert worse(a, b, 0.5, 1.001 * p)
        assert not worse(a, b, 0.5, 0.999 * p)
    assert not worse(np.array([0.5, -0.7, 0.5, -0.7]), np.zeros(4), 0.0, 0.01), (
        "they differ by far less than they spread"
    )
    assert LEVEL == 0.025, "docs/research.md says so"


def test_differences_that_only_rounding_makes_are_none() -> None:
    for size, loss, is_worse in ((1e9, 0.5, False), (1e9, 2.0, True), (1e-3, 5e-10, False), (1e-3, 5e-9, True)):
        b = np.full(3, size)
        assert worse(b - loss, b, 0.0, 0.01) is is_worse
    noise = np.array([-1.0e-13, -1.1e-13, -0.9e-13, -1.0e-13])
    assert not worse(noise, np.zeros(4), 0.0, 0.01)
    assert worse(np.array([1.0]), np.array([2.0]), 0.0, 0.01), "one episode has no spread"
    assert not worse(np.array([2.0]), np.array([2.0]), 0.0, 0.01)


def rows(returns: Any, queries: float, base_queries: float = 0.0) -> Any:
    return np.array([[r, 0.0, queries, base_queries] for r in returns])


def replayed(policy: Any, look: int, episodes: int) -> Any:
    """Play a policy that is its own episodes, one list a look or one for all."""
    returns, queries = policy
    mine = returns[look] if isinstance(returns[0], list) else returns
    return rows([mine[i % len(mine)] for i in range(episodes)], queries)


def player(returns: Any, queries: float, step: int = 5, screening: Any = None) -> Candidate:
    first = returns[0] if isinstance(returns[0], list) else returns
    return Candidate(step, None, (returns, queries), rows(first if screening is None else screening, queries))


def test_what_is_paid_for_is_what_is_to_be_few() -> None:
    both = rows([1.0, 1.0], queries=30.0, base_queries=4.0)
    assert Candidate(1, None, None, both).queries == 30.0
    assert Candidate(1, None, None, both, paid=BASE_QUERIES).queries == 4.0
    assert Candidate(1, None, None, both).decision == 0
    assert Tolerance(1.0, 0.01).of(-150.0) == 2.5
    assert Tolerance() == (0.0, 0.0)


def test_of_equally_good_ones_the_fewest_queries_set_the_standard() -> None:
    """The first never varies, so a constant loss of 2 shows against it; beside the second it does not."""
    steady, wavering = player([100.0] * 4, 10.0), player([90.0, 110.0, 90.0, 110.0], 5.0)
    third = player([98.0] * 4, 1.0)
    assert lost(third, steady)
    assert not lost(third, wavering)
    assert passing([steady, wavering, third]) == [third, wavering, steady]
    assert passing([steady, third]) == [steady]


def test_the_front_is_strict() -> None:
    a, b, c, d = scripted(1.0, 5.0), scripted(2.0, 5.0), scripted(2.0, 6.0), scripted(3.0, 7.0)
    assert front([d, c, a, b]) == [b, d]


def test_of_equals_the_latest_leads() -> None:
    early, late, fewer = scripted(1.0, 5.0, step=10), scripted(1.0, 5.0, step=20), scripted(1.0, 4.0, step=1)
    assert leading([early, late, fewer]) == [fewer, late, early]
    assert leading([scripted(0.5, 1.0), early], price=0.1)[0] is early


def test_a_gap_is_halved_between_the_last_that_loses_nothing_and_the_first_that_does() -> None:
    def meeting(loses_from: float) -> list[float]:
        new = met(lambda z: scripted(100.0 - 9.0 * (z >= loses_from), 50.0 - z), (0.0, 6.0), [])
        return [50.0 - c.queries for c in new]

    assert meeting(7.0) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "nothing is lost anywhere"
    assert meeting(1.0)[7:] == [0.5, 0.75, 0.875]
    assert meeting(0.1)[7:] == [0.5, 0.25, 0.125]


def test_ever_fewer_play_ever_more() -> None:
    bandit = Bandit()
    many = [bandit.candidate(0.1 * n, 90 + n) for n in range(30)]
    for looks, played in (((50,), 16 * 50), ((50, 60), 16 * 50 + 8 * 60), (LOOKS, 16 * 50 + 8 * 50 + 4 * 300)):
        fresh = [Candidate(c.step, None, c.policy, c.screening) for c in many]
        bandit.played = 0
        choose_best(fresh, bandit.play, looks, price=0.0)
        assert bandit.played == played
    base = Candidate(BASE_ITSELF, None, (50.0, 1.0, 500), bandit.play((50.0, 1.0, 500), 99, 20))
    bandit.played = 0
    choose_best([*[Candidate(c.step, None, c.policy, c.screening) for c in many], base], bandit.play, LOOKS, 0.0)
    assert bandit.played == 16 * 50 + 8 * 50 + 4 * 300 + 400, "the base plays to the end, however it looks"


def test_the_best_mean_of_all_looks_is_the_reference_and_of_equals_the_fewest_queries() -> None:
    looks = (4, 4)
    fades, grows = player([[100.0], [60.0]], 5.0), player([[90.0], [90.0]], 9.0)
    assert choose_best([fades, grows], replayed, looks, 0.0).candidate is grows
    a, b = player([50.0], 7.0), player([50.0], 6.0)
    for order in ([a, b], [b, a]):
        assert choose_best(order, replayed, looks, 0.0).candidate is b
    paid = choose_best([player([50.0], 7.0), player([51.0], 9.0)], replayed, looks, price=1.0)
    assert (paid.candidate.queries, paid.tested) == (7.0, 0)


def test_a_loss_in_any_look_rules_out() -> None:
    reference, never = player([100.0, 101.0], 50.0), player([101.0, 99.9], 8.0)
    first = player([[90.0], [105.0]], 5.0, screening=[100.0, 101.0])
    last = player([[100.0], [80.0]], 4.0, screening=[100.0, 101.0])
    choice = choose([reference, first, last, never], replayed, (4, 4))
    assert (choice.reference, choice.candidate, choice.tested) == (reference, never, 3)
    assert (len(first.looks), len(last.looks)) == (2, 2)
    hopeless = [player([float(n), n + 1.0], 0.0) for n in range(17)]
    again = choose([reference, *hopeless, never], replayed, (4, 4))
    assert (again.candidate, again.tested) == (never, 1), "what the screening shows is not tested"


def test_what_the_fresh_episodes_cannot_show_is_half_a_95_percent_interval() -> None:
    """Returns of 90 and 110 have a standard deviation of 10: the mean of 100 episodes is known to ±1.96."""
    for loss, passes in ((1.95, True), (1.97, False)):
        reference, other = player([90.0, 110.0], 50.0), player([90.0 - loss, 110.0 - loss], 5.0)
        choice = choose([reference, other], replayed, (4, 4), fresh_episodes=100)
        assert (choice.candidate is other) is passes
    for loss, passes in ((4.9, True), (5.1, False)):
        reference, other = player([100.0], 50.0), player([100.0 - loss], 5.0)
        choice = choose([reference, other], replayed, (4, 4), tolerance=Tolerance(share=0.05))
        assert (choice.candidate is other) is passes
