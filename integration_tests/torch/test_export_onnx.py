"""Exported ONNX graphs, carried out by onnxruntime, against the original networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from gymnasium import spaces

from letitcook.core.decisions import Decisions
from letitcook.deep.policy import NetworkPolicy, flat
from letitcook.deploy.export import to_onnx
from rounding import possible_decisions, values_in_float64
from test_export import SPACES, N, cartpole, family, learned, random_networks  # noqa: F401 (fixtures)


def session_of(file: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def answers_of(policy: Any, rows: np.ndarray, place: Path) -> np.ndarray:
    (answer,) = session_of(to_onnx(policy, place / "policy.onnx")).run(["decision"], {"observation": rows})
    assert answer.dtype == np.int64
    assert answer.shape == (len(rows),)
    return answer


def check_same(policy: NetworkPolicy, rows: np.ndarray, answer: np.ndarray) -> None:
    original = policy.predict(rows)[0]
    values = values_in_float64(policy, rows)
    possible = possible_decisions(values, policy.slack, rounding=2e-6 * np.abs(values).max())
    clear = possible.sum(axis=1) == 1
    assert clear.mean() > 0.995
    assert (original == answer)[clear].all()
    assert possible[np.arange(len(rows)), answer].all()
    assert (original != answer).mean() <= 0.001


@pytest.mark.parametrize("K", [1, 2, 3])
def test_random_observations(K: int, tmp_path: Path) -> None:
    policy = random_networks((8, 256, 256, 11), K, slack=0.02)
    rows = np.random.default_rng(0).normal(0.0, 2.0, (N, 8)).astype(np.float32)
    answer = answers_of(policy, rows, tmp_path)
    assert len(np.unique(answer)) >= 5
    check_same(policy, rows, answer)


def test_trained_networks_in_their_own_episodes(cartpole: Any, tmp_path: Path) -> None:  # noqa: F811
    policy, rows = cartpole
    answer = answers_of(policy, rows, tmp_path)
    assert len(np.unique(answer)) >= 3
    check_same(policy, rows, answer)


def test_scaled_inputs_and_waves(family: Any, tmp_path: Path) -> None:  # noqa: F811
    policy, rows = family
    answer = answers_of(policy, rows, tmp_path)
    assert len(np.unique(answer)) >= 2
    check_same(policy, rows, answer)


def test_slack_and_ties_are_in_the_graph(tmp_path: Path) -> None:
    # Two linear networks whose values are the first three and the last three numbers of the observation.
    networks = np.zeros((2, 6 * 3 + 3), dtype=np.float32)
    for k in range(2):
        networks[k, :18] = np.eye(6, dtype=np.float32)[3 * k : 3 * k + 3].ravel()
    rows = np.array(
        [
            [1.0, 0.5, 0.0, -3.0, -2.0, -1.0],  # the third is out, however few its queries
            [1.0, 0.25, 0.0, -3.0, -2.0, -1.0],
            [1.0, 1.0, 1.0, -2.0, -2.0, -2.0],  # all the same: the first
            [-9.0, -8.5, -9.0, -1.0, -2.0, -1.0],  # negative values, and a tie in the second
        ],
        dtype=np.float32,
    )
    policy = NetworkPolicy(networks, (6, 3), slack=0.5)
    expected = [1, 0, 0, 0]
    assert policy.predict(rows)[0].tolist() == expected
    session = session_of(to_onnx(policy, tmp_path / "policy.onnx"))
    assert session.run(None, {"observation": rows})[0].tolist() == expected
    for row, decision in zip(rows, expected, strict=True):
        assert session.run(None, {"observation": row[None]})[0].tolist() == [decision]


def test_observations_of_other_spaces_come_flat(tmp_path: Path) -> None:
    space = SPACES["dict"]
    policy = random_networks((spaces.flatdim(space), 32, 9), 2, 0.05, space)  # type: ignore[arg-type]
    space.seed(0)  # type: ignore[attr-defined]
    samples = [space.sample() for _ in range(60)]  # type: ignore[attr-defined]
    rows = np.stack([flat(space, sample) for sample in samples])  # type: ignore[arg-type]
    assert answers_of(policy, rows, tmp_path).tolist() == policy.predict(samples)[0].tolist()


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    decisions = Decisions(("left", "right", "wait"), 2, (2, 4))
    file = to_onnx(learned(random_networks((4, 8, 5), 2, 0.25), decisions), tmp_path / "new" / "policy.onnx")
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    about = json.loads({entry.key: entry.value for entry in model.metadata_props}["letitcook"])
    held = {"hold": False, "cost": "decisions", "repeat": 1}
    assert about["decisions"] == {"actions": ["left", "right", "wait"], "wait": 2, "durations": [2, 4], **held}
    assert (about["slack"], about["sizes"]) == (0.25, [4, 8, 5])


@pytest.mark.parametrize("K", [1, 2, 3])
def test_every_constant_is_used(K: int, tmp_path: Path) -> None:
    graph = onnx.load(to_onnx(random_networks((4, 8, 5), K, 0.25), tmp_path / "policy.onnx")).graph
    used = {name for node in graph.node for name in node.input}
    assert {constant.name for constant in graph.initializer} == used & {c.name for c in graph.initializer}
