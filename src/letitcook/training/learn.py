"""`learn`: from a waiting environment to a policy, with tables where it can be enumerated, else with networks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym

from letitcook.core.decisions import Decisions, Timesteps, read_timesteps
from letitcook.core.presets import PresetContext
from letitcook.deep.agent import LDQN
from letitcook.deep.policy import NetworkPolicy
from letitcook.deep.settings import LDQNSettings
from letitcook.errors import OutputError, SettingError
from letitcook.evaluation.certificate import DEFAULT_MARGIN, Margin
from letitcook.evaluation.minari_log import read_recording
from letitcook.evaluation.persistence import Recording
from letitcook.evaluation.rollout import check_seed
from letitcook.finite.learner import QLearner
from letitcook.finite.recall import remember, sufficient_memory
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import NEUTRAL, Tables, can_be_enumerated, enumerate_env
from letitcook.tasks import Task, task_of
from letitcook.training.budget import Budget, Spending
from letitcook.training.callbacks import Callback, together, track
from letitcook.training.certified_run import announce, certified_result, untrained
from letitcook.training.env_checks import check_evaluation_env, outermost, warn_of_observations
from letitcook.training.env_spec import WrappedEnvSpec
from letitcook.training.interruption import interruptible
from letitcook.training.keeping import CHECKPOINT_SECONDS, RunFolder, kept_in
from letitcook.training.loop import (
    FRESH_EPISODES,
    FRESH_EPISODES_IN_PYTHON,
    LOOKS,
    LOOKS_IN_PYTHON,
    SCREENING,
    SCREENING_IN_PYTHON,
    EvaluationPlan,
    Training,
)
from letitcook.training.progress import phases, training_line, working
from letitcook.training.run import Learned, RunInfo
from letitcook.training.selection import Tolerance
from letitcook.training.spec import RunSpec, Settings, decisions_of, default_length
from letitcook.wrappers.base_policy import BasePolicyEnv, base_env_of
from letitcook.wrappers.memory import Memory, MemoryEnv, MemoryVectorEnv, every_timer, read_memory
from letitcook.wrappers.remembering import Remembers
from letitcook.wrappers.vector import WaitingVectorEnv
from letitcook.wrappers.waiting import WaitingEnv, horizon_of, waiting_env_of

PAPER_PLANS = {"table": EvaluationPlan(equal="last"), "network": EvaluationPlan(equal="first")}
"""How the paper evaluates; which of equally good checkpoints gives its rows, see docs/fidelity.md."""
WRAPPER_EVALUATIONS = 5
"""Evaluations in training around a base policy."""


def learn(
    waiting_env: gym.Env[Any, Any] | WaitingVectorEnv,
    method: str = "lexicographic",
    lam: float | None = None,
    *,
    steps: int | None = None,
    decisions: int | None = None,
    seed: int = 0,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    tolerance: float | str = 0.0,
    memory: Memory | int | str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    verbose: int | None = None,
    callback: Callback | None = None,
    tensorboard_log: str | Path | None = None,
    eval_env: gym.Env[Any, Any] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    margin: float | str = DEFAULT_MARGIN,
    budget: Budget | None = None,
    recording: Recording | str | Path | None = None,
    certify: bool = True,
) -> Learned:
    """Learn where and how long to wait, from scratch or around a base policy.

    An environment that can be enumerated is learned with tables, every other with networks; the progress line and
    `info.policy` of the result say which.

    - `method` is `"lexicographic"`, `"scalar"` (with λ = `lam`) or `"vanilla"` (no waits).
    - `preset` is `"paper"` (its hyperparameters; the default for its tasks) or `"best"` (beyond the paper; the default
      for every other environment). With tables, `"best"` reaches the exact optimum in a fraction of the steps; with
      networks one run learns policies of many λ, and playing them decides which one is the result.
    - `settings` are a `QSettings` or `LDQNSettings`, or a few values in place of the preset's: `{"gamma": 0.99}`.
    - How long to train is given in primitive `steps` or in `decisions`. By default it is as long as in the paper (10
      million steps with tables, 1 million decisions with networks), or with `"best"` 10 million and 200,000 steps.
    - `tolerance` is how much mean task return you would give for fewer queries, as an amount or a share such as
      `"1%"`, where the result is chosen among several policies.
    - `memory` is what the policy remembers, where what it sees does not tell everything: `"auto"` (timers, chosen by
      themselves for discrete observations), a number of past decisions, or a `Memory`. The policy that results takes
      what the environment shows, and keeps its memory as its state.
    - The run is saved in the folder `out`, with a checkpoint about every `checkpoint_seconds`. Ctrl-C and SIGTERM stop
      it soon after its first evaluation and return what was learned so far, with `finished` False; so they do while the
      result is being chosen. `resume` goes on with a run in `out` that was stopped, killed or ended by an error, see
      docs/reliability.md.
    - `callback` is called after each evaluation and ends the training if it returns False, see `training.callbacks`.
      `tensorboard_log` is a folder for TensorBoard's curves. `eval_env`, an environment like the one for training, is
      where policies are evaluated, chosen and certified. `verbose=0` is `progress=False`, as in Stable-Baselines3.
    - Around a base policy (`wrap`), the result is the wrapper with the fewest queries of the base that is certified to
      lose no more than the `margin` of mean task return (an amount, or a share of the base's), among what was learned,
      simple schedules and persistence; the base itself, if none is (see `training.certified`). `budget` limits what all
      of it may cost; a small one, or `steps=0`, leaves the training out. A very small one is spent on a student of the
      base (see `training.by_student`), for which a `recording` of the base can be given that was made before: one of
      `letitcook record`, its file, or a Minari dataset as `"minari:ID"`.
      `certify=False` leaves out the certificate, and so does preset `"paper"`.

    >>> from letitcook import make
    >>> result = learn(make("cook"), steps=800_000, seed=0, preset="exact", progress=False)
    >>> result.length, result.queries
    (33.0, 25.0)
    """
    if resume and out is None:
        raise SettingError("resuming needs the folder of the stopped run; give it with --out (out=... in Python)")
    progress = progress if verbose is None else verbose > 0
    certifies = certify and memory is None and preset != "paper"
    loss, wrapper = Margin.read(margin), _certifiable(waiting_env, method) if certifies else None
    log = recording if recording is None or isinstance(recording, Recording) else read_recording(recording)
    if log is not None and (wrapper is None or budget is None):
        raise SettingError("a recording goes with a base policy and a budget of its queries: Budget(base_queries=...)")
    untaught = wrapper is not None and (steps == 0 or log is not None)
    length, accepted = None if untaught else read_timesteps(steps, decisions), Tolerance.read(tolerance)
    spec = RunSpec(method, lam, seed, preset or "", settings or {}, length, accepted, memory)
    if budget is not None and wrapper is None:
        raise SettingError(
            "a budget is for a wrapper that is to be certified: a lexicographic one around a base policy, from "
            "letitcook.wrap(env, base, ...) with cost='base', of a single environment"
        )
    judge = None if eval_env is None else check_evaluation_env(eval_env, _inside(waiting_env))
    used = [] if wrapper is None else [_base_env(env) for env in (wrapper, judge) if env is not None]
    spending = None if wrapper is None else Spending(used, budget or Budget())
    if spending is not None and (budget is not None or untaught):
        wanted = Timesteps(0) if untaught else length or default_length("network", spec.preset)
        spec = replace(spec, length=replace(wanted, count=spending.budget.training_steps(wanted.count)))
        _announce(spec.length, spending, resume, progress)
    with ExitStack() as stack:
        kept = None if out is None else stack.enter_context(kept_in(Path(out), resume, checkpoint_seconds))
        if wrapper is not None and spending is not None and spec.length is not None and spec.length.count == 0:
            learned = untrained(judge or wrapper, spec, loss, spending, progress, log)
        else:
            with working("compiling (only the first run takes long)", progress):
                training = prepare(waiting_env, spec)
            training.spending = spending
            training.evaluation_env = judge
            if resume and kept is not None:
                kept.resume(training)
            logs = None if tensorboard_log is None else Path(tensorboard_log)
            name = f"{spec.method}-seed{spec.seed}"
            curves = stack.enter_context(track(name, logs, resumed=resume))
            ended = _train(training, together(callback, curves), progress, kept)
            try:
                if ended and wrapper is not None and spending is not None:
                    learned = certified_result(training, judge or wrapper, loss, spending, progress)
                else:
                    learned = _chosen(training, progress) if ended else training.stopped()
            except KeyboardInterrupt:  # while choosing: what was learned is kept
                learned = training.stopped()
                if kept is not None:
                    kept.keep(learned)
        if kept is not None and learned.finished:
            kept.finish(learned)
        return learned


def _inside(env: gym.Env[Any, Any] | WaitingVectorEnv) -> WaitingEnv | WaitingVectorEnv:
    return env if isinstance(env, WaitingVectorEnv) else waiting_env_of(env)


def _chosen(training: Training, progress: bool) -> Learned:
    """Choose the result among what was learned, and show how far that is."""
    with phases(progress) as phase:
        training.phase = phase
        return training.result()


def _announce(planned: Timesteps | None, spending: Spending, resume: bool, progress: bool) -> None:
    """Say what a budget is spent on; without any training there is nothing to resume."""
    assert planned is not None
    if resume and planned.count == 0:
        raise SettingError("nothing is trained here, so there is nothing to resume; leave resume out")
    if progress:
        announce(planned, spending)


def _certifiable(env: gym.Env[Any, Any] | WaitingVectorEnv, method: str) -> WaitingEnv | None:
    """Return the environment around a base policy whose wrapper is to be certified; None if there is none."""
    if isinstance(env, WaitingVectorEnv) or method != "lexicographic":
        return None
    inside = waiting_env_of(env)
    return inside if inside.decisions.cost == "base" else None


def _base_env(env: WaitingEnv) -> BasePolicyEnv:
    wrapped = base_env_of(env)
    assert wrapped is not None
    return wrapped


def _usual_preset(env: gym.Env[Any, Any] | WaitingVectorEnv) -> str:
    """Return `paper` for its tasks, `best` for every other environment."""
    return "best" if isinstance(env, WaitingVectorEnv) or task_of(waiting_env_of(env)) is None else "paper"


def _train(training: Training, callback: Callback | None, progress: bool, kept: RunFolder | None) -> bool:
    """Train with a progress line to the end, or until ctrl-C or SIGTERM; returns whether the end was reached.

    Whatever goes wrong, what was good so far is kept.
    """
    using = {"table": "tables", "network": "networks"}[training.info.policy]
    try:
        with (
            interruptible() as interrupted,
            training_line(training.timesteps, progress, training.passed(), using) as show,
        ):

            def look(training: Training) -> bool:
                show(training.passed())
                if kept is not None:
                    kept.look(training)
                return not interrupted.is_set()

            for point in training.run(callback, look):
                show(training.passed(), point, training.best or point)
                if not look(training):
                    break
    except BaseException:
        if kept is not None and training.best is not None:
            with suppress(OutputError):  # what went wrong first is what is raised
                kept.keep(training.stopped())
        raise
    if not training.ended and kept is not None:
        kept.keep(training.stopped())
    return training.ended


def prepare(waiting_env: gym.Env[Any, Any] | WaitingVectorEnv, spec: RunSpec) -> Training:
    """Make a run ready: with tables if the environment can be enumerated, else with networks."""
    spec = replace(spec, preset=spec.preset or _usual_preset(waiting_env))
    if spec.memory is None and isinstance(waiting_env, MemoryEnv | MemoryVectorEnv):
        spec = replace(spec, memory=waiting_env.memory)
    if isinstance(waiting_env, MemoryVectorEnv):  # without its memory, which is the policy's now
        waiting_env = waiting_env.with_discount(waiting_env.gamma)
    elif isinstance(waiting_env, MemoryEnv):
        waiting_env = waiting_env.env
    if isinstance(waiting_env, WaitingVectorEnv):
        return prepare_networks(waiting_env, spec)
    env = outermost(waiting_env)
    if not can_be_enumerated(env):
        return prepare_networks(env, spec)
    horizon = horizon_of(env)
    if horizon is None:
        raise SettingError("this environment has no time limit; make it with max_episode_steps=...")
    tables, name = enumerate_env(env), _task_name(env)
    remembers = None
    if spec.memory is not None:
        auto = spec.memory == "auto"
        chosen = sufficient_memory(tables, env.decisions, env.observation_space, horizon) if auto else spec.memory
        remembers = Remembers(read_memory(chosen), env.observation_space)
    return prepare_tables(tables, env.decisions, horizon, spec, name, env.gamma, env.env_spec, remembers)


def prepare_tables(
    tables: Tables,
    decisions: Decisions,
    horizon: int,
    spec: RunSpec,
    task: str | None = None,
    gamma: float = 1.0,
    env_spec: WrappedEnvSpec | None = None,
    remembers: Remembers | None = None,
) -> Training:
    """Make a run with tables ready."""
    highest = float(tables.reward.max(initial=0.0))
    context = PresetContext(spec.method, task, decisions.has_base, gamma, tables.deterministic, highest_reward=highest)
    settings = spec.settings_for("table", context)
    assert isinstance(settings, QSettings)
    objective, taken = spec.objective, decisions_of(spec.method, decisions)
    rows = None if remembers is None else remember(tables, taken, remembers.memory, remembers.space)
    learner = QLearner(tables, taken, horizon, objective, settings, check_seed(spec.seed), rows)
    of_run = (spec.method, spec.lam, spec.seed, spec.preset, settings, decisions, task, env_spec, remembers)
    info = RunInfo("table", *of_run)
    plan = PAPER_PLANS["table"] if spec.preset == "paper" else EvaluationPlan()
    if spec.preset != "paper" and not tables.deterministic:  # else one episode tells all; here many cost little
        looks = tuple(10 * look for look in LOOKS)
        plan = EvaluationPlan(episodes=10 * SCREENING, choosing=True, looks=looks, tolerance=spec.tolerance)
    return Training(learner, objective, info, spec.length_for("table"), plan)


def prepare_networks(env: WaitingEnv | WaitingVectorEnv, spec: RunSpec) -> Training:
    """Make a run with networks ready: in the compiled loop if it knows the task, else in Python."""
    is_vector = isinstance(env, WaitingVectorEnv)
    warn_of_observations(env.single_observation_space if isinstance(env, WaitingVectorEnv) else env.observation_space)
    task, wrapped = (None, env.base) if isinstance(env, WaitingVectorEnv) else (task_of(env), _base_of(env))
    base = wrapped if isinstance(wrapped, NetworkPolicy) else None
    timesteps, name = spec.length_for("network"), None if is_vector or task is None else _task_name(env)
    context = PresetContext(
        spec.method, None if task is None else task.name, wrapped is not None, env.gamma, timesteps=timesteps.count
    )
    settings = spec.settings_for("network", context)
    assert isinstance(settings, LDQNSettings)
    # The compiled loop counts decisions, as the paper does, and has a fixed action to wait with.
    plain = env.decisions.cost == "decisions" and not env.decisions.hold and env.decisions.repeat == 1
    compiled = task is not None and plain and (wrapped is None or base is not None)
    compiled = compiled and spec.memory is None and isinstance(env, WaitingEnv) and _is_unchanged(env)
    world: Task | gym.Env[Any, Any] | WaitingVectorEnv
    if compiled and task is not None:
        world = task
    # Else an environment of its own around the same world: the learner may discount where the user does not.
    elif isinstance(env, WaitingVectorEnv):
        world = env.with_discount(settings.gamma)
    else:
        world = env.with_discount(settings.gamma, settings.uses_intermediate)
    remembers = None
    if spec.memory is not None:
        seen = env.single_observation_space if isinstance(env, WaitingVectorEnv) else env.observation_space
        remembers = Remembers(every_timer(seen) if spec.memory == "auto" else read_memory(spec.memory), seen)
        # Nothing inside a wait is remembered, so networks learn from whole waits alone.
        settings = replace(settings, intra_option=0)
        whole = env.with_discount(settings.gamma)
        world = (MemoryVectorEnv if isinstance(whole, WaitingVectorEnv) else MemoryEnv)(whole, remembers.memory)  # type: ignore[arg-type]
    objective, taken = spec.objective, decisions_of(spec.method, env.decisions)
    learner = LDQN(world, taken, objective, settings, check_seed(spec.seed), base if compiled else None)
    env_spec = env.env_spec if isinstance(env, WaitingEnv) else None
    of_run = (spec.method, spec.lam, spec.seed, spec.preset, settings, taken, name, env_spec, remembers)
    info = RunInfo("network", *of_run)
    plan = _network_plan(spec, compiled)
    if env.decisions.cost == "base":  # few evaluations: the choice is made at the end
        plan = replace(plan, every=max(plan.every, timesteps.count // WRAPPER_EVALUATIONS))
    return Training(learner, objective, info, timesteps, plan, base)


def _task_name(env: WaitingEnv | WaitingVectorEnv) -> str | None:
    """Return the name of the task; None where the environment was made from names, for its base is not the task's."""
    if isinstance(env, WaitingVectorEnv) or env.env_spec is not None:
        return None
    task, made, inside = task_of(env), env.spec, base_env_of(env)
    if task is None or made is None or (inside is not None and inside.features is not None):
        return None
    settings = {name: value for name, value in made.kwargs.items() if name != "render_mode"}
    return task.name if settings == dict(task.kwargs) else None  # with other settings it could not be made again


def _is_unchanged(env: gym.Env[Any, Any]) -> bool:
    """Return whether no wrapper changes what the environment inside does or shows."""
    layer = env
    while isinstance(layer, gym.Wrapper):
        if not isinstance(layer, (*NEUTRAL, BasePolicyEnv)) or getattr(layer, "features", None) is not None:
            return False
        layer = layer.env
    return True


def _base_of(env: WaitingEnv) -> Any:
    """Return the base policy that is wrapped, None if there is none."""
    wrapped = base_env_of(env)
    return None if wrapped is None else wrapped.base


def _network_plan(spec: RunSpec, compiled: bool) -> EvaluationPlan:
    """Return how a run with networks is evaluated: on fewer episodes where each step goes through Python."""
    fresh_episodes = FRESH_EPISODES if compiled else FRESH_EPISODES_IN_PYTHON
    if spec.preset == "paper":
        return replace(PAPER_PLANS["network"], fresh_episodes=fresh_episodes)
    return EvaluationPlan(
        episodes=SCREENING if compiled else SCREENING_IN_PYTHON,
        fresh_episodes=fresh_episodes,
        choosing=True,
        looks=LOOKS if compiled else LOOKS_IN_PYTHON,
        tolerance=spec.tolerance,
    )
