"""Exported policies: the same answers as the original's, without letitcook."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from letitcook import Decisions, Learned, learn, make, plan, rollout
from letitcook.core.decisions import Timesteps
from letitcook.deep.network import initial_parameters
from letitcook.deep.normalisation import plain_inputs
from letitcook.deep.policy import NetworkPolicy
from letitcook.deploy.control_loop import SimulatedClock, run
from letitcook.deploy.export import to_numpy, to_onnx
from letitcook.deploy.numpy_policy import ExportedPolicy, lexicographic_best, load
from letitcook.errors import OutputError, SettingError, SpaceError
from letitcook.finite.policy import TablePolicy
from letitcook.finite.settings import QSettings
from letitcook.training.learn import prepare
from letitcook.training.run import Point, RunInfo
from letitcook.training.spec import RunSpec
from rounding import possible_decisions, values_in_float64

N = 10_000
POINT = Point(10_000, 8_000, -33.0, 33.0, 25.0, 2.0)


def random_networks(sizes: tuple[int, ...], K: int, slack: float, space: Any = None) -> NetworkPolicy:
    return NetworkPolicy(initial_parameters(sizes, K, np.random.default_rng(K)), sizes, slack, space)


def exported(policy: Any, place: Path, decisions: Decisions | None = None) -> ExportedPolicy:
    return load(to_numpy(policy, place / "exported", decisions) / "policy.npz")


def learned(policy: Any, decisions: Decisions, base: NetworkPolicy | None = None) -> Learned:
    info = RunInfo("table", "lexicographic", None, 0, "paper", QSettings(), decisions)
    return Learned(policy, POINT, POINT, [POINT], 10_000, 8_000, 1.0, info, base=base)


def observations_of(env: Any, policy: Any) -> np.ndarray:
    """Return what a policy comes by in its episodes, inside waits too."""
    env.intermediate = True
    seen: list[Any] = []
    while len(seen) < N:
        observation, _ = env.reset(seed=len(seen))
        seen.append(observation)
        over = False
        while not over:
            observation, _, terminated, truncated, info = env.step(policy.predict(observation)[0])
            over = terminated or truncated
            seen += [each for each, _ in info["intermediate"]]
    return np.array(seen[:N])


@pytest.fixture(scope="module")
def cartpole() -> tuple[NetworkPolicy, np.ndarray]:
    """Networks that were trained for a while, and observations of their episodes."""
    env = make("cartpole")
    training = prepare(env, RunSpec(settings={"hidden": (64, 64), "learning_starts": 200, "epsilon_steps": 3_000}))
    training.learner.advance(decisions=4_000)
    policy = training.learner.policy()
    return policy, observations_of(env, policy)


@pytest.fixture(scope="module")
def family() -> tuple[NetworkPolicy, np.ndarray]:
    """A policy with scaled inputs and Fourier features beside them, and observations of its episodes."""
    env = make("mountain-car")
    training = prepare(
        env, RunSpec(preset="best", length=Timesteps(10_000), settings={"hidden": (64, 64), "learning_starts": 200})
    )
    training.learner.advance(6_000)
    policy = training.learner.policy(0.5)
    return policy, observations_of(env, policy)


# --- networks ---


@pytest.mark.parametrize("K", [1, 2, 3])
def test_networks_answer_the_same_on_random_observations(K: int, tmp_path: Path) -> None:
    policy = random_networks((8, 256, 256, 11), K, slack=0.02)
    rows = np.random.default_rng(0).normal(0.0, 2.0, (N, 8)).astype(np.float32)
    check_same(policy, exported(policy, tmp_path), rows)


def test_trained_networks_answer_the_same_in_their_own_episodes(
    cartpole: tuple[NetworkPolicy, np.ndarray], tmp_path: Path
) -> None:
    policy, rows = cartpole
    check_same(policy, exported(policy, tmp_path), rows, trained=True)


def test_a_trained_policy_with_scaled_inputs_is_exported(
    family: tuple[NetworkPolicy, np.ndarray], tmp_path: Path
) -> None:
    policy, rows = family
    assert len(policy.inputs.frequencies) == 16
    assert (policy.inputs.scale != 1.0).all()
    check_same(policy, exported(policy, tmp_path), rows, trained=True)


def test_scaled_inputs_and_waves_are_exported(tmp_path: Path) -> None:
    inputs = plain_inputs(3, fourier_features=16, seed=1)
    inputs.mean[:], inputs.scale[:] = (0.5, -2.0, 10.0), (4.0, 0.1, 1.5)
    parameters = 3.0 * initial_parameters((35, 64, 64, 11), 1, np.random.default_rng(5))
    policy = NetworkPolicy(parameters, (35, 64, 64, 11), 0.0, None, inputs)
    rows = np.random.default_rng(0).uniform((0.0, -22.0, 8.0), (1.0, 18.0, 12.0), (N, 3)).astype(np.float32)
    check_same(policy, exported(policy, tmp_path), rows)


def check_same(policy: NetworkPolicy, twin: ExportedPolicy, rows: np.ndarray, *, trained: bool = False) -> None:
    """Check that answers are equal wherever float32's rounding cannot decide, and that it hardly ever can.

    How many different answers a trained policy gives, and how close their values are, depends on the processor that it
    was trained on. So of such a policy only what holds for every policy is checked.
    """
    original, answer = policy.predict(rows)[0], twin.predict(rows)[0]
    assert answer.dtype == np.int64
    assert answer.shape == original.shape
    assert trained or len(np.unique(answer)) >= 5
    values = values_in_float64(policy, rows)
    np.testing.assert_array_equal(answer, lexicographic_best(values, policy.slack))
    possible = possible_decisions(values, policy.slack, rounding=2e-6 * np.abs(values).max())
    clear = possible.sum(axis=1) == 1
    assert (original == answer)[clear].all()
    assert possible[np.arange(len(rows)), original].all()
    assert clear.mean() > (0.5 if trained else 0.995)
    assert trained or (original != answer).mean() <= 0.001
    assert [twin.predict(row)[0] for row in rows[:500]] == answer[:500].tolist()


def test_the_choice_is_lexicographic() -> None:
    values = np.array([[[1.0, 0.9995, 0.5], [1.0, 1.0, 1.0]], [[-3.0, -2.0, -1.0], [-2.0, -2.0, -2.0]]])
    assert lexicographic_best(values, 0.001).tolist() == [1, 0]
    assert lexicographic_best(values, 0.0).tolist() == [0, 0]
    assert lexicographic_best(values, 1.0).tolist() == [2, 0]
    assert lexicographic_best(values[:, :0], 0.0).tolist() == []


SPACES = {
    "matrix": spaces.Box(-1.0, 1.0, (2, 3)),
    "bytes": spaces.Box(0, 3, (4,), dtype=np.uint8),
    "discrete": spaces.Discrete(7, start=-2),
    "multi-discrete": spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[0, 1], [2, -3]])),
    "multi-binary": spaces.MultiBinary([2, 2]),
    "tuple": spaces.Tuple([spaces.Discrete(3), spaces.Box(-1.0, 1.0, (2,))]),
    "dict": spaces.Dict(
        [
            ("z", spaces.Box(-1.0, 1.0, (2, 2), dtype=np.float64)),
            ("a", spaces.Dict({"n": spaces.Discrete(4), "m": spaces.MultiBinary(3)})),
        ]
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_observations_of_every_kind(name: str, tmp_path: Path) -> None:
    space = SPACES[name]
    policy = random_networks((spaces.flatdim(space), 32, 9), 2, 0.05, space)  # type: ignore[arg-type]
    twin = exported(policy, tmp_path)
    space.seed(0)  # type: ignore[attr-defined]
    samples = [space.sample() for _ in range(60)]  # type: ignore[attr-defined]
    decisions = [policy.predict(sample)[0] for sample in samples]
    assert [twin.predict(sample)[0] for sample in samples] == decisions
    batch = samples if isinstance(space, spaces.Dict | spaces.Tuple) else np.array(samples)
    assert twin.predict(batch)[0].tolist() == decisions
    assert twin.predict(batch[:1])[0].shape == (1,)
    assert len(set(decisions)) > 1


def test_observations_that_do_not_fit_are_named(tmp_path: Path) -> None:
    twin = exported(random_networks((3, 8, 4), 2, 0.1), tmp_path / "box")
    with pytest.raises(ValueError, match=r"\(3,\), or a batch"):
        twin.predict(np.zeros(4))
    with pytest.raises(ValueError, match="not finite"):
        twin.predict(np.array([0.0, np.nan, 0.0]))
    discrete = exported(random_networks((7, 8, 4), 2, 0.1, SPACES["discrete"]), tmp_path / "discrete")
    with pytest.raises(ValueError, match="outside"):
        discrete.predict(-3)
    pair = exported(random_networks((5, 8, 4), 2, 0.1, SPACES["tuple"]), tmp_path / "tuple")
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        pair.predict((1, np.zeros(3)))


# --- tables ---


def test_a_table_answers_the_same_everywhere(tmp_path: Path) -> None:
    env = make("cook")
    result = learn(env, steps=20_000, preset="exact", progress=False)
    policy = result.policy
    assert isinstance(policy, TablePolicy)
    twin = load(to_numpy(result, tmp_path / "cook") / "policy.npz")
    rows = np.array(policy.keys)
    batch = np.concatenate([rows, rows[np.random.default_rng(0).integers(len(rows), size=N)]])
    np.testing.assert_array_equal(twin.predict(batch)[0], policy.predict(batch)[0])
    assert [twin.predict(row)[0] for row in rows] == policy.table.tolist()
    assert twin.predict(rows[:1])[0].tolist() == [policy.table[0]]
    assert (twin.actions, twin.wait, twin.durations) == (env.decisions.actions, 4, (5, 15))
    with pytest.raises(LookupError, match="1,279|not one of"):
        twin.predict(rows[0] + 1000)


def test_an_exported_table_sees_what_the_table_saw(tmp_path: Path) -> None:
    policy = TablePolicy([(0, 1, 0.5), (2, 1, 0.5)], np.array([1, 0], dtype=np.int16))
    twin = exported(policy, tmp_path)
    for observation in ({"b": 0.5, "a": (0, 1)}, {"a": np.array([2, 1]), "b": np.float32(0.5)}, (2, [1, 0.5])):
        assert twin.predict(observation) == policy.predict(observation)


# --- in use ---


def test_decisions_as_actions_and_steps(tmp_path: Path) -> None:
    policy = TablePolicy([(0,), (1,), (2,)], np.array([3, 1, 0], dtype=np.int16))
    twin = exported(policy, tmp_path / "a", Decisions(("go", "stay"), 1, (5, 15)))
    assert [twin.decide(o) for o in range(3)] == [(1, 15), (1, 1), (0, 1)]
    with pytest.raises(TypeError, match="one observation"):
        twin.decide(np.array([[0], [1]]))
    with pytest.raises(ValueError, match="without its decisions"):
        exported(policy, tmp_path / "b").decide(0)


def test_an_exported_policy_runs_in_the_loop(cartpole: tuple[NetworkPolicy, np.ndarray], tmp_path: Path) -> None:
    policy, _ = cartpole
    env = make("cartpole")
    twin = load(to_numpy(learned(policy, env.decisions), tmp_path / "robot") / "policy.npz")
    expected = rollout(env, twin, seed=3)
    world = {"observation": env.reset(seed=3)[0], "over": False}

    def act(action: int) -> None:
        world["observation"], _, terminated, truncated, _ = env.act(action)
        world["over"] = terminated or truncated

    counters = run(
        twin,
        lambda: world["observation"],
        act,
        50,
        Decisions(twin.actions, twin.wait, twin.durations),
        stop=lambda: world["over"],
        clock=SimulatedClock(),
    )
    assert (counters.steps, counters.queries) == (expected.length, expected.queries)


ALONE = """
import importlib.abc, json, sys

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("letitcook", "numba", "gymnasium", "scipy", "safetensors"):
            raise ImportError(name + " is not to be used")

sys.meta_path.insert(0, Block())
sys.path.insert(0, sys.argv[1])
import numpy as np
from policy import load

rows = np.random.default_rng(0).normal(size=(1000, 4))
base = load(sys.argv[1] + "/base.npz")
answers = load().predict(rows)[0].tolist()
print(json.dumps([answers, base.predict(rows)[0].tolist(), load().decide(rows[0]), list(load().actions)]))
"""


def test_the_folder_needs_numpy_alone(tmp_path: Path) -> None:
    decisions = Decisions(("base", "wait"), 1, (2, 4))
    policy, base = random_networks((4, 32, 4), 2, 0.01), random_networks((4, 16, 3), 1, 0.0)
    folder = to_numpy(learned(policy, decisions, base), tmp_path / "robot")
    assert sorted(file.name for file in folder.iterdir()) == ["base.npz", "policy.npz", "policy.py"]
    command = [sys.executable, "-I", "-W", "error", "-c", ALONE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    answers, base_answers, (action, steps), actions = json.loads(done.stdout)
    rows = np.random.default_rng(0).normal(size=(1000, 4))
    assert answers == policy.predict(rows)[0].tolist()
    assert base_answers == base.predict(rows)[0].tolist()
    assert actions == ["base", "wait"]
    assert action == decisions.actions_of[answers[0]]
    assert steps == decisions.durations_of[answers[0]]


STANDARD = ("io", "json", "math", "pathlib", "struct", "tokenize", "typing", "zipfile", "zlib")
"""Modules of the standard library that the loader needs."""


def test_the_loader_is_old_pythons_too(tmp_path: Path) -> None:
    folder = to_numpy(random_networks((4, 8, 3), 1, 0.0), tmp_path / "robot")
    tree = ast.parse((folder / "policy.py").read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {"__future__", "numpy", "numpy.typing", *STANDARD}


# --- mistakes ---


def test_nothing_is_written_over(tmp_path: Path) -> None:
    policy = random_networks((4, 8, 3), 1, 0.0)
    folder = to_numpy(policy, tmp_path / "robot")
    with pytest.raises(OutputError, match="already holds"):
        to_numpy(policy, folder)
    (tmp_path / "policy.onnx").write_bytes(b"mine")
    with pytest.raises(OutputError, match="exists already"):
        to_onnx(policy, tmp_path / "policy.onnx")
    assert (tmp_path / "policy.onnx").read_bytes() == b"mine"


def test_what_cannot_be_exported_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, networks = TablePolicy([(0,)], np.array([3], dtype=np.int16)), random_networks((4, 8, 3), 1, 0.0)
    with pytest.raises(SettingError, match="table or a schedule cannot be written as an ONNX graph"):
        to_onnx(table, tmp_path / "table.onnx")
    with pytest.raises(SettingError, match="PlanPolicy cannot be exported"):
        to_numpy(plan(make("cook")).policy, tmp_path / "plan")
    for policy in (table, networks):
        with pytest.raises(SpaceError, match="2 were given"):
            to_numpy(policy, tmp_path / "other", Decisions(("go", "stay"), 1))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SettingError, match=r"pip install 'letitcook\[onnx\]'"):
        to_onnx(networks, tmp_path / "networks.onnx")
    assert list(tmp_path.iterdir()) == []


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="not a policy"):
        load(tmp_path / "other.npz")
    np.savez(tmp_path / "newer.npz", about=np.array(json.dumps({"format": 99})))
    with pytest.raises(ValueError, match="format 99"):
        load(tmp_path / "newer.npz")
