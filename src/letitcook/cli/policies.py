"""Commands about tasks and single policies: tasks, plan, train, watch, interleave, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from letitcook.cli.options import (
    DurationsOption,
    JsonOption,
    LambdaOption,
    ModeOption,
    SeedOption,
    TaskArgument,
    out,
    print_json,
)
from letitcook.deep.policy import NetworkPolicy
from letitcook.envs import TASKS, task_named
from letitcook.errors import SettingError, UnknownNameError
from letitcook.evaluate import rollout
from letitcook.experiments import work
from letitcook.experiments.bases import kept_base
from letitcook.experiments.suites import Row, Run, base_of, default_steps
from letitcook.export import to_numpy, to_onnx
from letitcook.files import check_output, free_folder
from letitcook.finite.plan import plan as plan_env
from letitcook.interleaving import interleave as interleave_policy
from letitcook.progress import pair, short, working
from letitcook.report.tables import tasks_table
from letitcook.report.watch import check_fps, default_fps, run_trace, watch_gif, watch_terminal
from letitcook.runs import Learned, load
from letitcook.savings import BaseAlone
from letitcook.tracking import track
from letitcook.train import check_steps, run_until_stopped
from letitcook.wrapping import make


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
    as_json: JsonOption = False,
) -> None:
    """Compute the exact optimum of a finite task.

    Example: letitcook plan coffee --objective scalar --lambda 5
    """
    env = make(task, mode=mode, durations=read_durations(durations))
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
        "horizon": best.horizon,
        "decisions": best.labels,
    }
    if as_json:
        print_json(facts)
        return
    out.print(f"[bold]{task}[/], {mode}, {objective}{'' if lam is None else f' λ={lam:g}'}: exact optimum")
    out.print(f"  length   {best.length:g} primitive steps\n  queries  {best.queries:g}\n  states   {best.states:,}")
    out.print(f"  episode  {' · '.join(_folded(best.labels))}", highlight=False)


def train(
    task: TaskArgument,
    method: Annotated[str, typer.Option(help="lexicographic, scalar or vanilla")] = "lexicographic",
    lam: LambdaOption = None,
    mode: ModeOption = "scratch",
    seed: SeedOption = 0,
    steps: Annotated[int | None, typer.Option(help="Primitive steps; the paper's or the preset's if not given")] = None,
    preset: Annotated[str, typer.Option(help="paper, or best: beyond the paper")] = "paper",
    durations: DurationsOption = None,
    base_dir: Annotated[
        Path | None, typer.Option("--base", help="A vanilla run to wrap; trained and kept if not given")
    ] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Folder for the run; it must not exist yet")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the stopped run in --out")] = False,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard's curves", metavar="DIR")
    ] = None,
    wandb: Annotated[
        str | None, typer.Option("--wandb", help="Project for curves in Weights & Biases", metavar="PROJECT")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Learn where and how long to wait in a task.

    Ctrl-C stops the run after its next evaluation and keeps what it has; --resume goes on from there.

    Example: letitcook train cook --preset best --steps 1000000 --out my-run
    """
    goal = check_steps(default_steps(task, preset) if steps is None else steps)
    run = Run(Row(task, mode, method, lam), seed, goal, preset)
    folder = out_dir or free_folder(Path(run.id.replace("/", "-") + "-stopped"))
    stopped = _stopped_run(out_dir) if resume else None
    if stopped is None and out_dir is not None:
        check_output(out_dir)
    waits = read_durations(durations)
    with track(run.id, tensorboard, wandb, resumed=stopped is not None) as callback:
        base = _base_policy(run, base_dir)
        with working("preparing (the first run compiles its kernels)"):
            training = work.training_of(run, base, waits)
        if stopped is not None:
            training.resume(stopped)
        training.callback = callback
        ended = run_until_stopped(training, run.steps, keep=folder)
    learned = training.result() if ended else training.stopped()
    if out_dir is not None or not ended:
        learned.save(folder, replace=stopped is not None)
    facts = {
        "task": task,
        "mode": mode,
        "method": method,
        "lambda": lam,
        "seed": seed,
        "preset": preset,
        "finished": ended,
        "length": learned.length,
        "queries": learned.queries,
        "task_return": learned.task_return,
        "base_queries": learned.fresh.base_queries,
        "best_step": learned.best.step,
        "steps": learned.steps,
        "evaluation_episodes": learned.evaluation_episodes,
        "seconds": learned.seconds,
        "steps_per_second": learned.steps / learned.seconds,
        "out": str(folder) if out_dir is not None or not ended else None,
    }
    if as_json:
        print_json(facts)
        return
    out.print(f"[bold]{task}[/], {mode}, {method}: length/queries [bold]{pair(learned)}[/]", highlight=False)
    if task_named(task).finite and waits is None:
        best = work.exact(run.row)
        out.print(f"  exact optimum {best.length:g}/{'any' if best.queries is None else f'{best.queries:g}'}")
    rate = short(learned.steps / learned.seconds)
    played = f"{learned.evaluation_episodes:,} evaluation episodes"
    out.print(f"  best at step {learned.best.step:,} of {learned.steps:,} ({rate} steps/s), {played}", highlight=False)
    if not ended:
        out.print(f"  stopped; go on with: letitcook train {task} ... --out {folder} --resume", highlight=False)
    elif out_dir is not None:
        out.print(f"  saved in {folder}; see: letitcook evaluate {folder}", highlight=False)


def _stopped_run(folder: Path | None) -> Learned:
    if folder is None:
        raise SettingError("--resume needs the folder of the stopped run; give it with --out")
    return load(folder)


def _base_policy(run: Run, folder: Path | None) -> NetworkPolicy | None:
    """Return the network that a run wraps: the one given, or one that is trained once and kept."""
    if base_of(run) is None:
        if folder is not None:
            raise SettingError(f"--base goes with --mode wrap of a task with networks, not with {run.row.id}")
        return None
    if folder is None:
        with working(f"training the base policy of {run.row.task}, seed {run.seed}, once; it is kept"):
            folder = kept_base(run)
    policy = load(folder).policy
    if not isinstance(policy, NetworkPolicy):
        raise SettingError(f"{folder} does not hold a network; give a vanilla run of {run.row.task}")
    return policy


def watch(
    run_dir: Annotated[Path, typer.Argument(help="A folder that train wrote", metavar="RUN_DIR")],
    gif: Annotated[Path | None, typer.Option("--gif", help="Write a GIF instead of playing in the terminal")] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Play in the terminal; the default")] = False,
    seed: SeedOption = 0,
    fps: Annotated[float | None, typer.Option(help="Primitive steps a second; the task's own if not given")] = None,
) -> None:
    """Watch one episode of a saved policy, step by step, also inside its waits.

    Example: letitcook watch my-run --gif my-run.gif
    """
    if gif is not None and terminal:
        raise SettingError("--gif and --terminal exclude each other; give one of them")
    run = load(run_dir)
    rate = None if fps is None else check_fps(fps)
    with working("playing the episode"):
        episode = run_trace(run, seed, frames=gif is not None)
    rate = default_fps(episode.task) if rate is None else rate
    if gif is None:
        if not watch_terminal(episode, Console(), rate):
            raise typer.Exit(130)
        return
    with working(f"writing {gif}"):
        watch_gif(episode, gif, rate)
    out.print(f"{gif}: {episode.length} steps, {len(episode.queries)} queries", highlight=False)


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


EXPORTS = {"numpy": to_numpy, "onnx": to_onnx}
"""What a policy can be written as."""


def export(
    run_dir: Annotated[Path, typer.Argument(help="A folder that train wrote", metavar="RUN_DIR")],
    out_path: Annotated[Path, typer.Option("--out", help="Where to write; nothing may be there yet", metavar="FILE")],
    to: Annotated[str, typer.Option("--to", help="numpy: a folder that needs NumPy alone; onnx: one file")] = "numpy",
    as_json: JsonOption = False,
) -> None:
    """Write a saved policy for another machine.

    Example: letitcook export my-run --to numpy --out robot
    """
    if to not in EXPORTS:
        raise UnknownNameError("form", to, EXPORTS)
    run = load(run_dir)
    written = EXPORTS[to](run, out_path)
    actions = run.about["decisions"]["actions"]
    if as_json:
        print_json({"to": to, "out": str(written), "policy": run.about["policy"], "actions": actions})
        return
    out.print(f"{written}: a policy of actions {', '.join(actions)}", highlight=False)


def read_durations(text: str | None) -> tuple[Any, ...] | None:
    """Read `5,15`; what is not a number is left for the check of durations to name."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    return tuple(int(part) if part.lstrip("+-").isdigit() else _number(part) for part in parts)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


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
