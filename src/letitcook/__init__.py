"""Agents that know when not to act: learn where and how long to wait without losing task performance."""

from importlib.metadata import version

from letitcook.added_wait import AddedWait
from letitcook.envs import TASKS, AuxiliaryTask, Task, task_named, tasks
from letitcook.evaluate import Evaluation, evaluate, rollout
from letitcook.finite.plan import Plan, plan
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import Tables, enumerate_env
from letitcook.foreign import as_policy, named_policy
from letitcook.interleaving import Errand, Interleaved, interleave
from letitcook.lexicographic import Objective, lex_argmax, lex_better
from letitcook.runs import Learned, load
from letitcook.runtime import Counters, run
from letitcook.savings import Interval, Savings, compare_with_base
from letitcook.train import learn
from letitcook.waiting import ScalarisedEnv, WaitingEnv
from letitcook.waiting_vector import WaitingVectorEnv
from letitcook.wmdp import Decisions, Episode, Policy, Transition
from letitcook.wrapping import BasePolicyEnv, make, wrap

__version__ = version("letitcook")
__all__ = [
    "TASKS",
    "AddedWait",
    "AuxiliaryTask",
    "BasePolicyEnv",
    "Counters",
    "Decisions",
    "Episode",
    "Errand",
    "Evaluation",
    "Interleaved",
    "Interval",
    "Learned",
    "Objective",
    "Plan",
    "Policy",
    "QSettings",
    "Savings",
    "ScalarisedEnv",
    "Tables",
    "Task",
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
    "plan",
    "rollout",
    "run",
    "task_named",
    "tasks",
    "wrap",
]
