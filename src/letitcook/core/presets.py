"""What a preset may depend on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PresetContext:
    """A run as far as a preset has to know it, before its settings are made."""

    method: str = "lexicographic"
    task: str | None = None
    """Name of the task, if it is one of the paper's."""
    has_base: bool = False
    """Whether a base policy is wrapped."""
    gamma: float = 1.0
    """Discount of the environment."""
    deterministic: bool = True
    """Whether its transitions are, where they are known."""
    timesteps: int = 1_000_000
    """How long the run is to be."""
    highest_reward: float = 0.0
    """Of a step, where it is known; at least 0."""
