"""The control loop, in simulated time: the same decisions as in the environment, periods on time, clean ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from letitcook import Decisions, WaitingEnv, make, plan, rollout
from letitcook.core.decisions import WRAPPER
from letitcook.deep.network import initial_parameters
from letitcook.deep.policy import NetworkPolicy
from letitcook.deploy import control_loop
from letitcook.deploy.control_loop import Counters, SimulatedClock, run
from letitcook.errors import NotFiniteError, SettingError, SpaceError
from letitcook.tasks import task_named

U = Decisions(("push", "stay"), wait=1, durations=(4, 10))
PUSH, STAY, WAIT_4, WAIT_10 = range(4)


class World:
    """An environment as a system to be sensed and acted on."""

    def __init__(self, env: WaitingEnv, seed: int) -> None:
        self.env = env
        self.observation, _ = env.reset(seed=seed)
        self.sent: list[Any] = []
        self.sensed = 0
        self.over = False

    def sense(self) -> Any:
        self.sensed += 1
        return self.observation

    def act(self, action: Any) -> None:
        assert not self.over
        self.sent.append(action)
        self.observation, _, terminated, truncated, _ = self.env.act(action)
        self.over = terminated or truncated


class Script:
    """A policy that says one decision after another, and keeps what it was asked with."""

    def __init__(self, *decisions: int) -> None:
        self.decisions = decisions
        self.asked: list[tuple[Any, Any, list[bool]]] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        assert deterministic
        self.asked.append((observation, state, episode_start.tolist()))
        n = 0 if state is None else state
        return np.array([self.decisions[n % len(self.decisions)]]), n + 1


class Recorder:
    """A system that notes when it was sensed and acted on; each may take time."""

    def __init__(self, sense_time: float = 0.0, act_time: Callable[[int], float] = lambda n: 0.0) -> None:
        self.clock = SimulatedClock()
        self.sensed: list[float] = []
        self.acted: list[float] = []
        self.sent: list[Any] = []
        self._sense_time, self._act_time = sense_time, act_time

    def sense(self) -> int:
        self.sensed.append(self.clock.now())
        self.clock.sleep(self._sense_time)
        return len(self.sent)

    def act(self, action: Any) -> None:
        self.acted.append(self.clock.now())
        self.sent.append(action)
        self.clock.sleep(self._act_time(len(self.sent) - 1))

    def run(self, policy: Any, rate_hz: float = 10.0, decisions: Decisions = U, **options: Any) -> Counters:
        return run(policy, self.sense, self.act, rate_hz, decisions, clock=self.clock, **options)


# --- the same as in the environment ---


def test_a_plan_acts_as_in_the_kitchen() -> None:
    env = make("cook")
    policy = plan(env).policy
    episode = rollout(env, policy, seed=0)
    world = World(env, seed=0)
    counters = run(policy, world.sense, world.act, 10, env.decisions, stop=lambda: world.over, clock=SimulatedClock())
    expected = [
        int(env.decisions.actions_of[u])
        for u, n in zip(episode.decisions, episode.elapsed, strict=True)
        for _ in range(n)
    ]
    assert world.sent == expected
    assert (counters.steps, counters.queries, world.sensed) == (33, 25, 25)
    assert (counters.waited, counters.longest_wait) == (expected.count(env.decisions.wait), 5)
    assert counters.ended == "stop"
    assert counters.base_queries == counters.overruns == counters.skipped == counters.alarms == 0


@pytest.mark.parametrize("task", ["cook", "coffee"])
def test_a_wrapper_asks_its_base_policy(task: str) -> None:
    env, inner = make(task, mode="wrap"), task_named(task)
    policy = plan(env).policy
    episode = rollout(env, policy, seed=0)
    world = World(env, seed=0)
    base = inner.base_policy()  # type: ignore[misc]
    counters = run(
        policy,
        world.sense,
        world.act,
        10,
        env.decisions,
        base=base,
        wait=inner.wait,
        stop=lambda: world.over,
        clock=SimulatedClock(),
    )
    assert (counters.steps, counters.queries) == (episode.length, episode.queries)
    assert counters.base_queries == episode.base_queries < episode.queries


def test_networks_act_as_in_cartpole() -> None:
    env = make("cartpole")
    sizes = (4, 16, env.decisions.n)
    lengths = set()
    for seed in range(8):
        policy = NetworkPolicy(initial_parameters(sizes, 2, np.random.default_rng(seed)), sizes, slack=0.05)
        episode = rollout(env, policy, seed=seed)
        world = World(env, seed=seed)
        counters = run(
            policy,
            world.sense,
            world.act,
            50,
            env.decisions,
            stop=lambda w=world: w.over,  # type: ignore[misc]
            clock=SimulatedClock(),
        )
        assert (counters.steps, counters.queries) == (episode.length, episode.queries)
        waited = [
            n
            for u, n in zip(episode.decisions, episode.elapsed, strict=True)
            if env.decisions.actions_of[u] == env.decisions.wait
        ]
        assert (counters.waited, counters.longest_wait) == (sum(waited), max(waited, default=0))
        lengths.add((episode.length, episode.queries))
    assert len(lengths) > 4


def test_policies_keep_their_state() -> None:
    policy, base = Script(0, 0, 1), Script(7, 8)
    system = Recorder()
    counters = system.run(policy, decisions=Decisions(("base", "wait"), 1), base=base, wait="idle", max_steps=5)
    assert [np.asarray(action).item() for action in system.sent] == [7, 8, "idle", 7, 8]
    assert policy.asked == [(n, n or None, [n == 0]) for n in range(5)]
    assert [state for _, state, _ in base.asked] == [None, 1, 2, 3]
    assert [start for _, _, start in base.asked] == [[True], [False], [False], [False]]
    assert (counters.queries, counters.base_queries, counters.waited) == (5, 4, 1)


# --- waits ---


def test_nothing_is_sensed_inside_a_wait() -> None:
    system = Recorder()
    counters = system.run(Script(PUSH, WAIT_4, STAY, WAIT_10), max_steps=16)
    assert system.sent == [PUSH] + [STAY] * 15
    assert system.sensed == pytest.approx([0.0, 0.1, 0.5, 0.6])
    assert system.acted == pytest.approx(np.arange(16) / 10)
    assert (counters.queries, counters.waited, counters.longest_wait) == (4, 15, 10)
    assert counters.ended == "max_steps"
    assert system.clock.now() == pytest.approx(1.6), "the last action has its whole period"


def test_with_hold_a_wait_is_sent_once() -> None:
    system = Recorder()
    counters = system.run(Script(PUSH, WAIT_4), max_steps=10, hold=True)
    assert system.sent == [PUSH, STAY, PUSH, STAY]
    assert system.acted == pytest.approx([0.0, 0.1, 0.5, 0.6])
    assert (counters.steps, counters.queries, counters.waited) == (10, 4, 8)


def test_an_alarm_ends_a_wait() -> None:
    system = Recorder()
    tested: list[float] = []

    def wake() -> bool:
        tested.append(round(system.clock.now(), 9))
        return tested[-1] == 0.3

    counters = system.run(Script(WAIT_10, PUSH, WAIT_4), wake=wake, max_steps=8)
    assert system.sensed == pytest.approx([0.0, 0.3, 0.4])
    assert system.sent == [STAY] * 3 + [PUSH] + [STAY] * 4
    assert tested == [0.1, 0.2, 0.3, 0.5, 0.6, 0.7], "only inside waits"
    assert (counters.alarms, counters.queries, counters.longest_wait, counters.waited) == (1, 3, 4, 7)


# --- time ---


def test_ten_thousand_jittery_periods_do_not_drift() -> None:
    rng = np.random.default_rng(0)
    jitter = rng.uniform(0.0, 0.004, 10_000)
    system = Recorder(sense_time=0.003, act_time=lambda n: float(jitter[n]))

    def think(observation: int) -> int:
        system.clock.sleep(float(jitter[-1 - observation]) / 2)
        return (PUSH, WAIT_4)[observation % 2]

    counters = system.run(think, rate_hz=100.0, max_steps=10_000)
    assert (counters.steps, counters.overruns, counters.skipped) == (10_000, 0, 0)
    assert system.clock.now() == pytest.approx(100.0, abs=1e-9)
    inside = np.array(system.acted) - np.arange(10_000) / 100.0
    assert (inside > -1e-9).all()
    assert (inside < 0.0051).all()
    assert np.isclose(inside, 0.0, atol=1e-9).sum() == 10_000 - counters.queries, "acts inside waits are on time"
    assert counters.sense_seconds == pytest.approx(0.003 * counters.queries)
    assert 0.0 < counters.policy_seconds < 0.002 * counters.queries


def test_what_is_late_is_left_out_and_never_made_up_for() -> None:
    # The act of step 2 takes three and a half periods of 0.1 s, that of step 5 a little more than one.
    system = Recorder(act_time=lambda n: {2: 0.35, 5: 0.1001}.get(n, 0.0))
    counters = system.run(Script(PUSH), max_steps=8)
    assert system.acted == pytest.approx([0.0, 0.1, 0.2, 0.6, 0.7, 0.8, 1.0, 1.1])
    assert (counters.steps, counters.overruns, counters.skipped) == (8, 2, 4)
    assert system.clock.now() == pytest.approx((counters.steps + counters.skipped) / 10)


def test_a_period_that_is_used_up_exactly_is_not_late() -> None:
    system = Recorder(act_time=lambda n: 0.125)
    counters = system.run(Script(PUSH), rate_hz=8.0, max_steps=20)
    assert system.acted == [n / 8 for n in range(20)]
    assert counters.overruns == 0


def test_a_wait_lasts_as_long_as_it_was_meant_to() -> None:
    system = Recorder(act_time=lambda n: 0.25 if n == 1 else 0.0)
    counters = system.run(Script(WAIT_10, PUSH), max_steps=9)
    assert system.sensed == pytest.approx([0.0, 1.0])
    assert system.sent == [STAY] * 8 + [PUSH]
    assert (counters.skipped, counters.waited, counters.longest_wait) == (2, 8, 10)


def test_a_policy_slower_than_its_wait_is_asked_again_at_once() -> None:
    system = Recorder(sense_time=0.55)
    counters = system.run(Script(WAIT_4), max_steps=2)
    assert system.sensed == pytest.approx([0.0, 0.6])
    assert (counters.queries, counters.overruns, counters.skipped) == (2, 2, 10)


def test_a_sleep_may_be_short() -> None:
    class Restless(SimulatedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds if seconds < 1e-6 else seconds / 2)

    system = Recorder()
    system.clock = Restless()
    system.run(Script(PUSH), max_steps=5)
    assert system.acted == pytest.approx(np.arange(5) / 10)


def test_without_a_clock_it_is_the_machines_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    system = Recorder()
    machine = SimpleNamespace(monotonic=system.clock.now, sleep=system.clock.sleep)
    monkeypatch.setattr(control_loop, "time", machine)
    run(Script(WAIT_4), system.sense, system.act, 20, U, max_steps=6)
    assert system.acted == pytest.approx(np.arange(6) / 20)
    assert system.sensed == pytest.approx([0.0, 0.2])


# --- ends ---


def test_an_event_stops_the_loop() -> None:
    seen: list[Any] = []
    event = threading.Event()

    def press(n: int) -> float:
        if n == 6:
            event.set()
        return 0.0

    system = Recorder(act_time=press)
    counters = system.run(Script(WAIT_10), stop=event, on_stop=seen.append)
    assert (counters.steps, counters.ended) == (7, "stop")
    assert seen == [counters]


def test_a_loop_that_is_stopped_before_it_starts_does_nothing() -> None:
    system = Recorder()
    counters = system.run(Script(PUSH), stop=lambda: True)
    assert (counters.steps, counters.queries, system.sent, system.sensed) == (0, 0, [], [])


@pytest.mark.parametrize("place", ["sense", "policy", "act", "wake", "stop"])
def test_an_error_is_raised_after_the_system_was_stopped(place: str) -> None:
    seen: list[Any] = []
    system, calls = Recorder(), dict.fromkeys(("sense", "policy", "act", "wake", "stop"), 0)

    def at(name: str, result: Any) -> Any:
        calls[name] += 1
        if name == place and calls[name] == 2:
            raise RuntimeError(name)
        return result

    with pytest.raises(RuntimeError, match=place):
        run(
            lambda observation: at("policy", WAIT_4),
            sense=lambda: at("sense", 0),
            act=lambda action: at("act", None),
            rate_hz=10,
            decisions=U,
            wake=lambda: at("wake", False),
            stop=lambda: at("stop", False),
            on_stop=seen.append,
            clock=system.clock,
        )
    (counters,) = seen
    assert counters.ended == "error"
    assert counters.steps == {"sense": 4, "policy": 4, "act": 1, "wake": 2, "stop": 1}[place]


def test_ctrl_c_stops_the_loop_and_returns_what_was_done() -> None:
    seen: list[Counters] = []

    def press(n: int) -> float:
        if n == 3:
            signal.raise_signal(signal.SIGINT)
        return 0.0

    system = Recorder(act_time=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        counters = system.run(Script(PUSH), on_stop=seen.append, max_steps=100)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (counters.steps, counters.ended) == (3, "interrupt")
    assert seen == [counters]


# --- mistakes ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate_hz": 0.0}, "rate_hz = 0.0"),
        ({"rate_hz": float("inf")}, "rate_hz = inf"),
        ({"max_steps": 0}, "max_steps = 0"),
        ({"base": Script(0), "wait": 1}, "leave them out"),
        ({"decisions": Decisions(("base", "wait"), 1)}, "give the policy as base"),
        ({"decisions": Decisions(("base", "wait"), 1), "base": Script(0)}, "as wait=..."),
    ],
)
def test_mistakes_are_said_before_anything_moves(options: dict[str, Any], message: str) -> None:
    system = Recorder()
    with pytest.raises(SettingError, match=message):
        system.run(Script(PUSH), **options)
    assert system.sent == system.sensed == []


@pytest.mark.parametrize("answer", [4, -1, 1.5, float("nan"), [0, 1]])
def test_an_answer_that_is_no_decision_is_not_carried_out(answer: Any) -> None:
    system = Recorder()
    with pytest.raises(SpaceError, match="0..3"):
        system.run(lambda observation: answer)
    assert system.sent == []


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_would_kill_reach_on_stop(which: signal.Signals) -> None:
    stopped: list[Counters] = []

    def act(action: Any) -> None:
        sent.append(action)
        if len(sent) == 3:
            signal.raise_signal(which)

    def on_stop(counters: Counters) -> None:
        signal.raise_signal(which)  # an impatient supervisor does not keep the system from being stopped
        stopped.append(counters)

    sent: list[Any] = []
    before = signal.signal(which, signal.SIG_DFL)
    try:
        counters = run(lambda o: 0, lambda: 0, act, 50, U, on_stop=on_stop, clock=SimulatedClock())
        assert signal.getsignal(which) is signal.SIG_DFL
    finally:
        signal.signal(which, before)
    assert stopped == [counters]
    assert counters.ended == "interrupt"


def test_an_on_stop_that_raises_does_not_hide_the_error_before_it() -> None:

    def act(action: Any) -> None:
        raise ZeroDivisionError("first")

    def on_stop(counters: Counters) -> None:
        raise KeyError("second")

    with pytest.raises(ZeroDivisionError, match="first") as raised:
        run(lambda o: 0, lambda: 0, act, 50, U, on_stop=on_stop, clock=SimulatedClock())
    assert raised.value.__notes__ == ["on_stop failed after it: KeyError: 'second'"]
    with pytest.raises(KeyError, match="second"):
        run(lambda o: 0, lambda: 0, lambda a: None, 50, U, on_stop=on_stop, max_steps=1, clock=SimulatedClock())


@pytest.mark.parametrize("answer", [None, float("nan"), [0.0, float("inf")], np.array([np.nan])])
def test_what_a_base_should_not_say_is_not_sent(answer: Any) -> None:
    sent: list[Any] = []
    wrapper = Decisions(WRAPPER, wait=1, durations=(3,))
    with pytest.raises((SpaceError, NotFiniteError), match="the base policy answered"):
        run(
            lambda o: 0, lambda: 0, sent.append, 50, wrapper,
            base=lambda o: answer, wait=0, max_steps=2, clock=SimulatedClock(),
        )  # fmt: skip
    assert sent == []
