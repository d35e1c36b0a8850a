from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from letitcook import ScalarisedEnv, WaitingEnv, evaluate, learn, load, make, plan, wrap
from letitcook.core.decisions import Decisions, Timesteps
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.settings import LDQNSettings
from letitcook.errors import FileFormatError, NotFiniteError, SettingError, UnknownNameError
from letitcook.finite.plan import plan_tables
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import Tables, enumerate_env
from letitcook.training.learn import prepare, prepare_tables
from letitcook.training.loop import EvaluationPlan, Training
from letitcook.training.progress import phases
from letitcook.training.run import RunInfo
from letitcook.training.spec import RunSpec, decisions_of, objective_of
from naive import policy_value


class Scripted:
    """A learner whose evaluations are given."""

    def __init__(self, *results: tuple[float, float]) -> None:
        self.results, self.steps, self.timestep = results, 0, "step"

    @property
    def decisions_taken(self) -> int:
        return self.steps // 2

    def advance(self, steps: int, decisions: int) -> None:
        self.steps += steps + 3  # decisions do not end where evaluations are due

    def greedy_episodes(self, episodes: int, seed: int) -> np.ndarray:
        task, queries = self.results[(self.steps - 1) // 10 - 1]
        return np.array([[task, -task, queries, 0.0]] * episodes)

    def play(self, policy: int, episodes: int, seed: int, common_random_numbers: bool = False) -> np.ndarray:
        return np.zeros((episodes, 4))

    def policy(self, z: float | None = None) -> int:
        return self.steps

    log_lambda_range = None


def info(method: str = "lexicographic") -> RunInfo:
    return RunInfo("table", method, None, 0, "paper", QSettings(), Decisions(("go", "stay"), 1, (2,)))


RESULTS = ((-40.0, 30.0), (-33.0, 29.0), (-33.0, 25.0), (-33.0, 25.0), (-34.0, 3.0))


@pytest.mark.parametrize(
    ("method", "lam", "best"),
    [("lexicographic", None, 2), ("scalar", 0.01, 2), ("scalar", 5.0, 4), ("vanilla", None, 1)],
)
def test_the_best_by_the_methods_own_objective_is_kept(method: str, lam: float | None, best: int) -> None:
    plan, length = EvaluationPlan(every=10), Timesteps(50)
    training = Training(Scripted(*RESULTS), objective_of(method, lam), info(method), length, plan)  # type: ignore[arg-type]
    points = list(training.run())
    assert [p.step for p in points] == [13, 23, 33, 43, 53]
    assert training.best == points[best]
    assert training.policy == points[best].step


def test_of_equally_good_checkpoints_the_first_or_the_last_is_kept() -> None:
    for equal, best in (("first", 2), ("last", 3)):
        plan, length = EvaluationPlan(every=10, equal=equal), Timesteps(50)  # type: ignore[arg-type]
        training = Training(Scripted(*RESULTS), objective_of("lexicographic"), info(), length, plan)  # type: ignore[arg-type]
        points = list(training.run())
        assert training.policy == points[best].step


@pytest.mark.parametrize("clock", ["step", "decision"])
@pytest.mark.parametrize("unit", ["step", "decision"])
def test_length_and_evaluations_count_steps_or_decisions(clock: str, unit: str) -> None:
    training = prepare(make("cook"), RunSpec(settings={"timestep": clock}, length=Timesteps(25_000, unit)))  # type: ignore[arg-type]
    points = list(training.run())
    passed = {"step": [p.step for p in points], "decision": [p.decision for p in points]}
    due = [count // 10_000 for count in passed[clock]]
    assert 25_000 <= passed[unit][-1] < 25_015
    assert due[:-1] == list(range(1, len(due))), "an evaluation at each multiple of 10,000"
    assert passed["step"][-1] > passed["decision"][-1] + 1_000


@pytest.mark.parametrize(
    ("task", "mode", "steps"),
    [("cook", "scratch", 800_000), ("cook", "wrap", 50_000), ("cook-longer", "wrap", 50_000),
     ("cook-twice", "wrap", 80_000), ("coffee", "wrap", 50_000)],
)  # fmt: skip
def test_the_exact_preset_reaches_the_exact_optimum(task: str, mode: str, steps: int) -> None:
    env = make(task, mode=mode)
    best = plan(env)
    for seed in range(3):
        learned = learn(env, steps=steps, seed=seed, preset="exact", progress=False)
        assert (learned.length, learned.queries) == (best.length, best.queries), seed


def test_what_was_learned_is_what_the_real_environment_shows() -> None:
    env = make("coffee", mode="wrap")
    learned = learn(env, steps=30_000, seed=1, progress=False)
    played = evaluate(env, learned.policy, episodes=1)
    assert (played.length, played.queries, played.base_queries) == (
        learned.length,
        learned.queries,
        learned.best.base_queries,
    )
    assert 30_000 <= learned.curve[-1].step < 30_015
    assert learned.info.task == "coffee"


def test_vanilla_never_waits() -> None:
    env = make("cook")
    learned = learn(env, method="vanilla", steps=100_000, preset="exact", progress=False)
    assert learned.length == learned.queries
    assert decisions_of("vanilla", env.decisions).durations == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_slippery_frozen_lake_is_learned_to_the_planned_value(seed: int) -> None:
    env = WaitingEnv(gym.make("FrozenLake-v1", is_slippery=True), wait=0, durations=(2, 4))
    best = plan(env)
    runs_out = {"bootstrap_on_truncation": False}  # the time does, in many episodes
    learned = learn(env, steps=600_000, seed=seed, preset="best", settings=runs_out, progress=False)
    assert isinstance(learned.info.settings, QSettings)
    assert learned.info.settings.backup == "full"  # detected: transitions are random
    J0, J1 = policy_value(enumerate_env(env), env.decisions, 100, learned.policy.table, 1.0)  # type: ignore[attr-defined]
    assert 0.99 * best.task_return < J0 <= best.task_return  # the plan knows how much time is left, the policy does not
    assert 1.05 * best.queries > -J1


@pytest.mark.parametrize(("slippery", "steps", "share"), [(False, 100_000, 1.0), (True, 800_000, 0.93)])
def test_a_rare_reward_is_found_before_queries_are_saved(slippery: bool, steps: int, share: float) -> None:
    env = WaitingEnv(gym.make("FrozenLake8x8-v1", is_slippery=slippery), wait=0, durations=(2, 4, 8))
    best, tables = plan(env), enumerate_env(env)
    for seed in range(2):
        learned = learn(env, steps=steps, seed=seed, progress=False)
        J0, J1 = policy_value(tables, env.decisions, 200, learned.policy.table, 1.0)  # type: ignore[attr-defined]
        assert share * best.task_return <= J0
        assert 1.1 * best.queries >= -J1


def test_around_a_policy_with_random_transitions_nothing_worse_is_chosen(tmp_path: Path) -> None:
    def right_and_down(observation: int) -> int:
        return 2 if observation % 4 < 2 else 1

    def env() -> WaitingEnv:
        return wrap(gym.make("FrozenLake-v1", is_slippery=True), right_and_down, wait=0, durations=(2,))

    training = prepare(env(), RunSpec(preset="best", length=Timesteps(30_000)))
    for point in training.run():
        if point.step >= 20_000:
            break
    training.stopped().save(tmp_path / "stopped")
    again = prepare(env(), RunSpec(preset="best", length=Timesteps(30_000)))
    again.resume(load(tmp_path / "stopped"))
    assert [c.queries for c in again.candidates] == [c.queries for c in training.candidates]
    list(again.run())
    learned = again.result()
    assert learned.choice is not None
    tables = enumerate_env(env())
    alone, chosen = (
        policy_value(tables, env().decisions, 100, table, 1.0)[0]
        for table in (np.zeros(tables.n_states, dtype=int), learned.policy.table)  # type: ignore[attr-defined]
    )
    assert chosen >= alone - 0.02


def random_tables(seed: int, states: int = 12, actions: int = 3, outcomes: int = 3) -> Tables:
    """Return a world with random transitions and costs; one of its states ends the episode."""
    dice = np.random.default_rng(seed)
    rows = range(states * actions)
    return Tables(
        n_states=states,
        n_terminal=1,
        n_actions=actions,
        offsets=np.arange(len(rows) + 1) * outcomes,
        probability=np.concatenate([dice.dirichlet(np.ones(outcomes)) for _ in rows]),
        next_state=np.concatenate([dice.choice(states + 1, outcomes, replace=False) for _ in rows]),
        reward=dice.uniform(-1.0, 0.0, len(rows) * outcomes),
        start_state=np.array([0]),
        start_probability=np.array([1.0]),
        observations=list(range(states)),
    )


@pytest.mark.parametrize("seed", range(5))
def test_random_worlds_are_learned_to_the_planned_value(seed: int) -> None:
    tables, decisions, gamma, horizon = random_tables(seed), Decisions(("a", "b", "wait"), 2, (2, 4)), 0.95, 200
    best = plan_tables(tables, decisions, horizon, objective_of("lexicographic"), gamma).values[0, 0]
    training = prepare_tables(
        tables, decisions, horizon, RunSpec(preset="best", length=Timesteps(1_000_000)), gamma=gamma
    )
    for _ in training.run():
        pass
    J0, J1 = policy_value(tables, decisions, horizon, training.result().policy.table, gamma)  # type: ignore[attr-defined]
    alone = policy_value(tables, decisions, horizon, np.zeros(tables.n_states, dtype=int), gamma)[0]
    assert best - 0.01 * abs(best) < J0 <= best + 1e-9
    assert alone < best - 0.05 * abs(best)  # it takes some learning
    assert J1 < -1.0


@pytest.mark.parametrize("wait", [0, "hold"])
def test_vanilla_learns_with_networks_in_an_environment_that_has_waits(wait: int | str, tmp_path: Path) -> None:
    env = WaitingEnv(gym.make("CartPole-v1"), wait=wait, durations=(2, 4))
    learned = learn(env, "vanilla", steps=1_200, seed=0, progress=False)
    assert learned.queries == learned.length
    again = load(learned.save(tmp_path / "run")).policy
    observation, _ = env.reset(seed=1)
    assert (
        int(again.predict(observation)[0]) == int(learned.policy.predict(observation)[0]) < len(env.decisions.actions)
    )


def test_same_seed_same_result() -> None:
    one, two, other = (learn(make("cook"), steps=200_000, seed=s, progress=False) for s in (1, 1, 2))
    assert one.curve == two.curve != other.curve


def deep_env(mode: str) -> WaitingEnv:
    """Return a small problem for networks: CartPole compiled, CartPole through Python, and a wrapper of each kind."""
    base = learn(make("cartpole"), method="vanilla", steps=1_200, seed=0, progress=False).policy
    if mode == "compiled":
        return make("cartpole")
    if mode == "compiled wrapper":
        return wrap(gym.make("letitcook/CartPole-v0"), base, wait=2, durations=(2, 4))
    if mode == "python":
        return WaitingEnv(gym.make("CartPole-v1"), wait=0, durations=(2, 4))
    return wrap(gym.make("CartPole-v1"), lambda o: int(o[2] > 0), wait=0, durations=(2, 4))


@pytest.mark.parametrize("mode", ["compiled", "compiled wrapper", "python", "python wrapper", "tables"])
def test_a_stopped_run_goes_on_to_the_same_bits(mode: str, tmp_path: Path) -> None:
    env = make("cook") if mode == "tables" else deep_env(mode)

    def ready() -> Training:
        training = prepare(env, RunSpec(seed=3, length=Timesteps(4_000)))
        training.plan = replace(training.plan, every=1_000)
        return training

    through = ready()
    for _ in through.run():
        pass
    first = ready()
    for point in first.run():
        if point.step >= 2_000:
            break
    stopped = load(first.stopped().save(tmp_path / "run"))
    assert stopped.checkpoint is not None
    second = ready()
    second.resume(stopped)
    for _ in second.run():
        pass
    assert second.curve == through.curve
    one, two = through.result(), second.result()
    assert (one.best, one.fresh) == (two.best, two.fresh)
    for name, array in through.learner.arrays().items():
        assert np.array_equal(array, second.learner.arrays()[name]), name


def test_resuming_what_cannot_be_resumed(tmp_path: Path) -> None:
    env = make("cook")
    finished = load(learn(env, steps=10_000, progress=False).save(tmp_path / "finished"))
    with pytest.raises(SettingError, match="is finished"):
        prepare(env, RunSpec()).resume(finished)
    training = prepare(env, RunSpec(seed=1))
    next(training.run())
    with pytest.raises(SettingError, match=r"other settings \(seed\)"):
        prepare(env, RunSpec(seed=2)).resume(training.stopped())


def test_candidates_that_played_other_episodes_are_refused() -> None:
    small = {"hidden": (4, 4), "buffer_size": 64, "fourier_features": 1, "learning_starts": 20}
    spec = RunSpec(preset="best", settings=small, length=Timesteps(12_000))
    training = prepare(make("mountain-car"), spec)
    next(training.run())
    again = prepare(make("mountain-car"), spec)
    rows, columns = (slice(49), slice(None)), (slice(None), slice(5))
    for cut, of in ((rows, training.candidates), (rows, training.candidates[:1]), (columns, training.candidates[:1])):
        stopped = training.stopped()
        assert stopped.checkpoint is not None
        for i, candidate in enumerate(of):
            stopped.checkpoint[f"candidate.{i}.screening"] = candidate.screening[cut]
        with pytest.raises(FileFormatError, match="episodes; the file is damaged"):
            again.resume(stopped)
    again.resume(training.stopped())


def test_ctrl_c_stops_after_the_next_evaluation_and_a_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env, run = make("cook"), Training.run
    whole = learn(env, steps=60_000, seed=1, progress=False)

    def interrupted(self: Training, *arguments: Any) -> Any:
        for n, point in enumerate(run(self, *arguments)):
            if n == 1:
                os.kill(os.getpid(), signal.SIGINT)
            yield point

    monkeypatch.setattr(Training, "run", interrupted)
    before = signal.getsignal(signal.SIGINT)
    stopped = learn(env, steps=60_000, seed=1, progress=False, out=tmp_path / "kept")
    assert (stopped.finished, len(stopped.curve)) == (False, 2)
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.setattr(Training, "run", run)
    done = learn(env, steps=60_000, seed=1, progress=False, out=tmp_path / "kept", resume=True)
    assert done.finished
    assert (done.curve, done.best, done.fresh) == (whole.curve, whole.best, whole.fresh)
    assert load(tmp_path / "kept").curve == whole.curve


def test_settings_are_an_object_or_overrides() -> None:
    env = make("cook")
    assert learn(env, steps=1_000, settings={"alpha": 0.5}, progress=False).info.settings.alpha == 0.5  # type: ignore[union-attr]
    mine = QSettings(alpha=0.3, epsilon=0.2)
    learned = learn(env, steps=1_000, settings=mine, progress=False)
    assert learned.info.settings == mine
    with pytest.raises(SettingError, match="learned with tables, which take QSettings, and LDQNSettings was given"):
        learn(env, steps=1_000, settings=LDQNSettings(), progress=False)
    with pytest.raises(UnknownNameError, match="no setting named 'alfa'. Did you mean 'alpha'"):
        learn(env, steps=1_000, settings={"alfa": 0.5}, progress=False)


class Breaking(gym.Env[Any, Any]):
    """Gives a reward or an observation that is not a number at step 15,000."""

    def __init__(self, what: str) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.what, self.steps = what, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.steps += 1
        broken = self.steps >= 15_000
        observation = np.full(2, np.nan if broken and self.what == "observation" else 0.1, np.float32)
        reward = float("inf") if broken and self.what == "reward" else -1.0
        return observation, reward, self.t >= 10, False, {}


@pytest.mark.parametrize("what", ["observation", "reward"])
def test_what_is_not_a_number_stops_training_and_keeps_what_was_good(what: str, tmp_path: Path) -> None:
    env = WaitingEnv(gym.wrappers.TimeLimit(Breaking(what), 20), wait=0, durations=(2,))
    with pytest.raises(NotFiniteError, match=rf"{what}.* at primitive step 1\d,\d*|{what}.* at primitive step 1\d+"):
        learn(env, steps=40_000, progress=False, out=tmp_path / "kept")
    kept = load(tmp_path / "kept")
    assert isinstance(kept.policy, NetworkPolicy)
    assert kept.best.step >= 10_000
    assert kept.policy.predict(np.zeros(2, np.float32))[0] in range(3)


@pytest.mark.parametrize("mode", ["compiled", "compiled wrapper", "python wrapper"])
def test_networks_are_evaluated_as_the_environment_shows(mode: str) -> None:
    env = deep_env(mode)
    learned = learn(env, steps=3_000, seed=1, progress=False)
    played = evaluate(env, learned.policy, episodes=300, seed=2)
    for name in ("length", "queries", "base_queries"):
        error = played.of(name).std() / np.sqrt(300) + 1e-9
        assert abs(getattr(played, name) - getattr(learned.fresh, name)) < 5 * error, name


def test_mistakes() -> None:
    env = make("cook")
    with pytest.raises(UnknownNameError, match="no preset for networks named 'exact'"):
        learn(make("cartpole"), preset="exact")
    with pytest.raises(UnknownNameError, match="Did you mean 'scalar'"):
        learn(env, method="scaler")
    with pytest.raises(UnknownNameError, match="no preset named 'exakt'. Did you mean 'exact'"):
        learn(env, preset="exakt")
    with pytest.raises(SettingError, match="needs a λ"):
        learn(env, method="scalar")
    with pytest.raises(SettingError, match="steps = 0"):
        learn(env, steps=0)
    with pytest.raises(SettingError, match="seed = -1"):
        learn(env, seed=-1)
    with pytest.raises(SettingError, match="no time limit"):
        learn(WaitingEnv(gym.make("FrozenLake-v1", max_episode_steps=-1), wait=0, durations=(2,)))


def test_wrappers_outside_that_would_be_left_out_are_refused() -> None:
    env = WaitingEnv(gym.make("MountainCar-v0"), wait=1, durations=(2, 4))
    for outer in (
        ScalarisedEnv(env, lam=0.1),
        gym.wrappers.TimeLimit(env, 10),
        gym.wrappers.TransformObservation(env, lambda o: 2 * o, env.observation_space),
    ):
        with pytest.raises(SettingError, match=f"{type(outer).__name__} is outside of WaitingEnv"):
            learn(outer, steps=100, progress=False)
    assert prepare(gym.wrappers.RecordEpisodeStatistics(env), RunSpec()).info.decisions == env.decisions


def quick_env() -> WaitingEnv:
    return WaitingEnv(gym.make("MountainCar-v0", max_episode_steps=20), wait=1, durations=(2,))


QUICK = {"learning_starts": 20, "hidden": (8,)}


def test_a_callback_that_returns_false_ends_the_training() -> None:
    called: list[int] = []

    def second_is_enough(point: Any, training: Any) -> bool:
        called.append(point.step)
        return len(called) < 2

    run = learn(make("cook"), steps=100_000, preset="exact", progress=False, callback=second_is_enough)
    assert len(called) == 2 and run.finished and run.steps < 30_000
    assert learn(make("cook"), steps=30_000, preset="exact", verbose=0, callback=lambda *_: None).steps >= 30_000


def test_ctrl_c_while_choosing_keeps_what_was_learned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(self: Training) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Training, "result", interrupted)
        run = learn(make("cook"), steps=20_000, preset="exact", progress=False, out=tmp_path / "run")
    assert not run.finished and run.steps >= 20_000
    again = learn(make("cook"), steps=20_000, preset="exact", progress=False, out=tmp_path / "run", resume=True)
    assert again.finished and again.steps == run.steps


def test_phases_are_shown_with_their_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with phases() as show:
        show("choosing", 3, 10)
        show("certifying", 5, 20)
    said = capsys.readouterr().err
    assert "choosing" in said and "3/10" in said and "5/20" in said


def test_a_run_says_which_phase_it_is_in() -> None:
    settings = {"hidden": (8,), "learning_starts": 20}
    training = prepare(quick_env(), RunSpec(preset="best", settings=settings, length=Timesteps(100)))
    training.plan = replace(training.plan, episodes=2, looks=(2, 2), fresh_episodes=3)
    for _ in training.run():
        pass
    seen: list[tuple[Any, ...]] = []
    training.phase = lambda *phase: seen.append(phase)
    training.result()
    names = [name for name, _, _ in seen]
    assert names[0].startswith("choosing") and seen[-1] == ("evaluating, episodes", 3, 3)
    assert all(done <= total for _, done, total in seen)
