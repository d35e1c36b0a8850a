"""The commands that look at a policy before anything is learned: record, audit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from letitcook.cli.evaluate import TrustOption
from letitcook.cli.options import EnvArgOption, JsonOption, SeedOption, out, print_json
from letitcook.errors import SettingError
from letitcook.evaluation import persistence
from letitcook.evaluation.minari_log import read_recording
from letitcook.evaluation.persistence import Audit, Recording
from letitcook.storage.folders import check_output
from letitcook.training.env_spec import WrappedEnvSpec, env_arguments, fingerprint, read_action
from letitcook.training.progress import working
from letitcook.wrappers.base_policy import base_env_of
from letitcook.wrappers.hold import HOLD, LastAction

EnvOption = Annotated[str, typer.Option("--env", help="Gymnasium's id: Env-v0 or module:Env-v0", metavar="ID")]
PolicyOption = Annotated[str, typer.Option(help="sb3:ALGO:FILE.zip or module:function", metavar="POLICY")]


def record(
    env: EnvOption,
    policy: PolicyOption,
    out_file: Annotated[Path, typer.Option("--out", help="File for the recording; it must not exist yet")],
    env_arg: EnvArgOption = None,
    episodes: Annotated[int, typer.Option(help="Episodes to play with the policy")] = 20,
    seed: SeedOption = 0,
    trust_pickle: TrustOption = False,
) -> None:
    """Play a policy and write down what it sees and answers, for letitcook audit.

    Example: letitcook record --env Pendulum-v1 --policy my_code:swing --episodes 20 --out swing.safetensors
    """
    check_output(out_file)
    recording = _played(env, policy, env_arg, episodes, seed, trust_pickle)
    recording.save(out_file)
    out.print(
        f"{len(recording.answers):,} queries in {recording.count} episodes, saved in {out_file}; "
        f"see: letitcook audit --recording {out_file}",
        highlight=False,
    )


def audit(
    env: Annotated[str | None, typer.Option("--env", help="Gymnasium's id: Env-v0 or module:Env-v0")] = None,
    policy: Annotated[str | None, typer.Option(help="sb3:ALGO:FILE.zip or module:function")] = None,
    recording: Annotated[
        str | None,
        typer.Option("--recording", help="A file of letitcook record or minari:ID, in place of --env and --policy"),
    ] = None,
    wait: Annotated[
        str | None, typer.Option(help="An action that waits: how often does the policy answer it?", metavar="ACTION")
    ] = None,
    env_arg: EnvArgOption = None,
    episodes: Annotated[int, typer.Option(help="Episodes to play with the policy")] = 20,
    seed: SeedOption = 0,
    trust_pickle: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Estimate how many of a policy's queries could be saved, before anything is learned.

    Example: letitcook audit --env Pendulum-v1 --policy my_code:swing --wait 0
    """
    vector = None
    if recording is not None:
        if env is not None or policy is not None or wait is not None:
            raise SettingError("give a recording, or an environment and a policy (and an action that waits), not both")
        seen = read_recording(recording)
    elif env is None or policy is None:
        raise SettingError("give an environment with --env and a policy with --policy, or a file with --recording")
    else:
        if wait is not None:
            with closing(_spec(env, policy, env_arg).make(trust_pickle)) as made:
                wrapped = base_env_of(made)
                assert wrapped is not None
                space = wrapped.env.action_space
                vector = LastAction(space).vector(read_action(wait, space))
        seen = _played(env, policy, env_arg, episodes, seed, trust_pickle)
    rows = persistence.audit(seen, vector)
    if as_json:
        facts = [{"tolerance": r.tolerance, "saved_by_holding": 1.0 - r.kept, "as_the_wait": r.waited} for r in rows]
        print_json({"episodes": seen.count, "queries": len(seen.answers), "audit": facts})
        return
    out.print(f"{len(seen.answers):,} queries in {seen.count} episodes", highlight=False)
    for line in _lines(rows):
        out.print(line, highlight=False)


def _spec(env: str, policy: str, env_arg: list[str] | None) -> WrappedEnvSpec:
    return WrappedEnvSpec(env, policy, fingerprint(policy), (2,), HOLD, None, env_arguments(env_arg or ()))


def _played(
    env: str, policy: str, env_arg: list[str] | None, episodes: int, seed: int, trust_pickle: bool
) -> Recording:
    with closing(_spec(env, policy, env_arg).make(trust_pickle)) as made, working("playing the policy"):
        return persistence.record(made, episodes, seed)


def _lines(rows: list[Audit]) -> list[str]:
    """Return the estimate for people."""
    lines = ["  if its answers could be foreseen, and held while they stay the same"]
    seen: list[float] = []
    for row in rows:
        if row.kept in seen:
            continue
        seen.append(row.kept)
        near = "exactly" if row.tolerance == 0.0 else f"within {row.tolerance:g} standard deviations"
        lines.append(f"    {near:<36}{1.0 - row.kept:7.1%} of the queries could be saved")
    if rows[0].waited is not None:
        lines.append("  how often it answers as the action that waits does")
        lines += [f"    within {row.tolerance:g} standard deviations{row.waited:14.1%}" for row in rows[1:]]
    lines.append("  an estimate from the policy's own episodes; what is certified, letitcook wrap says")
    return lines
