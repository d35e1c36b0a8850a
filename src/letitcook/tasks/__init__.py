"""The tasks, by name, registered with Gymnasium."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym

from letitcook.core.decisions import Policy
from letitcook.errors import SettingError, UnknownNameError
from letitcook.tasks import cartpole, coffee, cook, job, mountain_car, pong
from letitcook.tasks.task import HIDDEN, AuxiliaryTask, Task
from letitcook.wrappers.waiting import WaitingEnv
from letitcook.wrappers.wrap import wrap

__all__ = ["TASKS", "AuxiliaryTask", "Task", "hidden_task", "make", "task_named", "task_names", "task_of"]

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *cook.TASKS,
        coffee.TASK,
        pong.TASK,
        cartpole.TASK,
        mountain_car.TASK,
        *cook.HIDDEN_TASKS,
        coffee.HIDDEN_TASK,
        job.TASK,
    )
}

for _task in TASKS.values():
    if _task.env_id not in gym.registry:
        gym.register(
            id=_task.env_id,
            entry_point=_task.entry_point,
            max_episode_steps=_task.horizon,
            kwargs=dict(_task.kwargs),
        )


def task_names() -> list[str]:
    """Return the names of the tasks.

    >>> task_names()[:4]
    ['cook', 'cook-longer', 'cook-twice', 'coffee']
    """
    return list(TASKS)


def task_named(name: str) -> Task:
    """Return the task of that name.

    >>> task_named("cook").durations
    (5, 15)
    >>> task_named("cofee")
    Traceback (most recent call last):
    ...
    letitcook.errors.UnknownNameError: no task named 'cofee'. Did you mean 'coffee'? See: letitcook tasks
    """
    if name not in TASKS:
        raise UnknownNameError("task", name, TASKS, see="letitcook tasks")
    return TASKS[name]


def hidden_task(name: str) -> Task:
    """Return the task of that name with its clocks hidden.

    >>> hidden_task("coffee").name, hidden_task("cook-hidden").name
    ('coffee-hidden', 'cook-hidden')
    """
    task = task_named(name)
    if task.kwargs.get("hidden") or task is job.TASK:  # a job is hidden by nature
        return task
    if name + HIDDEN not in TASKS:
        able = ", ".join(other.removesuffix(HIDDEN) for other in TASKS if other.endswith(HIDDEN))
        raise SettingError(f"{name} has no clock that could be hidden; tasks that have: {able}")
    return TASKS[name + HIDDEN]


def task_of(env: gym.Env[Any, Any]) -> Task | None:
    """Return the task that `env` was made from, if it is one of ours."""
    env_id = env.spec.id if env.spec is not None else None
    return next((task for task in TASKS.values() if task.env_id == env_id), None)


def make(
    name: str,
    mode: str = "scratch",
    durations: Iterable[int] | None = None,
    base: Policy | None = None,
    hidden: bool | None = None,
    **kwargs: Any,
) -> WaitingEnv:
    """Return a task as a waiting environment: from scratch, or with `mode="wrap"` around a base policy.

    The base policy is the task's handwritten one, or `base`. `durations` replaces the task's own. With `hidden`, the
    clocks of the kitchens and of the coffee machine are not seen: `make("cook", hidden=True)` is the task
    `cook-hidden`. Other arguments go to the environment (`render_mode`, `cook_time`, ...).

    >>> make("cook").decisions.durations
    (5, 15)
    >>> make("coffee", mode="wrap").action_space
    Discrete(4)
    >>> make("cook", hidden=True, cook_time=(14, 16, 18, 20, 22)).reset(seed=0)[0].tolist()
    [1, 1, 0, 0, 0, 0]
    """
    task = hidden_task(name) if hidden else task_named(name)
    if hidden is False and (task.kwargs.get("hidden") or task is job.TASK):
        kwargs["hidden"] = False
    waits = task.durations if durations is None else tuple(durations)
    if mode not in ("scratch", "wrap"):
        raise UnknownNameError("mode", mode, ("scratch", "wrap"))
    if mode == "scratch":
        return WaitingEnv(gym.make(task.env_id, **kwargs), task.wait, waits)
    if base is None and task.base_policy is None:
        raise SettingError(
            f"{name} has no handwritten base policy; give one: letitcook.make({name!r}, 'wrap', base=...)"
        )
    env = gym.make(task.env_id, **kwargs)
    if base is None and task.base_policy is not None:
        base = getattr(env.unwrapped, "base_policy", task.base_policy)()  # its own, where it depends on its settings
    return wrap(env, base, task.wait, waits, cost="decisions")  # as the paper counts
