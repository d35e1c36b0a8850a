"""What a wrapper costs and what it saves: it and its base policy alone, on the same episodes.

Both play every episode from the same seed, so that most of the luck of the episodes cancels in the difference. A base
policy that draws random numbers of its own meets the same starts only; so do environments side by side, as far as
their later episodes begin alike (see `evaluate`).

Whether the wrapper loses no more than a margin is the matter of its certificate (see `certificate.py`). What is at
stake in an episode is taken from a few in which nothing is done but to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from letitcook.adapters import CallablePolicy, as_policy
from letitcook.core.decisions import Policy
from letitcook.errors import SettingError
from letitcook.evaluation.certificate import DEFAULT_MARGIN, Certificate, Margin, judge
from letitcook.evaluation.rollout import Evaluation, check_episodes, evaluate
from letitcook.wrappers.base_policy import BASE, BasePolicyEnv
from letitcook.wrappers.vector import WaitingVectorEnv
from letitcook.wrappers.waiting import waiting_env_of

CONFIDENCE = 0.95
IDLE_EPISODES = 5
"""Episodes of waiting only, which show what is at stake."""
SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
"""Units of time, in seconds."""


class Interval(NamedTuple):
    """An estimate with its 95% interval, whose ends are None where there was only one episode.

    >>> ratio_interval(np.array([1.0, 3.0]), np.ones(2)).value
    2.0
    """

    value: float
    low: float | None
    high: float | None


def ratio_interval(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> Interval:
    """Return the ratio of two means over episodes, and Student's t interval on its residuals.

    The residuals are `top - ratio * bottom`, the ratio's first order in each episode; with `bottom` 1 they are the
    deviations from the mean, and the interval is the usual one. Where all episodes agree it has no width at all,
    which says that these episodes agree and not that every other one would.

    >>> ratio_interval(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    Interval(value=0.5, low=0.5, high=0.5)
    >>> value, low, high = ratio_interval(np.array([1.0, 2.0, 3.0]), np.ones(3))
    >>> value, round(low, 3), round(high, 3)
    (2.0, -0.484, 4.484)
    """
    from scipy.special import stdtrit  # the quantile of Student's t; loaded only where it is needed

    episodes = len(top)
    agree = np.ptp(top) == 0.0 and np.ptp(bottom) == 0.0
    value = float(top[0] / bottom[0]) if agree else float(top.mean() / bottom.mean())
    if episodes == 1:
        return Interval(value, None, None)
    spread = 0.0 if agree else float(np.std(top - value * bottom, ddof=1) / abs(bottom.mean()))
    half = float(stdtrit(episodes - 1, (1.0 + CONFIDENCE) / 2.0)) * spread / episodes**0.5
    return Interval(value, value - half, value + half)


@dataclass(frozen=True)
class Savings:
    """A wrapper and its base policy alone on the same episodes; numbers are means over the episodes.

    >>> from letitcook import make, plan
    >>> cook = make("cook", mode="wrap")
    >>> savings = compare_with_base(cook, plan(cook).policy, episodes=1)
    >>> savings.base.length, savings.wrapper.length
    (53.0, 53.0)
    """

    wrapper: Evaluation
    """Episodes of the policy that waits."""
    base: Evaluation
    """Episodes of the base policy, queried at every step."""
    certificate: Certificate | None = None
    """Whether the wrapper is certified to lose no more than a margin; None if there was one episode."""

    @property
    def return_difference(self) -> Interval:
        """Task return of the wrapper less that of the base alone; paired, Student's t on the differences."""
        difference = self.wrapper.of("task_return") - self.base.of("task_return")
        return ratio_interval(difference, np.ones_like(difference))

    @property
    def relative_difference(self) -> Interval | None:
        """The same as a share of the size of the base's mean return; None where that is 0."""
        base = self.base.of("task_return")
        if base.mean() == 0.0:
            return None
        return ratio_interval(self.wrapper.of("task_return") - base, base * np.sign(base.mean()))

    @property
    def queries_saved(self) -> Interval:
        """Share of the base policy's queries that the wrapper saves, over all episodes together."""
        alone = self.base.of("base_queries")
        value, low, high = ratio_interval(alone - self.wrapper.of("base_queries"), alone)
        return Interval(value, low, None if high is None else min(high, 1.0))  # no more than all can be saved

    @property
    def seconds_per_query(self) -> float:
        """Measured time of one query of the base policy, over both plays."""
        plays = (self.wrapper, self.base)
        return sum(play.base_seconds for play in plays) / sum(play.base_queries for play in plays)

    def seconds(self, per_query: float | None = None) -> tuple[float, float]:
        """Return the time in policies of an episode: of the base alone, and of the wrapper with its base.

        `per_query` is the time of one query of the base policy, the measured one if not given.
        """
        cost = self.seconds_per_query if per_query is None else check_cost(per_query)
        return cost * self.base.base_queries, cost * self.wrapper.base_queries + self.wrapper.policy_seconds

    def seconds_saved(self, per_query: float | None = None) -> float:
        """Return the time saved an episode: the queries avoided, less the time in the wrapper's own policy."""
        alone, wrapped = self.seconds(per_query)
        return alone - wrapped

    def summary(self, per_query: float | None = None) -> dict[str, Any]:
        """Return everything that is reported, as data that JSON can hold; times in seconds, of one episode."""
        alone, wrapped = self.seconds(per_query)
        relative = self.relative_difference
        return {
            "episodes": len(self.wrapper.episodes),
            "task_return": self.wrapper.task_return,
            "base_task_return": self.base.task_return,
            "return_difference": self.return_difference._asdict(),
            "relative_difference": None if relative is None else relative._asdict(),
            "length": self.wrapper.length,
            "base_length": self.base.length,
            "queries": self.wrapper.queries,
            "base_queries": self.wrapper.base_queries,
            "base_queries_alone": self.base.base_queries,
            "queries_saved": self.queries_saved._asdict(),
            "certificate": None if self.certificate is None else self.certificate.summary(),
            "waiting_share": self.wrapper.waiting_share,
            "wait_share": {str(duration): share for duration, share in self.wrapper.wait_share.items()},
            "longest_wait": self.wrapper.longest_wait,
            "seconds_per_query": self.seconds_per_query if per_query is None else per_query,
            "policy_seconds": self.wrapper.policy_seconds,
            "seconds_alone": alone,
            "seconds_wrapped": wrapped,
            "seconds_saved": alone - wrapped,
        }

    def lines(self, per_query: float | None = None) -> list[str]:
        """Return the same for people, a line each."""
        base, wrapper = self.base, self.wrapper
        alone, wrapped = self.seconds(per_query)
        saved, relative = alone - wrapped, self.relative_difference
        lost = "" if relative is None else f", {_interval(relative, 100.0, '%')} of the base's"
        asked = "measured" if per_query is None else "given"
        word = "saved" if saved >= 0 else "lost"
        cost = duration(self.seconds_per_query if per_query is None else per_query)
        return [
            _row("", "base alone", "wrapper", f"means of {len(wrapper.episodes)} episodes, 95% intervals"),
            _row(
                "task return",
                f"{base.task_return:.2f}",
                f"{wrapper.task_return:.2f}",
                f"{_interval(self.return_difference)}{lost}",
            ),
            _row("length", f"{base.length:.1f}", f"{wrapper.length:.1f}", "primitive steps"),
            _row(
                "base queries",
                f"{base.base_queries:.1f}",
                f"{wrapper.base_queries:.1f}",
                f"{_interval(self.queries_saved, 100.0, '%', sign='')} saved",
            ),
            _row("wrapper queries", "-", f"{wrapper.queries:.1f}", ""),
            _row(
                "time in policies",
                duration(alone),
                duration(wrapped),
                f"{duration(abs(saved))} {word} an episode, at {cost} a base query ({asked})",
            ),
            f"  {'waiting':<18}{wrapper.waits_said or 'no waiting at all'}; longest wait {wrapper.longest_wait} steps",
            *([] if self.certificate is None else [f"  {self.certificate.line()}"]),
        ]


def compare_with_base(
    waiting_env: gym.Env[Any, Any] | WaitingVectorEnv,
    policy: Policy | Callable[[Any], Any],
    episodes: int = 100,
    seed: int = 0,
    margin: float | str = DEFAULT_MARGIN,
    at_stake: float | None = None,
) -> Savings:
    """Play a wrapper's policy and its base policy alone on the same episodes, and say what waiting costs and saves.

    The wrapper is certified if the 95% bound of its loss lies within the `margin`: an amount of task return, or a share
    of the base's mean return. `at_stake` is how much worse an episode can be that goes wrong; if it is not given, that
    of doing nothing but wait. The episodes must be fresh: with no part in training or choosing the policy. A
    function from observation to decision will do as a policy.

    >>> from letitcook import make, plan
    >>> env = make("coffee", mode="wrap")
    >>> savings = compare_with_base(env, plan(env).policy, episodes=2)
    >>> savings.return_difference
    Interval(value=0.0, low=0.0, high=0.0)
    >>> savings.base.base_queries, savings.wrapper.base_queries, round(savings.queries_saved.value, 2)
    (54.0, 34.0, 0.37)
    >>> savings.certificate.certified, savings.certificate.reason  # two episodes say little
    (False, 'a rare failure cannot be ruled out by fewer than about 1,168 episodes')
    """
    accepted = Margin.read(margin)
    _check_base(waiting_env)
    policy = policy if isinstance(policy, Policy) else as_policy(policy)
    check_episodes(episodes, seed)
    _warm_up(waiting_env, policy, seed)
    wrapper = evaluate(waiting_env, policy, episodes, seed)
    base = evaluate(waiting_env, BaseAlone(), episodes, seed)
    if episodes < 2:
        return Savings(wrapper, base)
    alone = base.of("task_return")
    stake = stake_of(waiting_env, alone, seed) if at_stake is None else abs(at_stake)
    accepted_loss = accepted.of(float(alone.mean()), float(alone.std(ddof=1)))
    return Savings(wrapper, base, judge(wrapper.of("task_return") - alone, accepted_loss, stake))


def stake_of(waiting_env: gym.Env[Any, Any] | WaitingVectorEnv, base_returns: NDArray[np.float64], seed: int) -> float:
    """Return how much worse than the base's mean an episode can be: as bad as one in which nothing is done but wait.

    At least it is the spread of the base's own returns.
    """
    longest = (
        waiting_env if isinstance(waiting_env, WaitingVectorEnv) else waiting_env_of(waiting_env)
    ).decisions.n - 1
    idle = evaluate(waiting_env, CallablePolicy(lambda _: longest), IDLE_EPISODES, seed)
    return max(float(base_returns.mean()) - idle.task_return, float(np.ptp(base_returns)))


class BaseAlone:
    """The base policy alone, as a wrapper's policy: it is queried at every step.

    >>> BaseAlone().predict([0.0])
    (0, None)
    """

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, None]:
        """Return the decision to query the base."""
        return BASE, None


def _check_base(env: gym.Env[Any, Any] | WaitingVectorEnv) -> None:
    if isinstance(env, WaitingVectorEnv):
        has_base = env.base is not None
    else:
        has_base = isinstance(waiting_env_of(env).env, BasePolicyEnv)
    if not has_base:
        raise SettingError(
            "this environment has no base policy, so there is nothing to compare with; wrap one first: "
            "letitcook.wrap(env, base, wait=..., durations=...), or use letitcook.evaluate"
        )


def _warm_up(env: gym.Env[Any, Any] | WaitingVectorEnv, policy: Policy, seed: int) -> None:
    """Ask both policies once: the first answer may take long, as code is compiled and libraries are loaded for it."""
    if isinstance(env, WaitingVectorEnv):
        observation = env.reset(seed=seed)[0]
        env.step([BASE] * env.num_envs)
    else:
        observation, _ = env.reset(seed=seed)
        env.step(BASE)
    policy.predict(observation, None, np.array([True]), deterministic=True)


def check_cost(seconds: float) -> float:
    """Return the time of one query, or raise if something is wrong with it."""
    if not 0.0 <= seconds < float("inf"):
        raise SettingError(f"a query cannot take {seconds} seconds; give a finite number of at least 0")
    return seconds


def duration(seconds: float) -> str:
    """Return a time for people.

    >>> duration(22.31), duration(0.0077), duration(-1.5e-05), duration(7200)
    ('22.3 s', '7.7 ms', '-15 µs', '7200 s')
    """
    size, unit = next((scale for scale in SCALES if abs(seconds) >= scale[0]), SCALES[-1])
    number = seconds / size
    return f"{number:.0f} {unit}" if abs(number) >= 100 else f"{number:.3g} {unit}"


def _row(name: str, alone: str, wrapper: str, remark: str) -> str:
    return f"  {name:<18}{alone:>10}{wrapper:>10}   {remark}".rstrip()


def _interval(interval: Interval, scale: float = 1.0, unit: str = "", sign: str = "+") -> str:
    digits = 1 if unit else 2
    value, *ends = (None if x is None else f"{_unsigned(scale * x, digits):{sign}.{digits}f}{unit}" for x in interval)
    return f"{value}" if None in ends else f"{value} ({ends[0]} to {ends[1]})"


def _unsigned(number: float, digits: int) -> float:
    """Round, with no minus before a zero."""
    return round(number, digits) + 0.0
