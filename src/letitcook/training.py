"""The paper's protocol: advance, evaluate greedily, keep the best.

Every 10,000 primitive steps the greedy policy is evaluated; the best one by the method's own objective is the result,
evaluated once more on fresh episodes. Beyond the paper, every policy that is met is a candidate, those of several
trade-offs where there are any, and the result is chosen among them with more episodes by `choice.py`. The loop yields
after each evaluation, so that progress, logs and checkpoints stay out of it; it can be left there, saved, and taken up
again to the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from letitcook.choice import (
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
)
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import SettingError
from letitcook.finite.policy import TablePolicy
from letitcook.lexicographic import Objective
from letitcook.runs import Learned, Point, candidate_arrays, candidates_of
from letitcook.totals import Totals
from letitcook.tracking import Callback

EVERY = 10_000
"""Primitive steps between two evaluations."""
EPISODES = 20
"""Greedy episodes of an evaluation."""
FRESH_EPISODES, FRESH_EPISODES_IN_PYTHON = 1_000, 100
"""Fresh episodes on which the best policy is evaluated at the end; fewer where each step goes through Python."""
SCREENING, SCREENING_IN_PYTHON = 50, 10
"""Episodes that every candidate lives, where there are several."""
LOOKS, LOOKS_IN_PYTHON = (100, 100, 200, 400, 800), (20, 20, 40, 80)
"""Episodes of each look at a candidate that may be chosen."""
NEVER = np.float32(1e6)
"""Taken from the value of a decision that is not to be taken any more."""
CANDIDATES = 64
"""Candidates that are kept, beside the front and those that may become the reference."""


class Learner(Protocol):
    """What can be trained."""

    @property
    def steps(self) -> int:
        """Primitive steps so far."""
        ...

    def advance(self, steps: int) -> None:
        """Learn for at least that many more primitive steps."""
        ...

    def greedy_episodes(self, episodes: int, seed: int) -> NDArray[np.float64]:
        """Return task return, length, queries, base queries and the steps in each decision of greedy episodes."""
        ...

    def play(self, policy: Any, episodes: int, seed: int, apart: bool = False) -> NDArray[np.float64]:
        """Return the same of a policy that was kept; `apart` gives each episode chances of its own."""
        ...

    @property
    def trade_offs(self) -> tuple[float, float] | None:
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


@dataclass
class Training:
    """A run under way: its learner, its curve, and the best policy so far."""

    learner: Learner
    objective: Objective
    seed: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    """Method, λ, seed, preset, settings and decisions, as plain data."""
    base: NetworkPolicy | None = None
    """The network that is wrapped, where there is one; it is saved with the run."""
    steps: int = 0
    """Primitive steps that the run is to have."""
    every: int = EVERY
    episodes: int = EPISODES
    fresh_episodes: int = FRESH_EPISODES
    choosing: bool = False
    """Whether the result is chosen among candidates, and not by the paper's rule."""
    looks: tuple[int, ...] = LOOKS
    """Episodes of each look at a candidate."""
    tolerance: Tolerance = NONE
    """Loss of mean task return that is accepted for fewer queries, beside what cannot be measured."""
    candidates: list[Candidate] = field(default_factory=list)
    evaluation_episodes: int = 0
    """Episodes that were played to evaluate and to choose."""
    curve: list[Point] = field(default_factory=list)
    best: Point | None = None
    policy: Any = None
    seconds: float = 0.0
    callback: Callback | None = None
    """Called after each evaluation; without one, training episodes are not counted."""
    chosen: dict[str, Any] | None = None
    """How the policy was chosen, where there were several candidates."""
    rollout: Totals | None = None
    """The training episodes that ended since the evaluation before the last, where there is a callback."""

    def run(self, steps: int) -> Iterator[Point]:
        """Train up to that many primitive steps in all, and yield each evaluation."""
        while self.learner.steps < steps:
            begun = time.perf_counter()
            before = None if self.callback is None else self.learner.totals()
            due = (self.learner.steps // self.every + 1) * self.every
            self.learner.advance(min(due, steps) - self.learner.steps)
            point = self._evaluation()
            self.curve.append(point)
            self.seconds += time.perf_counter() - begun
            if self.callback is not None and before is not None:
                self.rollout = self.learner.totals().since(before)
                self.callback(point, self)
            yield point

    @property
    def rates(self) -> dict[str, float]:
        """What the learner says of itself, by Stable-Baselines3's names."""
        return self.learner.rates()

    def _evaluation(self) -> Point:
        """Evaluate the greedy policy, or the best of those that are offered, and keep it if it is the best so far."""
        if not self.choosing:
            point, policy = self._point(self._played(None, self.episodes, self._fresh_seed())), None
        else:
            picked = self._meet_candidates()
            point, policy = self._point(picked.screening), picked.policy
        if self.best is None or self._better(point, self.best):
            self.best, self.policy = point, policy or self.learner.policy()
        return point

    def _meet_candidates(self) -> Candidate:
        """Take in the policies of this checkpoint; returns the one that would be chosen of them."""
        span = self.learner.trade_offs
        if span is None:
            new = self._candidate(self.learner.policy(), None)
            self.candidates = leading([*self.candidates, new], self._price())
            return new
        known = self._with_base(self.candidates)
        several = met(lambda z: self._candidate(self.learner.policy(z), z), span, known)
        self.candidates = promising([*known, *several], CANDIDATES, self.tolerance)
        return passing(several, self.tolerance)[0]

    def _with_base(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates and, around a base policy, the one that asks it at every step."""
        if self.about.get("mode") != "wrap" or any(c.step == BASE_ITSELF for c in candidates):
            return candidates
        policy = always_base(self.learner.policy())
        return [*candidates, self._candidate(policy, None, BASE_ITSELF)]

    def _price(self) -> float:
        """Return what a query costs in the first objective."""
        task, waiting = self.objective.weights[0].tolist()
        return float(waiting / task)

    def _candidate(self, policy: Any, z: float | None, step: int | None = None) -> Candidate:
        rows = self._played(policy, self.episodes, self._common_seed(0), apart=True)
        return Candidate(self.learner.steps if step is None else step, z, policy, rows)

    def _played(self, policy: Any, episodes: int, seed: int, apart: bool = False) -> NDArray[np.float64]:
        if policy is None:
            rows = self.learner.greedy_episodes(episodes, seed)
        else:
            rows = self.learner.play(policy, episodes, seed, apart)
        self.evaluation_episodes += len(rows)
        return rows

    def _choose(self) -> None:
        """Settle on one of the candidates; around a base policy, asking it at every step is one of them."""
        candidates = [*self._with_base(self.candidates), *self._with_shorter_waits()]

        def play(policy: Any, look: int, episodes: int) -> NDArray[np.float64]:
            return self._played(policy, episodes, self._common_seed(1 + look), apart=True)

        # Around a base policy there is one more look, and nothing is given away: what is lost there, somebody had.
        wraps = self.about.get("mode") == "wrap"
        looks = self.looks if wraps else self.looks[:-1] or self.looks
        if len(self.objective.weights) == 1:
            choice = choose_best(candidates, play, looks, self._price())
        else:
            family = self.learner.trade_offs is not None and not wraps
            choice = choose(candidates, play, looks, self.tolerance, FRESH_EPISODES if family else None)
        chosen = choice.candidate
        rows = np.concatenate([chosen.screening, *chosen.looks])
        self.policy, self.best = chosen.policy, self._point(rows)._replace(step=chosen.step)
        self.chosen = {
            "log10_lambda": chosen.trade_off,
            "candidates": len(candidates),
            "tested": choice.tested,
            "reference_step": choice.reference.step,
            "base_itself": chosen.step == BASE_ITSELF,
            "tolerance": self.tolerance._asdict(),
        }

    def _with_shorter_waits(self) -> list[Candidate]:
        """Return the best candidates without their longest waits, and with the shortest only: safer, less patient."""
        durations = self.about.get("decisions", {}).get("durations", [])
        longest = dict.fromkeys([durations[0], durations[(len(durations) - 1) // 2]]) if durations else {}
        return [
            self._candidate(without_longer(candidate.policy, durations, limit), candidate.trade_off, candidate.step)
            for candidate in leading(self.candidates)
            if candidate.step != BASE_ITSELF and candidate.trade_off is not None
            for limit in longest
        ]

    def result(self) -> Learned:
        """Return the best policy, evaluated on fresh episodes."""
        assert self.best is not None, "nothing was evaluated yet"
        begun = time.perf_counter()
        if self.candidates:
            self._choose()
        played = self._played(self.policy, self.fresh_episodes, self._fresh_seed() + 1)
        fresh = self._point(played)._replace(step=self.best.step)
        self.seconds += time.perf_counter() - begun
        return replace(self._learned(self.best, fresh, None), time=tuple(played[:, 4:].mean(axis=0).tolist()))

    def stopped(self) -> Learned:
        """Return the best policy so far, not evaluated again, with all that is needed to go on."""
        assert self.best is not None, "nothing was evaluated yet"
        return self._learned(self.best, self.best, {**self.learner.arrays(), **candidate_arrays(self.candidates)})

    def _learned(self, best: Point, fresh: Point, checkpoint: dict[str, NDArray[Any]] | None) -> Learned:
        return Learned(
            policy=self.policy,
            best=best,
            fresh=fresh,
            curve=list(self.curve),
            steps=self.learner.steps,
            seconds=self.seconds,
            about=self.about,
            base=self.base,
            checkpoint=checkpoint,
            evaluation_episodes=self.evaluation_episodes,
            choice=self.chosen,
            front=() if checkpoint is not None or self.learner.trade_offs is None else self._front(),
        )

    def _front(self) -> tuple[Candidate, ...]:
        return tuple(front([c for c in self.candidates if c.step != BASE_ITSELF]))

    def resume(self, run: Learned) -> None:
        """Go on from a run that was stopped."""
        if run.checkpoint is None:
            raise SettingError("this run is finished, there is nothing to resume; train a new one")
        if run.about != self.about:
            changed = sorted(k for k in self.about if self.about[k] != run.about.get(k))
            raise SettingError(f"the stopped run had other settings ({', '.join(changed)}); give it the same to resume")
        self.learner.restore(run.checkpoint)
        self.candidates = candidates_of(run.checkpoint, run.about["policy"])
        self.evaluation_episodes = run.evaluation_episodes
        self.curve, self.best, self.policy, self.seconds = list(run.curve), run.best, run.policy, run.seconds

    def _point(self, results: NDArray[np.float64]) -> Point:
        task_return, length, queries, base_queries = results[:, :4].mean(axis=0).tolist()
        return Point(self.learner.steps, task_return, length, queries, base_queries)

    def _fresh_seed(self) -> int:
        """Return a seed for evaluation that no other evaluation of this run has, and training never uses."""
        return 1_000_003 * (self.seed + 1) + 2 * self.learner.steps

    def _common_seed(self, look: int) -> int:
        """Return the seed of episodes that all candidates of this run live: the screening's, and each look's."""
        return 7_000_003 * (self.seed + 1) + look

    def _better(self, a: Point, b: Point) -> bool:
        return self.objective.better((a.task_return, -a.queries), (b.task_return, -b.queries))


def always_base(like: Any) -> Any:
    """Return the policy that asks the base at every step, in the form of another policy."""
    if isinstance(like, TablePolicy):
        return TablePolicy(like.keys, np.zeros_like(like.table))
    return NetworkPolicy(np.zeros_like(like.networks), like.sizes, 0.0, like.space, like.inputs)


def without_longer(like: NetworkPolicy, durations: Sequence[int], limit: int) -> NetworkPolicy:
    """Return a policy without its waits of more than `limit` steps; `durations` are those of its last decisions."""
    networks = like.networks.copy()
    networks[:, -len(durations) :][:, np.array(durations) > limit] -= NEVER
    return NetworkPolicy(networks, like.sizes, like.slack, like.space, like.inputs)
