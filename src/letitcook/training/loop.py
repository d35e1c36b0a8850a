"""The paper's protocol: advance, evaluate greedily, keep the best.

Every 10,000 timesteps the greedy policy is evaluated; the best one by the method's own objective is the result,
evaluated once more on fresh episodes. Beyond the paper, every policy that is met is a candidate, those of several
trade-offs where there are any, and the result is chosen among them with more episodes by `selection.py`. The loop
yields after each evaluation, so that progress, logs and checkpoints stay out of it; it can be left there, saved, and
taken up again to the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import FOREVER, Timesteps, Unit
from letitcook.core.episode_stats import Totals
from letitcook.core.objective import Objective
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import FileFormatError, SettingError
from letitcook.evaluation.rollout import evaluate
from letitcook.finite.policy import TablePolicy
from letitcook.training.budget import Spending
from letitcook.training.callbacks import Callback
from letitcook.training.progress import Phase, unseen
from letitcook.training.run import Learned, Point, RunInfo, candidate_arrays, candidates_of, paid_for
from letitcook.training.selection import (
    BASE_ITSELF,
    NONE,
    Candidate,
    Tolerance,
    choose,
    choose_best,
    front,
    leading,
    met,
    passing,
    promising,
    spread,
)
from letitcook.wrappers.remembering import RememberingPolicy
from letitcook.wrappers.waiting import WaitingEnv

EVERY = 10_000
"""Timesteps between two evaluations."""
EPISODES = 20
"""Greedy episodes of an evaluation."""
FRESH_EPISODES, FRESH_EPISODES_IN_PYTHON = 1_000, 100
"""Fresh episodes on which the best policy is evaluated at the end; fewer where each step goes through Python."""
SCREENING, SCREENING_IN_PYTHON = 50, 10
"""Episodes that every candidate runs, where there are several."""
LOOKS, LOOKS_IN_PYTHON = (100, 100, 200, 400, 800), (20, 20, 40, 80)
"""Episodes of each look at a candidate that may be chosen."""
NEVER = np.float32(1e6)
"""Taken from the value of a decision that is not to be taken any more."""
PIECE_SECONDS = 1.0
"""Seconds of training after which the run looks around."""
CANDIDATES = 64
"""Candidates that are kept, beside the front and those that may become the reference."""


class Learner(Protocol):
    """What can be trained."""

    @property
    def steps(self) -> int:
        """Primitive steps so far."""
        ...

    @property
    def decisions_taken(self) -> int:
        """Decisions so far."""
        ...

    @property
    def timestep(self) -> Unit:
        """What its schedules count."""
        ...

    def advance(self, steps: int = FOREVER, decisions: int = FOREVER) -> None:
        """Learn for that many more primitive steps or decisions, whichever comes first."""
        ...

    def greedy_episodes(self, episodes: int, seed: int) -> NDArray[np.float64]:
        """Return task return, length, queries, base queries and the steps in each decision of greedy episodes."""
        ...

    def play(self, policy: Any, episodes: int, seed: int, common_random_numbers: bool = False) -> NDArray[np.float64]:
        """Return the same of a policy that was kept; with `common_random_numbers` each episode has its own."""
        ...

    @property
    def log_lambda_range(self) -> tuple[float, float] | None:
        """The range of log10 λ whose policies are offered; None if there is one policy."""
        ...

    def policy(self, z: float | None = None) -> Any:
        """Return the greedy policy as it is now, of log10 λ = z where several are offered."""
        ...

    def totals(self) -> Totals:
        """Return sums over the training episodes that have ended, at least since the first call."""
        ...

    def rates(self) -> dict[str, float]:
        """Return how much it explores and learns now, by Stable-Baselines3's names."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is needed to go on later, to the same bits."""
        ...

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` returned."""
        ...


@dataclass(frozen=True)
class EvaluationPlan:
    """How the policies of a run are evaluated, and how the result is chosen."""

    every: int = EVERY
    """Timesteps between two evaluations."""
    episodes: int = EPISODES
    """Greedy episodes of an evaluation."""
    fresh_episodes: int = FRESH_EPISODES
    """Episodes on which the result is evaluated at the end."""
    equal: Literal["first", "last"] = "first"
    """Which of several checkpoints that are equally good is kept."""
    choosing: bool = False
    """Whether the result is chosen among candidates, and not by the paper's rule."""
    looks: tuple[int, ...] = LOOKS
    """Episodes of each look at a candidate."""
    tolerance: Tolerance = NONE
    """Loss of mean task return that is accepted for fewer queries, beside what cannot be measured."""


@dataclass
class Training:
    """A run under way: its learner, its curve, and the best policy so far."""

    learner: Learner
    objective: Objective
    info: RunInfo
    timesteps: Timesteps
    """How long the run is to be."""
    plan: EvaluationPlan = field(default_factory=EvaluationPlan)
    base: NetworkPolicy | None = None
    """The network that is wrapped, where there is one; it is saved with the run."""
    candidates: list[Candidate] = field(default_factory=list)
    evaluation_episodes: int = 0
    """Episodes that were played to evaluate and to choose."""
    curve: list[Point] = field(default_factory=list)
    best: Point | None = None
    policy: Any = None
    seconds: float = 0.0
    chosen: dict[str, Any] | None = None
    """How the policy was chosen, where there were several candidates."""
    rollout: Totals | None = None
    """The training episodes that ended since the evaluation before the last, where there is a callback."""
    spending: Spending | None = None
    """What the run costs beside a budget, where a wrapper is to be certified."""
    evaluation_env: WaitingEnv | None = None
    """Where policies are evaluated, if not in the environment of the training."""
    phase: Phase = unseen
    """What is told which episodes are played after the training."""
    enough: bool = False
    """Whether a callback has ended the training."""
    _piece: int = EVERY // 100
    """Timesteps after which a run looks around."""

    def run(
        self, callback: Callback | None = None, between: Callable[[Training], bool] | None = None
    ) -> Iterator[Point]:
        """Train to the end, and yield each evaluation; a callback is called after each of them.

        Where evaluations are far apart, `between` is called about every second, and returns whether to go on.
        """
        while not self.ended:
            begun = time.perf_counter()
            before = None if callback is None else self.learner.totals()
            if not self._advance(between):
                return
            point = self._evaluation()
            self.curve.append(point)
            self.seconds += time.perf_counter() - begun
            if callback is not None and before is not None:
                self.rollout = self.learner.totals().since(before)
                self.enough = callback(point, self) is False
            yield point

    def _advance(self, between: Callable[[Training], bool] | None) -> bool:
        """Train up to the next evaluation; returns whether that was reached.

        Where that takes long, it is done in pieces with a look around after each, which changes no result.
        """
        clock, every = self.learner.timestep, self.plan.every
        until = {self.timesteps.unit: self.timesteps.count}
        due = self.passed(clock) - self.passed(clock) % every + every
        until[clock] = min(due, until.get(clock, FOREVER))
        while not self._reached(until):
            begun = time.perf_counter()
            left = {unit: end - self.passed(unit) for unit, end in until.items()}
            if between is not None:
                left[clock] = min(left[clock], self._piece)
            self.learner.advance(steps=left.get("step", FOREVER), decisions=left.get("decision", FOREVER))
            if between is not None and not self._reached(until):
                if not between(self) and self.best is not None:
                    return False
                took = time.perf_counter() - begun
                factor = 2.0 if took < PIECE_SECONDS / 2 else 0.5 if took > 2 * PIECE_SECONDS else 1.0
                self._piece = max(1, min(every, int(self._piece * factor)))
        return True

    def _reached(self, until: Mapping[Unit, int]) -> bool:
        return any(self.passed(unit) >= end for unit, end in until.items())

    @property
    def ended(self) -> bool:
        """Whether the run is as long as it is to be, or a callback has ended it."""
        return self.enough or self.passed() >= self.timesteps.count

    def passed(self, unit: Unit | None = None) -> int:
        """Return how many timesteps have passed, in the unit that the run's length is given in if not said."""
        return self.learner.steps if (unit or self.timesteps.unit) == "step" else self.learner.decisions_taken

    @property
    def rates(self) -> dict[str, float]:
        """What the learner says of itself, by Stable-Baselines3's names."""
        return self.learner.rates()

    def _evaluation(self) -> Point:
        """Evaluate the greedy policy, or the best of those that are offered, and keep it if it is the best so far."""
        if not self.plan.choosing:
            point, policy = self._point(self._played(None, self.plan.episodes, self._fresh_seed())), None
        else:
            picked = self._meet_candidates()
            point, policy = self._point(picked.screening), picked.policy
        if self.best is None or self.better(point, self.best) or self._replaces_equal(point, self.best):
            self.best, self.policy = point, policy or self.learner.policy()
        return point

    def _meet_candidates(self) -> Candidate:
        """Take in the policies of this checkpoint; returns the one that would be chosen of them."""
        span = self.learner.log_lambda_range
        if span is None:
            new = self._candidate(self.learner.policy(), None)
            self.candidates = leading([*self.candidates, new], self._price())
            return new
        known = self._with_base(self.candidates)
        several = met(lambda z: self._candidate(self.learner.policy(z), z), span, known)
        self.candidates = promising([*known, *several], CANDIDATES, self.plan.tolerance)
        return passing(several, self.plan.tolerance)[0]

    def _with_base(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates and, around a base policy, the one that queries it at every step."""
        if not self.info.decisions.has_base or any(c.step == BASE_ITSELF for c in candidates):
            return candidates
        policy = always_base(self.learner.policy())
        return [*candidates, self._candidate(policy, None, (BASE_ITSELF, 0))]

    def _price(self) -> float:
        """Return what a query costs in the first objective."""
        task, waiting = self.objective.weights[0].tolist()
        return float(waiting / task)

    def _candidate(self, policy: Any, z: float | None, at: tuple[int, int] | None = None) -> Candidate:
        rows = self._played(policy, self.plan.episodes, self._common_seed(0), common_random_numbers=True)
        met = (self.learner.steps, self.learner.decisions_taken) if at is None else at
        return Candidate(met[0], z, policy, rows, decision=met[1], paid=paid_for(self.info.decisions))

    def _played(
        self, policy: Any, episodes: int, seed: int, common_random_numbers: bool = False
    ) -> NDArray[np.float64]:
        if self.evaluation_env is not None:
            played = self.info.with_memory(self.learner.policy() if policy is None else policy)
            rows = evaluate(self.evaluation_env, played, episodes, seed).rows()
        elif policy is None:
            rows = self.learner.greedy_episodes(episodes, seed)
        else:
            rows = self.learner.play(policy, episodes, seed, common_random_numbers)
        self.evaluation_episodes += len(rows)
        return rows

    def _choose(self) -> None:
        """Settle on one of the candidates; around a base policy, querying it at every step is one of them."""
        candidates = [*self._with_base(self.candidates), *self._with_shorter_waits()]

        begun, most = self.evaluation_episodes, len(candidates) * sum(self.plan.looks)

        def play(policy: Any, look: int, episodes: int) -> NDArray[np.float64]:
            self.phase("choosing, episodes at most", self.evaluation_episodes - begun, most)
            return self._played(policy, episodes, self._common_seed(1 + look), common_random_numbers=True)

        # Around a base policy there is one more look, and nothing is given away: what is lost there, somebody had.
        wraps = self.info.decisions.has_base
        looks = self.plan.looks if wraps else self.plan.looks[:-1] or self.plan.looks
        if len(self.objective.weights) == 1:
            choice = choose_best(candidates, play, looks, self._price())
        else:
            family = self.learner.log_lambda_range is not None and not wraps
            choice = choose(candidates, play, looks, self.plan.tolerance, FRESH_EPISODES if family else None)
        chosen = choice.candidate
        rows = np.concatenate([played[:, :4] for played in (chosen.screening, *chosen.looks)])
        self.policy, self.best = chosen.policy, self._point(rows)._replace(step=chosen.step, decision=chosen.decision)
        self.chosen = {
            "log10_lambda": chosen.log_lambda,
            "candidates": len(candidates),
            "tested": choice.tested,
            "reference_step": choice.reference.step,
            "base_itself": chosen.step == BASE_ITSELF,
            "tolerance": self.plan.tolerance._asdict(),
        }

    def _with_shorter_waits(self) -> list[Candidate]:
        """Return the best candidates without their longest waits, and with the shortest only: safer, less patient."""
        durations = self.info.decisions.durations
        longest = dict.fromkeys([durations[0], durations[(len(durations) - 1) // 2]]) if durations else {}
        return [
            self._candidate(without_longer(c.policy, durations, limit), c.log_lambda, (c.step, c.decision))
            for c in leading(self.candidates)
            if c.step != BASE_ITSELF and c.log_lambda is not None
            for limit in longest
        ]

    def result(self) -> Learned:
        """Return the best policy, evaluated on fresh episodes."""
        assert self.best is not None, "nothing was evaluated yet"
        begun = time.perf_counter()
        if self.candidates:
            self._choose()
        self.phase("evaluating, episodes", 0, self.plan.fresh_episodes)
        played = self._played(self.policy, self.plan.fresh_episodes, self._fresh_seed() + 1)
        self.phase("evaluating, episodes", self.plan.fresh_episodes, self.plan.fresh_episodes)
        fresh = self._point(played)._replace(step=self.best.step, decision=self.best.decision)
        self.seconds += time.perf_counter() - begun
        return replace(self._learned(self.best, fresh, None), time=tuple(played[:, 4:].mean(axis=0).tolist()))

    def unchosen(self) -> Learned:
        """Return the best policy so far, for a choice that is made elsewhere."""
        assert self.best is not None, "nothing was evaluated yet"
        return self._learned(self.best, self.best, None)

    def offered(self, most: int) -> list[Candidate]:
        """Return up to that many of the policies that may be chosen, from the fewest queries to the most."""
        learned = [c for c in self.candidates if c.step != BASE_ITSELF]
        return spread(passing(learned, self.plan.tolerance), most) if learned else []

    def stopped(self) -> Learned:
        """Return the best policy so far, not evaluated again, with all that is needed to go on."""
        assert self.best is not None, "nothing was evaluated yet"
        return self._learned(self.best, self.best, {**self.learner.arrays(), **candidate_arrays(self.candidates)})

    def _learned(self, best: Point, fresh: Point, checkpoint: dict[str, NDArray[Any]] | None) -> Learned:
        return Learned(
            policy=self.info.with_memory(self.policy),
            best=best,
            fresh=fresh,
            curve=list(self.curve),
            steps=self.learner.steps,
            decisions_taken=self.learner.decisions_taken,
            seconds=self.seconds,
            info=self.info,
            base=self.base,
            checkpoint=checkpoint,
            evaluation_episodes=self.evaluation_episodes,
            choice=self.chosen,
            spent=None if checkpoint is None or self.spending is None else self.spending.summary(),
            front=() if checkpoint is not None or self.learner.log_lambda_range is None else self._front(),
        )

    def _front(self) -> tuple[Candidate, ...]:
        best = front([c for c in self.candidates if c.step != BASE_ITSELF])
        return tuple(replace(candidate, policy=self.info.with_memory(candidate.policy)) for candidate in best)

    def resume(self, run: Learned) -> None:
        """Go on from a run that was stopped."""
        if run.checkpoint is None:
            raise SettingError("this run is finished, there is nothing to resume; train a new one")
        if run.info != self.info:
            ours, theirs = self.info.data(), run.info.data()
            changed = sorted(name for name in ours if ours[name] != theirs[name])
            raise SettingError(f"the stopped run had other settings ({', '.join(changed)}); give it the same to resume")
        plain = run.policy.policy if isinstance(run.policy, RememberingPolicy) else run.policy
        candidates = candidates_of(run.checkpoint, run.info)
        if any(len(candidate.screening) != self.plan.episodes for candidate in candidates):
            raise FileFormatError("the saved candidates have not played this run's episodes; the file is damaged")
        self.learner.restore(run.checkpoint)
        self.candidates = candidates
        if self.spending is not None and run.spent is not None:  # after the episodes that are run again
            self.spending.resume(run.spent)
        self.evaluation_episodes = run.evaluation_episodes
        self.curve, self.best, self.policy, self.seconds = list(run.curve), run.best, plain, run.seconds

    def _point(self, results: NDArray[np.float64]) -> Point:
        mean = results[0] if len(results) == 1 else results[:, :4].mean(axis=0)
        task_return, length, queries, base_queries = mean[:4].tolist()
        return Point(self.learner.steps, self.learner.decisions_taken, task_return, length, queries, base_queries)

    def _fresh_seed(self) -> int:
        """Return a seed for evaluation that no other evaluation of this run has, and training never uses."""
        return 1_000_003 * (self.info.seed + 1) + 2 * self.learner.steps

    def _common_seed(self, look: int) -> int:
        """Return the seed of episodes that all candidates of this run play: the screening's, and each look's."""
        return 7_000_003 * (self.info.seed + 1) + look

    def _replaces_equal(self, a: Point, b: Point) -> bool:
        return self.plan.equal == "last" and not self.better(b, a)

    def better(self, a: Point, b: Point) -> bool:
        """Return whether one evaluation is better than another, by the method's own objective."""
        by_base = self.info.decisions.cost == "base"
        paid = [point.base_queries if by_base else point.queries for point in (a, b)]
        return self.objective.better((a.task_return, -paid[0]), (b.task_return, -paid[1]))


def always_base(like: Any) -> Any:
    """Return the policy that queries the base at every step, in the form of another policy."""
    if isinstance(like, TablePolicy):
        return TablePolicy(like.keys, np.zeros_like(like.table))
    return NetworkPolicy(np.zeros_like(like.networks), like.sizes, 0.0, like.space, like.inputs)


def without_longer(like: NetworkPolicy, durations: Sequence[int], limit: int) -> NetworkPolicy:
    """Return a policy without its waits of more than `limit` steps; `durations` are those of its last decisions."""
    networks = like.networks.copy()
    networks[:, -len(durations) :][:, np.array(durations) > limit] -= NEVER
    return NetworkPolicy(networks, like.sizes, like.slack, like.space, like.inputs)
