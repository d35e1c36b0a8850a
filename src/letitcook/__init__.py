"""Agents that know when not to act: learn where and how long to wait without losing task performance.

The names below are loaded when they are first used: most programs need few of them, and Numba alone takes longer to
load than `letitcook --help` to print. The tasks are registered with Gymnasium at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letitcook.errors import quiet_interrupts

quiet_interrupts()

from letitcook import tasks as tasks  # noqa: E402 (registers the environments)

if TYPE_CHECKING:
    from letitcook import poll as poll
    from letitcook.adapters import as_policy, named_policy
    from letitcook.core.decisions import Decisions, Episode, Policy, Transition
    from letitcook.core.objective import Objective, lex_argmax, lex_better
    from letitcook.deep.settings import LDQNSettings
    from letitcook.deploy.control_loop import Counters, run
    from letitcook.evaluation.certificate import Certificate
    from letitcook.evaluation.interleaving import Errand, Interleaved, interleave
    from letitcook.evaluation.minari_log import recording_from_minari
    from letitcook.evaluation.rollout import Evaluation, evaluate, rollout
    from letitcook.evaluation.savings import Interval, Savings, compare_with_base
    from letitcook.evaluation.schedules import PacedPolicy, SchedulePolicy
    from letitcook.finite.front import FrontPoint, pareto_front
    from letitcook.finite.plan import Plan, plan
    from letitcook.finite.settings import QSettings
    from letitcook.finite.tables import Tables, enumerate_env
    from letitcook.tasks import TASKS, AuxiliaryTask, Task, make, task_named, task_names
    from letitcook.training.budget import Budget
    from letitcook.training.learn import learn
    from letitcook.training.run import Learned, RunInfo, load
    from letitcook.wrappers.added_wait import AddedWait
    from letitcook.wrappers.base_policy import BasePolicyEnv
    from letitcook.wrappers.env_returns import StepDeadline
    from letitcook.wrappers.memory import Memory, MemoryEnv, MemoryVectorEnv, Timer
    from letitcook.wrappers.remembering import RememberingPolicy
    from letitcook.wrappers.seed_once import SeedOnce
    from letitcook.wrappers.vector import WaitingVectorEnv
    from letitcook.wrappers.waiting import ScalarisedEnv, WaitingEnv
    from letitcook.wrappers.wrap import wrap

    __version__: str

_HOMES = {
    "AddedWait": "wrappers.added_wait",
    "AuxiliaryTask": "tasks",
    "BasePolicyEnv": "wrappers.base_policy",
    "Budget": "training.budget",
    "Certificate": "evaluation.certificate",
    "Counters": "deploy.control_loop",
    "Decisions": "core.decisions",
    "Episode": "core.decisions",
    "Errand": "evaluation.interleaving",
    "Evaluation": "evaluation.rollout",
    "FrontPoint": "finite.front",
    "Interleaved": "evaluation.interleaving",
    "Interval": "evaluation.savings",
    "LDQNSettings": "deep.settings",
    "Learned": "training.run",
    "Memory": "wrappers.memory",
    "MemoryEnv": "wrappers.memory",
    "MemoryVectorEnv": "wrappers.memory",
    "Objective": "core.objective",
    "PacedPolicy": "evaluation.schedules",
    "Plan": "finite.plan",
    "Policy": "core.decisions",
    "QSettings": "finite.settings",
    "RememberingPolicy": "wrappers.remembering",
    "RunInfo": "training.run",
    "Savings": "evaluation.savings",
    "ScalarisedEnv": "wrappers.waiting",
    "SchedulePolicy": "evaluation.schedules",
    "SeedOnce": "wrappers.seed_once",
    "StepDeadline": "wrappers.env_returns",
    "TASKS": "tasks",
    "Tables": "finite.tables",
    "Task": "tasks",
    "Timer": "wrappers.memory",
    "Transition": "core.decisions",
    "WaitingEnv": "wrappers.waiting",
    "WaitingVectorEnv": "wrappers.vector",
    "as_policy": "adapters",
    "compare_with_base": "evaluation.savings",
    "enumerate_env": "finite.tables",
    "evaluate": "evaluation.rollout",
    "interleave": "evaluation.interleaving",
    "learn": "training.learn",
    "lex_argmax": "core.objective",
    "lex_better": "core.objective",
    "load": "training.run",
    "make": "tasks",
    "named_policy": "adapters",
    "pareto_front": "finite.front",
    "plan": "finite.plan",
    "recording_from_minari": "evaluation.minari_log",
    "rollout": "evaluation.rollout",
    "run": "deploy.control_loop",
    "task_named": "tasks",
    "task_names": "tasks",
    "wrap": "wrappers.wrap",
}
"""Where each name is from, as above."""


def __getattr__(name: str) -> Any:
    """Load a public name (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("letitcook")
    elif name == "poll":
        return import_module("letitcook.poll")
    elif name in _HOMES:
        value = getattr(import_module(f"letitcook.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'letitcook' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "poll", "tasks", "__version__"})


__all__ = [
    "TASKS",
    "AddedWait",
    "AuxiliaryTask",
    "BasePolicyEnv",
    "Budget",
    "Certificate",
    "Counters",
    "Decisions",
    "Episode",
    "Errand",
    "Evaluation",
    "FrontPoint",
    "Interleaved",
    "Interval",
    "LDQNSettings",
    "Learned",
    "Memory",
    "MemoryEnv",
    "MemoryVectorEnv",
    "Objective",
    "PacedPolicy",
    "Plan",
    "Policy",
    "QSettings",
    "RememberingPolicy",
    "RunInfo",
    "Savings",
    "ScalarisedEnv",
    "SchedulePolicy",
    "SeedOnce",
    "StepDeadline",
    "Tables",
    "Task",
    "Timer",
    "Transition",
    "WaitingEnv",
    "WaitingVectorEnv",
    "as_policy",
    "compare_with_base",
    "enumerate_env",
    "evaluate",
    "interleave",
    "learn",
    "lex_argmax",
    "lex_better",
    "load",
    "make",
    "named_policy",
    "pareto_front",
    "plan",
    "recording_from_minari",
    "rollout",
    "run",
    "task_named",
    "task_names",
    "wrap",
]
