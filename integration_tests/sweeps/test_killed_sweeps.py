"""A sweep that is killed with SIGKILL at random moments, again and again, ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SUITE = """
name = "killed"
[[rows]]
tasks = ["cook"]
modes = ["scratch", "wrap"]
methods = ["lexicographic", "scalar", "vanilla"]
lambdas = [1]
seeds = 8
steps = 2_000_000
[[rows]]
tasks = ["cartpole"]
modes = ["wrap"]
seeds = 2
steps = 21_000
"""
RUNS = 5 * 8 + 2 + 1
"""Five rows of cook, two wrappers of cartpole, and the one base policy that serves both: with preset `paper` a task has
one for all seeds."""
KILLS = 10
TABLES = ("runs.csv", "curves.csv", "comparison.csv")


def command(suite: Path, out: Path) -> list[str]:
    options = ["--suite", str(suite), "--out", str(out), "--workers", "2", "--checkpoint-every", "0.1"]
    return [sys.executable, "-m", "letitcook", "reproduce", *options]


def finished_runs(out: Path) -> dict[str, int]:
    """Return the runs that are done, and the inodes of their manifests: one that is written again has another."""
    paths = [path for path in (out / "runs").rglob("manifest.json") if not path.parent.name.startswith(".")]
    return {str(path.parent.relative_to(out)): path.stat().st_ino for path in paths}


def events(out: Path) -> int:
    """Return a number that changes whenever a run is kept or a checkpoint is written."""
    kept = list(finished_runs(out).values())
    with suppress(FileNotFoundError):  # a checkpoint goes away meanwhile
        kept += [path.stat().st_ino for path in (out / "unfinished").rglob("manifest.json")]
    return hash(tuple(sorted(kept)))


def children_of(pid: int) -> list[int]:
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            children.append(int(stat.parent.name))
    return children


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_sweep_killed_at_random_moments_ends_with_the_same_tables(tmp_path: Path) -> None:
    suite, whole, killed = tmp_path / "killed.toml", tmp_path / "whole", tmp_path / "killed"
    suite.write_text(SUITE)
    subprocess.run(command(suite, whole), check=True, capture_output=True)
    chance = random.Random(0)
    kept: dict[str, int] = {}
    kills = 0
    while True:
        with (tmp_path / "log.txt").open("w") as log:
            process = subprocess.Popen(command(suite, killed), stdout=log, stderr=log)
        before = events(killed)
        wanted = chance.choice((0, 1, 1, 1, 2)) if kills < KILLS else None
        at_once = time.monotonic() + chance.uniform(0.0, 4.0)
        while process.poll() is None and wanted is not None:
            if wanted == 0 and time.monotonic() > at_once:
                break
            if wanted > 0 and (now := events(killed)) != before:
                before, wanted = now, wanted - 1
                at_once = time.monotonic() + chance.uniform(0.0, 0.1)
            time.sleep(0.005)
        if wanted is None or process.poll() is not None:
            assert process.wait() == 0, (tmp_path / "log.txt").read_text()
            break
        workers = children_of(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        deadline = time.monotonic() + 30.0
        while not all(gone(pid) for pid in workers):
            assert time.monotonic() < deadline, "workers outlive their sweep"
            time.sleep(0.01)
        done = finished_runs(killed)
        assert kept.items() <= done.items(), "a run was lost or done twice"
        kept = done
    assert kills >= KILLS, f"the sweep was done after {kills} kills; give it more to do"
    assert len(finished_runs(killed)) == RUNS
    assert kept.items() <= finished_runs(killed).items()
    for name in TABLES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert not any((killed / "unfinished").rglob("manifest.json"))
    assert [path.name for path in killed.rglob(".*")] == [".lock"], "something half-written is left"
