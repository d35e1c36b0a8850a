"""How fast the deep learner is: beside its peers, warm and cold, and beside what the processor can do.

    python benchmarks/deep.py                            # all tables, as in docs/performance
    python benchmarks/deep.py --only warm --rounds 3     # a quick look at one of them

CartPole with the paper's numbers (batch 64, two hidden layers of 256, 128 gradient steps per 256 steps, target every 10
gradient steps), ε = 0.04, squared error, one thread: `peers/schedule.py`. The other files there are the contenders.
They take turns, a piece each by rounds, so that a busy machine slows them alike; the time is CPU time.

    warm     steps per CPU second of all contenders in one process, at two learning rates
    cold     from nothing compiled to 100,000 steps: ours and the JAX loop, each in a process of its own
    return   CPU seconds to a greedy mean return of 195; evaluation does not count
    limit    one update beside its matrix products at the processor's best speed

Peers that are not installed are left out. RLtools is not among them: it has TD3, PPO and SAC for continuous control and
no DQN, and its Python interface, which compiles a C++ program for each task, exposes SAC only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
os.environ.update(ONE_THREAD)  # before JAX and NumPy are loaded

import numpy as np

from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN, PAPER
from letitcook.deep.update import learn
from letitcook.tasks import cartpole, mountain_car, pong
from peers.evaluation import greedy_return, silent_share
from peers.schedule import Contender, Schedule

PIECE = 2_560
"""Steps of one turn: ten rounds of learning."""
LIMIT_SHAPE = (1024, 512, 512)
"""The product that measures the processor: large enough for its best speed, small enough for its caches."""
LEARNING_RATES = (2e-3, 1e-4)
"""The paper's, with which many units die, and one with which they live."""
COLD_STEPS, COLD_PIECE = 102_400, 2_560
"""Whole rounds of learning, for the JAX loop."""
GOAL, EVALUATE_EVERY, LOOKS, SEEDS = 195.0, 1_280, 40, tuple(range(1, 9))

OURS, JAX_LOOP, SB3 = "DQN, compiled loop", "JAX, one jitted loop (PureJaxRL's form)", "stable-baselines3 DQN"
SBX = "SBX DQN"
OURS_FROM_RANDOM = "DQN, compiled loop, random beginning"
CONTENDERS = {
    "tianshou DQN": "torch_peers:tianshou",
    "skrl DQN": "torch_peers:skrl",
    SB3: "torch_peers:stable_baselines3",
    "PyTorch by hand, fused Adam": "torch_peers:by_hand",
    "JAX, jitted updates (CleanRL's form)": "jax_peers:cleanrl",
    SBX: "jax_peers:sbx",
    JAX_LOOP: "jax_loop:contender",
    "DQN, Python loop (Gymnasium's CartPole)": "ours:python_loop",
    OURS: "ours:compiled_loop",
    OURS_FROM_RANDOM: "ours:compiled_loop_from_random",
    "LDQN (2 networks, 13 decisions), compiled loop": "ours:waiting_compiled_loop",
    "LDQN (2 networks, 12 decisions), Python loop": "ours:waiting_python_loop",
}


def maker(name: str) -> Callable[[Schedule], Contender]:
    module, _, function = CONTENDERS[name].partition(":")
    made: Callable[[Schedule], Contender] = getattr(import_module(f"peers.{module}"), function)
    return made


def start(names: Sequence[str], schedule: Schedule) -> dict[str, Contender]:
    """Make contenders, and leave out those that are not installed."""
    running = {}
    for name in names:
        try:
            running[name] = maker(name)(schedule)
        except ModuleNotFoundError as error:
            print(f"{name}: left out, {error.name} is not installed", flush=True)
    return running


def spread(values: Sequence[float], form: str) -> str:
    """Return `median (min-max)`."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def cpu_seconds(advance: Callable[[int], None], steps: int) -> float:
    begun = time.process_time()
    advance(steps)
    return time.process_time() - begun


def warm_table(rounds: int, learning_rate: float) -> list[str]:
    running = start([name for name in CONTENDERS if name != OURS_FROM_RANDOM], Schedule(learning_rate=learning_rate))
    for each in running.values():
        for _ in range(2):  # past the start of learning, and compiled; JAX compiles for each number of steps anew
            each.advance(PIECE)
    rates: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, each in running.items():
            rates[name].append(PIECE / cpu_seconds(each.advance, PIECE))
    peers = [name for name in (SB3, SBX, JAX_LOOP) if name in rates]
    lines = [
        f"| learning rate {learning_rate:g} | steps / CPU s | {' | '.join(f'x {name}' for name in peers)} |",
        "|---|---|" + "---|" * len(peers),
    ]
    for name, values in rates.items():
        ratios = [[a / b for a, b in zip(values, rates[peer], strict=True)] for peer in peers]
        cells = [spread(values, ",.0f"), *(spread(each, ".2f") for each in ratios)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append("")
    for name in (OURS, JAX_LOOP):
        if name in running:
            each = running[name]
            assert each.layers is not None
            assert each.observations is not None
            silent, dead = silent_share(each.layers(), each.observations(), Schedule().batch_size)
            lines.append(f"Second layer of {name}: {silent:.0%} of the units silent in a batch, {dead:.0%} dead.")
    return lines


COLD = """
import json, sys, time
sys.path.insert(0, {here!r})
from peers.schedule import Schedule
from peers.{module} import {function}
contender = {function}(Schedule())
marks = []
for _ in range({pieces}):
    contender.advance({piece})
    marks.append(time.process_time())
print(json.dumps(marks))
"""


def cold_marks(name: str) -> list[float]:
    """Return the CPU seconds after each piece, of a process that has found nothing compiled."""
    module, _, function = CONTENDERS[name].partition(":")
    here, pieces = str(Path(__file__).parent), COLD_STEPS // COLD_PIECE
    program = COLD.format(here=here, module=module, function=function, pieces=pieces, piece=COLD_PIECE)
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, **ONE_THREAD, "NUMBA_CACHE_DIR": empty}
        done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
    marks: list[float] = json.loads(done.stdout)
    return marks


def crossing(ours: Sequence[float], peer: Sequence[float]) -> float:
    """Return the steps after which ours is done first for good; beyond the last mark, along the mean pace."""
    if ours[-1] <= peer[-1]:
        behind = [i for i, (a, b) in enumerate(zip(ours, peer, strict=True)) if a > b]
        return float((behind[-1] + 2 if behind else 1) * COLD_PIECE)
    gain = ((peer[-1] - peer[0]) - (ours[-1] - ours[0])) / (len(ours) - 1)
    return COLD_PIECE * (len(ours) + (ours[-1] - peer[-1]) / gain) if gain > 0 else float("inf")


def cold_table(rounds: int) -> list[str]:
    marks: dict[str, list[list[float]]] = {OURS: [], JAX_LOOP: []}
    for _ in range(rounds):
        for name, found in marks.items():
            found.append(cold_marks(name))
    lines = [
        f"| nothing compiled | CPU s to {COLD_PIECE:,} steps | to {COLD_STEPS:,} steps |",
        "|---|---|---|",
    ]
    for name, found in marks.items():
        ends = (spread([each[i] for each in found], ".1f") for i in (0, -1))
        lines.append(f"| {name} | {' | '.join(ends)} |")
    both = list(zip(marks[OURS], marks[JAX_LOOP], strict=True))
    ratios = spread([b[-1] / a[-1] for a, b in both], ".2f")
    steps = spread([crossing(a, b) for a, b in both], ",.0f")
    return [*lines, "", f"JAX's seconds / ours at the end: {ratios}. Ours is done first from step {steps} on."]


def seconds_to_goal(name: str, schedule: Schedule) -> tuple[float, int] | None:
    """Return the CPU seconds and the steps until the goal is reached, None if it is not."""
    contender, seconds = maker(name)(schedule), 0.0
    assert contender.layers is not None
    for look in range(1, LOOKS + 1):
        seconds += cpu_seconds(contender.advance, EVALUATE_EVERY)
        if greedy_return(contender.layers(), seed=schedule.seed) >= GOAL:
            return seconds, look * EVALUATE_EVERY
    return None


def return_table(learning_rate: float) -> list[str]:
    schedule = Schedule(learning_rate=learning_rate)
    running = start((SB3, SBX, JAX_LOOP, OURS, OURS_FROM_RANDOM), schedule)
    for each in running.values():
        each.advance(EVALUATE_EVERY)  # compiled before the clock runs
    found: dict[str, list[tuple[float, int] | None]] = {name: [] for name in running}
    for seed in SEEDS:
        for name, times in found.items():
            times.append(seconds_to_goal(name, schedule.with_seed(seed)))
    lines = [
        f"| learning rate {learning_rate:g}, return {GOAL:g} | CPU s, median of {len(SEEDS)} seeds | each | steps |",
        "|---|---|---|---|",
    ]
    for name, times in found.items():
        middle = statistics.median([each[0] if each else float("inf") for each in times])
        cells = [f"{middle:.1f}" if np.isfinite(middle) else "not reached"]
        cells.append(", ".join(f"{each[0]:.1f}" if each else "-" for each in times))
        cells.append(", ".join(f"{each[1]:,}" if each else f"> {LOOKS * EVALUATE_EVERY:,}" for each in times))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def flops_of_update(settings: Any, inputs: int, decisions: int, networks: int) -> float:
    """Return the multiplications and additions of one update's products: the target's forward, forward, backward.

    The last layer counts for all decisions in the target, and for the decision that was taken elsewhere.
    """
    sizes = (inputs, *settings.hidden)
    layers = [a * b for a, b in itertools.pairwise(sizes)]
    last = settings.hidden[-1]
    target = sum(layers) + last * decisions
    online = sum(layers) + last
    back = sum(layers) + sum(layers[1:]) + 2 * last
    return float(2.0 * settings.batch_size * networks * (target + online + back))


def limit_table(rounds: int) -> list[str]:
    m, k, n = LIMIT_SHAPE
    dice = np.random.default_rng(0)
    a, b = dice.normal(size=(m, k)).astype(np.float32), dice.normal(size=(k, n)).astype(np.float32)
    out = np.zeros((m, n), dtype=np.float32)
    learners = {}
    for task in (cartpole.TASK, mountain_car.TASK, pong.TASK):
        settings = replace(PAPER[task.name], reuse_batch=False, target_rule="gradient_steps", timestep="step")
        learner = LDQN(task, task.decisions, Objective.named("lexicographic"), settings, seed=0)
        learner.advance(5_000)
        learners[task.name] = learner
    times: dict[str, list[float]] = {name: [] for name in learners}
    speeds: list[float] = []
    np.dot(a, b, out=out)
    for _ in range(rounds):
        begun = time.process_time()
        for _ in range(20):
            np.dot(a, b, out=out)
        speeds.append(20 * 2.0 * m * k * n / (time.process_time() - begun))
        for name, learner in learners.items():
            rows = 120  # whole blocks of gradient steps for every task
            begun = time.process_time()
            # As training calls it: so many gradient steps in a round.
            per_round = learner.settings.gradient_steps
            for _ in range(max(1, rows // per_round)):
                learn(learner._learner, per_round)
            done = max(1, rows // per_round) * per_round
            times[name].append((time.process_time() - begun) / done)
    best = max(speeds)
    lines = [
        f"NumPy's best single-precision product on one core: {best / 1e9:.0f} GFLOP/s.",
        "",
        "| one LDQN update | µs, median (min-max) | at the processor's limit | ratio |",
        "|---|---|---|---|",
    ]
    for name, learner in learners.items():
        sizes = learner._learner.sizes
        limit = flops_of_update(learner.settings, int(sizes[0]), int(sizes[-1]), 2) / best
        middle = statistics.median(times[name])
        spread = f"{min(times[name]) * 1e6:,.0f}-{max(times[name]) * 1e6:,.0f}"
        lines.append(f"| {name} | {middle * 1e6:,.0f} ({spread}) | {limit * 1e6:,.0f} | {middle / limit:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("warm", "cold", "return", "limit"))
    asked = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, one thread\n", flush=True)
    tables: list[tuple[str, Callable[[], list[str]]]] = [
        *(("warm", lambda rate=rate: warm_table(asked.rounds, rate)) for rate in LEARNING_RATES),
        ("cold", lambda: cold_table(min(asked.rounds, 3))),
        *(("return", lambda rate=rate: return_table(rate)) for rate in LEARNING_RATES),
        ("limit", lambda: limit_table(asked.rounds)),
    ]
    for kind, table in tables:
        if asked.only in (None, kind):
            print("\n".join(table()), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
