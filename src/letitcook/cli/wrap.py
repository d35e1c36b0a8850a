"""The command that learns to wait around a policy of one's own: wrap."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from letitcook.cli.evaluate import MarginOption, QueryOption, TrustOption, per_query
from letitcook.cli.options import (
    CheckpointOption,
    EnvArgOption,
    JsonOption,
    PassiveOption,
    ResumeOption,
    SeedOption,
    ToleranceOption,
    WaitOption,
    certified_line,
    check_wait_given,
    out,
    print_json,
    read_durations,
    spent_line,
    training_facts,
)
from letitcook.core.decisions import check_durations, read_timesteps
from letitcook.evaluation.certificate import DEFAULT_MARGIN, Margin
from letitcook.evaluation.rollout import check_episodes
from letitcook.evaluation.savings import compare_with_base
from letitcook.storage.folders import check_output
from letitcook.training.budget import Budget
from letitcook.training.env_spec import WrappedEnvSpec, env_arguments, fingerprint
from letitcook.training.keeping import CHECKPOINT_SECONDS
from letitcook.training.learn import learn
from letitcook.training.progress import working
from letitcook.training.run import Learned
from letitcook.training.selection import Tolerance


def wrap(
    env: Annotated[str, typer.Option("--env", help="Gymnasium's id: Env-v0 or module:Env-v0", metavar="ID")],
    policy: Annotated[str, typer.Option(help="sb3:ALGO:FILE.zip or module:function", metavar="POLICY")],
    durations: Annotated[str, typer.Option(help="Waits in steps, such as 2,4,8")],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the run; it must not exist yet", metavar="DIR")],
    wait: WaitOption = None,
    passive: PassiveOption = None,
    env_arg: EnvArgOption = None,
    steps: Annotated[int | None, typer.Option(help="Primitive steps of training, or 0")] = None,
    seed: SeedOption = 0,
    preset: Annotated[str, typer.Option(help="Settings to learn with, see letitcook.learn")] = "best",
    tolerance: ToleranceOption = "0",
    margin: MarginOption = DEFAULT_MARGIN,
    budget_queries: Annotated[
        int | None, typer.Option("--budget-queries", help="Queries of the policy that all of it may cost", metavar="N")
    ] = None,
    budget_episodes: Annotated[
        int | None, typer.Option("--budget-episodes", help="Episodes that all of it may cost", metavar="N")
    ] = None,
    budget_minutes: Annotated[
        float | None, typer.Option("--budget-minutes", help="Time that all of it may take", metavar="N")
    ] = None,
    recording: Annotated[
        str | None,
        typer.Option("--recording", help="A file of letitcook record or minari:ID, for a budget of few queries"),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="Further episodes to compare with the policy alone; else the certificate's")
    ] = None,
    query_ms: QueryOption = None,
    trust_pickle: TrustOption = False,
    resume: ResumeOption = False,
    checkpoint_every: CheckpointOption = CHECKPOINT_SECONDS,
    as_json: JsonOption = False,
) -> None:
    """Learn when a policy need not be queried, certify that no more than a margin is lost, and report what is saved.

    Ctrl-C stops the run and keeps what it has; --resume goes on after any end: ctrl-C, a kill, a power cut.

    Example: letitcook wrap --env MountainCar-v0 --policy my_code:push --wait 1 --durations 2,4,8 --out my-run
    """
    cost = per_query(query_ms)
    check_episodes(1 if episodes is None else episodes, seed)
    Margin.read(margin)
    budget = _budget(budget_queries, budget_episodes, budget_minutes)
    check_wait_given(wait, passive)
    waits, arguments = check_durations(read_durations(durations) or ()), env_arguments(env_arg or ())
    Tolerance.read(tolerance)
    read_timesteps(steps or None, None)
    if not resume:
        check_output(out_dir)
    spec = WrappedEnvSpec(env, policy, fingerprint(policy), waits, wait, passive, arguments)
    savings = None
    with closing(spec.make(trust_pickle)) as waiting_env:
        learned = learn(
            waiting_env,
            steps=steps,
            seed=seed,
            preset=preset,
            tolerance=tolerance,
            out=out_dir,
            resume=resume,
            checkpoint_seconds=checkpoint_every,
            margin=margin,
            budget=budget,
            recording=recording,
        )
        savings = learned.savings
        if learned.finished and episodes is not None:
            with working("comparing with the policy alone"):
                savings = compare_with_base(waiting_env, learned.policy, episodes, seed, margin)
    if as_json:
        facts = {
            **spec.data(),
            "seed": seed,
            "preset": preset,
            "finished": learned.finished,
            "best_step": learned.best.step,
            "steps": learned.steps,
            "decisions": learned.decisions_taken,
            "evaluation_episodes": learned.evaluation_episodes,
            "choice": learned.choice,
            "certificate": learned.certificate,
            "seconds": learned.seconds,
            "out": str(out_dir),
            "savings": None if savings is None else savings.summary(cost),
        }
        print_json(facts)
        return
    out.print(f"[bold]{escape(env)}[/], around {escape(policy)}", highlight=False)
    for line in () if savings is None else savings.lines(cost):
        out.print(line, highlight=False, markup=False)
    for line in _certified_lines(learned):
        out.print(line, highlight=False, markup=False)
    out.print(f"  {training_facts(learned)}", highlight=False)
    then = (
        f"see: letitcook evaluate {out_dir}"
        if learned.finished
        else "stopped; go on with the same command and --resume"
    )
    out.print(f"  saved in {out_dir}; {then}", highlight=False, markup=False)


def _budget(queries: int | None, episodes: int | None, minutes: float | None) -> Budget | None:
    """Return the budget, None if nothing is limited."""
    budget = Budget(episodes, queries, None if minutes is None else 60.0 * minutes)
    return budget if budget.limited else None


def _certified_lines(learned: Learned) -> list[str]:
    """Return what was chosen among which candidates, and what it took."""
    if learned.certificate is None or learned.choice is None:
        return []
    rows, spent = learned.choice["candidates"], learned.certificate["spent"]
    if learned.certified:
        lines = [f"  chosen: {learned.choice['name']}"]
        if learned.savings is None:  # around a student, whose base did not play the same episodes
            facts = learned.certificate
            lines += [
                f"  {certified_line(facts)}",
                f"  {facts['queries_saved']:.1%} of the policy's queries saved, task return {learned.task_return:.2f}",
            ]
    else:
        lines = [f"  {certified_line(learned.certificate)}: the policy is queried at every step"]
        nearest = learned.certificate.get("nearest")
        if nearest is not None and nearest["bound"] < 0.0:
            lines.append(
                f"    nearest: {nearest['name']} loses less than {-nearest['bound']:.3g}, by {nearest['episodes']:,} "
                "episodes; it takes a larger margin or a larger budget"
            )
    for kind in ("schedule", "persistence", "learned"):
        held = [row for row in rows if row["kind"] == kind and row["difference"] > -learned.certificate["margin"]]
        if held:
            best = max(held, key=lambda row: float(row["saved"]))
            error = "" if best["difference_se"] is None else f" ± {1.96 * best['difference_se']:.2g}"
            lines.append(
                f"    best {kind:<12}{best['saved']:6.1%} saved, return {best['difference']:+.2g}{error} "
                f"in {best['episodes']} episodes: {best['name']}"
            )
    return [*lines, f"  {spent_line(spent)}"]
