"""The networks of Stable-Baselines3's MlpPolicy, rebuilt from their weights and from the readable settings.

The layers are PyTorch's own, in the order in which Stable-Baselines3 puts them, so that the answers are the same to
the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from letitcook.adapters.sb3_spaces import RebuildError, action_space_of, observation_space_of
from letitcook.errors import FileFormatError, NotFiniteError, SettingError, SpaceError

ACTIVATIONS = (
    *("CELU", "ELU", "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish", "ReLU"),
    *("ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh", "Tanhshrink"),
)
"""Activations of torch.nn that have no weights, made without arguments."""

HARMLESS = {
    *("net_arch", "optimizer_class", "optimizer_kwargs", "ortho_init", "log_std_init", "n_critics", "n_quantiles"),
    *("clip_mean", "full_std", "use_expln", "features_extractor_kwargs", "share_features_extractor"),
    "normalize_images",
}
"""Settings of a policy that do not change its answers, or show in its weights."""

CHECKED = {"use_sde", "squash_output", "features_extractor_class", "activation_fn", ":type:", ":serialized:"}
"""Settings that are looked at; the pickled form is left alone."""

POLICIES = (
    "stable_baselines3.common.policies",
    "stable_baselines3.dqn.policies",
    "stable_baselines3.sac.policies",
    "stable_baselines3.td3.policies",
    "sb3_contrib.qrdqn.policies",
    "sb3_contrib.tqc.policies",
)
"""The modules of the policies that are rebuilt."""


class RebuiltPolicy:
    """A policy of Stable-Baselines3 that was rebuilt; it answers without exploring or sampling."""

    batched = True

    def __init__(
        self,
        network: Callable[[Any], Any],
        head: Callable[[Any], Any],
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
    ) -> None:
        self.observation_space = observation_space
        self.action_space = action_space
        self._network = network
        self._head = head

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the action at an observation, or an array of actions for a batch."""
        import torch

        if not deterministic:
            raise SettingError(
                "a policy that was rebuilt from a file answers deterministically only; to sample, load the file with "
                "trust_pickle=True (--trust-pickle), which executes code in it"
            )
        rows, single = self._rows(observation)
        with torch.no_grad():
            answers = self._head(self._network(torch.from_numpy(rows)))
        actions = np.asarray(answers).reshape(-1, *(self.action_space.shape or ()))
        return (actions[0] if single else actions), None

    def _rows(self, observation: Any) -> tuple[NDArray[np.float32], bool]:
        """Return observations as rows of float32, whole numbers one-hot, and whether there was one alone."""
        space, x = self.observation_space, np.asarray(observation)
        shape = space.shape or ()
        if x.dtype.kind not in "biuf" or (x.shape != shape and x.shape[1:] != shape) or x.ndim < len(shape):
            raise SpaceError(f"the policy takes observations in {space}, or a batch of them, and got {observation!r}")
        single = x.shape == shape
        if not np.isfinite(x).all():
            raise NotFiniteError(f"the observation {observation!r} is not finite; the policy cannot decide on it")
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            counts = np.ravel(space.n if isinstance(space, spaces.Discrete) else space.nvec)
            index = x.reshape(-1, len(counts))
            if ((index < 0) | (index >= counts) | (index != np.floor(index))).any():
                raise SpaceError(f"the observation {observation!r} is outside {space}, which the policy takes")
            hot = [np.eye(n, dtype=np.float32)[index[:, i].astype(np.int64)] for i, n in enumerate(counts)]
            return np.concatenate(hot, axis=1), single
        return np.ascontiguousarray(x.reshape(1 if single else len(x), -1), dtype=np.float32), single


def rebuilt(
    algo: str, data: dict[str, Any], weights: dict[str, Any], action_space: spaces.Space[Any] | None = None
) -> RebuiltPolicy:
    """Return the policy with these settings and weights; RebuildError says what cannot be rebuilt."""
    if algo not in BUILDERS:
        raise RebuildError(f"models of {algo} are not rebuilt")
    _check_settings(data)
    prefixes, activation = BUILDERS[algo]
    layers = _layers(weights, prefixes, _activation(data, activation))
    linear = [layer for layer in layers if layer.__class__.__name__ == "Linear"]
    observations = observation_space_of(data.get("observation_space"), linear[0].in_features)
    outputs = linear[-1].out_features
    actions = action_space_of(data.get("action_space"), action_space, outputs, several=algo == "qrdqn")
    return RebuiltPolicy(_chain(layers), _head(algo, actions, outputs), observations, actions)


BUILDERS: dict[str, tuple[tuple[str, ...], str]] = {
    "a2c": (("mlp_extractor.policy_net", "action_net"), "Tanh"),
    "ddpg": (("actor.mu",), "ReLU"),
    "dqn": (("q_net.q_net",), "ReLU"),
    "ppo": (("mlp_extractor.policy_net", "action_net"), "Tanh"),
    "qrdqn": (("quantile_net.quantile_net",), "ReLU"),
    "sac": (("actor.latent_pi", "actor.mu"), "ReLU"),
    "td3": (("actor.mu",), "ReLU"),
    "tqc": (("actor.latent_pi", "actor.mu"), "ReLU"),
    "trpo": (("mlp_extractor.policy_net", "action_net"), "Tanh"),
}
"""Where the weights from observation to action are, in order, and the activation if no other is set."""

SQUASHED = ("ddpg", "sac", "td3", "tqc")
"""Algorithms whose actions are a tanh, scaled to the bounds."""


def _check_settings(data: dict[str, Any]) -> None:
    """Refuse what is not a plain MlpPolicy."""
    policy, given = data.get("policy_class"), data.get("policy_kwargs")
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if module not in POLICIES:
        raise RebuildError(f"its policy class is from {module!r}, not one of the MlpPolicy classes")
    if not isinstance(given, dict):
        raise RebuildError("the settings of its policy cannot be read")
    if data.get("use_sde") or given.get("use_sde") or given.get("squash_output"):
        raise RebuildError("it uses state-dependent exploration or a squashed output")
    extractor = str(given.get("features_extractor_class", "FlattenExtractor"))
    if not extractor.rstrip("'>").endswith("FlattenExtractor"):
        raise RebuildError(f"its features extractor is {extractor}")
    strange = sorted(set(given) - CHECKED - HARMLESS)
    if strange:
        raise RebuildError(f"its policy has settings that are not known here: {', '.join(strange)}")


def _activation(data: dict[str, Any], default: str) -> Any:
    """Return the class of the activation, which the settings show as text."""
    import torch

    text = str(data["policy_kwargs"].get("activation_fn", f"<class 'torch.nn.modules.activation.{default}'>"))
    match = re.fullmatch(r"<class 'torch\.nn\.modules\.activation\.(\w+)'>", text)
    if match is None or match[1] not in ACTIVATIONS:
        raise RebuildError(f"its activation {text} is not one of {', '.join(ACTIVATIONS)}")
    return getattr(torch.nn, match[1])


def _layers(weights: dict[str, Any], prefixes: tuple[str, ...], activation: Any) -> list[Any]:
    """Return the layers under the prefixes, in order: linear ones, with activations between them."""
    names = [name for prefix in prefixes for name in _linear_names(weights, prefix)]
    if not names:
        raise RebuildError(f"it has no weights under {' and '.join(prefixes)}")
    layers: list[Any] = []
    for name in names:
        made = _linear(name, weights.get(f"{name}.weight"), weights.get(f"{name}.bias"))
        if layers:
            if layers[-1].out_features != made.in_features:
                raise RebuildError(f"the weights {name} do not fit the layer before them")
            layers.append(activation())
        layers.append(made)
    return layers


def _linear_names(weights: dict[str, Any], prefix: str) -> list[str]:
    """Return the names of the linear layers under a prefix: 0, 2, 4, ... as Stable-Baselines3 numbers them."""
    outer = prefix.partition(".")[0]
    strange = [k for k in weights if k.startswith(f"{outer}.") and ("features_extractor" in k or "shared_net" in k)]
    strange += [k for k in weights if k.startswith(("features_extractor.", "pi_features_extractor."))]
    if strange:
        raise RebuildError(f"it has weights of a features extractor, such as {strange[0]}")
    under = {key.removeprefix(prefix + ".") for key in weights if key.startswith(prefix + ".")}
    if under == {"weight", "bias"}:
        return [prefix]
    numbers = range(0, len(under), 2)  # a weight and a bias each, an activation between
    if under != {f"{n}.{part}" for n in numbers for part in ("weight", "bias")}:
        raise RebuildError(f"the layers {prefix} are not linear ones with activations between them")
    return [f"{prefix}.{n}" for n in numbers]


def _linear(name: str, weight: Any, bias: Any) -> Any:
    import torch

    if weight.ndim != 2 or bias.shape != weight.shape[:1] or {weight.dtype, bias.dtype} != {torch.float32}:
        raise RebuildError(f"the weights {name} are not those of a linear layer in float32")
    if not (torch.isfinite(weight).all() and torch.isfinite(bias).all()):
        raise FileFormatError(f"the weights {name} of the model are not finite")
    layer = torch.nn.utils.skip_init(torch.nn.Linear, weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer


def _chain(layers: list[Any]) -> Any:
    import torch

    return torch.nn.Sequential(*layers).eval()


def _head(algo: str, actions: spaces.Space[Any], outputs: int) -> Callable[[Any], Any]:
    """Return how the outputs of the network, `(batch, outputs)`, become actions, as Stable-Baselines3 does it."""
    if algo == "dqn" and isinstance(actions, spaces.Discrete):
        return lambda values: values.argmax(dim=1).numpy()
    if algo == "qrdqn" and isinstance(actions, spaces.Discrete):
        n = int(actions.n)
        return lambda quantiles: quantiles.reshape(-1, outputs // n, n).mean(dim=1).argmax(dim=1).numpy()
    if algo in SQUASHED and isinstance(actions, spaces.Box):
        low, high = actions.low, actions.high
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise RebuildError(f"its actions {actions} have no bounds to scale to")
        return lambda mean: low + 0.5 * (_in_rows(mean.tanh(), actions) + 1.0) * (high - low)
    if algo in SQUASHED or algo in ("dqn", "qrdqn"):
        raise RebuildError(f"its actions are {actions}, which {algo} does not have")
    if isinstance(actions, spaces.Box):
        box = actions
        return lambda mean: np.clip(_in_rows(mean, box), box.low, box.high)
    if isinstance(actions, spaces.MultiBinary):
        return lambda logits: logits.sigmoid().round().numpy()
    counts = actions.nvec.tolist() if isinstance(actions, spaces.MultiDiscrete) else [outputs]
    return lambda logits: np.stack([_likeliest(part) for part in logits.split(counts, dim=1)], axis=1)


def _in_rows(answers: Any, actions: spaces.Box) -> Any:
    """Return answers as an array of actions of a box."""
    return answers.numpy().reshape(-1, *actions.shape)


def _likeliest(logits: Any) -> Any:
    """Return the likeliest category of each row by probabilities: rounding makes ties that logits have not."""
    normal = logits - logits.logsumexp(dim=-1, keepdim=True)
    return normal.softmax(dim=-1).argmax(dim=1).numpy()
