"""Kill runs at random moments, again and again, and compare what they come to with runs that nobody disturbed.

    python integration_tests/kills/campaign.py --kills 40            of each kind; all six kinds
    python integration_tests/kills/campaign.py --kinds sweep --kills 5

Six kinds: `train` with tables, `train` with networks, `wrap` around a Python policy, a wrapper that is certified
within a budget, `learn(out=...)` on a user's own environment, and a sweep. A run is started, gets SIGKILL, SIGTERM or
SIGINT at a random moment (most of them just after a checkpoint was written or is due, some at any time, also while
Python is still importing), and is started again with `--resume` until it has been killed often enough; then it runs to
its end. Its policy, its curve, its front and its numbers must be those of the undisturbed run to the byte; times and
dates may differ.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
EVERY = 0.05
"""Seconds between checkpoints, so that a kill meets one often."""
MINE = '''
"""An environment and a policy of a user's own; `learn.py` learns on the environment."""
import gymnasium as gym
import numpy as np
from gymnasium import spaces


def push(observation):
    return 2 if observation[1] > 0 else 0


class Ball(gym.Env):
    """A ball that is thrown from side to side with random force; it is to be caught near the middle."""
    observation_space = spaces.Box(-9.0, 9.0, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v, self.t = self.np_random.uniform(-1, 1), 0.0, 0
        return np.array([self.x, self.v], np.float32), {}

    def step(self, action):
        self.v += 0.1 * (action - 1) + self.np_random.normal(0.0, 0.05)
        self.x, self.t = self.x + 0.1 * self.v, self.t + 1
        out = abs(self.x) > 2.0
        return np.array([self.x, self.v], np.float32), -abs(self.x), out, self.t >= 50, {}
'''
LEARN = """
import sys
import letitcook
from mine import Ball

if __name__ == "__main__":
    env = letitcook.WaitingEnv(Ball(), wait=1, durations=(2, 4))
    small = {"hidden": (16, 16), "buffer_size": 3000, "learning_starts": 200, "gradient_steps": 2}
    letitcook.learn(env, steps=21_000, seed=3, preset="best", settings=small, out=sys.argv[2],
                    resume="--resume" in sys.argv, progress=False, checkpoint_seconds=float(sys.argv[1]))
"""
CERTIFY = """
import sys
import gymnasium as gym
import letitcook
from mine import push

if __name__ == "__main__":
    env = letitcook.wrap(gym.make("MountainCar-v0"), push, wait=1, durations=(2, 4, 8))
    small = {"hidden": (8, 8), "buffer_size": 2000, "learning_starts": 200, "gradient_steps": 2}
    letitcook.learn(env, steps=24_000, seed=3, settings=small, budget=letitcook.Budget(episodes=700), out=sys.argv[2],
                    resume="--resume" in sys.argv, progress=False, checkpoint_seconds=float(sys.argv[1]))
"""
SUITE = """
name = "killed"
[[rows]]
tasks = ["cook"]
modes = ["scratch", "wrap"]
methods = ["lexicographic", "scalar", "vanilla"]
lambdas = [1]
seeds = 2
steps = 1_000_000
"""


class Kind(NamedTuple):
    """A kind of run: its command without the folder, and how it is asked to go on."""

    command: list[str]
    resume: list[str]


def kinds(place: Path) -> dict[str, Kind]:
    """Return the commands of each kind; files that they need are written into `place`."""
    (place / "mine.py").write_text(MINE)
    (place / "learn.py").write_text(LEARN)
    (place / "certify.py").write_text(CERTIFY)
    (place / "suite.toml").write_text(SUITE)
    cli = [sys.executable, "-m", "letitcook"]
    every = ["--checkpoint-every", str(EVERY)]
    wrap = ["--env", "MountainCar-v0", "--policy", "mine:push", "--wait", "1", "--durations", "2,4,8"]
    wrap += ["--preset", "paper", "--steps", "22000", "--episodes", "5"]
    return {
        "tables": Kind([*cli, "train", "cook", "--steps", "6000000", *every, "--out"], ["--resume"]),
        "networks": Kind([*cli, "train", "cartpole", "--decisions", "24000", *every, "--out"], ["--resume"]),
        "wrap": Kind([*cli, "wrap", *wrap, *every, "--out"], ["--resume"]),
        "certified": Kind([sys.executable, "certify.py", str(EVERY)], ["--resume"]),
        "learn": Kind([sys.executable, "learn.py", str(EVERY)], ["--resume"]),
        "sweep": Kind([*cli, "reproduce", "--suite", "suite.toml", "--workers", "2", *every, "--out"], []),
    }


def started(kind: Kind, place: Path, out: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a run, or let it go on if it has been started before."""
    resume = kind.resume if out.exists() else []
    with log.open("ab") as file:
        return subprocess.Popen([*kind.command, str(out), *resume], cwd=place, stdout=file, stderr=file)


def states(out: Path) -> set[str]:
    """Return the states and results that are there, by names that change when they are written again."""
    found = set()
    with suppress(OSError):  # folders come and go meanwhile
        for path in out.rglob("manifest.json"):
            found.add(f"{path}:{path.stat().st_ino}")
    return found


def wait_for_moment(process: subprocess.Popen[bytes], out: Path, chance: random.Random) -> bool:
    """Wait for a random moment of a process; returns whether it still runs."""
    wanted = chance.choice((0, 1, 1, 1, 2))
    until = time.monotonic() + chance.uniform(0.1, 6.0) if wanted == 0 else None
    before = states(out)
    while process.poll() is None:
        if until is not None and time.monotonic() > until:
            return True
        if until is None and (now := states(out)) != before:
            before, wanted = now, wanted - 1
            if wanted == 0:
                until = time.monotonic() + chance.uniform(0.0, 0.15)
        time.sleep(0.002)
    return False


def content(out: Path) -> dict[str, Any]:
    """Return all that a finished run or sweep holds and that must not depend on kills."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if name.startswith("checkpoints"):  # a kill right after the result was written leaves them; nothing reads them
            continue
        if path.suffix in (".safetensors", ".csv"):
            found[name] = path.read_bytes()
        elif path.name == "manifest.json":
            said = json.loads(path.read_text())
            for key in ("seconds", "provenance", "sha256", "command"):
                said.pop(key, None)
            if said.get("certificate"):
                said["certificate"]["spent"].pop("seconds")
            found[name] = said
    return found


def campaign(name: str, kills: int, seed: int, say: Any = print) -> Counter[str]:
    """Kill one kind of run that often; raises if anything differs in the end."""
    chance, counted = random.Random(f"{name} {seed}"), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kind, log = kinds(place)[name], place / "log.txt"
        assert started(kind, place, place / "whole", log).wait() == 0, log.read_text()
        expected = content(place / "whole")
        done, attempt = 0, 0
        while done < kills:  # one run after another, each killed until it ends before the next kill
            out, attempt = place / f"killed-{attempt}", attempt + 1
            while True:
                process = started(kind, place, out, log)
                if done >= kills or not wait_for_moment(process, out, chance):
                    break
                which = chance.choice(SIGNALS)
                process.send_signal(which)
                done += 1
                counted[which.name] += 1
                try:
                    code = process.wait(timeout=120)
                except subprocess.TimeoutExpired:  # a KeyboardInterrupt can be lost inside a destructor
                    process.kill()
                    code = process.wait()
                    counted["signal lost"] += 1
                counted["ended by itself"] += which is not signal.SIGKILL and code >= 0
                if finished(out) and kind.resume:
                    break
            code = process.wait(timeout=600)
            assert finished(out), f"{name}: exit code {code} without a result\n{log.read_text()[-3000:]}"
            now = content(out)
            differing = sorted(key for key in {*expected, *now} if expected.get(key) != now.get(key))
            assert not differing, f"{name}: after {done} kills these differ: {differing}"
            hidden = [
                path.name for path in out.rglob(".*") if path.name != ".lock" and path.parent.name != "checkpoints"
            ]
            assert not hidden, f"{name}: left behind: {hidden}"
            shutil.rmtree(out)
            say(f"{name}: {done} kills, {attempt} runs, all the same to the byte; {dict(counted)}")
        counted["runs"] = attempt
    return counted


def finished(out: Path) -> bool:
    """Return whether a run or a sweep has its result."""
    try:
        said = json.loads((out / "manifest.json").read_text())
    except (OSError, ValueError):
        return False
    return (out / "runs.csv").exists() if said["kind"] == "suite" else bool(said["finished"])


def main() -> None:
    """Run the campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40, help="kills of each kind")
    parser.add_argument("--kinds", nargs="+", default=["tables", "networks", "wrap", "certified", "learn", "sweep"])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    total: Counter[str] = Counter()
    for name in asked.kinds:
        total += campaign(name, asked.kills, asked.seed, lambda text: print(text, flush=True))
    print(json.dumps(total))


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main()
