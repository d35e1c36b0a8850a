"""What the simulated tasks share: a Gymnasium environment around one compiled dynamics.

A dynamics is three kernels on an array of float64, the state. The environment here and the compiled training loop
call the same ones, so there is one truth about each task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from letitcook.errors import SettingError, SpaceError

State = NDArray[np.float64]
Random = NDArray[np.uint64]
Observation = NDArray[np.float32]
Draw = Callable[[State], NDArray[np.uint8]]

SMOOTH = 3
"""Pictures are drawn this many times larger and scaled down, for smooth edges."""


class Dynamics(NamedTuple):
    """How a task moves: the kernels, and the length of the state they work on."""

    size: int
    reset: Callable[[State, Random], None]
    """Write a first state."""
    step: Callable[[State, int, Random], tuple[float, bool]]
    """Move the state on by one primitive action; returns the reward and whether the episode has ended."""
    observe: Callable[[State, Observation], None]
    """Write what is seen of the state."""


class SimulatedEnv(gym.Env[Observation, np.int64]):
    """A Gymnasium environment around a compiled dynamics."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012 (Gymnasium's own form)

    action_names: tuple[str, ...]
    """Names of the primitive actions."""

    def __init__(self, dynamics: Dynamics, space: spaces.Box, draw: Draw, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise SettingError(f"render mode {render_mode!r} is not known; use 'rgb_array', or None for no pictures")
        self.observation_space = space  # type: ignore[assignment]
        self.action_space = spaces.Discrete(len(self.action_names))
        self.render_mode = render_mode
        self.state: State = np.zeros(dynamics.size)
        self._dynamics = dynamics
        self._draw = draw
        self._shape: tuple[int, ...] = space.shape
        self._rng: Random = np.zeros(1, dtype=np.uint64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._rng[0] = self.np_random.integers(2**63)
        self._dynamics.reset(self.state, self._rng)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move on by one primitive action."""
        if not self.action_space.contains(action):
            raise SpaceError(f"action {action!r} is outside {self.action_space}")
        reward, terminated = self._dynamics.step(self.state, int(action), self._rng)
        return self._observation(), reward, terminated, False, {}

    def render(self) -> NDArray[np.uint8] | None:
        """Return a picture of the state, `(height, width, 3)`, or None if no render mode was requested."""
        return self._draw(self.state) if self.render_mode == "rgb_array" else None

    def _observation(self) -> Observation:
        seen = np.empty(self._shape, dtype=np.float32)
        self._dynamics.observe(self.state, seen)
        return seen


class Canvas:
    """A picture in its own units: `scale` pixels a unit, x to the right, y down, edges smooth.

    >>> canvas = Canvas(width=4, height=2, scale=10, background="white")
    >>> canvas.box(0, 0, 1, 1, "black")
    >>> canvas.pixels().shape
    (20, 40, 3)
    """

    def __init__(self, width: float, height: float, scale: float, background: str) -> None:
        self._size = round(width * scale), round(height * scale)
        self._scale = scale * SMOOTH
        self._image = Image.new("RGB", (self._size[0] * SMOOTH, self._size[1] * SMOOTH), background)
        self._pen = ImageDraw.Draw(self._image)

    def box(self, left: float, top: float, right: float, bottom: float, colour: str, radius: float = 0.0) -> None:
        """Fill a rectangle, with round corners if asked for."""
        s = self._scale
        self._pen.rounded_rectangle((left * s, top * s, right * s, bottom * s), radius * s, fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: str) -> None:
        """Fill a circle."""
        s = self._scale
        self._pen.ellipse(((x - radius) * s, (y - radius) * s, (x + radius) * s, (y + radius) * s), fill=colour)

    def line(self, points: list[tuple[float, float]], width: float, colour: str) -> None:
        """Draw a line through the points."""
        s = self._scale
        self._pen.line([(x * s, y * s) for x, y in points], fill=colour, width=max(1, round(width * s)), joint="curve")

    def area(self, points: list[tuple[float, float]], colour: str) -> None:
        """Fill a polygon."""
        self._pen.polygon([(x * self._scale, y * self._scale) for x, y in points], fill=colour)

    def pixels(self) -> NDArray[np.uint8]:
        """Return the picture, `(height, width, 3)`."""
        return np.array(self._image.resize(self._size, Image.Resampling.BOX), dtype=np.uint8)
