"""Learned policies for other machines: as NumPy arrays with a loader of their own, or as an ONNX graph.

Both choose as letitcook does, except where two values are so close that rounding decides between them: letitcook
computes values in float32, and in which order it sums depends on the processor. The NumPy policy computes in float64,
an ONNX graph in float32 in its runtime's order.
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions, Policy
from letitcook.deep.network import layers
from letitcook.deep.normalisation import Inputs
from letitcook.deep.policy import NetworkPolicy
from letitcook.deploy.numpy_policy import FORMAT
from letitcook.errors import OutputError, SettingError, SpaceError
from letitcook.evaluation.schedules import PacedPolicy, SchedulePolicy
from letitcook.finite.policy import TablePolicy
from letitcook.storage import folders
from letitcook.storage.spaces import space_data
from letitcook.training.run import VERSION, Learned, kind_of
from letitcook.wrappers.remembering import RememberingPolicy, Remembers

OPSET, IR_VERSION = 13, 7
"""Versions of ONNX that every runtime since 2021 reads."""
Exportable = TablePolicy | NetworkPolicy | SchedulePolicy | PacedPolicy
LOWEST = np.finfo(np.float32).min
"""The value of a decision that is out of the question."""


def to_numpy(learned: Learned | Policy, path: str | Path, decisions: Decisions | None = None) -> Path:
    """Write a policy as a folder that needs NumPy and nothing else: `policy.npz`, and `policy.py`, which reads it.

    `learned` is a run, or a policy made of a table or of networks; a run brings its `decisions` along, and the network
    that it wraps as `base.npz`. The folder must not exist yet.

    >>> import tempfile
    >>> from letitcook.deploy.numpy_policy import load
    >>> policy = TablePolicy([(0,), (1,)], np.array([2, 0]))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = to_numpy(policy, place + "/robot", Decisions(("go", "stay"), wait=1, durations=(5,)))
    ...     exported = load(folder / "policy.npz")
    >>> sorted(exported.actions), exported.predict(1), exported.decide(0)
    (['go', 'stay'], (0, None), (1, 5))
    """
    folder = folders.check_output(Path(path))
    policy, known, remembers = _parts(learned, decisions)
    content = {
        "policy.npz": _packed(policy, known, remembers),
        "policy.py": resources.files("letitcook.deploy").joinpath("numpy_policy.py").read_bytes(),
    }
    if isinstance(learned, Learned) and learned.base is not None:
        content["base.npz"] = _packed(learned.base, None)
    folders.write_folder(folder, content)
    return folder


def to_onnx(learned: Learned | Policy, path: str | Path, decisions: Decisions | None = None) -> Path:
    """Write networks as an ONNX graph from `observation`, `(N, inputs)` float32, to `decision`, `(N,)` int64.

    Observations are vectors, or flat as Gymnasium's `flatten` makes them. The lexicographic choice is part of the
    graph. The file must not exist yet. Needs `pip install 'letitcook[onnx]'`.

    Example: `to_onnx(letitcook.load("my-run"), "policy.onnx")`.
    """
    file = Path(path)
    if os.path.lexists(file):
        raise OutputError(f"{file} exists already; choose another file with --out, or remove it first")
    policy, known, remembers = _parts(learned, decisions)
    if remembers is not None:
        raise SettingError(
            "an ONNX graph keeps no memory, and this policy remembers; write it for NumPy: --to numpy, or to_numpy"
        )
    if not isinstance(policy, NetworkPolicy):
        raise SettingError(
            "a table or a schedule cannot be written as an ONNX graph, only networks can; "
            "write it for NumPy: --to numpy, or to_numpy"
        )
    folders.write_file(file, _graph(policy, _about(policy, known)))
    return file


def _parts(
    learned: Learned | Policy, decisions: Decisions | None
) -> tuple[Exportable, Decisions | None, Remembers | None]:
    """Return the policy, its decisions and what it remembers, or raise why they cannot be exported."""
    policy: Any = learned.policy if isinstance(learned, Learned) else learned
    remembers = None
    if isinstance(policy, RememberingPolicy):
        remembers, decisions = policy.remembers, policy.decisions if decisions is None else decisions
        policy = policy.policy
    if isinstance(learned, Learned) and decisions is None:
        decisions = learned.info.decisions
    if isinstance(policy, SchedulePolicy | PacedPolicy):
        return policy, decisions, None
    if not isinstance(policy, TablePolicy | NetworkPolicy):
        raise SettingError(
            f"a {type(policy).__name__} cannot be exported; learn a policy (letitcook.learn), and export the run"
        )
    answers = int(policy.sizes[-1]) if isinstance(policy, NetworkPolicy) else int(policy.table.max()) + 1
    exact = isinstance(policy, NetworkPolicy)
    if decisions is not None and (answers != decisions.n if exact else answers > decisions.n):
        raise SpaceError(
            f"the policy has {answers} decisions, and {decisions.n} were given; give those it learned with"
        )
    return policy, decisions, remembers


def _about(policy: Exportable, decisions: Decisions | None) -> dict[str, Any]:
    """Return what a policy is, as data that JSON can hold."""
    about = {
        "format": FORMAT,
        "letitcook": VERSION,
        "kind": kind_of(policy),
        "decisions": None if decisions is None else folders.as_plain(asdict(decisions)),
    }
    networks = policy.policy if isinstance(policy, PacedPolicy) else policy
    if isinstance(networks, NetworkPolicy):
        about["sizes"] = networks.sizes.tolist()
        about["slack"] = networks.slack
        about["space"] = None if networks.space is None else space_data(networks.space)
    return about


def _packed(policy: Exportable, decisions: Decisions | None, remembers: Remembers | None = None) -> bytes:
    """Return a policy as the bytes of an `npz` file."""
    about = _about(policy, decisions)
    if remembers is not None:
        about["memory"] = remembers.data()
    arrays: dict[str, Any] = {"about": np.array(json.dumps(about))}
    if isinstance(policy, SchedulePolicy):
        arrays["cycle"] = np.array(policy.cycle)
    elif isinstance(policy, TablePolicy):
        arrays.update(observations=np.array(policy.keys), decisions=policy.table)
        if arrays["observations"].dtype.kind not in "biufU":
            raise SpaceError(f"observations such as {policy.keys[0]} are not plain numbers and cannot be exported")
    elif isinstance(policy, PacedPolicy):
        networks = policy.policy
        arrays.update(cycle=np.array(policy.schedule.cycle), networks=networks.networks, **networks.inputs._asdict())
    else:
        arrays.update(networks=policy.networks, **policy.inputs._asdict())
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    return packed.getvalue()


def _graph(policy: NetworkPolicy, about: dict[str, Any]) -> bytes:
    """Return networks and the lexicographic choice among their values as a serialised ONNX model."""
    onnx = _needed("onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    sizes = policy.sizes.tolist()
    constants: dict[str, NDArray[np.float32]] = {}
    if len(policy.networks) > 1:  # runtimes warn of constants that nothing uses
        constants["slack"] = np.array(policy.slack, dtype=np.float32)
        constants["lowest"] = np.array(LOWEST, dtype=np.float32)
    nodes, seen = _input_nodes(helper, policy.inputs, constants)
    for k, parameters in enumerate(policy.networks):
        nodes += _network_nodes(helper, k, seen, parameters, sizes, constants)
    nodes += _choice_nodes(helper, len(policy.networks))
    graph = helper.make_graph(
        nodes,
        "letitcook",
        [helper.make_tensor_value_info("observation", kinds.FLOAT, ["N", policy.observation_size])],
        [helper.make_tensor_value_info("decision", kinds.INT64, ["N"])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, producer_name="letitcook", opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    helper.set_model_props(model, {"letitcook": json.dumps(about)})
    onnx.checker.check_model(model)
    serialised: bytes = model.SerializeToString()
    return serialised


def _input_nodes(helper: Any, inputs: Inputs, constants: dict[str, NDArray[np.float32]]) -> tuple[list[Any], str]:
    """Return how `observation` becomes the networks' input, and its name; nothing to do if it is the input already."""
    nodes, seen = [], "observation"
    if inputs.mean.any() or (inputs.scale != 1.0).any():
        constants["mean"], constants["scale"] = inputs.mean, inputs.scale
        nodes += [helper.make_node("Sub", [seen, "mean"], ["away"]), helper.make_node("Mul", ["away", "scale"], ["x"])]
        seen = "x"
    if len(inputs.frequencies):
        constants["frequencies"] = np.ascontiguousarray(inputs.frequencies.T)
        nodes += [
            helper.make_node("MatMul", [seen, "frequencies"], ["fourier_features"]),
            helper.make_node("Sin", ["fourier_features"], ["sine"]),
            helper.make_node("Cos", ["fourier_features"], ["cosine"]),
            helper.make_node("Concat", [seen, "sine", "cosine"], ["features"], axis=1),
        ]
        seen = "features"
    return nodes, seen


def _network_nodes(
    helper: Any,
    k: int,
    seen: str,
    parameters: NDArray[np.float32],
    sizes: list[int],
    constants: dict[str, NDArray[np.float32]],
) -> list[Any]:
    """Return the layers of network `k`, from its input `seen` to `q{k}`; its weights are added to the constants."""
    nodes, below, last = [], seen, len(sizes) - 2
    for layer, (weights, bias) in enumerate(layers(parameters, sizes)):
        name = f"{k}.{layer}"
        constants[f"w{name}"], constants[f"b{name}"] = weights, bias
        out = f"q{k}" if layer == last else f"z{name}"
        nodes.append(helper.make_node("Gemm", [below, f"w{name}", f"b{name}"], [out], transB=1))
        if layer < last:
            below = f"h{name}"
            nodes.append(helper.make_node("Relu", [out], [below]))
    return nodes


def _choice_nodes(helper: Any, K: int) -> list[Any]:
    """Return the lexicographic choice among the values `q0`, `q1`, ... as nodes: `lex_argmax`, step by step."""
    nodes: list[Any] = []
    admissible = None
    for k in range(K):
        q = f"q{k}"
        if admissible is not None:
            nodes.append(helper.make_node("Where", [admissible, q, "lowest"], [f"open{k}"]))
            q = f"open{k}"
        if k == K - 1:
            return [*nodes, helper.make_node("ArgMax", [q], ["decision"], axis=1, keepdims=0)]
        nodes += [
            helper.make_node("ReduceMax", [q], [f"best{k}"], axes=[1], keepdims=1),
            helper.make_node("Sub", [f"best{k}", "slack"], [f"least{k}"]),
            # What was ruled out before has the lowest value, and stays out.
            helper.make_node("GreaterOrEqual", [q, f"least{k}"], [f"admissible{k}"]),
        ]
        admissible = f"admissible{k}"
    raise AssertionError("a policy has at least one network")


def _needed(package: str) -> Any:
    """Import a part of the extra, or say how to install it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise SettingError(f"{package} is not installed; it comes with: pip install 'letitcook[onnx]'") from error
