"""The settings of tabular Q-learning: one a line, the paper's, and those that go beyond it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from letitcook.core.presets import PresetContext
from letitcook.errors import SettingError


@dataclass(frozen=True)
class QSettings:
    """Every setting of the tabular learner; the defaults are the paper's.

    >>> QSettings(alpha=0.5).alpha
    0.5
    """

    RENAMED: ClassVar[dict[str, str]] = {"sub_waits": "intra_option"}
    """Names that settings had in version 0.1."""

    gamma: float = 1.0
    """Discount per primitive step."""
    timestep: Literal["step", "decision"] = "step"
    """What a timestep is, in which `schedule` and the evaluations count: a primitive step, or a decision."""
    alpha: float = 0.1
    """Step size at the beginning."""
    alpha_end: float | None = None
    """Step size after `schedule` timesteps, reached linearly; None keeps `alpha`."""
    visit_power: float = 0.0
    """ω: where above 0, the step size is `alpha / visits^ω` of each state and decision (0.5 < ω ≤ 1 converges)."""
    epsilon: float = 0.05
    """Probability of a random decision at the beginning."""
    epsilon_end: float | None = None
    """Probability of a random decision after `schedule` timesteps, reached linearly; None keeps `epsilon`."""
    schedule: int = 1_000_000
    """Timesteps over which `alpha` and `epsilon` move to their ends."""
    slack: float = 0.001
    """σ: how far from the best a decision may be in one objective and still be judged by the next."""
    initial: float = 0.0
    """Initial value of every entry of Q."""
    bootstrap: Literal["max", "lexicographic"] = "max"
    """What the task value bootstraps on: the maximum, as printed, or the decision that Lex-Argmax takes."""
    ties: Literal["first", "random"] = "first"
    """Among equally good decisions take the lowest index, or any one while learning (a policy takes the lowest)."""
    bootstrap_on_truncation: bool = True
    """Whether the value of the state at the horizon counts (the episode was truncated), or is 0 (it ended)."""
    intra_option: bool = False
    """Learn from every shorter wait inside an executed wait."""
    backward_replay: bool = False
    """Learn from each episode once more from its end to its beginning."""
    backup: Literal["sample", "full"] = "sample"
    """Move a value towards what followed this time, by `alpha`; or set it to the mean over all that followed so far."""

    def __post_init__(self) -> None:
        checks = {
            "gamma": 0.0 < self.gamma <= 1.0,
            "alpha": 0.0 < self.alpha <= 1.0,
            "alpha_end": self.alpha_end is None or 0.0 <= self.alpha_end <= 1.0,
            "visit_power": 0.0 <= self.visit_power <= 1.0,
            "epsilon": 0.0 <= self.epsilon <= 1.0,
            "epsilon_end": self.epsilon_end is None or 0.0 <= self.epsilon_end <= 1.0,
            "schedule": self.schedule >= 1,
            "slack": self.slack >= 0.0,
            "initial": bool(np.isfinite(self.initial)),
            **{name: getattr(self, name) in choices for name, choices in CHOICES.items()},
        }
        for name, fine in checks.items():
            if not fine:
                raise SettingError(f"{name} = {getattr(self, name)!r} is not allowed; see letitcook.QSettings")


CHOICES = {
    "timestep": ("step", "decision"),
    "bootstrap": ("max", "lexicographic"),
    "ties": ("first", "random"),
    "backup": ("sample", "full"),
}
"""Settings that are one of a few names."""
PAPER = QSettings(bootstrap="lexicographic")
"""The paper's table of LQ-learning hyperparameters, with what it leaves open chosen to be nearest to its results."""
EXACT = QSettings(alpha=1.0, intra_option=True, backward_replay=True)
"""Beyond the paper: deterministic transitions need no averaging, and every episode is used to the full."""
EXACT_RANDOM = replace(EXACT, epsilon=0.2, bootstrap="lexicographic", backup="full")
"""The same for random transitions, which must be averaged."""
OPTIMISTIC_GAMMA = 0.9999
"""Discount that lets values sink that only keep each other up: in a random world, those of a circle of states."""


def _paper(context: PresetContext) -> QSettings:
    return replace(PAPER, gamma=context.gamma)


def _exact(context: PresetContext) -> QSettings:
    """Where rewards can be won, what was never tried counts as the highest (optimism; Brafman and Tennenholtz 2002).

    Else a learner that has not met its reward yet would only save queries, and wait for ever.
    """
    gamma, initial = context.gamma, context.highest_reward
    if initial > 0.0 and not context.deterministic:
        gamma = min(gamma, OPTIMISTIC_GAMMA)
    return replace(EXACT if context.deterministic else EXACT_RANDOM, gamma=gamma, initial=initial)


PRESETS = {"paper": _paper, "exact": _exact, "best": _exact}
"""Settings by name, as functions of what they may depend on."""
