"""Commands about saved runs: watch, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from letitcook.cli.options import JsonOption, SeedOption, out, print_json
from letitcook.cli.terminal.watch import check_fps, default_fps, run_trace, watch_gif, watch_terminal
from letitcook.deploy.export import to_numpy, to_onnx
from letitcook.errors import SettingError, UnknownNameError
from letitcook.training.progress import working
from letitcook.training.run import load


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
    out.print(f"{gif}: {episode.length} steps, {len(episode.queries)} queries", highlight=False, markup=False)


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
    actions = list(run.info.decisions.actions)
    if as_json:
        print_json({"to": to, "out": str(written), "policy": run.info.policy, "actions": actions})
        return
    out.print(f"{written}: a policy of actions {', '.join(actions)}", highlight=False, markup=False)
