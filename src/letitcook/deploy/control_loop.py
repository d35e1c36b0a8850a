"""A waiting policy in a control loop: it acts at a fixed rate, and senses only when a decision is due.

Time is cut into periods of `1 / rate_hz` seconds. Period `k` begins at `start + k / rate_hz` on a monotonic clock, so
that late periods do not add up. In each one::

    stop?                    then the loop ends; the last action has had its whole period
    inside a wait: wake?     then the wait ends here
    is a decision due?       then sense, and ask the policy (and the base policy, where it says so)
    act                      the action, or the wait action; where waits hold, the last action again

A decision that was taken in period `k` and asks for `w` steps is over in period `k + w`. A period that lasts longer
than it should runs into the next: whatever periods have begun by then are left out, and the loop goes on with the
first one that has not. So every period begins on time, no two actions are sent in one period, and a wait lasts as
long as it was meant to.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium import spaces

from letitcook.core.decisions import Decisions, Policy
from letitcook.errors import NotFiniteError, SettingError, SpaceError
from letitcook.wrappers.hold import LastAction, is_hold

Ended = Literal["stop", "max_steps", "interrupt", "error"]


class Flag(Protocol):
    """What can be set from elsewhere, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether it is set."""
        ...


class Clock(Protocol):
    """What tells the time and lets it pass."""

    def now(self) -> float:
        """Return seconds since some moment; they never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let that many seconds pass."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Return the monotonic clock's seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class SimulatedClock:
    """A clock that stands still until somebody sleeps: to try a loop out in no time.

    >>> clock = SimulatedClock()
    >>> clock.sleep(1.5)
    >>> clock.now()
    1.5
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Return the seconds that were slept."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Move the time on."""
        self.seconds += seconds


@dataclass
class Counters:
    """What a loop did.

    >>> from letitcook import Decisions
    >>> decisions = Decisions(("go", "stay"), wait=1, durations=(4,))
    >>> counters = run(lambda seen: 2, sense=lambda: 0.0, act=print, rate_hz=10, decisions=decisions, max_steps=4,
    ...     clock=SimulatedClock())
    1
    1
    1
    1
    >>> counters.steps, counters.queries
    (4, 1)
    """

    steps: int = 0
    """Periods that were carried out."""
    queries: int = 0
    """Times that the policy was queried, each after sensing once."""
    base_queries: int = 0
    """Times that the base policy was queried."""
    waited: int = 0
    """Steps in waits, of one step or of more."""
    longest_wait: int = 0
    """Periods of the longest wait."""
    alarms: int = 0
    """Waits that `wake` ended."""
    overruns: int = 0
    """Periods that lasted longer than they should."""
    skipped: int = 0
    """Periods that were left out for it; `steps + skipped` periods have passed."""
    sense_seconds: float = 0.0
    policy_seconds: float = 0.0
    base_seconds: float = 0.0
    ended: Ended = "error"
    """What ended the loop. An error is seen by `on_stop` alone, for it is raised again."""


Decide = Callable[[Any], Any]


def run(
    policy: Policy | Decide,
    sense: Callable[[], Any],
    act: Callable[[Any], object],
    rate_hz: float,
    decisions: Decisions,
    *,
    base: Policy | Decide | None = None,
    wait: Any = None,
    wake: Callable[[], bool] | None = None,
    stop: Callable[[], bool] | Flag | None = None,
    max_steps: int | None = None,
    on_stop: Callable[[Counters], object] | None = None,
    hold: bool = False,
    action_space: spaces.Space[Any] | None = None,
    features: Callable[[Any], Any] | None = None,
    clock: Clock | None = None,
) -> Counters:
    """Control a system with a waiting policy at `rate_hz` periods a second, and return what was done.

    `sense()` returns an observation, `act(action)` sends an action: its index in `decisions.actions`, or, for a wrapper
    `{base, wait} ∪ W`, what `base` answers and the action `wait` that waits. Policies are queried as those of
    Stable-Baselines3, with the state they keep and whether it is the first call; functions of the observation will do.

    During a wait the wait action is sent in every period, or with `hold` once, for systems that keep the last one.
    Where the decisions hold the last action (`wait="hold"` when the policy was made), that action is sent again, and
    the policy sees it beside what was sensed; around a base policy the loop needs the system's `action_space` for that.
    With `features`, the policy sees those of what was sensed, as in `wrap(..., features=...)`, and the base all of it.
    `wake()`, a cheap alarm, is called in every period inside a wait and can end it. The loop ends when `stop` says so,
    after `max_steps` periods, at ctrl-C, SIGTERM or SIGHUP, or with an error, which is raised; `on_stop(counters)` is
    called in any case. What the base answers is checked before it is sent: None, NaN and infinity are errors.

    >>> U = Decisions(("push", "stay"), wait=1, durations=(3,))
    >>> sent = []
    >>> counters = run(
    ...     lambda observation: 2 if observation > 0 else 0,
    ...     sense=lambda: len(sent), act=sent.append, rate_hz=50, decisions=U, max_steps=6, clock=SimulatedClock(),
    ... )
    >>> sent, counters.queries, counters.longest_wait
    ([0, 1, 1, 1, 1, 1], 3, 3)
    """
    _check(rate_hz, decisions, base, wait, max_steps, action_space)
    clock = SystemClock() if clock is None else clock
    counters = Counters()
    last = _last_action(decisions, action_space) if decisions.hold else None
    chooser = _Chooser(_Asked(policy), None if base is None else _Asked(base), decisions, wait, clock, counters, last)
    chooser.features = features
    began = due = promised = 0
    action, waiting = None, False
    with _signals_interrupt() as signals, _stopping(counters, on_stop, signals):
        for k in _periods(rate_hz, clock, counters):
            if _says(stop):
                counters.ended = "stop"
                break
            if counters.steps == max_steps:
                counters.ended = "max_steps"
                break
            if k < due and wake is not None and wake():
                counters.alarms += 1
                due = k
            decided = k >= due
            if decided:
                chooser.policy.ended_early(promised - k)
                action, duration, waiting = chooser.choose(sense)
                began, due = k, k + duration
                promised = due
            if decided or not hold:
                act(action)
            counters.steps += 1
            if waiting:
                counters.waited += 1
                counters.longest_wait = max(counters.longest_wait, k + 1 - began)
    return counters


@contextmanager
def _stopping(counters: Counters, on_stop: Callable[[Counters], object] | None, signals: _Signals) -> Iterator[None]:
    """Call `on_stop` however the loop ends; the error that ended it is the one that is raised."""
    first: BaseException | None = None
    try:
        yield
    except KeyboardInterrupt:
        counters.ended = "interrupt"
    except BaseException as error:
        first = error
    signals.shield()
    try:
        if on_stop is not None:
            on_stop(counters)
    except BaseException as error:
        if first is None:
            raise
        first.add_note(f"on_stop failed after it: {type(error).__name__}: {error}")
    if first is not None:
        raise first


class _Signals:
    """Signals that end a loop as ctrl-C does; once it ends, the next one is left out, so that it can end in peace."""

    def __init__(self) -> None:
        self.ending = False

    def shield(self) -> None:
        """Leave out the next signal."""
        self.ending = True

    def take(self, number: int, frame: Any) -> None:
        """Take a signal."""
        if self.ending:
            self.ending = False  # but not the one after it
            return
        raise KeyboardInterrupt


@contextmanager
def _signals_interrupt() -> Iterator[_Signals]:
    """Let SIGTERM and SIGHUP end the loop as ctrl-C does, where they would kill the process.

    A program's own handlers, and signals that it ignores, are left as they are; so are threads, which get no signals.
    """
    signals = _Signals()
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name, usual in (
            ("SIGINT", signal.default_int_handler),
            ("SIGTERM", signal.SIG_DFL),
            ("SIGHUP", signal.SIG_DFL),
        ):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (usual, signal.SIG_DFL):
                before[number] = signal.signal(number, signals.take)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _says(stop: Callable[[], bool] | Flag | None) -> bool:
    if stop is None:
        return False
    return stop() if callable(stop) else stop.is_set()


def _periods(rate_hz: float, clock: Clock, counters: Counters) -> Iterator[int]:
    """Yield the number of each period when it begins, without those that had begun while another one was under way."""
    start, k = clock.now(), 0
    while True:
        yield k
        k += 1
        late = clock.now() - start
        if late > k / rate_hz:
            following = max(k + 1, math.ceil(late * rate_hz))
            counters.overruns += 1
            counters.skipped += following - k
            k = following
        while (left := start + k / rate_hz - clock.now()) > 0.0:  # a sleep may be short
            clock.sleep(left)


class _Asked:
    """A policy with what it keeps between its calls."""

    def __init__(self, policy: Policy | Decide) -> None:
        self._policy = policy if isinstance(policy, Policy) else None
        self._function = None if isinstance(policy, Policy) else policy
        self._state: Any = None
        self._start = True

    def ended_early(self, steps: int) -> None:
        """Tell a policy that counts on its decisions that the last one ended so much before its time, or after it."""
        tell = getattr(self._policy, "ended_early", None)
        if steps != 0 and not self._start and tell is not None:
            self._state = tell(self._state, steps)

    def answer(self, observation: Any) -> Any:
        """Return the policy's answer to an observation."""
        if self._function is not None:
            return self._function(observation)
        assert self._policy is not None
        answer, self._state = self._policy.predict(
            observation, self._state, np.array([self._start]), deterministic=True
        )
        self._start = False
        return answer


@dataclass
class _Chooser:
    """What senses and decides, and counts it."""

    policy: _Asked
    base: _Asked | None
    decisions: Decisions
    wait: Any
    clock: Clock
    counters: Counters
    last_action: LastAction | None = None
    """How the policy sees the last action, where waits hold it."""
    sent: Any = None
    """The last action that was sent, where waits hold it."""
    features: Callable[[Any], Any] | None = None
    """What the policy sees of an observation, where not the whole of it."""

    def choose(self, sense: Callable[[], Any]) -> tuple[Any, int, bool]:
        """Return the action to send, for how many periods, and whether it waits."""
        counters, clock = self.counters, self.clock
        begun = clock.now()
        observation = sense()
        sensed = clock.now()
        counters.sense_seconds += sensed - begun
        seen = observation if self.features is None else self.features(observation)
        if self.last_action is not None:
            seen = self.last_action.shown(seen, self.sent)
        decision = self._checked(self.policy.answer(seen))
        decided = clock.now()
        counters.policy_seconds += decided - sensed
        counters.queries += 1
        action = int(self.decisions.actions_of[decision])
        waiting = action == self.decisions.wait
        duration = int(self.decisions.durations_of[decision])
        holding = waiting and self.last_action is not None
        if self.base is None:
            if holding:
                action = 0 if self.sent is None else self.sent
            self.sent = action
            return action, duration, waiting
        if waiting and not (holding and self.sent is None):  # at first there is nothing to hold
            return self.sent if holding else self.wait, duration, True
        self.sent = _sendable(self.base.answer(observation))
        counters.base_seconds += clock.now() - decided
        counters.base_queries += 1
        return self.sent, duration, waiting

    def _checked(self, answer: Any) -> int:
        array = np.asarray(answer)
        if array.size != 1 or array.item() not in range(self.decisions.n):
            raise SpaceError(
                f"the policy answered {answer!r}, which is not one of the decisions 0..{self.decisions.n - 1}; "
                "was it learned with other decisions?"
            )
        return int(array.item())


def _sendable(action: Any) -> Any:
    """Return what a base policy answered, or raise if it is nothing that a system should be sent."""
    if action is None:
        raise SpaceError("the base policy answered None, which is no action; was it asked for an observation it knows?")
    try:
        numbers = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        return action  # not numbers: what it means is the system's matter
    if not np.isfinite(numbers).all():
        raise NotFiniteError(f"the base policy answered {action!r}, which is not finite; nothing was sent")
    return action


def _last_action(decisions: Decisions, action_space: spaces.Space[Any] | None) -> LastAction:
    """Return how a policy that holds sees the last action."""
    if decisions.has_base:
        assert action_space is not None
        return LastAction(action_space)
    return LastAction(spaces.Discrete(len(decisions.actions) - 1))


def _check(
    rate_hz: float,
    decisions: Decisions,
    base: object,
    wait: object,
    max_steps: int | None,
    action_space: spaces.Space[Any] | None,
) -> None:
    if not (math.isfinite(rate_hz) and rate_hz > 0.0):
        raise SettingError(f"rate_hz = {rate_hz} is not allowed; give the periods a second, such as 50")
    if max_steps is not None and max_steps < 1:
        raise SettingError(f"max_steps = {max_steps} is not allowed; carry out at least 1 period")
    if decisions.has_base and decisions.hold:
        if base is None or action_space is None:
            raise SettingError(
                "these are the decisions of a wrapper that holds the base policy's last action; give the policy as "
                "base=..., and the system's action space as action_space=..."
            )
        if wait is not None and not is_hold(wait):
            raise SettingError(f"the policy was made to hold the last action, and not to wait with {wait!r}")
        return
    if action_space is not None:
        raise SettingError("action_space goes with a wrapper whose waits hold the last action; leave it out")
    if decisions.has_base and (base is None or wait is None):
        raise SettingError(
            "these are the decisions of a wrapper around a base policy; give the policy as base=..., and the system's "
            "own action that waits as wait=..."
        )
    if not decisions.has_base and (base is not None or wait is not None):
        raise SettingError(
            f"base and wait go with the decisions of a wrapper, and these are {decisions.actions}; leave them out"
        )
