"""The tasks, by name, registered with Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from letitcook.envs import cartpole, coffee, cook, mountain_car, pong
from letitcook.envs.task import AuxiliaryTask, Task
from letitcook.errors import UnknownNameError

__all__ = ["TASKS", "AuxiliaryTask", "Task", "task_named", "task_of", "tasks"]

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *cook.TASKS,
        coffee.TASK,
        pong.TASK,
        cartpole.TASK,
        mountain_car.TASK,
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


def tasks() -> list[str]:
    """Return the names of the tasks.

    >>> tasks()[:4]
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


def task_of(env: gym.Env[Any, Any]) -> Task | None:
    """Return the task that `env` was made from, if it is one of ours."""
    env_id = env.spec.id if env.spec is not None else None
    return next((task for task in TASKS.values() if task.env_id == env_id), None)
