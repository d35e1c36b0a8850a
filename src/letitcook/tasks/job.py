"""Wait for a job of unknown duration: a build, a download, a washing machine. Look now, or wait?

**Job**: it takes one of `durations` steps, drawn when the episode begins (a duration that is given twice is twice as
likely, so a log of past durations will do), and nobody says when it is done.

**Actions**: 0 check, 1 wait. Both take a step. A check looks at the end of its step; if the job is done by then, the
episode ends.

**Reward**: `-check_cost` for a check, `-lateness_cost` for each step after the job was done. With `cache_steps`, a
check that comes more than so many steps after the one before costs `cache_cost` more: something has expired meanwhile
that has to be made again, such as a cache.

**Observation**: whether a check was made yet, and no more (`hidden`, the default): how long the job has been running,
and when it was last looked at, is for the policy to remember. With `hidden=False`: the steps that are left.

The exact optimum is `plan(make("job"))`; `letitcook.poll` computes the same schedule for real time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from letitcook.errors import SettingError, SpaceError
from letitcook.tasks.clocks import drawn, read_times
from letitcook.tasks.task import Task

ACTIONS = ("check", "wait")
CHECK, WAIT = range(2)
DURATIONS = (8, 9, 10, 10, 10, 11, 12, 26, 28, 30, 30, 32)
"""Usually about 10 steps; sometimes, when everything is built anew, about 30."""

Outcome = tuple[float, "State", float, bool]
"""Probability, next state, reward, terminated."""


class State(NamedTuple):
    """All there is to know about a job."""

    elapsed: int
    """Steps that it has been running."""
    since: int
    """Steps since the last check, as far as they count."""
    checked: int
    """Whether there was one."""
    duration: int
    """Steps that it takes."""

    @property
    def left(self) -> int:
        """Steps until it is done."""
        return max(self.duration - self.elapsed, 0)


class JobEnv(gym.Env[NDArray[np.int64], np.int64 | int]):
    """A job as a Gymnasium environment.

    >>> env = JobEnv(durations=(3,))
    >>> env.reset(seed=0)[0].tolist()
    [0]
    >>> [env.step(action)[1:3] for action in (WAIT, CHECK, WAIT, CHECK)]  # done after the third step, found one later
    [(0.0, False), (-1.0, False), (0.0, False), (-1.1, True)]
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012
    action_names = ACTIONS

    def __init__(
        self,
        durations: int | Sequence[int] = DURATIONS,
        check_cost: float = 1.0,
        lateness_cost: float = 0.1,
        cache_steps: int | None = None,
        cache_cost: float = 0.0,
        hidden: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Set up a job; see the module's description. `render_mode` is None, `"ansi"` or `"rgb_array"`."""
        for name, value in (("check_cost", check_cost), ("lateness_cost", lateness_cost), ("cache_cost", cache_cost)):
            if not (np.isfinite(value) and value >= 0.0):
                raise SettingError(f"{name} = {value!r} is not allowed; give a cost of at least 0")
        if cache_steps is not None and cache_steps < 1:
            raise SettingError(f"cache_steps = {cache_steps!r} is not allowed; give at least 1 step")
        self.times = read_times("durations", durations)
        self.check_cost, self.lateness_cost = float(check_cost), float(lateness_cost)
        self.cache_steps, self.cache_cost = cache_steps, float(cache_cost)
        self.hidden = bool(hidden)
        self.render_mode = render_mode
        self.longest = max(time for _, time in self.times)
        self.observation_space = spaces.MultiDiscrete([2] if self.hidden else [2, self.longest + 1])
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._state = State(0, 0, 0, self.longest)

    def initial_states(self) -> tuple[tuple[float, State], ...]:
        """Return the starts as pairs of probability and state.

        >>> JobEnv(durations=(4, 6, 6, 6)).initial_states()[1]
        (0.75, State(elapsed=0, since=0, checked=0, duration=6))
        """
        return tuple((p, State(0, 0, 0, time)) for p, time in self.times)

    def outcomes(self, state: State, action: int) -> tuple[Outcome, ...]:
        """Return what `action` leads to from `state`: probability, next state, reward, terminated.

        >>> JobEnv().outcomes(State(9, 0, 0, duration=10), CHECK)
        ((1.0, State(elapsed=10, since=0, checked=1, duration=10), -1.0, True),)
        """
        checks, since = action == CHECK, state.since + 1
        late = state.elapsed >= state.duration
        expired = self.cache_steps is not None and since > self.cache_steps
        cost = self.lateness_cost * late + checks * (self.check_cost + self.cache_cost * expired)
        # What is past counting is not counted, so that states are few.
        elapsed = min(state.elapsed + 1, self.longest)
        kept = 0 if checks or self.cache_steps is None else min(since, self.cache_steps + 1)
        after = State(elapsed, kept, state.checked or int(checks), state.duration)
        return ((1.0, after, 0.0 - cost, bool(checks and after.elapsed >= after.duration)),)

    def observe(self, state: State) -> NDArray[np.int64]:
        """Return the observation of `state`, laid out as in the module's description.

        >>> JobEnv().observe(State(3, 0, 1, 10)).tolist(), JobEnv(hidden=False).observe(State(3, 0, 1, 10)).tolist()
        ([1], [1, 7])
        """
        return np.array([state.checked] if self.hidden else [state.checked, state.left], dtype=np.int64)

    @property
    def state(self) -> State:
        """Where the episode is."""
        return self._state

    def set_state(self, state: State) -> None:
        """Go on from `state`."""
        self._state = state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Begin a job."""
        super().reset(seed=seed)
        starts = [(p, state, 0.0, False) for p, state in self.initial_states()]
        self._state = drawn(starts, self.np_random)[1]
        return self.observe(self._state), {}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        """Check, or wait a step."""
        if not self.action_space.contains(action):
            raise SpaceError(f"action {action!r} is not one of 0..{len(ACTIONS) - 1} ({', '.join(ACTIONS)})")
        ((_, self._state, reward, terminated),) = self.outcomes(self._state, int(action))
        return self.observe(self._state), float(reward), terminated, False, {}

    def render(self) -> NDArray[np.uint8] | str | None:
        """Return the job as text or as a picture, whichever was requested."""
        if self.render_mode == "ansi":
            return job_text(self._state, self.hidden)
        return picture(self._state, self.hidden) if self.render_mode == "rgb_array" else None


def job_text(state: State, hidden: bool = True) -> str:
    """Return the job as a line of text.

    >>> job_text(State(3, 0, 1, 10)), job_text(State(3, 0, 0, 10), hidden=False)
    ('job running for 3 steps, ? left; looked at', 'job running for 3 steps, 7 left; not looked at yet')
    """
    left = "?" if hidden else str(state.left)
    return (
        f"job running for {state.elapsed} steps, {left} left; {'looked at' if state.checked else 'not looked at yet'}"
    )


def picture(state: State, hidden: bool = True) -> NDArray[np.uint8]:
    """Return the job as pixels, `(height, width, 3)`: a clock, with a question mark where it is hidden.

    >>> picture(State(3, 0, 1, 10)).shape
    (240, 240, 3)
    """
    image = Image.new("RGB", (480, 480), "#2c2a28")
    draw = ImageDraw.Draw(image)
    draw.ellipse((60, 30, 420, 390), fill="#fffaf0", outline="#aeb6bf", width=16)
    if not hidden:
        done = 1.0 - state.left / state.duration
        draw.arc((84, 54, 396, 366), -90, -90 + 360 * done, fill="#f2b035" if state.left else "#57b368", width=28)
    font, small = ImageFont.load_default(150), ImageFont.load_default(36)
    draw.text((240, 210), "?" if hidden else str(state.left), fill="#2c2a28", font=font, anchor="mm")
    draw.text((240, 435), f"running for {state.elapsed} steps", fill="#fffaf0", font=small, anchor="mm")
    return np.array(image.resize((240, 240), Image.Resampling.BOX), dtype=np.uint8)


class PollingPolicy:
    """The handwritten agent that looks at every step.

    >>> PollingPolicy().predict([0])
    (0, None)
    """

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, None]:
        """Return the check, whatever was seen."""
        return CHECK, None


TASK = Task(
    name="job",
    env_id="letitcook/Job-v0",
    entry_point="letitcook.tasks.job:JobEnv",
    summary="wait for a job of unknown duration: look now, or wait?",
    actions=ACTIONS,
    wait=WAIT,
    durations=(2, 4, 8),
    horizon=60,
    finite=True,
    base_policy=PollingPolicy,
)
