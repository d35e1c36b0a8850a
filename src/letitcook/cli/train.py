"""The command that learns one of the paper's tasks: train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from letitcook.cli.options import (
    CheckpointOption,
    DurationsOption,
    JsonOption,
    LambdaOption,
    ModeOption,
    ResumeOption,
    SeedOption,
    TaskArgument,
    out,
    print_json,
    read_durations,
    training_facts,
)
from letitcook.core.decisions import read_timesteps
from letitcook.deep.policy import NetworkPolicy
from letitcook.errors import SettingError
from letitcook.experiments import jobs
from letitcook.experiments.base_cache import kept_base
from letitcook.experiments.suites import Row, Run, base_of, run_of
from letitcook.storage.folders import check_output, free_folder
from letitcook.tasks import make, task_named
from letitcook.training.callbacks import track
from letitcook.training.keeping import CHECKPOINT_SECONDS
from letitcook.training.learn import learn
from letitcook.training.progress import pair, working
from letitcook.training.run import Learned, load


def train(
    task: TaskArgument,
    method: Annotated[str, typer.Option(help="lexicographic, scalar or vanilla")] = "lexicographic",
    lam: LambdaOption = None,
    mode: ModeOption = "scratch",
    seed: SeedOption = 0,
    steps: Annotated[int | None, typer.Option(help="Primitive steps; the preset's length if not given")] = None,
    decisions: Annotated[int | None, typer.Option(help="Decisions, in place of --steps")] = None,
    preset: Annotated[str, typer.Option(help="paper, or best: beyond the paper")] = "paper",
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
    """Learn where and how long to wait in a task.

    Ctrl-C stops the run and keeps what it has. With --out, --resume goes on after any end: ctrl-C, a kill, a power cut.

    Example: letitcook train cook --preset best --steps 1000000 --out my-run
    """
    run = run_of(Row(task, mode, method, lam), seed, preset, read_timesteps(steps, decisions))
    waits = read_durations(durations)
    if out_dir is not None and not resume:
        check_output(out_dir)
    with track(run.id, tensorboard, wandb, resumed=resume) as callback:
        learned = learn(
            make(task, mode, waits, _base_policy(run, base_dir)),
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
        folder = learned.save(free_folder(Path(run.id.replace("/", "-") + "-stopped")))
    if as_json:
        print_json({"task": task, "mode": mode, **_facts(learned), "out": None if folder is None else str(folder)})
        return
    out.print(f"[bold]{task}[/], {mode}, {method}: length/queries [bold]{pair(learned)}[/]", highlight=False)
    if task_named(task).finite and waits is None:
        best = jobs.exact(run.row)
        out.print(f"  exact optimum {best.length:g}/{'any' if best.queries is None else f'{best.queries:g}'}")
    out.print(f"  {training_facts(learned)}", highlight=False)
    if not learned.finished:
        out.print(
            f"  stopped; go on with: letitcook train {task} ... --out {folder} --resume", highlight=False, markup=False
        )
    elif folder is not None:
        out.print(f"  saved in {folder}; see: letitcook evaluate {folder}", highlight=False, markup=False)
    else:
        out.print("  the policy was not saved; give a folder for it with --out", highlight=False)


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
