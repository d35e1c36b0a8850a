"""Agents that know when not to act: learn where and how long to wait without losing task performance."""

# ruff: noqa: E402 (what follows takes a second or two to load)
from importlib.metadata import version

from letitcook.errors import quiet_interrupts

quiet_interrupts()

from letitcook import poll as poll
from letitcook.adapters import as_policy, named_policy
from letitcook.core.decisions import Decisions, Episode, Policy, Transition
from letitcook.core.objective import Objective, lex_argmax, lex_better
from letitcook.deep.settings import LDQNSettings
from letitcook.deploy.control_loop import Counters, run
from letitcook.evaluation.certificate import Certificate
from letitcook.evaluation.interleaving import Errand, Interleaved, interleave
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
from letitcook.wrappers.vector import WaitingVectorEnv
from letitcook.wrappers.waiting import ScalarisedEnv, WaitingEnv
from letitcook.wrappers.wrap import wrap

__version__ = version("letitcook")
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
    "rollout",
    "run",
    "task_named",
    "task_names",
    "wrap",
]
