"""Agents that know when not to act: learn where and how long to wait without losing task performance."""

from importlib.metadata import version

from letitcook.envs import TASKS, AuxiliaryTask, Task, task_named, tasks
from letitcook.evaluate import Evaluation, evaluate, rollout
from letitcook.finite.plan import Plan, plan
from letitcook.finite.settings import QSettings
from letitcook.finite.tables import Tables, enumerate_env
from letitcook.interleaving import Errand, Interleaved, interleave
from letitcook.lexicographic import Objective, lex_argmax, lex_better
from letitcook.runs import Learned, load
from letitcook.runtime import Counters, run
from letitcook.train import learn
from letitcook.waiting import ScalarisedEnv, WaitingEnv
from letitcook.wmdp import Decisions, Episode, Policy, Transition
from letitcook.wrapping import BasePolicyEnv, make, wrap

__version__ = version("letitcook")
__all__ = [
    "TASKS",
    "AuxiliaryTask",
    "BasePolicyEnv",
    "Counters",
    "Decisions",
    "Episode",
    "Errand",
    "Evaluation",
    "Interleaved",
    "Learned",
    "Objective",
    "Plan",
    "Policy",
    "QSettings",
    "ScalarisedEnv",
    "Tables",
    "Task",
    "Transition",
    "WaitingEnv",
    "enumerate_env",
    "evaluate",
    "interleave",
    "learn",
    "lex_argmax",
    "lex_better",
    "load",
    "make",
    "plan",
    "rollout",
    "run",
    "task_named",
    "tasks",
    "wrap",
]
