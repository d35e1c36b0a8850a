"""The command that learns a task of the paper, or any environment of Gymnasium: train."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from letitcook.cli.options import (
    CheckpointOption,
    DurationsOption,
    EnvArgOption,
    JsonOption,
    LambdaOption,
    ModeOption,
    PassiveOption,
    ResumeOption,
    SeedOption,
    WaitOption,
    check_wait_given,
    out,
    print_json,
    read_durations,
    training_facts,
)
from letitcook.core.decisions import check_durations, read_timesteps
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import SettingError
from letitcook.experiments import jobs
from letitcook.experiments.base_cache import kept_base
from letitcook.experiments.suites import Row, Run, base_of, run_of
from letitcook.storage.folders import check_output, free_folder
from letitcook.tasks import make, task_named
from letitcook.training.callbacks import track
from letitcook.training.env_spec import WrappedEnvSpec, env_arguments
from letitcook.training.keeping import CHECKPOINT_SECONDS
from letitcook.training.learn import learn
from letitcook.training.progress import pair, working
from letitcook.training.run import Learned, load
from letitcook.wrappers.waiting import WaitingEnv


def train(
    task: Annotated[str | None, typer.Argument(help="A task, see: letitcook tasks", metavar="[TASK]")] = None,
    env: Annotated[
        str | None,
        typer.Option("--env", help="In place of a task: Gymnasium's id, Env-v0 or module:Env-v0", metavar="ID"),
    ] = None,
    wait: WaitOption = None,
    passive: PassiveOption = None,
    env_arg: EnvArgOption = None,
    action_repeat: Annotated[
        int, typer.Option(help="With --env: how often each action is sent before the policy is asked again")
    ] = 1,
    method: Annotated[str, typer.Option(help="lexicographic, scalar or vanilla")] = "lexicographic",
    lam: LambdaOption = None,
    mode: ModeOption = "scratch",
    seed: SeedOption = 0,
    steps: Annotated[int | None, typer.Option(help="Primitive steps; the preset's length if not given")] = None,
    decisions: Annotated[int | None, typer.Option(help="Decisions, in place of --steps")] = None,
    preset: Annotated[
        str | None, typer.Option(help="paper (the default for its tasks), or best: beyond the paper (with --env)")
    ] = None,
    durations: DurationsOption = None,
    base_dir: Annotated[
        Path | None, typer.Option("--base", help="A vanilla run to wrap; trained and kept if not given")
    ] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Folder for the run; it must not exist yet")] = None,
    resume: ResumeOption = False,
    checkpoint_every: CheckpointOption = CHECKPOINT_SECONDS,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard's curves", metavar="DIR")
    ] = None,
    wandb: Annotated[
        str | None, typer.Option("--wandb", help="Project for curves in Weights & Biases", metavar="PROJECT")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Learn where and how long to wait in a task, or with --env in any environment of Gymnasium.

    Ctrl-C stops the run and keeps what it has. With --out, --resume goes on after any end: ctrl-C, a kill, a power cut.

    Example: letitcook train cook --preset best --steps 1000000 --out my-run

    Example: letitcook train --env Acrobot-v1 --wait 1 --durations 2,4,8 --out acrobot

    Example: letitcook train --env LunarLander-v3 --wait 0 --durations 8,16 --action-repeat 4 --out lander
    """
    if (task is None) == (env is None):
        raise SettingError("name a task (see: letitcook tasks) or an environment with --env, and not both")
    waits, length = read_durations(durations), read_timesteps(steps, decisions)
    preset = preset or ("paper" if env is None else "best")
    if out_dir is not None and not resume:
        check_output(out_dir)
    run = None if task is None else run_of(Row(task, mode, method, lam), seed, preset, length)
    if run is not None and task is not None:
        if wait is not None or passive is not None or env_arg or action_repeat != 1:
            raise SettingError(
                "--wait, --passive, --env-arg and --action-repeat go with --env; a task has its own action that waits"
            )
        name, waiting_env = run.id, make(task, mode, waits, _base_policy(run, base_dir))
    else:
        name, waiting_env = (
            f"{env}/{method}/seed{seed}",
            _waiting(env or "", wait, passive, waits, env_arg, action_repeat, mode, base_dir),
        )
    with track(name, tensorboard, wandb, resumed=resume) as callback:
        learned = learn(
            waiting_env,
            method,
            lam,
            steps=steps,
            decisions=decisions,
            seed=seed,
            preset=preset,
            out=out_dir,
            resume=resume,
            callback=callback,
            checkpoint_seconds=checkpoint_every,
        )
    folder = out_dir
    if folder is None and not learned.finished:
        folder = learned.save(free_folder(Path(re.sub(r"[/:]", "-", name) + "-stopped")))
    if as_json:
        place = None if folder is None else str(folder)
        print_json({"task": task, "env": env, "mode": mode, **_facts(learned), "out": place})
        return
    title = escape(task or env or "")
    out.print(f"[bold]{title}[/], {mode}, {method}: length/queries [bold]{pair(learned)}[/]", highlight=False)
    if env is not None:
        out.print(f"  task return {learned.task_return:.2f}", highlight=False)
    if run is not None and task is not None and task_named(task).finite and waits is None:
        best = jobs.exact(run.row)
        out.print(f"  exact optimum {best.length:g}/{'any' if best.queries is None else f'{best.queries:g}'}")
    out.print(f"  {training_facts(learned)}", highlight=False)
    if not learned.finished:
        out.print(
            f"  stopped; go on with: letitcook train {task or f'--env {env}'} ... --out {folder} --resume",
            highlight=False,
            markup=False,
        )
    elif folder is not None:
        out.print(f"  saved in {folder}; see: letitcook evaluate {folder}", highlight=False, markup=False)
    else:
        out.print("  the policy was not saved; give a folder for it with --out", highlight=False)


def _waiting(
    env: str,
    wait: str | None,
    passive: str | None,
    durations: tuple[Any, ...] | None,
    env_arg: list[str] | None,
    action_repeat: int,
    mode: str,
    base_dir: Path | None,
) -> WaitingEnv:
    """Return the waiting environment of a Gymnasium id."""
    if mode != "scratch" or base_dir is not None:
        raise SettingError("around a policy of your own, use: letitcook wrap --env ID --policy POLICY ...")
    check_wait_given(wait, passive)
    if durations is None:
        raise SettingError("give the waits in steps with --durations, such as 2,4,8")
    arguments = env_arguments(env_arg or ())
    return WrappedEnvSpec(
        env, None, None, check_durations(durations), wait, passive, arguments, "decisions", action_repeat
    ).make()


def _facts(learned: Learned) -> dict[str, object]:
    """Return a run as data that JSON can hold."""
    info = learned.info
    return {
        "method": info.method,
        "lambda": info.lam,
        "seed": info.seed,
        "preset": info.preset,
        "finished": learned.finished,
        "length": learned.length,
        "queries": learned.queries,
        "task_return": learned.task_return,
        "base_queries": learned.fresh.base_queries,
        "best_step": learned.best.step,
        "best_decision": learned.best.decision,
        "steps": learned.steps,
        "decisions": learned.decisions_taken,
        "evaluation_episodes": learned.evaluation_episodes,
        "seconds": learned.seconds,
        "steps_per_second": learned.steps / learned.seconds,
    }


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
