"""What it means to wait in an environment that has no action for it; for `AddedWait` and `letitcook wrap --passive`."""

from typing import Any


def no_force(cartpole: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Let one step of the unwrapped CartPole pass without a push."""
    force, cartpole.force_mag = cartpole.force_mag, 0.0
    try:
        step: tuple[Any, float, bool, bool, dict[str, Any]] = cartpole.step(0)
        return step
    finally:
        cartpole.force_mag = force
