"""Models that Stable-Baselines3 saved, read without unpickling anything.

A model's file is a zip. Of it, two parts are read: the weights in `policy.pth`, with `torch.load(weights_only=True)`,
and the JSON text in `data`, whose pickled parts (`:serialized:`) are left alone. What cannot be rebuilt from them is
refused. `trust_pickle=True` calls Stable-Baselines3's own loader instead, which executes code in the file.
"""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from gymnasium import spaces

from letitcook.adapters.policies import as_policy
from letitcook.adapters.sb3_network import rebuilt
from letitcook.adapters.sb3_normalise import NormalisedPolicy, read_statistics, statistics_beside
from letitcook.adapters.sb3_spaces import RebuildError
from letitcook.core.decisions import Policy
from letitcook.errors import FileFormatError, SettingError, UnknownNameError

LOADERS = {
    "a2c": "stable_baselines3.A2C",
    "ars": "sb3_contrib.ARS",
    "crossq": "sb3_contrib.CrossQ",
    "ddpg": "stable_baselines3.DDPG",
    "dqn": "stable_baselines3.DQN",
    "maskableppo": "sb3_contrib.MaskablePPO",
    "ppo": "stable_baselines3.PPO",
    "qrdqn": "sb3_contrib.QRDQN",
    "recurrentppo": "sb3_contrib.RecurrentPPO",
    "sac": "stable_baselines3.SAC",
    "td3": "stable_baselines3.TD3",
    "tqc": "sb3_contrib.TQC",
    "trpo": "sb3_contrib.TRPO",
}
"""The algorithms, and the classes that load their files."""

TEXT_LIMIT, WEIGHTS_LIMIT = 64 * 2**20, 512 * 2**20
"""Bytes of `data` and of `policy.pth`, unpacked, above which a file is refused."""
SMALL = 16 * 2**20
"""Bytes up to which any file may unpack, however small it is."""

TORCH = (2, 10)
"""The first PyTorch whose `weights_only=True` keeps known attacks out (CVE-2025-32434, CVE-2026-24747)."""


def read(
    path: str | Path, algo: str, action_space: spaces.Space[Any] | None = None, trust_pickle: bool = False
) -> Policy:
    """Return the policy in a file that `model.save` of Stable-Baselines3 or sb3-contrib wrote.

    Its `predict` answers as `model.predict(deterministic=True)` does; where statistics of `VecNormalize` lie beside the
    file, observations are normalised first (see `sb3_normalise`). `action_space` is the environment's; without it,
    bounds are those that the file shows as text, in eight digits.

    >>> read("missing.zip", "dqn")
    Traceback (most recent call last):
    ...
    letitcook.errors.FileFormatError: there is no file missing.zip
    """
    name = algo.lower().replace("-", "").replace("_", "")
    if name not in LOADERS:
        raise UnknownNameError("algorithm", algo, LOADERS)
    file, *beside = files_of(Path(path))
    normalise = read_statistics(beside[0]) if beside else None
    policy = _unpickled(file, name) if trust_pickle else _rebuilt(file, name, action_space)
    return policy if normalise is None else NormalisedPolicy(policy, normalise)


def files_of(path: Path) -> list[Path]:
    """Return the file of a model, and after it that of its normalisation if there is one.

    `path` may be a folder of rl-baselines3-zoo: its best model, else its only one.
    """
    file = _existing(path)
    beside = statistics_beside(file)
    return [file] if beside is None else [file, beside]


def _rebuilt(file: Path, name: str, action_space: spaces.Space[Any] | None) -> Policy:
    """Return the policy in a file without unpickling anything."""
    torch = _torch()
    data, weights = _parts(file, torch)
    found = algorithm_of(data, weights)
    if found not in (name, None) and {found, name} != {"td3", "ddpg"}:  # a file of DDPG is one of TD3
        raise FileFormatError(f"{file} is a model of {found}, not of {name}; name it sb3:{found}:{file}")
    try:
        return rebuilt(name, data, weights, action_space)
    except RebuildError as error:
        raise FileFormatError(
            f"{file} cannot be rebuilt without unpickling: {error}. trust_pickle=True (--trust-pickle) loads it with "
            "Stable-Baselines3's own loader, which executes code in the file: only for files that you trust"
        ) from error


def algorithm_of(data: dict[str, Any], weights: dict[str, Any]) -> str | None:
    """Return the algorithm that the names of the weights and of the settings tell; None if they tell none.

    >>> algorithm_of({}, {"q_net.q_net.0.weight": ...})
    'dqn'
    """

    def some(prefix: str) -> bool:
        return any(key.startswith(prefix) for key in weights)

    if some("lstm_"):
        return "recurrentppo"
    if some("quantile_net."):
        return "qrdqn"
    if some("q_net."):
        return "dqn"
    module = _text(data, "policy_class", "__module__")
    if some("actor.log_std"):
        crossed = module.startswith("sb3_contrib.crossq")
        return "crossq" if crossed else "tqc" if "top_quantiles_to_drop_per_net" in data else "sac"
    if some("actor.mu."):
        return "td3"
    if some("action_net.") and some("value_net."):
        if module.startswith("sb3_contrib.common.maskable"):
            return "maskableppo"
        return "ppo" if "clip_range" in data else "trpo" if "cg_max_steps" in data else "a2c"
    return None


def _text(data: dict[str, Any], *keys: str) -> str:
    """Return a text inside nested dictionaries, empty if it is not there."""
    inside: Any = data
    for key in keys:
        inside = inside.get(key) if isinstance(inside, dict) else None
    return inside if isinstance(inside, str) else ""


def _existing(path: Path) -> Path:
    """Return the file; Stable-Baselines3 adds `.zip` to names without it, and so do we."""
    if path.is_dir():
        found = [file for file in (path / "best_model.zip", *sorted(path.glob("*.zip"))) if file.is_file()]
        if found and (found[0].name == "best_model.zip" or len(found) == 1):
            return found[0]
        raise FileFormatError(f"{path} holds {len(found)} models; name one of them: FOLDER/MODEL.zip")
    for file in (path, path.with_name(path.name + ".zip")):
        if file.is_file():
            return file
    raise FileFormatError(f"there is no file {path}")


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise SettingError(
            "reading a model of Stable-Baselines3 needs PyTorch: pip install 'letitcook[torch]'"
        ) from error
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < TORCH:
        raise SettingError(
            f"PyTorch {torch.__version__} can be made to execute code in a file of weights; "
            f"install {'.'.join(map(str, TORCH))} or newer to read models"
        )
    return torch


def _parts(file: Path, torch: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings (JSON) and the weights (tensors by name) of a file."""
    # Weights hardly shrink in a zip: one that becomes many times as large holds something else.
    limit = min(WEIGHTS_LIMIT, max(SMALL, 4 * file.stat().st_size))
    try:
        with zipfile.ZipFile(file) as archive:
            text, blob = _member(archive, "data", min(TEXT_LIMIT, limit)), _member(archive, "policy.pth", limit)
        data = json.loads(text)
        _check_inside(blob, limit)
        weights = torch.load(io.BytesIO(blob), map_location="cpu", weights_only=True)
    except FileFormatError as error:
        raise FileFormatError(f"{file} is not a model of Stable-Baselines3: {error}") from error
    except Exception as error:  # whatever a damaged or hostile file makes of zipfile, json and torch
        said = str(error).partition("\n")[0]
        raise FileFormatError(
            f"{file} is not a model of Stable-Baselines3, or is damaged ({type(error).__name__}: {said[:120]})"
        ) from error
    if not isinstance(data, dict) or not isinstance(weights, dict):
        raise FileFormatError(f"{file} is not a model of Stable-Baselines3: it holds no settings or no weights")
    if not all(isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in weights.items()):
        raise FileFormatError(f"{file} is not a model of Stable-Baselines3: its weights are not tensors with names")
    # A tensor can claim to be larger than its storage.
    if sum(value.numel() for value in weights.values()) * 4 > limit:
        raise FileFormatError(f"{file} has more weights than the {limit:,} bytes that are read")
    return data, weights


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Return a part of a zip, unpacked, if it is not absurdly large."""
    if name not in archive.namelist():
        raise FileFormatError(f"there is no {name!r} in it")
    size = archive.getinfo(name).file_size
    if size > limit:
        raise FileFormatError(f"{name!r} in it unpacks to {size:,} bytes, and at most {limit:,} are read")
    return archive.read(name)


def _check_inside(blob: bytes, limit: int) -> None:
    """Check the zip that a file of weights is in turn; PyTorch's older formats are not read."""
    with zipfile.ZipFile(io.BytesIO(blob)) as inside:
        size = sum(info.file_size for info in inside.infolist())
    if size > limit:
        raise FileFormatError(f"its weights unpack to {size:,} bytes, and at most {limit:,} are read")


def _unpickled(file: Path, name: str) -> Policy:
    """Load a file with Stable-Baselines3's own loader, which executes code in it."""
    module, _, cls = LOADERS[name].partition(".")
    package = module.replace("_", "-")
    try:
        loader = getattr(importlib.import_module(module), cls)
    except ImportError as error:
        raise SettingError(f"loading a model of {name} needs {package}: pip install {package}") from error
    try:
        model = loader.load(file)
    except Exception as error:
        raise FileFormatError(
            f"{package} cannot load {file} as a model of {name} ({type(error).__name__}: {error})"
        ) from error
    return as_policy(model)
