"""The suite `zoo`: tasks outside the paper, around policies that were not trained for waiting, and from scratch.

A wrapped row is `learn` with its defaults around a base policy, then the result and the best schedule beside the base
on fresh episodes that nothing else used. A row from scratch is `learn` with preset `best`, then fresh episodes. Each
finished run is a file of its own, so a zoo that was stopped goes on where it was.

Policies of Stable-Baselines3 are not shipped. A row that wraps one takes part if its file is there: `bases/NAME.zip` in
the folder of the results, made by examples/train_bases.py.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from letitcook.errors import LetItCookError, SettingError
from letitcook.evaluation.certificate import DEFAULT_MARGIN
from letitcook.evaluation.rollout import evaluate
from letitcook.evaluation.savings import compare_with_base
from letitcook.evaluation.schedules import SchedulePolicy
from letitcook.experiments.engines import become_worker
from letitcook.storage import folders
from letitcook.training.budget import Budget
from letitcook.training.env_spec import WrappedEnvSpec, fingerprint
from letitcook.training.learn import learn
from letitcook.training.run import Learned

SEEDS = 5
FRESH_EPISODES = 500
FRESH_SEED = 1_000_000
"""Fresh episodes begin here; no other episode of a run has such a seed."""
CONTROLLERS = "letitcook.tasks.controllers"
PATIENCE = 0.5
"""Seconds after which ctrl-C is looked for, in case another thread than the main one was told of it."""
BASES = "bases"
"""Folder of the models that are wrapped, in that of the results."""


@dataclass(frozen=True)
class ZooRow:
    """A task with a base policy, or without one."""

    name: str
    env: str
    policy: str | None = None
    """A controller, or `sb3:ALGO` of a model in the folder of bases; None from scratch."""
    wait: str | None = "hold"
    passive: str | None = None
    durations: tuple[int, ...] = (2, 4, 8)
    steps: int = 0
    """Primitive steps of training; with 0 only schedules and persistence are candidates."""
    action_repeat: int = 1
    env_args: dict[str, Any] = field(default_factory=dict)
    margin: str = DEFAULT_MARGIN
    fresh: int = FRESH_EPISODES
    budget: int | None = None
    """Queries of the base that a run may cost."""

    def spec(self, out: Path) -> WrappedEnvSpec:
        """Return its waiting environment by names."""
        policy = self.policy
        if policy is not None and policy.startswith("sb3:"):
            policy = f"{policy}:{self.model(out)}"
        return WrappedEnvSpec(
            self.env,
            policy,
            None if policy is None else fingerprint(policy),
            self.durations,
            self.wait,
            self.passive,
            self.env_args,
            "decisions" if policy is None else "base",
            self.action_repeat,
        )

    def model(self, out: Path) -> Path:
        """Return where the model is that it wraps."""
        return out / BASES / f"{self.name.removesuffix('/wrap')}.zip"

    def lacks(self, out: Path) -> str | None:
        """Return why it cannot be run here, None if it can."""
        if self.policy is not None and self.policy.startswith("sb3:") and not self.model(out).is_file():
            return f"{self.model(out)} is missing; examples/train_bases.py makes it"
        try:
            self.spec(out).make().close()
        except LetItCookError as error:
            return str(error)
        return None


def _wrapped(name: str, env: str, policy: str, wait: str | None = "hold", passive: str | None = None) -> ZooRow:
    return ZooRow(f"{name}/wrap", env, policy if ":" in policy else f"{CONTROLLERS}:{policy}", wait, passive)


ROWS = (
    _wrapped("lander", "LunarLander-v3", "lander"),
    _wrapped("car", "MountainCarContinuous-v0", "push"),
    _wrapped("pendulum", "Pendulum-v1", "swing"),
    _wrapped("reacher", "Reacher-v5", "reach"),
    _wrapped("inverted", "InvertedPendulum-v5", "balance", wait="0"),
    _wrapped("acrobot", "Acrobot-v1", "pump"),
    _wrapped("cartpole", "CartPole-v1", "pole", wait=None, passive=f"{CONTROLLERS}:no_force"),
    _wrapped("sac-pendulum", "Pendulum-v1", "sb3:sac"),
    _wrapped("ppo-acrobot", "Acrobot-v1", "sb3:ppo"),
    _wrapped("dqn-mountain-car", "MountainCar-v0", "sb3:dqn"),
    _wrapped("ppo-hopper", "Hopper-v5", "sb3:ppo"),
    ZooRow("lander/scratch", "LunarLander-v3", wait="0", durations=(8, 16), steps=200_000, action_repeat=4),
    ZooRow("acrobot/scratch", "Acrobot-v1", wait="1", steps=100_000),
    ZooRow("cartpole/scratch", "CartPole-v1", wait=None, passive=f"{CONTROLLERS}:no_force", steps=100_000),
    ZooRow("taxi/scratch", "Taxi-v4", wait="0", steps=1_000_000),
    ZooRow("cliff/scratch", "CliffWalking-v1", wait="1", steps=1_000_000, env_args={"max_episode_steps": 200}),
    ZooRow("lake/scratch", "FrozenLake8x8-v1", wait="0", steps=1_000_000),
    ZooRow("door-key/scratch", "minigrid:MiniGrid-DoorKey-5x5-v0", wait="6", steps=200_000),
)


def chosen_rows(patterns: Sequence[str] | None = None) -> list[ZooRow]:
    """Return the rows whose names match one of the patterns.

    >>> [row.name for row in chosen_rows(["lander/*"])]
    ['lander/wrap', 'lander/scratch']
    """
    if patterns is None:
        return list(ROWS)
    for pattern in patterns:
        if not any(fnmatchcase(row.name, pattern) for row in ROWS):
            raise SettingError(f"no row of the zoo matches {pattern!r}; known: {', '.join(row.name for row in ROWS)}")
    return [row for row in ROWS if any(fnmatchcase(row.name, pattern) for pattern in patterns)]


def run_row(row: ZooRow, seed: int, out: Path) -> dict[str, Any]:
    """Learn one row with one seed, and measure the result on fresh episodes."""
    begun = time.monotonic()
    with closing(row.spec(out).make()) as env:
        measured = _scratch(env, row, seed) if row.policy is None else _around_base(env, row, seed)
    return {"row": row.name, "env": row.env, "seed": seed, **measured, "seconds": time.monotonic() - begun}


def _scratch(env: Any, row: ZooRow, seed: int) -> dict[str, Any]:
    learned = learn(env, steps=row.steps, seed=seed, preset="best", progress=False)
    played = evaluate(env, learned.policy, row.fresh, FRESH_SEED + seed)
    return {"task_return": played.task_return, "length": played.length, "queries": played.queries, "steps": row.steps}


def _around_base(env: Any, row: ZooRow, seed: int) -> dict[str, Any]:
    budget = None if row.budget is None else Budget(base_queries=row.budget)
    result = learn(env, steps=row.steps, seed=seed, margin=row.margin, budget=budget, progress=False)
    assert result.choice is not None
    compared = {"result": compare_with_base(env, result.policy, row.fresh, FRESH_SEED + seed, row.margin)}
    schedule = best_schedule(result, row.durations)
    if schedule is not None:
        compared["schedule"] = compare_with_base(env, schedule, row.fresh, FRESH_SEED + seed, row.margin)
    return {
        "chosen": result.choice["name"],
        "certificate": result.certificate,
        "best_schedule": None if schedule is None else schedule.name,
        "fresh": {name: savings.summary() for name, savings in compared.items()},
    }


def best_schedule(result: Learned, durations: tuple[int, ...]) -> SchedulePolicy | None:
    """Return the schedule that saved most of those that lost less than the margin in the choosing."""
    assert result.choice is not None and result.certificate is not None
    held = [
        candidate
        for candidate in result.choice["candidates"]
        if candidate["kind"] == "schedule" and candidate["difference"] > -result.certificate["margin"]
    ]
    if not held:
        return None
    name = max(held, key=lambda candidate: float(candidate["saved"]))["name"]
    return SchedulePolicy(int(name.split()[1]), durations)


# --- a folder of them ---


def opened(out: Path) -> None:
    """Make the folder of a zoo; one that holds something else is refused."""
    if not (out / folders.MANIFEST).is_file():
        if not (out.is_dir() and {path.name for path in out.iterdir()} <= {BASES}):
            folders.check_output(out)
        out.mkdir(parents=True, exist_ok=True)
        folders.write_file(out / folders.MANIFEST, folders.manifest("zoo", {}))
    folders.read_manifest(out, "zoo")


def run_file(out: Path, row: ZooRow, seed: int) -> Path:
    """Return where a finished run is kept."""
    return out / "runs" / row.name / f"seed{seed}.json"


def finished_runs(out: Path, rows: Sequence[ZooRow] = ROWS) -> list[dict[str, Any]]:
    """Return the finished runs, row by row."""
    return [
        json.loads(folders.read_file(path))
        for row in rows
        for path in sorted((out / "runs" / row.name).glob("seed*.json"), key=lambda path: int(path.stem[4:]))
    ]


def unfinished(rows: Sequence[ZooRow], seeds: int, out: Path) -> list[tuple[ZooRow, int]]:
    """Return the rows and seeds that have no finished run."""
    return [(row, seed) for row in rows for seed in range(seeds) if not run_file(out, row, seed).is_file()]


def run_zoo(todo: Sequence[tuple[ZooRow, int]], out: Path, workers: int) -> Iterator[tuple[str, str | None]]:
    """Carry out rows and seeds; yields each run's name, and why it failed, None if it did not."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), become_worker)
    try:
        under_way = {pool.submit(run_row, row, seed, out): (row, seed) for row, seed in todo}
        while under_way:
            for ended in wait(under_way, PATIENCE, FIRST_COMPLETED).done:
                row, seed = under_way.pop(ended)
                error = ended.exception()
                if error is None:
                    text = json.dumps(folders.as_plain(ended.result()), allow_nan=False) + "\n"
                    run_file(out, row, seed).parent.mkdir(parents=True, exist_ok=True)
                    folders.write_file(run_file(out, row, seed), text.encode())
                yield f"{row.name}/seed{seed}", None if error is None else f"{type(error).__name__}: {error}"
    except BaseException:  # ctrl-C above all: nobody waits for what is under way
        for process in set(multiprocessing.active_children()) - others:
            process.kill()  # at SIGTERM `learn` would finish what it is at
        raise
    finally:
        pool.shutdown(cancel_futures=True)
