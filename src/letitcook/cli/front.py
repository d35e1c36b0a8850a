"""The command that shows what a run learned about the trade between task return and queries: front."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from letitcook.cli.evaluate import TrustOption, env_of
from letitcook.cli.options import JsonOption, SeedOption, ToleranceOption, out, print_json
from letitcook.errors import SettingError
from letitcook.evaluation.rollout import Evaluation, check_episodes
from letitcook.evaluation.rollout import evaluate as evaluate_policy
from letitcook.evaluation.savings import BaseAlone, Interval, ratio_interval
from letitcook.storage.folders import check_output
from letitcook.training.loop import FRESH_EPISODES
from letitcook.training.progress import working
from letitcook.training.run import Point, load
from letitcook.training.selection import Candidate, Tolerance, choose
from letitcook.wrappers.waiting import WaitingEnv


def front(
    run_dir: Annotated[Path, typer.Argument(help="A folder that train or wrap wrote", metavar="RUN_DIR")],
    tolerance: ToleranceOption = "0",
    episodes: Annotated[int, typer.Option(help="Episodes that each policy plays, the same for all")] = 100,
    seed: SeedOption = 0,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Write the policy that is chosen as a run of its own", metavar="DIR")
    ] = None,
    trust_pickle: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show task return against queries for the policies that one run learned, and choose among them.

    Example: letitcook front my-run --tolerance 1
    """
    check_episodes(episodes, seed)
    accepted = Tolerance.read(tolerance)
    if out_dir is not None:
        check_output(out_dir)
    run = load(run_dir)
    if not run.front:
        raise SettingError(f"{run_dir} holds one policy and no others; learn a family of them with --preset best")
    members = list(run.front)
    with closing(env_of(run, run_dir, trust_pickle)) as env, working(f"playing {len(members)} policies"):
        if run.info.decisions.has_base:
            members.append(Candidate(0, None, BaseAlone(), members[0].screening))
        played = [_played(env, member, episodes, seed) for member in members]
    best = max(members, key=lambda m: (m.task_return, -m.queries))
    fresh = None if run.info.decisions.has_base else FRESH_EPISODES
    chosen = choose(members, _never, (episodes,), accepted, fresh).candidate
    facts = [_facts(member, evaluation, best) for member, evaluation in zip(members, played, strict=True)]
    if out_dir is not None:
        point = Point(chosen.step, chosen.decision, *chosen.screening[:, :4].mean(axis=0).tolist())
        choice = {"log10_lambda": chosen.log_lambda, "tolerance": accepted._asdict(), "candidates": len(members)}
        if isinstance(chosen.policy, BaseAlone):
            raise SettingError("the policy that is chosen is the base itself; there is nothing to write")
        replace(run, policy=chosen.policy, best=point, fresh=point, time=(), choice=choice).save(out_dir)
    if as_json:
        print_json({"tolerance": tolerance, "episodes": episodes, "chosen": members.index(chosen), "front": facts})
        return
    out.print(_table(facts, members.index(chosen), episodes))
    name = "the base itself" if chosen.log_lambda is None else f"log10 λ = {chosen.log_lambda:.2f}"
    loss = "measurable loss" if fresh is None else f"loss that {fresh:,} fresh episodes can show"
    out.print(f"* {name}: fewest queries with no {loss} beyond {tolerance}", highlight=False, markup=False)
    if out_dir is not None:
        out.print(f"saved in {out_dir}; see: letitcook evaluate {out_dir}", highlight=False, markup=False)


def _played(env: WaitingEnv, member: Candidate, episodes: int, seed: int) -> Evaluation:
    """Play a member; its rows take the place of those of its screening."""
    evaluation = evaluate_policy(env, member.policy, episodes, seed)
    names = ("task_return", "length", "queries", "base_queries")
    member.screening = np.stack([evaluation.of(name) for name in names], axis=1)
    member.looks = [member.screening]
    return evaluation


def _never(policy: Any, look: int, episodes: int) -> NDArray[np.float64]:
    raise AssertionError("every member has been played")


def _facts(member: Candidate, evaluation: Evaluation, best: Candidate) -> dict[str, Any]:
    ones = np.ones(len(evaluation.episodes))
    return {
        "log10_lambda": member.log_lambda,
        "step": member.step,
        "task_return": ratio_interval(evaluation.of("task_return"), ones)._asdict(),
        "loss": ratio_interval(best.screening[:, 0] - member.screening[:, 0], ones)._asdict(),
        "length": evaluation.length,
        "queries": ratio_interval(evaluation.of("queries"), ones)._asdict(),
        "base_queries": evaluation.base_queries,
    }


def _table(facts: list[dict[str, Any]], chosen: int, episodes: int) -> Table:
    table = Table(title=f"means of {episodes} episodes with 95% intervals", title_justify="left", box=None)
    for name in ("", "log10 λ", "step", "task return", "loss against the best", "length", "queries"):
        table.add_column(name, justify="right")
    for i, fact in enumerate(facts):
        z = fact["log10_lambda"]
        table.add_row(
            "*" if i == chosen else "",
            "base" if z is None else f"{z:.2f}",
            f"{fact['step']:,}",
            _spread(fact["task_return"]),
            _spread(fact["loss"]),
            f"{fact['length']:.1f}",
            _spread(fact["queries"]),
        )
    return table


def _spread(interval: dict[str, float | None]) -> str:
    value, low, _ = Interval(**interval)  # type: ignore[arg-type]
    return f"{value:.2f}" if low is None else f"{value:.2f} ± {value - low:.2f}"
