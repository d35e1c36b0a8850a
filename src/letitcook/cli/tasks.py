"""Commands about tasks: tasks, plan, interleave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from letitcook.cli.options import (
    DurationsOption,
    JsonOption,
    LambdaOption,
    ModeOption,
    TaskArgument,
    out,
    print_json,
    read_durations,
)
from letitcook.cli.terminal.tables import tasks_table
from letitcook.errors import SettingError
from letitcook.evaluation.interleaving import interleave as interleave_policy
from letitcook.evaluation.rollout import rollout
from letitcook.evaluation.savings import BaseAlone
from letitcook.finite.plan import plan as plan_env
from letitcook.tasks import TASKS, make, task_named
from letitcook.training.progress import working
from letitcook.training.run import load


def tasks(as_json: JsonOption = False) -> None:
    """List the tasks.

    Example: letitcook tasks
    """
    if as_json:
        print_json({"tasks": [_task_facts(name) for name in TASKS]})
    else:
        out.print(tasks_table(TASKS.values()))


def plan(
    task: TaskArgument,
    mode: ModeOption = "scratch",
    objective: Annotated[str, typer.Option(help="lexicographic, scalar or task")] = "lexicographic",
    lam: LambdaOption = None,
    horizon: Annotated[int | None, typer.Option(help="Primitive steps; the task's own if not given")] = None,
    durations: DurationsOption = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="Without seeing the task's clock")] = False,
    times: Annotated[
        str | None, typer.Option("--times", help="Steps that the clock takes; of several such as 14,18,22 one is drawn")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the exact optimum of a finite task, with or without seeing its clock.

    Example: letitcook plan cook --hidden --times 14,16,18,20,22
    """
    env = make(task, mode=mode, durations=read_durations(durations), hidden=hidden, **_clock_of(task, times))
    with working(f"planning {task}"):
        best = plan_env(env, horizon, objective, lam)
    facts = {
        "task": task,
        "mode": mode,
        "objective": objective,
        "lambda": lam,
        "length": best.length,
        "queries": best.queries,
        "states": best.states,
        "beliefs": best.beliefs,
        "horizon": best.horizon,
        "decisions": best.labels,
    }
    if as_json:
        print_json(facts)
        return
    out.print(f"[bold]{task}[/], {mode}, {objective}{'' if lam is None else f' λ={lam:g}'}: exact optimum")
    out.print(f"  length   {best.length:g} primitive steps\n  queries  {best.queries:g}\n  states   {best.states:,}")
    if best.beliefs is not None:
        out.print(f"  beliefs  {best.beliefs:,}")
    out.print(f"  episode  {' · '.join(_folded(best.labels))}", highlight=False)


def interleave(
    task: TaskArgument,
    run_dir: Annotated[
        Path | None, typer.Option("--run", help="A wrapper that was trained; else the exact one")
    ] = None,
    durations: DurationsOption = None,
    pack: Annotated[bool, typer.Option("--pack", help="Several tasks in one wait")] = False,
    as_json: JsonOption = False,
) -> None:
    """Do other work inside the waits of a wrapped policy.

    Example: letitcook interleave coffee
    """
    chosen = task_named(task)
    if chosen.auxiliary is None or chosen.base_policy is None:
        able = ", ".join(t.name for t in TASKS.values() if t.auxiliary is not None)
        raise SettingError(f"{task} has no other work to do inside its waits; tasks that have: {able}")
    if run_dir is not None and durations is not None:
        raise SettingError("a trained wrapper has its own durations; leave out --durations with --run")
    env = make(task, mode="wrap", durations=read_durations(durations))
    with working(f"planning {task}"):
        policy: Any = plan_env(env).policy if run_dir is None else load(run_dir).policy
    base = rollout(env, BaseAlone())
    wrapper = rollout(env, policy)
    episode = interleave_policy(env, policy, chosen.auxiliary(), pack=pack)
    fills = [{"time": f.begun, "wait": f.wait, "task": f.task, "steps": f.steps} for f in episode.fills]
    named = (("base", base), ("wrapper", wrapper), ("interleaved", episode))
    facts = {name: {"length": e.length, "queries": e.queries} for name, e in named}
    if as_json:
        print_json({"task": task, **facts, "fills": fills})
        return
    for name, numbers in facts.items():
        out.print(f"{name:<12} {numbers['length']:>4} steps  {numbers['queries']:>4} queries", highlight=False)
    for fill in fills:
        out.print(
            f"  step {fill['time']}: {fill['task']} ({fill['steps']} steps) in a wait of {fill['wait']}",
            highlight=False,
        )


def _clock_of(task: str, times: str | None) -> dict[str, Any]:
    """Return the argument of a task's environment that says how long its clock takes."""
    if times is None:
        return {}
    argument = {"CookEnv": "cook_time", "CoffeeEnv": "brew_time"}.get(task_named(task).entry_point.partition(":")[2])
    if argument is None:
        raise SettingError(f"{task} has no clock; --times goes with the kitchens and with coffee")
    return {argument: read_durations(times)}


def _folded(labels: list[str]) -> list[str]:
    """Join equal neighbours: `stay ×3`."""
    folded: list[tuple[str, int]] = []
    for label in labels:
        if folded and folded[-1][0] == label:
            folded[-1] = (label, folded[-1][1] + 1)
        else:
            folded.append((label, 1))
    return [label if n == 1 else f"{label} ×{n}" for label, n in folded]


def _task_facts(name: str) -> dict[str, Any]:
    task = TASKS[name]
    return {
        "name": task.name,
        "summary": task.summary,
        "env": task.env_id,
        "actions": list(task.actions),
        "wait": task.actions[task.wait],
        "durations": list(task.durations),
        "horizon": task.horizon,
        "finite": task.finite,
    }
