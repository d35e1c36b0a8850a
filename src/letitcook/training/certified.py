"""The wrapper that is certified to lose no more than a margin, with the fewest queries of its base policy.

No family of wrappers wins everywhere, so all of them are candidates: schedules (query every k-th step), persistence
(from the base's own episodes), schedules that wait on while persistence says so, and what was learned. Three sets of
episodes with nothing in common:

    1. recorded   the base is queried at every step, then while a first persistence policy waits
    2. choosing   all candidates play the same episodes as the base, ever more of them with ever fewer candidates left
    3. certifying the best few are tested in turn, the fewest queries first, until one is certified

The third set is the only one that the certificate rests on. Several candidates are tested on it, so each of them is
tested at a fraction of the error rate (Bonferroni), and the rate holds for all together. The base plays each
episode once, whoever is tested. If none is certified, the result is the base itself, queried at every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Episode, Policy
from letitcook.deep.policy import NetworkPolicy
from letitcook.evaluation.certificate import LEVEL, Certificate, Margin, certify, fewest_episodes, guard
from letitcook.evaluation.persistence import Recording, persistence_policies, record
from letitcook.evaluation.rollout import episode_seed, rollout
from letitcook.evaluation.savings import BaseAlone, stake_of
from letitcook.evaluation.schedules import PacedPolicy, SchedulePolicy, schedules
from letitcook.storage.spaces import can_be_flat, numbers_in
from letitcook.training.budget import Spending
from letitcook.training.progress import Phase, unseen
from letitcook.wrappers.waiting import WaitingEnv, horizon_of

ROUNDS = (10, 40, 160)
"""Episodes of each round of choosing, in all."""
LEFT = (10, 5)
"""Candidates that are left after each round but the last."""
LEVELS = (0.6 * LEVEL, 0.2 * LEVEL, 0.2 * LEVEL)
"""Error rates of the candidates that are tested for the certificate, in their order; together the whole."""
HOPEFUL = 1.0
"""Standard errors by which a candidate must be above minus the margin in the choosing to be tested first."""
LEAST_PAIRS, MOST_PAIRS = 1_000, 10_000
"""Episodes of the certificate, if the budget allows: twice as many as it takes without any difference, within these."""
RECORDED = 20
"""Episodes of the base alone that persistence is learned from."""
SECOND_RECORDINGS = 2
"""Recordings of what persistence leads to."""
PACES = (2, 3)
"""Periods of schedules that wait on for as long as persistence says."""
SHARE_RECORDED, SHARE_CHOSEN = 0.15, 0.5
"""Shares of a budget after which recording and choosing end."""
SETS = ("recording", "choosing", "certifying")
"""Sets of episodes with nothing in common."""


@dataclass(eq=False)
class WrapperCandidate:
    """A wrapper and how it did in the choosing."""

    name: str
    kind: str
    """`schedule`, `persistence` or `learned`."""
    policy: Policy
    played: list[Episode] = field(default_factory=list)
    certificate: Certificate | None = None

    def returns(self) -> NDArray[np.float64]:
        """Return the task returns of its episodes."""
        return np.array([episode.task_return for episode in self.played])

    @property
    def queries(self) -> float:
        """Mean queries of the base policy."""
        return float(np.mean([episode.base_queries for episode in self.played]))


@dataclass(frozen=True)
class CertifiedChoice:
    """What was chosen, and all that took part."""

    chosen: WrapperCandidate
    certificate: Certificate | None
    """None if nothing could be certified, and the base itself is the result."""
    fresh: list[Episode]
    """Episodes of the chosen wrapper in the certificate's set."""
    fresh_base: list[Episode]
    """Those of the base alone."""
    base: WrapperCandidate
    candidates: list[WrapperCandidate]
    margin: float
    at_stake: float
    paired: bool = True
    """Whether wrapper and base played the same episodes; else those of the base are the recorded ones."""

    def nearest(self) -> dict[str, Any] | None:
        """Return which of those that were tested came nearest to a certificate, and which margin it would have met."""
        tested = [c for c in self.candidates if c.certificate is not None and c.certificate.guard.holds]
        if not tested:
            return None
        best = max(tested, key=lambda c: c.certificate.bound if c.certificate is not None else -math.inf)
        assert best.certificate is not None
        return {"name": best.name, "bound": best.certificate.bound, "episodes": best.certificate.episodes}

    def table(self) -> list[dict[str, Any]]:
        """Return how each candidate did in the choosing, the fewest queries first, as data that JSON can hold."""
        rows = []
        for candidate in sorted(self.candidates, key=lambda c: c.queries):
            n = len(candidate.played)
            base = self.base.played[:n]
            difference = candidate.returns() - np.array([episode.task_return for episode in base])
            rows.append(
                {
                    "name": candidate.name,
                    "kind": candidate.kind,
                    "saved": 1.0 - candidate.queries / float(np.mean([episode.base_queries for episode in base])),
                    "difference": float(difference.mean()),
                    "difference_se": float(difference.std(ddof=1) / math.sqrt(n)) if n > 1 else None,
                    "episodes": n,
                    "certificate": None if candidate.certificate is None else candidate.certificate.summary(),
                }
            )
        return rows


class Games:
    """Episodes of the three sets, in the one environment there is."""

    def __init__(self, env: WaitingEnv, seed: int) -> None:
        self.env = env
        self.seeds = {name: 11_000_003 * (seed + 1) + i for i, name in enumerate(SETS)}

    def play(self, policy: Policy, where: str, first: int, n: int) -> list[Episode]:
        """Play the episodes from the `first` on of one set."""
        return [rollout(self.env, policy, episode_seed(self.seeds[where], first + i)) for i in range(n)]


def choose_certified(
    env: WaitingEnv,
    learned: Sequence[tuple[str, Policy]],
    margin: Margin,
    spending: Spending,
    seed: int = 0,
    at_stake: float | None = None,
    phase: Phase = unseen,
) -> CertifiedChoice:
    """Return the certified wrapper with the fewest queries, among schedules, persistence and those `learned`."""
    games = Games(env, seed)
    base = the_base(env)
    candidates = simple_wrappers(games, spending, phase)
    candidates += [WrapperCandidate(name, "learned", policy) for name, policy in learned]
    left = choose(games, base, candidates, margin, spending, phase)
    returns = base.returns()
    accepted = margin.of(float(returns.mean()), float(returns.std(ddof=1)) if len(returns) > 1 else 0.0)
    stake = stake_of(env, returns, games.seeds["choosing"]) if at_stake is None else abs(at_stake)
    played: list[Episode] = []
    for candidate, level in zip(attempts(left, base, accepted), LEVELS, strict=False):
        fresh: list[Episode] = []
        candidate.certificate = _certify(games, candidate, fresh, played, accepted, stake, level, spending, phase)
        if candidate.certificate is not None and candidate.certificate.certified:
            alone = played[: len(fresh)]
            return CertifiedChoice(candidate, candidate.certificate, fresh, alone, base, candidates, accepted, stake)
    known = played or base.played
    return CertifiedChoice(base, None, known, known, base, candidates, accepted, stake)


def the_base(env: WaitingEnv) -> WrapperCandidate:
    """Return the base policy, queried at every step, as a candidate."""
    return WrapperCandidate("the base itself", "schedule", SchedulePolicy(1, env.decisions.durations))


def simple_wrappers(games: Games, spending: Spending, phase: Phase = unseen) -> list[WrapperCandidate]:
    """Return the candidates that need no training: schedules, persistence, and schedules that wait on by it."""
    env = games.env
    found = [WrapperCandidate(s.name, "schedule", s) for s in schedules(env.decisions, horizon_of(env))]
    for name, policy in persistent(games, spending, phase):
        found.append(WrapperCandidate(name, "persistence", policy))
        for period in PACES:
            paced = PacedPolicy(policy, period, env.decisions.durations)
            found.append(WrapperCandidate(f"every {period} steps, and {name}", "persistence", paced))
    return found


def persistent(games: Games, spending: Spending, phase: Phase = unseen) -> list[tuple[str, NetworkPolicy]]:
    """Return persistence policies: of the base's own episodes, then of those that holding leads to."""
    env, seed = games.env, games.seeds["recording"]
    if not can_be_flat(numbers_in(env.observation_space)) or spending.exhausted(SHARE_RECORDED):
        return []
    phase("recording the base policy, episodes")
    recording = _recorded(env, RECORDED, seed, None, spending)
    found = persistence_policies(env, recording, seed)
    step = len(found) // max(1, len({name.partition(" at ")[0] for name, _ in found}))
    for again in range(SECOND_RECORDINGS):
        phase("recording the base policy, episodes", recording.count)
        if spending.exhausted(SHARE_RECORDED):
            break
        for i in range(step // 2, len(found), step):
            more = _recorded(env, RECORDED // 4, seed + 1_000 * (again + 1) + i, found[i][1], spending)
            recording = recording.joined(more)
        found = persistence_policies(env, recording, seed)
    return found


def _recorded(env: WaitingEnv, episodes: int, seed: int, policy: Policy | None, spending: Spending) -> Recording:
    """Return a recording of that many episodes, of fewer if the budget says so, of one in any case."""
    recording = record(env, 1, seed, policy)
    for n in range(1, episodes):
        if spending.exhausted(SHARE_RECORDED):
            break
        recording = recording.joined(record(env, 1, seed + 100_000 * n, policy))
    return recording


def choose(
    games: Games,
    base: WrapperCandidate,
    candidates: Sequence[WrapperCandidate],
    margin: Margin,
    spending: Spending,
    phase: Phase = unseen,
) -> list[WrapperCandidate]:
    """Play ever more episodes with ever fewer candidates; returns those that are left."""
    left = list(candidates)
    for turn, until in enumerate(ROUNDS):
        players = (base, *left)
        for i, candidate in enumerate(players):
            phase(f"choosing among {len(left)} wrappers, episodes", i * until, len(players) * until)
            while len(candidate.played) < until and not (candidate.played and spending.exhausted(SHARE_CHOSEN)):
                candidate.played += games.play(candidate.policy, "choosing", len(candidate.played), 1)
        returns = base.returns()
        accepted = margin.of(float(returns.mean()), float(returns.std(ddof=1)) if len(returns) > 1 else 0.0)
        good = [c for c in left if promise(c, base, accepted) > -2.0]
        left = _fewest_and_safest(good, base, accepted, LEFT[turn]) if turn < len(LEFT) else good
        if not left or spending.exhausted(SHARE_CHOSEN):
            break
    return left


def promise(candidate: WrapperCandidate, base: WrapperCandidate, margin: float) -> float:
    """Return by how many standard errors a candidate's mean difference is above minus the margin."""
    n = min(len(candidate.played), len(base.played))
    difference = candidate.returns()[:n] - base.returns()[:n]
    if n < 2:
        return 0.0
    error = float(difference.std(ddof=1)) / math.sqrt(n)
    above = float(difference.mean()) + margin
    return above / error if error > 0.0 else math.copysign(math.inf, above)


def _fewest_and_safest(
    good: Sequence[WrapperCandidate], base: WrapperCandidate, margin: float, most: int
) -> list[WrapperCandidate]:
    """Return half of them by their queries, and half by how far they are from a loss."""
    by_queries = sorted(good, key=lambda c: c.queries)
    by_promise = sorted(good, key=lambda c: (-promise(c, base, margin), c.queries))
    kept: list[WrapperCandidate] = []
    for pair in zip(by_queries, by_promise, strict=True):
        kept += [c for c in pair if c not in kept and len(kept) < most]
    return kept


def attempts(left: Sequence[WrapperCandidate], base: WrapperCandidate, margin: float) -> list[WrapperCandidate]:
    """Return the candidates to be tested, in this order: few queries first, the safest last."""
    able = [c for c in left if c.queries < base.queries and _no_failures(c, base)]
    by_queries = sorted(able, key=lambda c: c.queries)
    chosen: list[WrapperCandidate] = []
    for hope in (HOPEFUL, 2.0 * HOPEFUL):
        chosen += [c for c in by_queries if c not in chosen and promise(c, base, margin) >= hope][:1]
    chosen += sorted((c for c in able if c not in chosen), key=lambda c: (-promise(c, base, margin), c.queries))[:1]
    return sorted(chosen[: len(LEVELS)], key=lambda c: c.queries)


def _no_failures(candidate: WrapperCandidate, base: WrapperCandidate) -> bool:
    n = min(len(candidate.played), len(base.played))
    returns = base.returns()[:n]
    loss = max(0.5 * abs(float(returns.mean())), 3.0 * float(returns.std(ddof=1)) if n > 1 else 0.0)
    return guard(candidate.returns()[:n] - returns, loss).holds


def _certify(
    games: Games,
    candidate: WrapperCandidate,
    fresh: list[Episode],
    base_played: list[Episode],
    margin: float,
    at_stake: float,
    level: float,
    spending: Spending,
    phase: Phase,
) -> Certificate | None:
    """Test one candidate; None if the budget was spent before its first look."""

    class Spent(Exception):  # noqa: N818 (no error: a way out)
        pass

    def pairs(first: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        for i in range(first, first + n):
            phase(f"certifying {candidate.name}, episodes at most", i, most)
            if spending.exhausted():
                raise Spent
            if i == len(base_played):
                base_played.extend(games.play(BaseAlone(), "certifying", i, 1))
            fresh.extend(games.play(candidate.policy, "certifying", i, 1))
        alone = np.array([episode.task_return for episode in base_played[first : first + n]])
        return np.array([episode.task_return for episode in fresh[first:]]), alone

    enough = 2 * fewest_episodes(margin, at_stake) if margin > 0.0 else LEAST_PAIRS
    most = min(max(enough, LEAST_PAIRS), MOST_PAIRS)
    try:
        return certify(pairs, margin, at_stake, most, level)
    except Spent:
        return None
