"""The settings of LDQN: one a line, and the paper's table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from letitcook.core.presets import PresetContext
from letitcook.errors import SettingError


@dataclass(frozen=True)
class LDQNSettings:
    """Everything that LDQN can be told; schedules count timesteps, see `timestep`.

    >>> PAPER["cartpole"].batch_size
    64
    >>> LDQNSettings(gamma=1.5)
    Traceback (most recent call last):
    ...
    letitcook.errors.SettingError: gamma = 1.5 is not allowed; give a discount in (0, 1]
    """

    RENAMED: ClassVar[dict[str, str]] = {
        "waves": "fourier_features",
        "ahead": "n_step",
        "average": "ema_steps",
        "caution": "min_weight",
        "hesitation": "wait_margin",
        "imagined": "model_rollouts",
        "longest_repeat": "max_action_repeat",
        "sub_waits": "intra_option",
        "trade_offs": "log_lambda_range",
        "adapt": "normalise",
    }
    """Names that settings had in version 0.1."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers (ReLU)."""
    gamma: float = 1.0
    """Discount of a primitive step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    batch_size: int = 64
    """Transitions in a gradient step."""
    buffer_size: int = 100_000
    """Transitions that the replay holds."""
    timestep: Literal["step", "decision"] = "step"
    """What a timestep is: a primitive step of the environment, or a decision, however long it waits."""
    learning_starts: int = 1_000
    """Timesteps before the first gradient step."""
    update_interval: int = 16
    """Timesteps between rounds of learning."""
    gradient_steps: int = 8
    """Gradient steps in a round."""
    reuse_batch: bool = False
    """Whether all gradient steps of a round use the same batch; else each draws its own."""
    target_rule: Literal["gradient_steps", "timesteps", "rounds"] = "gradient_steps"
    """What `target_interval` counts: gradient steps, with one update after that many; or timesteps. With `"timesteps"`,
    as in skrl 1, the target networks are updated after every gradient step of a round at a multiple of the interval and
    in others never; with `"rounds"`, as in Stable-Baselines3, once after a round in which a multiple has passed."""
    target_interval: int = 100
    """Gradient steps or timesteps between updates of the target networks."""
    polyak: float = 1.0
    """How far the target networks then move towards the networks, 1 = all the way."""
    epsilon_start: float = 1.0
    """Probability of a random decision at the first timestep."""
    epsilon_end: float = 0.05
    """Probability of a random decision after the decay."""
    epsilon_decay: Literal["linear", "exponential"] = "linear"
    """How the probability falls: linearly, to its end after `epsilon_steps`, or with `exp(-t / epsilon_steps)`."""
    epsilon_steps: int = 10_000
    """Timesteps over which the probability falls, or the time constant of an exponential decay."""

    # What the paper leaves open.
    slack: float = 0.1
    """σ: decisions within this much of the best value count as equally good; in units of the return."""
    bootstrap: Literal["max", "lexicographic"] = "max"
    """What the task value bootstraps on: the maximum, as printed, or the decision that Lex-Argmax takes."""
    loss: Literal["mse", "huber"] = "mse"
    """Distance of a value to its target."""
    double_q: bool = False
    """Whether the networks choose the next decision and the target networks only value it (van Hasselt 2016)."""
    bootstrap_on_truncation: bool = True
    """Whether an episode truncated at the horizon counts as going on."""
    clip_targets: tuple[tuple[float, float], tuple[float, float]] | None = None
    """Ranges of the task return and of the waiting return, to which targets are clipped; None clips nothing. With γ = 1
    overestimated values can grow without bound, and slack then means nothing; these bounds end that."""
    intra_option: int = 0
    """Shorter waits drawn from inside each wait and remembered beside it (intra-option learning; Sutton, Precup and
    Singh 1999)."""

    # Beyond the paper; docs/research.md says what each is for.
    log_lambda_range: tuple[float, float] | None = None
    """Range of log10 λ: the networks are conditioned on λ, and one run learns the policies of all `Q0 + λ Q1` in it; λ
    is in units of a typical step's reward. None is one lexicographic policy."""
    normalise: bool = False
    """Whether observations and rewards are normalised, by statistics of the first timesteps."""
    fourier_features: int = 0
    """Random Fourier features beside the observation (Tancik et al. 2020)."""
    max_action_repeat: int = 0
    """Exploration repeats an action that is not a wait up to this many times (εz-greedy; Dabney et al. 2021); 0 draws
    all decisions uniformly."""
    task_networks: int = 1
    """Networks that learn the task's value, each from its own initialisation. Their mean decides; targets use their
    minimum (clipped double Q; Fujimoto et al. 2018), with a weight that grows to 1 over `learning_rate_steps`. More
    than one goes with `log_lambda_range`."""
    min_weight: float = 0.0
    """Weight of that minimum at the beginning, from 0 (the mean alone) to 1 (the minimum alone, all the time)."""
    wait_margin: float = 0.0
    """A wait of several steps (around a base policy: any wait) is taken only if it is better than acting by this share
    of what is at stake: of how far the value of acting lies below the highest possible. Values err in proportion to
    that. Goes with `log_lambda_range` and `normalise`."""
    model_rollouts: float = 0.0
    """Share of each batch that comes from rollouts of a learned model of waiting, from states that were seen, as long
    as the model is right about new steps. Goes with `normalise`."""
    n_step: int = 1
    """Decisions of an n-step return, cut off before a random decision. More than 1 also learns what an observation does
    not show. With `log_lambda_range` a row is then learned from with the λ of its episode only; where the wait model is
    right and used, targets are 1-step."""
    ema_steps: int = 0
    """Gradient steps of the networks' exponential moving average, which decides in training and is the policy. 0 lets
    the networks themselves decide."""
    learning_rate_end: float = 1.0
    """Share of the learning rate that is left after `learning_rate_steps`, to which it falls linearly."""
    learning_rate_steps: int = 1_000_000
    """Timesteps over which the learning rate falls."""

    def __post_init__(self) -> None:
        counts = ("batch_size", "buffer_size", "update_interval", "gradient_steps", "target_interval")
        for name in (*counts, "task_networks", "n_step", "learning_rate_steps"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "give a whole number of at least 1")
        for name in ("learning_starts", "intra_option", "fourier_features", "max_action_repeat", "ema_steps"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "give a whole number of at least 0")
        for name in ("epsilon_start", "epsilon_end"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) <= 1, "give a probability in [0, 1]")
        _check("epsilon_steps", self.epsilon_steps, self.epsilon_steps >= 1, "give a whole number of at least 1")
        _check("wait_margin", self.wait_margin, 0 <= self.wait_margin < 1, "give a share in [0, 1)")
        _check("min_weight", self.min_weight, 0 <= self.min_weight <= 1, "give a share in [0, 1]")
        _check("model_rollouts", self.model_rollouts, 0 <= self.model_rollouts < 1, "give a share in [0, 1)")
        _check("gamma", self.gamma, 0 < self.gamma <= 1, "give a discount in (0, 1]")
        rate = self.learning_rate
        _check("learning_rate", rate, 0 < rate < math.inf, "give a number above 0, such as 0.001")
        _check("polyak", self.polyak, 0 < self.polyak <= 1, "give a fraction in (0, 1]")
        _check("slack", self.slack, 0 <= self.slack < math.inf, "give a number of at least 0")
        for name, choices in CHOICES.items():
            _check(name, getattr(self, name), getattr(self, name) in choices, f"use {' or '.join(map(repr, choices))}")
        if self.target_rule != "gradient_steps":
            _check("target_rule", self.target_rule, not self.model_rollouts, "it does not go with model_rollouts")
        _check("hidden", self.hidden, all(width >= 1 for width in self.hidden), "give widths of at least 1")
        end = self.learning_rate_end
        _check("learning_rate_end", end, 0 < end <= 1, "give a fraction in (0, 1]")
        if self.log_lambda_range is not None:
            low, high = self.log_lambda_range
            _check(
                "log_lambda_range", self.log_lambda_range, low < high, "give the range of log10 λ, such as (-2, 0.75)"
            )
        else:
            one = self.task_networks == 1
            _check("task_networks", self.task_networks, one, "several go with log_lambda_range; give 1")
            _check("wait_margin", self.wait_margin, self.wait_margin == 0, "it goes with log_lambda_range; give 0")
        if self.normalise:
            _check("gamma", self.gamma, self.gamma < 1, "normalising rewards needs a discount below 1, such as 0.99")
        else:
            _check("model_rollouts", self.model_rollouts, self.model_rollouts == 0, "it goes with normalise; give 0")
            _check("wait_margin", self.wait_margin, self.wait_margin == 0, "it goes with normalise; give 0")
        if self.clip_targets is not None:
            good = all(low < high for low, high in self.clip_targets)
            _check("clip_targets", self.clip_targets, good, "give (low, high) of the task and of the waiting return")

    @property
    def uses_intermediate(self) -> bool:
        """Whether it learns from the states inside a wait."""
        return self.intra_option > 0 or self.model_rollouts > 0


CHOICES = {
    "timestep": ("step", "decision"),
    "target_rule": ("gradient_steps", "timesteps", "rounds"),
    "epsilon_decay": ("linear", "exponential"),
    "bootstrap": ("max", "lexicographic"),
    "loss": ("mse", "huber"),
}
"""Settings that are one of a few names."""


def _check(name: str, value: object, good: bool, advice: str) -> None:
    if not good:
        raise SettingError(f"{name} = {value} is not allowed; {advice}")


AS_IN_SKRL: dict[str, Any] = {
    "timestep": "decision",
    "reuse_batch": True,
    "target_rule": "timesteps",
    "epsilon_decay": "exponential",
    "bootstrap": "lexicographic",
    "bootstrap_on_truncation": False,
}
"""What the paper's table leaves open. The paper adapts skrl; up to its version 1.3 a timestep is a call of the
environment, a round of learning uses one batch, ε falls exponentially, and the target networks are copied after every
gradient step of the rounds at multiples of their interval. Lex-Argmax is followed by every objective, as with tables,
and an episode that is truncated counts as ended. docs/fidelity.md says what was tried."""
PAPER: dict[str, LDQNSettings] = {
    "cartpole": LDQNSettings(
        gamma=1.0,
        learning_rate=2e-3,
        batch_size=64,
        buffer_size=100_000,
        learning_starts=1_000,
        gradient_steps=128,
        update_interval=256,
        target_interval=10,
        polyak=1.0,
        epsilon_start=1.0,
        epsilon_end=0.04,
        epsilon_steps=8_000,
        **AS_IN_SKRL,
    ),
    "mountain-car": LDQNSettings(
        gamma=1.0,
        learning_rate=4e-3,
        batch_size=128,
        buffer_size=10_000,
        learning_starts=1_000,
        gradient_steps=8,
        update_interval=16,
        target_interval=600,
        polyak=1.0,
        epsilon_start=1.0,
        epsilon_end=0.07,
        epsilon_steps=24_000,
        **AS_IN_SKRL,
    ),
    "pong": LDQNSettings(
        gamma=1.0,
        learning_rate=4e-4,
        batch_size=32,
        buffer_size=100_000,
        learning_starts=1_000,
        gradient_steps=1,
        update_interval=4,
        target_interval=1_000,
        polyak=1.0,
        epsilon_start=1.0,
        epsilon_end=0.01,
        epsilon_steps=100_000,
        **AS_IN_SKRL,
    ),
}
"""The paper's table of LDQN hyperparameters, by task, as printed."""


def _paper(context: PresetContext) -> LDQNSettings:
    return replace(PAPER.get(context.task or "", LDQNSettings(**AS_IN_SKRL)), gamma=context.gamma)


BEST = LDQNSettings(
    hidden=(128, 128),
    gamma=0.99,
    learning_rate=2e-3,
    batch_size=128,
    buffer_size=200_000,
    learning_starts=1_000,
    update_interval=16,
    gradient_steps=7,
    target_interval=10,
    polyak=0.2,
    epsilon_start=1.0,
    epsilon_end=0.03,
    epsilon_steps=20_000,
    log_lambda_range=(-2.0, 0.75),
    normalise=True,
    fourier_features=16,
    max_action_repeat=16,
    task_networks=2,
    wait_margin=0.03,
    model_rollouts=0.25,
    n_step=5,
    ema_steps=500,
    learning_rate_end=0.02,
)
"""One setting for all tasks."""


def _best(context: PresetContext) -> LDQNSettings:
    several, steps = context.method == "lexicographic", context.timesteps
    gamma = context.gamma if context.gamma < 1.0 else BEST.gamma
    explored = min(BEST.epsilon_steps, max(1, steps // 5))
    return replace(
        BEST,
        gamma=gamma,
        log_lambda_range=BEST.log_lambda_range if several else None,
        task_networks=BEST.task_networks if several else 1,
        min_weight=1.0 if several and context.has_base else 0.0,  # around a base, nothing has to be found first
        wait_margin=BEST.wait_margin if several else 0.0,
        model_rollouts=BEST.model_rollouts if several else 0.0,
        learning_rate_steps=steps,
        epsilon_steps=explored,
    )


PRESETS = {"paper": _paper, "best": _best}
"""Settings by name, as functions of what they may depend on."""
