"""What a new user waits for: CPU seconds of first commands, with an empty cache of machine code and with a full one.

    .venv/bin/python benchmarks/cold.py                            # this version, three rounds
    .venv/bin/python benchmarks/cold.py --src OLD/src --rounds 2   # beside another version's sources, by turns

Each command runs in a process of its own, and only its own time counts (user and system), so other work on the machine
matters little; still, compare within one run. `import` and `--help` are the same with either cache.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = {
    "import letitcook": ["-c", "import letitcook"],
    "letitcook --help": ["-m", "letitcook", "--help"],
    "plan cook": ["-m", "letitcook", "plan", "cook"],
    "train cook": ["-m", "letitcook", "train", "cook", "--steps", "2000", "--out", "OUT"],
    "train cook, best": ["-m", "letitcook", "train", "cook", "--preset", "best", "--steps", "2000", "--out", "OUT"],
    "train cartpole": ["-m", "letitcook", "train", "cartpole", "--steps", "1500", "--out", "OUT"],
    "train cartpole, best": [
        "-m",
        "letitcook",
        "train",
        "cartpole",
        "--preset",
        "best",
        "--steps",
        "1500",
        "--out",
        "OUT",
    ],
}


def seconds(arguments: list[str], source: Path, cache: Path) -> float:
    """Return the CPU time of a command in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        command = [each if each != "OUT" else str(Path(place) / "run") for each in arguments]
        environment = {
            **os.environ,
            "PYTHONPATH": str(source),
            "NUMBA_CACHE_DIR": str(cache),
            "LETITCOOK_CACHE": place,
            "OPENBLAS_NUM_THREADS": "1",
        }
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, help="the sources of another version, to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    versions = {"this": Path(__file__).parents[1] / "src", **({"other": asked.src} if asked.src else {})}
    print("| first command | version | CPU s, empty cache | again |\n|---|---|---|---|", flush=True)
    for name, arguments in COMMANDS.items():
        found: dict[str, list[tuple[float, float]]] = {version: [] for version in versions}
        for _ in range(asked.rounds):
            for version, source in versions.items():
                cache = Path(tempfile.mkdtemp())
                found[version].append((seconds(arguments, source, cache), seconds(arguments, source, cache)))
                shutil.rmtree(cache)
        for version, times in found.items():
            cold, warm = zip(*times, strict=True)
            cells = [f"{statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f})" for each in (cold, warm)]
            print(f"| {name} | {version} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
