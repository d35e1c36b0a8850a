"""The command that plays a saved policy: evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from letitcook.cli.options import JsonOption, SeedOption, certified_line, out, print_json, spent_line
from letitcook.errors import FileFormatError, SettingError
from letitcook.evaluation.certificate import DEFAULT_MARGIN, Margin
from letitcook.evaluation.rollout import Evaluation
from letitcook.evaluation.rollout import evaluate as evaluate_policy
from letitcook.evaluation.savings import check_cost, compare_with_base
from letitcook.tasks import make
from letitcook.training.run import Learned, load
from letitcook.wrappers.waiting import WaitingEnv

MarginOption = Annotated[
    str, typer.Option(help="Loss that is accepted: a task return, or a share of the base's such as 1%", metavar="LOSS")
]
QueryOption = Annotated[
    float | None, typer.Option("--query-ms", help="What a query of the base costs, in ms; measured if not given")
]
TrustOption = Annotated[
    bool,
    typer.Option("--trust-pickle", help="Load a policy's pickled parts, which can run any code: only if it is yours"),
]


def evaluate(
    run_dir: Annotated[Path, typer.Argument(help="A folder that train or wrap wrote", metavar="RUN_DIR")],
    episodes: Annotated[int, typer.Option(help="Episodes to play in the real environment")] = 100,
    seed: SeedOption = 0,
    margin: MarginOption = DEFAULT_MARGIN,
    query_ms: QueryOption = None,
    trust_pickle: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Play a saved policy in the real environment; of a wrapper, say what it costs and saves beside its base.

    Example: letitcook evaluate my-run --episodes 10
    """
    cost = per_query(query_ms)
    Margin.read(margin)
    run = load(run_dir)
    env = env_of(run, run_dir, trust_pickle)
    names = {"task": run.info.task, "mode": run.info.mode, "method": run.info.method}
    if run.info.decisions.has_base:
        savings = compare_with_base(env, run.policy, episodes, seed, margin)
        result = savings.wrapper
    else:
        savings, result = None, evaluate_policy(env, run.policy, episodes, seed)
    if as_json:
        share = {str(duration): value for duration, value in result.wait_share.items()}
        facts = {**names, **result.summary(), "wait_share": share, "certified_before": run.certificate}
        print_json(facts if savings is None else {**facts, "savings": savings.summary(cost)})
        return
    title = run.info.task or (run.info.env_spec and run.info.env_spec.env)
    out.print(
        f"[bold]{escape(str(title))}[/], {names['mode']}, {names['method']}, {episodes} episodes", highlight=False
    )
    for line in _lines(result) if savings is None else savings.lines(cost):
        out.print(line, highlight=False, markup=False)
    if run.certificate is not None:
        out.print(f"  when it was chosen: {certified_line(run.certificate)}", highlight=False, markup=False)
        out.print(
            f"  {spent_line(run.certificate['spent'])}; see: letitcook report {run_dir}", highlight=False, markup=False
        )


def per_query(milliseconds: float | None) -> float | None:
    """Return the cost of a query in seconds, None if it is to be measured."""
    return None if milliseconds is None else check_cost(milliseconds / 1e3)


def env_of(run: Learned, folder: Path, trust_pickle: bool = False) -> WaitingEnv:
    """Return the environment that a run was trained in."""
    info = run.info
    if info.task is not None:
        return make(info.task, info.mode, info.decisions.durations or None, run.base)
    if info.env_spec is None:
        raise SettingError(f"{folder} was not trained on one of letitcook's tasks; use letitcook.evaluate in Python")
    info.env_spec.check_policy()
    env = info.env_spec.make(trust_pickle)
    if env.decisions != info.decisions:
        raise FileFormatError(f"{folder} does not have the decisions of {info.env_spec.env}; wrap it anew")
    return env


def _lines(result: Evaluation) -> list[str]:
    facts = result.summary()
    lines = [
        f"  {name.replace('_', ' '):<13}{facts[name]:8.2f} ± {facts[f'{name}_sd']:.2f}"
        for name in ("length", "queries", "task_return")
    ]
    waits = result.waits_said
    longest = f"; longest wait {result.longest_wait} steps" if waits else ""
    return [*lines, f"  {'time':<13}{waits or 'no waiting at all'}{longest}"]
