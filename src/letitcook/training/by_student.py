"""The wrapper of an expensive base policy, from a few thousand queries of it in all.

    1. recorded    the base plays alone for a share of the budget
    2. taught      a student of what it answered; a few more answers where it is unsure, in states that wrappers lead to
    3. chosen      among schedules and persistence as ever, around the student, whose queries cost nothing
    4. certified   the chosen wrapper around the base itself, with all that is left; its base episodes are the recorded

What can be certified with so few episodes is a matter of the margin; see `evaluation.unpaired`. The bound that was
reached is told with the result, so that a margin can be named that holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.core.decisions import Episode
from letitcook.deep.policy import flat
from letitcook.errors import SettingError
from letitcook.evaluation.certificate import FAILURE_SHARE, Certificate, Margin, guard
from letitcook.evaluation.persistence import Recording, record
from letitcook.evaluation.rollout import episode_seed, rollout
from letitcook.evaluation.savings import stake_of
from letitcook.evaluation.schedules import SchedulePolicy
from letitcook.evaluation.student import Student, can_be_taught
from letitcook.evaluation.unpaired import judge_unpaired, without_luck
from letitcook.storage.spaces import can_be_flat, numbers_in
from letitcook.training.budget import Budget, Spending
from letitcook.training.certified import (
    LEVELS,
    CertifiedChoice,
    Games,
    WrapperCandidate,
    attempts,
    choose,
    simple_wrappers,
    the_base,
)
from letitcook.training.progress import Phase, unseen
from letitcook.wrappers.base_policy import BASE, BasePolicyEnv, base_env_of
from letitcook.wrappers.hold import LastAction
from letitcook.wrappers.waiting import WaitingEnv
from letitcook.wrappers.wrap import wrap

FEW_QUERIES = 20_000
"""Queries of the base below which a budget is spent on a student of it: too few to play pairs of episodes."""
SHARE_RECORDED, SHARE_TAUGHT = 0.4, 0.1
"""Shares of the budget for recording and for teaching."""
CHOOSING_SHARE = 0.1
"""Share of the margin that a wrapper may lose in the choosing; the rest is for what few episodes cannot tell."""
FOLDS = 5
"""Parts of the recorded episodes, each of which is compared with a student of the others."""
LISTENED, LISTENING_PERIOD = 10, 2
"""Episodes around the student in which it is queried every so many steps; the base is asked about its unsure states."""


def suits_a_student(env: WaitingEnv, budget: Budget) -> bool:
    """Return whether a budget is so small that the wrapper is found around a student, and the base can have one.

    A student plays many episodes, so a budget of episodes has none.
    """
    inside, limit = base_env_of(env), budget.base_queries
    if inside is None or limit is None or limit >= FEW_QUERIES or budget.episodes is not None:
        return False
    return can_be_taught(inside.env.action_space) and can_be_flat(numbers_in(inside.seen_space))


def choose_by_student(
    env: WaitingEnv,
    margin: Margin,
    spending: Spending,
    seed: int = 0,
    at_stake: float | None = None,
    phase: Phase = unseen,
    recording: Recording | None = None,
) -> CertifiedChoice:
    """Return the wrapper that was chosen around a student, certified around the base; else the base itself.

    With a `recording` that was made before, nothing more is recorded.
    """
    inside = base_env_of(env)
    assert inside is not None
    games = Games(env, seed)
    if recording is None:
        seeds, recordings = _recorded(games, spending, phase)
    else:
        seeds, recordings = [], _checked(recording, inside).split()
        env.reset(seed=seed)
        env.step(BASE)  # shows whether it keeps a state
    everything, school = _joined(recordings), _School(env, inside, spending, seed)
    student = school.taught(everything)
    if not inside.remembers:
        until = SHARE_TAUGHT + (SHARE_RECORDED if recording is None else 0.0)
        school.corrections = _corrections(school, student, spending, until)
        student = school.taught(everything)
    strict = Margin(CHOOSING_SHARE * margin.amount, CHOOSING_SHARE * margin.share)
    base, left, candidates = _chosen(school, student, strict, spending, phase)
    alone = [_episode(recording) for recording in recordings]
    returns = np.array([episode.task_return for episode in alone])
    accepted = margin.of(float(returns.mean()), float(returns.std(ddof=1)) if len(returns) > 1 else 0.0)
    stake = stake_of(env, returns, games.seeds["choosing"]) if at_stake is None else abs(at_stake)
    tested = attempts(_safe(left, base, stake), base, CHOOSING_SHARE * accepted) if len(alone) > 1 else []
    trial = _Trial(games, school, recordings, seeds, accepted, stake)
    for candidate, level in zip(tested, LEVELS, strict=False):
        fresh = trial.play(candidate, spending, phase)
        candidate.certificate = found = trial.judged(fresh, level)
        if found is not None and found.certified:
            return CertifiedChoice(candidate, found, fresh, alone, base, candidates, accepted, stake, paired=False)
    return CertifiedChoice(base, None, alone, alone, base, candidates, accepted, stake, paired=False)


class _School:
    """Makes students of recordings, and environments around them."""

    def __init__(self, env: WaitingEnv, inside: BasePolicyEnv, spending: Spending, seed: int) -> None:
        self.env, self.inside, self.spending, self.seed = env, inside, spending, seed
        self.space = numbers_in(inside.seen_space)
        self.corrections: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        """Further observations and answers."""

    def taught(self, recording: Recording) -> Student:
        """Return a student of a recording, and of the corrections."""
        observations, answers = recording.observations, recording.answers
        if self.corrections is not None and len(self.corrections[0]):
            observations = np.concatenate([observations, self.corrections[0]])
            answers = np.concatenate([answers, self.corrections[1]])
        student = Student.of(observations, answers, self.space, self.inside.env.action_space, self.seed)
        student.features = self.inside.features
        return student

    def around(self, student: Student) -> WaitingEnv:
        """Return the same environment around a student, whose episodes are counted too."""
        decisions, env = self.env.decisions, self.env
        features = None if self.inside.features is None else self.inside.features.function
        options: dict[str, Any] = {"cost": decisions.cost, "features": features}
        made = wrap(self.inside.env, student, self.inside.wait, decisions.durations, env.gamma, **options)
        inside = base_env_of(made)
        assert inside is not None
        self.spending.count_student(inside)
        return made

    def returns(self, students: list[Student], seeds: list[int]) -> NDArray[np.float64]:
        """Return the returns of students alone on some episodes, the mean over the students."""
        envs = [self.around(student) for student in students]
        policy = the_base(self.env).policy
        played = [[rollout(env, policy, seed).task_return for seed in seeds] for env in envs]
        return np.asarray(np.mean(played, axis=0))


def _recorded(games: Games, spending: Spending, phase: Phase) -> tuple[list[int], list[Recording]]:
    """Return episodes of the base alone, as many as a share of the budget allows, with their seeds."""
    seeds: list[int] = []
    recordings: list[Recording] = []
    while not recordings or not spending.exhausted(SHARE_RECORDED):
        phase("recording the base policy, episodes", len(recordings))
        seed = games.seeds["recording"] + 1_000_000 * len(recordings)
        recordings.append(record(games.env, 1, seed))
        seeds.append(episode_seed(seed, 0))
    return seeds, recordings


def _chosen(
    school: _School, student: Student, margin: Margin, spending: Spending, phase: Phase
) -> tuple[WrapperCandidate, list[WrapperCandidate], list[WrapperCandidate]]:
    """Return the student, queried at every step, the wrappers around it that may be tested, and all of them."""
    env = school.around(student)
    inside = base_env_of(env)
    assert inside is not None
    # Queries of the student cost nothing, but time does.
    games, free = Games(env, school.seed), Spending([inside], Budget(seconds=spending.budget.seconds), spending.begun)
    base, candidates = the_base(env), simple_wrappers(games, free, phase)
    return base, choose(games, base, candidates, margin, free, phase), candidates


def _corrections(
    school: _School, student: Student, spending: Spending, until: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return states that waiting leads to where the student is most unsure, with the base's own answers.

    They end where that share of the budget is spent.
    """
    env, student.heard = school.around(student), []
    waiting = SchedulePolicy(LISTENING_PERIOD, env.decisions.durations)
    for n in range(LISTENED):
        rollout(env, waiting, episode_seed(school.seed + 77, n))
    heard, student.heard = student.heard, None
    rows = np.array([flat(school.space, school.inside.seen_of(one)) for one in heard], dtype=np.float32)
    vectors = LastAction(school.inside.env.action_space)
    asked: list[int] = []
    said = []
    for i in np.argsort(-student.doubt(rows)).tolist():
        if spending.exhausted(until):
            break
        asked.append(i)
        said.append(vectors.vector(school.inside.answer_at(heard[i])))
    return rows[asked], np.array(said, dtype=np.float32)


def _safe(left: list[WrapperCandidate], base: WrapperCandidate, at_stake: float) -> list[WrapperCandidate]:
    """Return the wrappers that did not fail around the student, unless the student alone fails now and then too."""
    loss, alone = FAILURE_SHARE * at_stake, base.returns()
    guards = [(c, guard(c.returns() - alone[: len(c.played)], loss)) for c in left]
    return [c for c, found in guards if found.failed == 0 or found.rescued > 0]


@dataclass
class _Trial:
    """Wrappers around the base itself, beside what was recorded of it."""

    games: Games
    school: _School
    recordings: list[Recording]
    seeds: list[int]
    margin: float
    at_stake: float

    def play(self, candidate: WrapperCandidate, spending: Spending, phase: Phase) -> list[Episode]:
        """Play a wrapper until the budget is spent, or until it fails as the base never did."""
        fresh: list[Episode] = []
        worst = min(float(recording.rewards.sum()) for recording in self.recordings) - FAILURE_SHARE * self.at_stake
        while not spending.exhausted():
            phase(f"certifying {candidate.name}, queries of the base", spending.queries, spending.budget.base_queries)
            fresh += self.games.play(candidate.policy, "certifying", len(fresh), 1)
            if fresh[-1].task_return < worst:
                break
        return fresh

    def judged(self, fresh: list[Episode], level: float) -> Certificate | None:
        """Return what a wrapper's episodes say beside the base's; None if there were too few."""
        if len(fresh) < 2:
            return None
        wrapped = np.array([episode.task_return for episode in fresh])
        alone = np.array([float(recording.rewards.sum()) for recording in self.recordings])
        if not self.seeds:  # nobody knows how the recorded episodes began, so a student cannot play them
            return judge_unpaired(wrapped, alone, self.margin, self.at_stake, level)
        played = [episode_seed(self.games.seeds["certifying"], i) for i in range(len(fresh))]
        of_wrapper, of_base = self.school.returns(self._students, played), self._of_base(len(alone))
        return judge_unpaired(*without_luck(wrapped, alone, of_wrapper, of_base), self.margin, self.at_stake, level)

    @cached_property
    def _students(self) -> list[Student]:
        """Students of the recorded episodes without a part of them each."""
        folds = min(FOLDS, len(self.recordings))
        parts = [[r for n, r in enumerate(self.recordings) if n % folds != i] for i in range(folds)]
        return [self.school.taught(_joined(part)) for part in parts]

    def _of_base(self, n: int) -> NDArray[np.float64]:
        """Return what students make of the recorded episodes, of each the one who has not seen it."""
        returns, folds = np.zeros(n), len(self._students)
        for i, student in enumerate(self._students):
            returns[i::folds] = self.school.returns([student], self.seeds[i::folds])
        return returns


def _checked(recording: Recording, inside: BasePolicyEnv) -> Recording:
    """Return a recording, or raise if it is not one of this environment."""
    size, answers = spaces.flatdim(numbers_in(inside.seen_space)), spaces.flatdim(inside.env.action_space)
    if recording.observations.shape[1:] != (size,) or recording.answers.shape[1:] != (answers,):
        raise SettingError(
            f"the recording has observations of {recording.observations.shape[1:]} numbers and answers of "
            f"{recording.answers.shape[1:]}, and this environment {size} and {answers}; record the policy in it: "
            "letitcook record"
        )
    return recording


def _joined(recordings: list[Recording]) -> Recording:
    whole = recordings[0]
    for more in recordings[1:]:
        whole = whole.joined(more)
    return whole


def _episode(recording: Recording) -> Episode:
    """Return an episode of the base alone as it was recorded."""
    n = len(recording.answers)
    total = float(recording.rewards.sum())
    return Episode(decisions=[0] * n, elapsed=[1] * n, task_return=total, base_queries=n, truncated=True)
