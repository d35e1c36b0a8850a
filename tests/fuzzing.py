"""Mutated files for every loader: only declared errors, no crash, little memory, little time.

    python tests/fuzzing.py --count 100000          hours of it, if wanted; about 200 files a second
    python tests/fuzzing.py --count 2000 --seed 7   as `make fuzz` does in a minute

The corpus are files that letitcook itself writes: runs with tables and networks, finished and stopped, the manifest of
a sweep, suite files, exported policies, described spaces. A mutation flips bits, cuts, repeats and splices bytes, puts
hostile values into JSON, other numbers, types and shapes into arrays. Checksums are computed anew most of the time: who
writes such a file can do that too. What loads after all is used: a policy decides, a stopped run goes on for a while.

The files are tried in a process of their own. One that dies is a crash, and named with the mutation that it died of.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import pickletools
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from safetensors.numpy import load, save

from letitcook import learn, make, wrap
from letitcook.adapters.sb3_normalise import read_statistics
from letitcook.core.decisions import Timesteps
from letitcook.deep.policy import NetworkPolicy
from letitcook.deploy import numpy_policy
from letitcook.deploy.export import to_numpy
from letitcook.deploy.numpy_policy import load as load_numpy
from letitcook.errors import LetItCookError
from letitcook.evaluation.certificate import judge
from letitcook.evaluation.persistence import Recording, audit, record
from letitcook.evaluation.schedules import PacedPolicy, SchedulePolicy
from letitcook.experiments.results import optima
from letitcook.experiments.suite_file import parse_suite
from letitcook.experiments.suites import Row, suite
from letitcook.experiments.sweep import _manifest, read_suite_manifest
from letitcook.poll import estimate, read_csv
from letitcook.report.run_page import run_page
from letitcook.storage import folders
from letitcook.storage.plain_json import parse_json
from letitcook.storage.spaces import space_of
from letitcook.training.learn import prepare
from letitcook.training.loop import Training
from letitcook.training.run import Learned, from_files
from letitcook.training.selection import promising
from letitcook.training.spec import RunSpec
from letitcook.wrappers.remembering import RememberingPolicy
from signing import signed_again

Files = dict[str, bytes]
SECONDS, MEGABYTES = 2.0, 300.0
"""What a file may take at most: seconds of the processor, and memory."""
SMALL = {"hidden": (4, 4), "buffer_size": 64, "fourier_features": 1, "learning_starts": 20}
SUITE = """
name = "mine"
tasks = ["cook", "coffee"]
modes = ["scratch", "wrap"]
methods = ["lexicographic", "scalar"]
lambdas = [0.1, 1]
seeds = 3
steps = 1_000
[[rows]]
name = "fast"
settings.alpha = 0.2
[[rows]]
name = "long"
tasks = ["pong"]
seeds = [3, 4]
settings.slack = 0.5
"""
OPTIMA_ROWS = [Row("cook", "scratch", "lexicographic"), Row("cook", "wrap", "scalar", 1.0)]
CASES = Path(__file__).parent.parent / ".fuzz"
"""Where files that something worse came of are kept; not part of the repository."""
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63, -(2**63), 10**30, 1e308, float("inf"), float("nan"), 0.5, "", "x", "../../x",
    "a/b", "\x00", "λ" * 50, [], {}, [[]], [1, "x"], {"a": {}}, [0] * 1000, "1" * 5000,
)  # fmt: skip
HOSTILE_OPCODES = (
    *(opcode.code.encode("latin-1") for opcode in pickletools.opcodes if opcode.arg is None),
    b"r\xff\xff\xff\xff", b"j\xff\xff\xff\xff", b"p4294967295\n", b"J\xff\xff\xff\x7f", b"K\x00", b"M\xff\xff",
    b"\x8a\x08" + b"\xff" * 8, b"\x96" + struct.pack("<Q", 2**40), b"\x8e" + struct.pack("<Q", 2**62),
    b"\x95" + struct.pack("<Q", 2**40), b"G\x7f\xf0" + b"\x00" * 6, b"G\x7f\xf8" + b"\x00" * 6, b"C\x03abc",
    b")" + b"\x85" * 4_000, b")" + b"\x85" * 100_000, b"\x8c\x02O8", b"\x8c\x02U9", b"cos\nsystem\n",
    b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"cbuiltins\neval\n",
)  # fmt: skip
"""Parts of pickles: every instruction without an argument, sizes that are not there, depths, names."""
NUMBERS = (0, -1, 1, 127, -128, 10**6, -(10**6), 10**12, 2**31, 2**62, -(2**63), np.nan, np.inf, -np.inf, 1e30, 0.5)


class Target(NamedTuple):
    """A loader with files that it takes."""

    files: Files
    use: Callable[[Files], None]
    """Load the files and use what they hold."""
    declared: type[Exception]
    """The error that it may raise."""
    sign: bool = False
    """Whether the files have checksums."""


def targets() -> dict[str, Target]:
    """Return every loader with its corpus."""
    found: dict[str, Target] = {}
    for name, (env, settings, preset) in {
        "table": (make("cook", mode="wrap"), {}, "exact"),
        "network": (make("cartpole"), {k: v for k, v in SMALL.items() if k != "fourier_features"}, "paper"),
        "family": (make("mountain-car"), SMALL, "best"),
    }.items():
        spec = RunSpec(seed=1, preset=preset, settings=settings, length=Timesteps(12_000))
        training = prepare(env, spec)
        next(training.run())
        stopped = training.stopped()
        fresh = prepare(env, spec)
        found[f"stopped {name}"] = Target(stopped.files(), _going_on(fresh), LetItCookError, sign=True)
        done = learn(env, steps=12_000, seed=1, preset=preset, settings=settings, progress=False)
        found[f"run {name}"] = Target(done.files(), _deciding, LetItCookError, sign=True)
        found[f"numpy {name}"] = _exported(done)
    found.update(_schedule_and_memory())
    found.update(_tables())
    runs = suite("smoke").only(rows=["cook", "cartpole/*"])
    found["sweep"] = Target(
        {folders.MANIFEST: _manifest(runs, "letitcook reproduce")}, _sweep, LetItCookError, sign=True
    )
    found["suite file"] = Target({"mine.toml": SUITE.encode()}, _suite, LetItCookError)
    box = {"type": "Box", "shape": [2, 2], "dtype": "float32", "low": [0.0, 1.0, 2.0, 3.0], "high": None}
    parts = [["a", box], ["b", {"type": "MultiDiscrete", "nvec": [2, 3], "start": [0, 0]}]]
    tree = {"type": "Tuple", "spaces": [{"type": "Dict", "spaces": parts}, {"type": "Discrete", "n": 3, "start": 1}]}
    found["space"] = Target({"space.json": json.dumps(tree).encode()}, _space, LetItCookError)
    return found


def _exported(run: Learned) -> Target:
    with tempfile.TemporaryDirectory() as place:
        folder = to_numpy(run, place + "/robot")
        return Target({"policy.npz": (folder / "policy.npz").read_bytes()}, _numpy, ValueError)


def _schedule_and_memory() -> dict[str, Target]:
    """Return runs whose policy is a schedule with a certificate, and ones with a memory."""
    found: dict[str, Target] = {}
    plain = learn(make("cook", mode="wrap"), steps=12_000, preset="exact", progress=False)
    decisions = plain.decisions
    spent = {"base_queries": 70, "episodes": 3, "student_episodes": 1, "seconds": 0.5}
    test = judge(np.zeros(800), margin=1.0, at_stake=100.0).summary()
    certificate = {**test, "paired": True, "nearest": None, "queries_saved": 0.5, "spent": spent}
    row = {"name": "every 7 steps", "kind": "schedule", "saved": 0.5, "difference": 0.0, "difference_se": None}
    candidates = [{**row, "episodes": 10, "certificate": test}, {**row, "episodes": 10, "certificate": None}]
    schedule = replace(
        plain,
        policy=SchedulePolicy(7, decisions.durations),
        certificate=certificate,
        choice={"name": "every 7 steps", "base_itself": False, "candidates": candidates},
        spent=spent,
    )
    timers = learn(make("cook", mode="wrap", hidden=True), steps=12_000, preset="exact", memory="auto", progress=False)
    small = {name: value for name, value in SMALL.items() if name != "fourier_features"}
    window = learn(make("mountain-car"), steps=1_000, preset="paper", settings=small, memory=2, progress=False)
    car = wrap(gym.make("MountainCar-v0"), lambda o: 2 if o[1] > 0 else 0, wait=1, durations=(2, 4))
    around = learn(car, steps=100, preset="paper", settings=small, progress=False)
    assert isinstance(around.policy, NetworkPolicy)
    paced = replace(around, policy=PacedPolicy(around.policy, 3, around.decisions.durations))
    for name, run in {"schedule": schedule, "paced": paced, "timers": timers, "window": window}.items():
        found[f"run {name}"] = Target(run.files(), _deciding, LetItCookError, sign=True)
        found[f"numpy {name}"] = _exported(run)
    return found


def _tables() -> dict[str, Target]:
    """Return files that are no runs: a recording, durations of jobs, the optima that a sweep keeps."""
    env = wrap(gym.make("MountainCar-v0"), lambda o: 2 if o[1] > 0 else 0, wait="hold", durations=(2, 4))
    with tempfile.TemporaryDirectory() as place:
        recording = record(env, 1).save(place + "/recording.safetensors").read_bytes()
    durations = b"job,duration,censored\na,31,0\nb,120+,0\nc,45.5,1\n" + b"d,40,0\ne,41.25,0\n" * 20
    statistics = pickle.dumps(VecNormalize(), 4)
    known = json.dumps({row.id: [33.0, 25.0] for row in OPTIMA_ROWS}).encode()
    return {
        "recording": Target({"recording.safetensors": recording}, _recording, LetItCookError),
        "statistics": Target({"vecnormalize.pkl": statistics}, _statistics, LetItCookError),
        "durations": Target({"durations.csv": durations}, _durations, LetItCookError),
        "optima": Target({"optima.json": known}, _optima, LetItCookError),
    }


def _written(files: Files, place: str) -> Path:
    ((name, data),) = files.items()
    file = Path(place) / name
    file.write_bytes(data)
    return file


def _recording(files: Files) -> None:
    with tempfile.TemporaryDirectory() as place:
        audit(Recording.load(_written(files, place)))


class VecNormalize:
    """What a pickle of Stable-Baselines3's statistics holds; its own class stands for theirs."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (3,), seed=3)
        self.observation_space.sample()
        self.obs_rms, self.norm_obs, self.norm_obs_keys = self, True, None
        self.mean, self.var, self.returns = np.arange(3.0), np.ones(3), np.zeros(1, dtype=np.float32)
        self.epsilon, self.clip_obs = 1e-8, np.float64(10.0)


def _statistics(files: Files) -> None:
    with tempfile.TemporaryDirectory() as place:
        found = read_statistics(_written(files, place))
        if found is not None:
            assert np.isfinite(found(np.zeros(found.mean.shape))).all()


def _durations(files: Files) -> None:
    with tempfile.TemporaryDirectory() as place:
        assert np.isfinite(estimate(read_csv(_written(files, place))).mass).all()


def _optima(files: Files) -> None:
    with tempfile.TemporaryDirectory() as place:
        found = optima(_written(files, place).parent, OPTIMA_ROWS)
        assert all(best.length > -np.inf for best in found.values())


def _deciding(files: Files) -> None:
    run = from_files(files, Path("run"))
    _decide(run)
    if run.certificate is not None:
        run_page(run, "run")


def _decide(run: Learned) -> None:
    policy: Any = run.policy
    if isinstance(policy, SchedulePolicy):
        policy.predict(None)
    elif isinstance(policy, PacedPolicy):
        policy.predict(np.zeros(policy.policy.observation_size, dtype=np.float32), 0)
    elif isinstance(policy, RememberingPolicy):
        space = policy.remembers.space
        shape = space.shape or ()
        parts = [key[: int(np.prod(shape))] for key in getattr(policy.policy, "keys", ()) if not key[-1]]
        seen: Any = np.reshape(parts[0], shape) if parts else np.zeros(shape, dtype=space.dtype)
        policy.predict(seen, policy.predict(seen)[1])
    elif run.info.policy == "table":
        policy.predict(np.array(policy.keys[0]))
    else:
        shape = (policy.observation_size,) if policy.space is None else policy.space.shape
        if shape is not None and int(np.prod(shape)) == policy.observation_size:  # else it is not a box
            policy.predict(np.zeros(shape, dtype=np.float32))


def _going_on(training: Training) -> Callable[[Files], None]:
    first = training.learner.arrays()

    def use(files: Files) -> None:
        run = from_files(files, Path("run"))
        _decide(run)
        training.learner.restore(first)
        if not run.finished:
            training.resume(run)
            training.learner.advance(steps=30)
            training.learner.greedy_episodes(1, 0)
            training.learner.play(run.policy, 1, 0)
            if training.candidates:
                promising(training.candidates, 5)

    return use


def _numpy(files: Files) -> None:
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        file.write(files["policy.npz"])
        file.flush()
        policy = load_numpy(file.name)
    chooser: Any = policy._chooser
    if policy._memory is not None:
        begun = policy._memory.begin(np.zeros(numpy_policy._shape(policy.about["memory"]["space"])))
        assert len(begun[2]) <= 1000
        return
    if policy.about["kind"] == "schedule":
        policy.predict(None)
        return
    known = next(iter(chooser.decision_of)) if policy.about["kind"] == "table" else np.zeros(chooser.size)
    policy.predict(np.array(known))


def _sweep(files: Files) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / folders.MANIFEST).write_bytes(files[folders.MANIFEST])
        for run in read_suite_manifest(Path(place)).runs:
            assert ".." not in Path(run.id).parts, run.id
            assert not run.id.startswith("/")


def _suite(files: Files) -> None:
    try:
        text = files["mine.toml"].decode()
    except UnicodeDecodeError:
        return
    parse_suite(text, "mine.toml")


def _space(files: Files) -> None:
    space_of(parse_json(files["space.json"], "space.json"))


# --- mutations ---


def mutated(target: Target, others: list[bytes], chance: random.Random) -> Files:
    """Return the files of a target with something changed in one of them."""
    files = dict(target.files)
    name = chance.choice(sorted(files))
    data, signed = files[name], False
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if name.endswith(".json") and chance.random() < 0.8:
            data, signed = _other_json(data, chance), True
        elif name.endswith(".safetensors") and chance.random() < 0.8:
            data, signed = _other_arrays(data, chance), True
        elif name.endswith(".npz") and chance.random() < 0.8:
            data = _other_npz(data, chance)
        elif name.endswith(".pkl") and chance.random() < 0.8:
            data = _other_pickle(data, chance)
        else:
            data = _other_bytes(data, others, chance)
    files[name] = data
    if target.sign and chance.random() < (0.95 if signed else 0.5):
        with suppress(ValueError, AttributeError, RecursionError, TypeError, KeyError):
            files[folders.MANIFEST] = signed_again(files)
    return files


def _other_bytes(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Change bytes, wherever they are."""
    made, at = bytearray(data), chance.randrange(max(1, len(data)))
    match chance.randrange(6):
        case 0 if made:
            made[at % len(made)] ^= 1 << chance.randrange(8)
        case 1:
            made = made[:at]
        case 2:
            made[at:at] = bytes(chance.randrange(256) for _ in range(chance.choice((1, 4, 8))))
        case 3:
            del made[at : at + chance.choice((1, 2, 8, 64))]
        case 4:
            made[at : at + 8] = struct.pack("<q", chance.choice((-1, 0, 2**40, 2**62, -(2**63))))
        case _:
            other = chance.choice(others)
            cut = chance.randrange(max(1, len(other)))
            made = made[:at] + other[cut : cut + chance.choice((8, 64, len(other)))]
    return bytes(made)


def _other_json(data: bytes, chance: random.Random) -> bytes:
    """Put a hostile value somewhere into JSON, or take something away; one time in fifty, nest it deeply."""
    if chance.random() < 0.02:
        depth = chance.choice((70, 2_000, 100_000))
        return b'{"kind":"run","format":3,"a":' + b"[" * depth + b"]" * depth + b"}"
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return data
    places: list[tuple[Any, Any]] = []
    todo = [content] if isinstance(content, dict | list) else []
    while todo:
        now = todo.pop()
        for key in now if isinstance(now, dict) else range(len(now)):
            places.append((now, key))
            if isinstance(now[key], dict | list):
                todo.append(now[key])
    if not places:
        return data
    now, key = chance.choice(places)
    if chance.random() < 0.15:
        del now[key]
    else:
        now[key] = chance.choice(HOSTILE)
    with suppress(ValueError, RecursionError):
        return json.dumps(content).replace("Infinity", "1e999").encode()
    return data


def _other_arrays(data: bytes, chance: random.Random) -> bytes:
    """Change an array in safetensors: a number, its type, its shape, its name; or what the header claims."""
    try:
        arrays = {name: np.array(array) for name, array in load(data).items()}
    except Exception:  # damaged by a mutation before
        return data
    if not arrays:
        return data
    name = chance.choice(sorted(arrays))
    if chance.random() < 0.125:
        return _other_header(data, name, chance)
    _change(arrays, name, chance)
    return bytes(save({key: np.ascontiguousarray(value) for key, value in arrays.items()}))


def _other_npz(data: bytes, chance: random.Random) -> bytes:
    """Change an array in a file of NumPy's, or what it says of itself; who writes such a file gets its sums right."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: np.array(file[name]) for name in file.files}
    except Exception:  # damaged by a mutation before
        return data
    if chance.random() < 0.5 and "about" in arrays:
        text = _other_json(str(arrays["about"]).encode(), chance)
        arrays["about"] = np.array(text.decode())
    elif arrays:
        _change(arrays, chance.choice(sorted(arrays)), chance)
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _other_pickle(data: bytes, chance: random.Random) -> bytes:
    """Put an instruction or a value into a pickle, or take one out, between its instructions."""
    try:
        places = [at for _, _, at in pickletools.genops(data) if at is not None]
    except (ValueError, IndexError):  # it was changed before
        places = [0, len(data)]
    start = chance.randrange(len(places))
    at, end = places[start], (*places[start + 1 :], len(data))[0]
    match chance.randrange(4):
        case 0:
            return data[:at] + chance.choice(HOSTILE_OPCODES) + data[at:]
        case 1:
            return data[:at] + chance.choice(HOSTILE_OPCODES) + data[end:]
        case 2:
            return data[:at] + data[end:]
        case _:
            return data[:at] + data[at:end] * chance.choice((2, 3, 5_000)) + data[end:]


def _change(arrays: dict[str, Any], name: str, chance: random.Random) -> None:
    """Change one of several arrays: a number, its type, its shape; or take it away."""
    array, kind = arrays[name], chance.randrange(7)
    with suppress(OverflowError, ValueError), np.errstate(all="ignore"):
        if kind <= 2 and array.size:
            narrow = array.dtype.kind not in "iu" or array.dtype == np.uint8
            wide = array.copy() if narrow else array.astype(np.int64)
            wide.reshape(-1)[chance.randrange(array.size)] = chance.choice(NUMBERS)
            arrays[name] = wide
        elif kind == 3:
            arrays[name] = array.astype(chance.choice((np.float16, np.float32, np.int64, np.uint8, np.bool_)))
        elif kind == 4:
            arrays[name] = array.reshape(-1)[: chance.randrange(array.size + 1)]
        elif kind == 5:
            arrays[name] = np.concatenate([array.reshape(-1)] * chance.choice((1, 2, 3)))
        elif kind == 6:
            del arrays[name]


def _other_header(data: bytes, name: str, chance: random.Random) -> bytes:
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header[name][chance.choice(("dtype", "shape", "data_offsets"))] = chance.choice(
        ("BF16", "F8_E4M3", "F64", [2**40, 0], [0, 2**62], [-1], [2**32, 2**32], [1] * 40, [], 7, "x", [0, 8], [8, 0])
    )
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


# --- trying ---


def tried(count: int, seed: int, log: Path | None = None, only: str | None = None) -> Counter[str]:
    """Try that many mutated files; returns how many of each target loaded, were refused, or were something worse.

    Each is written to `log` before it is tried, and kept beside it if something worse came of it.
    """
    chance, corpus, found = random.Random(seed), targets(), Counter[str]()
    names = [name for name in corpus if only is None or only in name]
    others = [data for target in corpus.values() for data in target.files.values()]
    for name in names:
        corpus[name].use(dict(corpus[name].files))  # whole files load, and compile what is needed
    for number in range(count):
        name = names[number % len(names)]
        files = mutated(corpus[name], others, chance)
        if log is not None:
            log.write_text(
                json.dumps({"target": name, "number": number, "files": {k: v.hex() for k, v in files.items()}})
            )
        before, began = _peak(), time.process_time()
        try:
            corpus[name].use(files)
            outcome = "loaded"
        except corpus[name].declared:
            outcome = "refused"
        except Exception as error:  # what is looked for
            outcome = f"UNDECLARED {name}: {type(error).__name__}: {str(error)[:80]}"
        took, more = time.process_time() - began, _peak() - before
        if took > SECONDS:
            outcome = f"SLOW {name}: {took:.1f} s"
        if more > MEGABYTES:
            outcome = f"LARGE {name}: {more:.0f} MB"
        if log is not None and outcome.split()[0].isupper():
            log.with_name(f"{seed}-{number}.json").write_bytes(log.read_bytes())
        found[outcome] += 1
        found["files"] += 1
    return found


def _peak() -> float:
    """Return the most memory that this process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def unnoticed_flips(files: Files, use: Callable[[Files], None], chance: random.Random, count: int | None) -> int:
    """Flip single bits of a saved run, all of them or some; returns how many went unnoticed."""
    places = [(name, bit) for name, data in files.items() for bit in range(8 * len(data))]
    missed = 0
    for name, bit in places if count is None else chance.sample(places, min(count, len(places))):
        data = bytearray(files[name])
        data[bit // 8] ^= 1 << bit % 8
        try:
            use({**files, name: bytes(data)})
            missed += 1
        except LetItCookError:
            continue
    return missed


def main() -> None:
    """Fuzz in processes of their own, and say what was found; exit code 1 if it is anything but declared errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="targets with this in their name")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child is not None:
        found = tried(asked.count, asked.seed, asked.child, asked.only)
        print(json.dumps(found))
        return
    total, left, seed = Counter[str](), asked.count, asked.seed
    CASES.mkdir(exist_ok=True)
    while left > 0:
        log, part = CASES / f"running-{os.getpid()}.json", min(left, 10_000)
        command = [sys.executable, __file__, "--count", str(part), "--seed", str(seed), "--child", str(log)]
        process = subprocess.run(
            [*command, *(["--only", asked.only] if asked.only else [])], capture_output=True, text=True, check=False
        )
        if process.returncode:
            kept = log.replace(CASES / f"crash-{seed}.json") if log.exists() else CASES
            total[f"CRASH: exit code {process.returncode}, see {kept}: {process.stderr[-300:]}"] += 1
        else:
            total.update(json.loads(process.stdout.splitlines()[-1]))
        log.unlink(missing_ok=True)
        left, seed = left - part, seed + 1
        print(json.dumps(total), flush=True)
    sys.exit(any(key.split()[0].isupper() for key in total))


if __name__ == "__main__":
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    main()
