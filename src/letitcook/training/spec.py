"""What is to be trained: method, settings and length of a run, before and after they are resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from letitcook.core.decisions import Decisions, Timesteps
from letitcook.core.objective import Objective
from letitcook.core.presets import PresetContext
from letitcook.deep.settings import PRESETS as DEEP_PRESETS
from letitcook.deep.settings import LDQNSettings
from letitcook.errors import SettingError, UnknownNameError
from letitcook.finite.settings import PRESETS as FINITE_PRESETS
from letitcook.finite.settings import QSettings
from letitcook.storage.setting_values import with_overrides
from letitcook.training.selection import NONE, Tolerance
from letitcook.wrappers.memory import Memory

METHODS = ("lexicographic", "scalar", "vanilla")
Kind = Literal["table", "network"]
Settings = QSettings | LDQNSettings
PRESETS: dict[Kind, Mapping[str, Any]] = {"table": FINITE_PRESETS, "network": DEEP_PRESETS}
PAPER_LENGTH = {"table": Timesteps(10_000_000), "network": Timesteps(1_000_000, "decision")}
"""How long a run of the paper is, with tables and with networks, see docs/fidelity.md."""
BEST_LENGTH = {"table": Timesteps(10_000_000), "network": Timesteps(200_000)}
"""How long a run is with any other preset."""


@dataclass(frozen=True)
class RunSpec:
    """What is to be trained; what is not said is the preset's."""

    method: str = "lexicographic"
    lam: float | None = None
    seed: int = 0
    preset: str = ""
    """`paper`, `best` or `exact`; if empty, the usual one of the environment."""
    settings: Settings | Mapping[str, Any] = field(default_factory=dict)
    """All settings, or values that take the place of the preset's."""
    length: Timesteps | None = None
    tolerance: Tolerance = NONE
    """Loss of mean task return that is accepted for fewer queries."""
    memory: Memory | int | str | None = None
    """What the policy remembers: a memory, a number of past decisions, or `"auto"`."""

    @property
    def objective(self) -> Objective:
        """What the method optimises."""
        return objective_of(self.method, self.lam)

    def length_for(self, kind: Kind) -> Timesteps:
        """Return how long the run is, with tables or with networks."""
        return self.length or default_length(kind, self.preset)

    def settings_for(self, kind: Kind, context: PresetContext) -> Settings:
        """Return every setting, with tables or with networks.

        >>> RunSpec(preset="paper", settings={"slack": 1}).settings_for("network", PresetContext(task="pong")).slack
        1.0
        """
        wanted = QSettings if kind == "table" else LDQNSettings
        if isinstance(self.settings, QSettings | LDQNSettings):
            if not isinstance(self.settings, wanted):
                raise SettingError(
                    f"this environment is learned with {kind}s, which take {wanted.__name__}, "
                    f"and {type(self.settings).__name__} was given"
                )
            return self.settings
        if self.preset not in PRESETS[kind]:
            raise UnknownNameError("preset" if kind == "table" else "preset for networks", self.preset, PRESETS[kind])
        made: Settings = PRESETS[kind][self.preset](context)
        return with_overrides(made, self.settings)


def default_length(kind: Kind, preset: str) -> Timesteps:
    """Return how long a run is if nothing is said.

    >>> str(default_length("network", "paper")), str(default_length("network", "best"))
    ('1,000,000 decisions', '200,000 steps')
    """
    return (PAPER_LENGTH if preset == "paper" else BEST_LENGTH)[kind]


def objective_of(method: str, lam: float | None = None) -> Objective:
    """Return what a method optimises.

    >>> objective_of("vanilla").name, objective_of("scalar", 0.1).lam
    ('task', 0.1)
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    return Objective.named("task" if method == "vanilla" else method, lam)


def decisions_of(method: str, decisions: Decisions) -> Decisions:
    """Return the decisions that a method has: vanilla has no waits."""
    return replace(decisions, durations=()) if method == "vanilla" else decisions
