"""The settings of LDQN: one a line, and the paper's table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from letitcook.errors import SettingError


@dataclass(frozen=True)
class LDQNSettings:
    """Everything that LDQN can be told; a step is a primitive step of the environment.

    >>> PAPER["cartpole"].batch_size
    64
    >>> LDQNSettings(gamma=1.5)
    Traceback (most recent call last):
    ...
    letitcook.errors.SettingError: gamma = 1.5 is not allowed; give a discount in (0, 1]
    """

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
    learning_starts: int = 1_000
    """Steps before the first gradient step."""
    update_interval: int = 16
    """Steps between rounds of learning."""
    gradient_steps: int = 8
    """Gradient steps in a round."""
    target_interval: int = 100
    """Gradient steps between updates of the target networks."""
    polyak: float = 1.0
    """How far the target networks then move towards the networks, 1 = all the way."""
    epsilon_start: float = 1.0
    """Chance of a random decision at the first step."""
    epsilon_end: float = 0.05
    """Chance of a random decision after the decay."""
    epsilon_steps: int = 10_000
    """Steps over which the chance falls, linearly."""

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
    """Whether an episode cut by the horizon counts as going on."""
    clip_targets: tuple[tuple[float, float], tuple[float, float]] | None = None
    """Ranges of the task return and of the waiting return, to which targets are cut; None cuts nothing. With γ = 1
    overestimated values can grow without bound, and slack then means nothing; these bounds end that."""
    sub_waits: int = 0
    """Shorter waits drawn from inside each wait and remembered beside it."""

    # Beyond the paper; docs/research.md says what each is for.
    trade_offs: tuple[float, float] | None = None
    """Range of log10 λ: the networks are conditioned on λ, and one run learns the policies of all `Q0 + λ Q1` in it; λ
    is in units of a typical step's reward. None is one lexicographic policy."""
    adapt: bool = False
    """Whether observations and rewards are brought to a common scale, measured in the first steps."""
    waves: int = 0
    """Random Fourier features beside the observation."""
    longest_repeat: int = 0
    """Exploration repeats an action that is not a wait up to this many times; 0 draws every decision alike."""
    task_networks: int = 1
    """Networks that learn the task's value, each from a beginning of its own. Their mean decides. In targets the lowest
    counts, the more the further the training has come and after `learning_rate_steps` alone, so that values are not
    carried away where little was seen. More than one goes with `trade_offs`."""
    caution: float = 0.0
    """How much the lowest of several task networks counts in targets at the beginning, from 0 (their mean counts) to 1
    (it counts alone, all the time)."""
    hesitation: float = 0.0
    """A wait of several steps (around a base policy: any wait) is taken only if it is better than to act by this share
    of what is at stake, which is how far the value of acting lies below the highest possible. Values err in proportion
    to that. Goes with `trade_offs` and `adapt`."""
    imagined: float = 0.0
    """Share of each batch that is imagined: waits from states that were seen, as a learned model of the passive world
    tells them, while it proves right. Goes with `adapt`."""
    ahead: int = 1
    """Decisions that a target looks ahead, along those that were greedy. More than 1 also learns what an observation
    does not show. With `trade_offs` a row is then learned from with the λ of its episode only; where the passive world
    is known, and waits are imagined, a target looks one decision ahead."""
    average: int = 0
    """Gradient steps over which the networks are averaged; the average decides, in training and as the policy. 0 lets
    the networks themselves decide."""
    learning_rate_end: float = 1.0
    """Share of the learning rate that is left after `learning_rate_steps`, to which it falls linearly."""
    learning_rate_steps: int = 1_000_000
    """Steps over which the learning rate falls."""

    def __post_init__(self) -> None:
        counts = ("batch_size", "buffer_size", "update_interval", "gradient_steps", "target_interval")
        for name in (*counts, "task_networks", "ahead", "learning_rate_steps"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "give a whole number of at least 1")
        for name in ("learning_starts", "sub_waits", "waves", "longest_repeat", "average"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "give a whole number of at least 0")
        for name in ("epsilon_start", "epsilon_end"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) <= 1, "give a chance in [0, 1]")
        _check("epsilon_steps", self.epsilon_steps, self.epsilon_steps >= 1, "give a whole number of at least 1")
        _check("hesitation", self.hesitation, 0 <= self.hesitation < 1, "give a share in [0, 1)")
        _check("caution", self.caution, 0 <= self.caution <= 1, "give a share in [0, 1]")
        _check("imagined", self.imagined, 0 <= self.imagined < 1, "give a share in [0, 1)")
        _check("gamma", self.gamma, 0 < self.gamma <= 1, "give a discount in (0, 1]")
        rate = self.learning_rate
        _check("learning_rate", rate, 0 < rate < math.inf, "give a number above 0, such as 0.001")
        _check("polyak", self.polyak, 0 < self.polyak <= 1, "give a fraction in (0, 1]")
        _check("slack", self.slack, 0 <= self.slack < math.inf, "give a number of at least 0")
        _check("bootstrap", self.bootstrap, self.bootstrap in ("max", "lexicographic"), "use 'max' or 'lexicographic'")
        _check("loss", self.loss, self.loss in ("mse", "huber"), "use 'mse' or 'huber'")
        _check("hidden", self.hidden, all(width >= 1 for width in self.hidden), "give widths of at least 1")
        end = self.learning_rate_end
        _check("learning_rate_end", end, 0 < end <= 1, "give a fraction in (0, 1]")
        if self.trade_offs is not None:
            low, high = self.trade_offs
            _check("trade_offs", self.trade_offs, low < high, "give the range of log10 λ, such as (-2, 0.75)")
        else:
            one = self.task_networks == 1
            _check("task_networks", self.task_networks, one, "several go with trade_offs; give 1")
            _check("hesitation", self.hesitation, self.hesitation == 0, "it goes with trade_offs; give 0")
        if self.adapt:
            _check("gamma", self.gamma, self.gamma < 1, "adapting rewards needs a discount below 1, such as 0.99")
        else:
            _check("imagined", self.imagined, self.imagined == 0, "what is imagined needs adapt; give 0")
            _check("hesitation", self.hesitation, self.hesitation == 0, "the highest value needs adapt; give 0")
        if self.clip_targets is not None:
            good = all(low < high for low, high in self.clip_targets)
            _check("clip_targets", self.clip_targets, good, "give (low, high) of the task and of the waiting return")

    @property
    def looks_inside(self) -> bool:
        """Whether it learns from the states inside a wait."""
        return self.sub_waits > 0 or self.imagined > 0


def _check(name: str, value: object, good: bool, advice: str) -> None:
    if not good:
        raise SettingError(f"{name} = {value} is not allowed; {advice}")


AS_RUN: dict[str, Any] = {"bootstrap": "lexicographic", "bootstrap_on_truncation": False}
"""What the table leaves open. An episode that is cut counts as ended, as in skrl 1 (the paper adapts skrl, and does not
say which version). Lex-Argmax is followed by every objective, as with tables; docs/fidelity.md says what was tried."""
PAPER: dict[str, LDQNSettings] = {
    "cartpole": LDQNSettings(
        gamma=1.0,
        learning_rate=2e-3,
        batch_size=64,
        buffer_size=100_000,
        learning_starts=1_000,
        gradient_steps=128,
        update_interval=256,
        target_interval=640,  # table: 10 timesteps
        polyak=1.0,
        epsilon_start=1.0,
        epsilon_end=0.04,
        epsilon_steps=8_000,
        **AS_RUN,
    ),
    "mountain-car": LDQNSettings(
        gamma=1.0,
        learning_rate=4e-3,
        batch_size=128,
        buffer_size=10_000,
        learning_starts=1_000,
        gradient_steps=8,
        update_interval=16,
        target_interval=600,  # table: 600 timesteps
        polyak=1.0,
        epsilon_start=1.0,
        epsilon_end=0.07,
        epsilon_steps=24_000,
        **AS_RUN,
    ),
    "pong": LDQNSettings(
        gamma=1.0,
        learning_rate=4e-4,
        batch_size=32,
        buffer_size=100_000,
        learning_starts=1_000,
        gradient_steps=1,
        update_interval=4,
        target_interval=250,  # table: 1,000 timesteps
        polyak=1.0,
        epsilon_start=1.0,
        epsilon_end=0.01,
        epsilon_steps=100_000,
        slack=0.5,  # not in the table
        **AS_RUN,
    ),
}
"""The paper's table of LDQN hyperparameters, by task.

The target networks' interval is printed as 10, 600 and 1,000. skrl 1 counts it in timesteps and looks only when a
round of learning is due (every 256, 16 and 4 timesteps), which makes one update in 640, 600 and 250 gradient steps. An
update in 10 gradient steps makes CartPole's values grow to 10^7 and more, and the slack meaningless.
"""


PAPER_WRAPPED: dict[str, dict[str, Any]] = {"cartpole": {"double_q": True}}
"""What is otherwise around a base policy; docs/fidelity.md says why."""


def _paper(task: str | None, gamma: float, method: str, steps: int, mode: str) -> LDQNSettings:
    wrapped = PAPER_WRAPPED.get(task or "", {}) if mode == "wrap" else {}
    return replace(PAPER.get(task or "", LDQNSettings()), gamma=gamma, **wrapped)


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
    trade_offs=(-2.0, 0.75),
    adapt=True,
    waves=16,
    longest_repeat=16,
    task_networks=2,
    hesitation=0.03,
    imagined=0.25,
    ahead=5,
    average=500,
    learning_rate_end=0.02,
)
"""One setting for all tasks."""


def _best(task: str | None, gamma: float, method: str, steps: int, mode: str) -> LDQNSettings:
    several = method == "lexicographic"
    gamma = gamma if gamma < 1.0 else BEST.gamma
    explored = min(BEST.epsilon_steps, max(1, steps // 5))
    return replace(
        BEST,
        gamma=gamma,
        trade_offs=BEST.trade_offs if several else None,
        task_networks=BEST.task_networks if several else 1,
        caution=1.0 if several and mode == "wrap" else 0.0,  # around a base, nothing has to be found first
        hesitation=BEST.hesitation if several else 0.0,
        imagined=BEST.imagined if several else 0.0,
        learning_rate_steps=steps,
        epsilon_steps=explored,
    )


PRESETS = {"paper": _paper, "best": _best}
"""Settings by name, given the task (if it is one of the paper's), the discount, the method, the steps and the mode."""
