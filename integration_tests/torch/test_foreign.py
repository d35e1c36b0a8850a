"""Models, agents and modules of other libraries as base policies; files of Stable-Baselines3 without unpickling."""

from __future__ import annotations

import importlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import QRDQN, TQC, TRPO, CrossQ, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from letitcook import wrap
from letitcook.adapters import as_policy, named_policy, sb3_zip
from letitcook.errors import FileFormatError, NotFiniteError, SettingError, SpaceError, UnknownNameError
from letitcook.wrappers.added_wait import AddedWait
from test_added_wait import no_force

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
torch.set_num_threads(1)


class World(gym.Env[Any, Any]):
    """An environment with any spaces, in which nothing happens."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.taken = action
        return self.observation_space.sample(), 0.0, False, False, {}


BOX, NUMBER = spaces.Box(-2.0, 2.0, (3,)), spaces.Discrete(5)
TWO, SEVERAL, BITS = spaces.Discrete(2), spaces.MultiDiscrete([3, 2]), spaces.MultiBinary(3)
ARM = spaces.Box(np.array([-2.0, 0.1], np.float32), np.array([0.3, 7.0], np.float32))
MODELS = {
    "dqn": (DQN, BOX, spaces.Discrete(4), {}),
    "dqn on numbers": (DQN, NUMBER, TWO, {"net_arch": []}),
    "qrdqn": (QRDQN, BOX, spaces.Discrete(4), {"n_quantiles": 7}),
    "ppo": (PPO, BOX, spaces.Discrete(4), {}),
    "ppo, wide and without hidden layers": (PPO, spaces.Box(-9, 9, (2, 3)), TWO, {"net_arch": []}),
    "ppo on several numbers": (PPO, spaces.MultiDiscrete([4, 3]), SEVERAL, {"activation_fn": torch.nn.ELU}),
    "ppo on bits": (PPO, BITS, BITS, {"net_arch": {"pi": [5], "vf": [6]}}),
    "ppo, box": (PPO, BOX, ARM, {"activation_fn": torch.nn.GELU, "log_std_init": -1.0}),
    "a2c": (A2C, BOX, spaces.Discrete(4), {"activation_fn": torch.nn.ReLU}),
    "trpo": (TRPO, BOX, TWO, {}),
    "sac": (SAC, BOX, ARM, {}),
    "sac, scaled": (SAC, BOX, spaces.Box(-5.0, 1.0, (2, 2)), {"net_arch": [6, 6], "activation_fn": torch.nn.SiLU}),
    "tqc": (TQC, BOX, ARM, {}),
    "td3": (TD3, BOX, ARM, {}),
    "ddpg": (DDPG, BOX, ARM, {}),
}


def made(name: str, **kwargs: Any) -> Any:
    """Return a new model; its weights are made larger, so that its answers differ from one observation to another."""
    cls, observations, actions, policy_kwargs = MODELS[name]
    more = {"learning_starts": 50, "buffer_size": 1000} if cls in (DQN, QRDQN, SAC, TQC, TD3, DDPG) else {}
    world = gym.wrappers.TimeLimit(World(observations, actions), 20)
    settings = {"net_arch": [8, 8], **policy_kwargs}  # type: ignore[dict-item]
    model = cls("MlpPolicy", world, seed=0, device="cpu", policy_kwargs=settings, **more, **kwargs)
    shake(model)
    return model


def shake(model: Any) -> None:
    with torch.no_grad():
        for parameter in model.policy.parameters():
            if parameter.ndim == 2:
                parameter.add_(2.0 * torch.randn_like(parameter))


def samples(space: spaces.Space[Any], n: int) -> Any:
    space.seed(1)
    return np.array([space.sample() for _ in range(n)])


@pytest.mark.parametrize("name", MODELS)
def test_a_file_read_without_unpickling_answers_as_the_model(name: str, tmp_path: Path) -> None:
    model = made(name)
    model.save(tmp_path / "model.zip")
    algo = name.partition(",")[0].partition(" ")[0]
    policy = sb3_zip.read(tmp_path / "model.zip", algo, action_space=model.action_space)
    observations = samples(model.observation_space, 1000)
    expected, _ = model.predict(observations, deterministic=True)
    answers, state = policy.predict(observations)
    assert state is None
    assert np.array_equal(answers, expected)
    assert len(np.unique(expected.reshape(1000, -1), axis=0)) > 1
    for observation in observations[:20]:
        assert np.array_equal(policy.predict(observation)[0], model.predict(observation, deterministic=True)[0])
    # Bounds that are read as text have eight digits.
    answers, _ = sb3_zip.read(tmp_path / "model", algo).predict(observations)
    assert np.allclose(answers, expected, rtol=1e-6, atol=1e-6)


def test_a_model_that_was_trained_a_little(tmp_path: Path) -> None:
    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, buffer_size=500, seed=0, device="cpu")
    model.learn(200)
    model.save(tmp_path / "model.zip")
    policy = named_policy(f"sb3:dqn:{tmp_path / 'model.zip'}")
    observations = samples(spaces.Box(-1, 1, (4,)), 1000)
    expected = model.predict(observations, deterministic=True)[0]
    assert np.array_equal(policy.predict(observations)[0], expected)
    env = wrap(gym.make("CartPole-v1"), policy, wait=0, durations=(2,))
    env.reset(seed=0)
    assert env.step(0)[4]["base_queries"] == 1


def test_pendulum_takes_what_a_file_of_sac_answers(tmp_path: Path) -> None:
    SAC("MlpPolicy", "Pendulum-v1", buffer_size=100, device="cpu").save(tmp_path / "model")
    policy = sb3_zip.read(tmp_path / "model", "SAC")
    env = wrap(gym.make("Pendulum-v1"), policy, wait=0, durations=(2,))
    env.reset(seed=0)
    assert [env.step(u)[4]["base_queries"] for u in (0, 2, 0)] == [1, 0, 1]


def saved(tmp_path: Path, name: str = "dqn", **kwargs: Any) -> Path:
    made(name, **kwargs).save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


def changed(path: Path, **parts: bytes | None) -> Path:
    """Replace members of a zip (`policy` for policy.pth); None takes one away."""
    parts = {{"policy": "policy.pth"}.get(name, name): content for name, content in parts.items()}
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | parts
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return path


class Malicious:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def test_code_in_a_file_is_not_executed(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    path = saved(tmp_path, "ppo")
    buffer = io.BytesIO()
    torch.save({"action_net.weight": Malicious(marker)}, buffer)
    with pytest.raises(FileFormatError, match="not a model of Stable-Baselines3, or is damaged"):
        sb3_zip.read(changed(path, policy=buffer.getvalue()), "ppo")
    assert not marker.exists()
    torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
    assert marker.exists(), "the file is not malicious; this test shows nothing"


def test_code_in_the_settings_is_not_executed_unless_trusted(tmp_path: Path) -> None:
    import base64
    import pickle

    marker = tmp_path / "executed"
    path = saved(tmp_path, "ppo")
    observation = np.zeros(3, np.float32)
    expected = sb3_zip.read(path, "ppo").predict(observation)[0]
    data = json.loads(zipfile.ZipFile(path).read("data"))
    code = base64.b64encode(pickle.dumps(Malicious(marker))).decode()
    for value in data.values():
        if isinstance(value, dict) and ":serialized:" in value:
            value[":serialized:"] = code
    changed(path, data=json.dumps(data).encode())
    assert sb3_zip.read(path, "ppo").predict(observation)[0] == expected
    assert not marker.exists()
    with pytest.raises(FileFormatError, match="cannot load"):
        sb3_zip.read(path, "ppo", trust_pickle=True)
    assert marker.exists()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"no zip at all", content[:200] + b"\0" * 400 + content[600:]):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="model.zip is not a model of Stable-Baselines3"):
            sb3_zip.read(path, "dqn")
    whole = {"data": b'{"policy_kwargs": ', "policy": b"not weights"}
    for name, rubbish in whole.items():
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="model.zip is not a model"):
            sb3_zip.read(changed(path, **{name: rubbish}), "dqn")
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="there is no"):
            sb3_zip.read(changed(path, **{name: None}), "dqn")
    with pytest.raises(FileFormatError, match="no file"):
        sb3_zip.read(tmp_path / "missing", "dqn")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileFormatError, match="holds 0 models"):
        sb3_zip.read(tmp_path / "empty", "dqn")


def test_weights_that_are_no_network(tmp_path: Path) -> None:
    path = saved(tmp_path)
    weights = torch.load(io.BytesIO(zipfile.ZipFile(path).read("policy.pth")), weights_only=True)

    def read_with(**others: Any) -> None:
        buffer = io.BytesIO()
        torch.save({**weights, **{name.replace("_0_", ".0."): value for name, value in others.items()}}, buffer)
        sb3_zip.read(changed(path, policy=buffer.getvalue()), "dqn")

    first = "q_net.q_net.0.weight"
    with pytest.raises(FileFormatError, match="not finite"):
        read_with(**{first: weights[first] * float("nan")})
    with pytest.raises(FileFormatError, match="takes 4 numbers"):
        read_with(**{first: torch.zeros(8, 4)})
    with pytest.raises(FileFormatError, match="do not fit the layer before"):
        read_with(**{"q_net.q_net.2.weight": torch.zeros(8, 5)})
    with pytest.raises(FileFormatError, match="not those of a linear layer"):
        read_with(**{first: torch.zeros(8, 3, dtype=torch.float64)})
    with pytest.raises(FileFormatError, match="not linear ones"):
        read_with(**{"q_net.q_net.1.weight": torch.zeros(8)})
    with pytest.raises(FileFormatError, match="more weights than"):
        read_with(**{first: torch.zeros(1).expand(2**20, 2**20)})
    with pytest.raises(FileFormatError, match="not tensors"):
        read_with(**{first: 3})


def test_absurd_sizes_are_refused_before_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    monkeypatch.setattr(sb3_zip, "TEXT_LIMIT", 2**20)
    monkeypatch.setattr(sb3_zip, "WEIGHTS_LIMIT", 2**20)
    sb3_zip.read(path, "dqn")
    content = path.read_bytes()
    bomb = b"\0" * (2**20 + 1)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bomb)
    for parts in ({"data": bomb}, {"policy": bomb}, {"policy": inner.getvalue()}):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="1,048,57. are read"):
            sb3_zip.read(changed(path, **parts), "dqn")


def test_a_claimed_size_makes_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = json.loads(zipfile.ZipFile(path).read("data"))
    for change in ({"_shape": [10**12]}, {"_shape": "all"}, {"_shape": [-3]}):
        other = {**data, "observation_space": {**data["observation_space"], **change}}
        with pytest.raises(FileFormatError, match="cannot be rebuilt"):
            sb3_zip.read(changed(path, data=json.dumps(other).encode()), "dqn")
    other = {**data, "action_space": {**data["action_space"], "n": "1e15"}}
    with pytest.raises(FileFormatError, match="cannot be rebuilt"):
        sb3_zip.read(changed(path, data=json.dumps(other).encode()), "dqn")


@pytest.mark.parametrize("name", ["dqn", "qrdqn", "ppo", "a2c", "trpo", "sac", "tqc", "td3"])
def test_the_algorithm_must_be_the_files(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, name)
    for other in ("dqn", "ppo", "a2c", "sac", "td3", "recurrent-ppo"):
        if other != name:
            with pytest.raises(FileFormatError, match=f"is a model of {name}, not of {other.replace('-', '')}"):
                sb3_zip.read(path, other)
    with pytest.raises(UnknownNameError, match="no algorithm named 'dqnn'. Did you mean 'dqn'"):
        sb3_zip.read(path, "dqnn")


class Halved(BaseFeaturesExtractor):
    def __init__(self, space: Any) -> None:
        super().__init__(space, features_dim=space.shape[0])

    def forward(self, observations: Any) -> Any:
        return observations / 2


class OwnActivation(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.abs()


class OwnPolicy(DQN.policy_aliases["MlpPolicy"]):
    pass


IMAGES = spaces.Box(0, 255, (3, 36, 36), np.uint8)
REFUSED: dict[str, tuple[str, Any, str]] = {
    "own activation": (
        "dqn",
        lambda w: DQN("MlpPolicy", w(BOX), policy_kwargs={"activation_fn": OwnActivation}),
        "activation",
    ),
    "own features": (
        "dqn",
        lambda w: DQN("MlpPolicy", w(BOX), policy_kwargs={"features_extractor_class": Halved}),
        "features extractor",
    ),
    "own policy": ("dqn", lambda w: DQN(OwnPolicy, w(BOX)), "policy class"),
    "images": ("ppo", lambda w: PPO("CnnPolicy", w(IMAGES)), "features extractor"),
    "flat images": ("ppo", lambda w: PPO("MlpPolicy", w(spaces.Box(0, 255, (3, 4, 4), np.uint8))), "images"),
    "dictionaries": ("ppo", lambda w: PPO("MultiInputPolicy", w(spaces.Dict(a=BOX))), "spaces.dict.Dict"),
    "state-dependent exploration": (
        "ppo",
        lambda w: PPO("MlpPolicy", w(BOX, ARM), use_sde=True),
        "state-dependent exploration",
    ),
    "recurrent": ("recurrentppo", lambda w: RecurrentPPO("MlpLstmPolicy", w(BOX)), "recurrentppo are not rebuilt"),
    "masks": ("maskableppo", lambda w: MaskablePPO("MlpPolicy", w(BOX)), "maskableppo are not rebuilt"),
    "batch norms": ("crossq", lambda w: CrossQ("MlpPolicy", w(BOX, ARM)), "crossq are not rebuilt"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_rebuilt_says_so_and_can_be_trusted(case: str, tmp_path: Path) -> None:
    algo, make, reason = REFUSED[case]

    def world(observations: spaces.Space[Any], actions: spaces.Space[Any] = TWO) -> World:
        return World(observations, actions)

    model = make(world)
    model.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match=reason) as refused:
        sb3_zip.read(tmp_path / "model.zip", algo)
    assert "--trust-pickle" in str(refused.value)
    assert "only for files that you trust" in str(refused.value)
    policy = named_policy(f"sb3:{algo}:{tmp_path / 'model.zip'}", trust_pickle=True)
    observation = model.observation_space.sample()
    start = np.array([True])
    assert np.array_equal(
        policy.predict(observation, None, start)[0], model.predict(observation, None, start, deterministic=True)[0]
    )


def test_a_rebuilt_policy_says_what_it_cannot_do(tmp_path: Path) -> None:
    policy = sb3_zip.read(saved(tmp_path, "ppo"), "ppo")
    with pytest.raises(SettingError, match="deterministically only"):
        policy.predict(np.zeros(3), deterministic=False)
    with pytest.raises(SpaceError, match="takes observations in"):
        policy.predict(np.zeros(4))
    with pytest.raises(NotFiniteError, match="not finite"):
        policy.predict(np.full(3, np.nan))
    numbers = sb3_zip.read(saved(tmp_path, "dqn on numbers"), "dqn")
    for outside in (5, -1, 1.5):
        with pytest.raises(SpaceError, match="outside"):
            numbers.predict(outside)
    with pytest.raises(SpaceError, match="a policy for another action space: its actions are Discrete"):
        wrap(gym.make("CartPole-v1"), policy, wait=0, durations=(2,))


def test_an_older_pytorch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(SettingError, match="2.10 or newer"):
        sb3_zip.read(path, "dqn")


# Models and agents in memory.


@pytest.mark.parametrize("name", ["dqn", "ppo", "ppo, box", "a2c", "sac", "ppo on several numbers"])
def test_a_model_is_a_base_policy(name: str) -> None:
    model = made(name)
    env = wrap(
        World(model.observation_space, model.action_space), model, wait=model.action_space.sample(), durations=(2,)
    )
    observation, _ = env.reset(seed=0)
    policy = as_policy(model)
    assert policy.batched  # type: ignore[attr-defined]
    assert np.array_equal(policy.predict(observation)[0], model.predict(observation, deterministic=True)[0])
    assert len(policy.predict(np.stack([observation] * 3))[0]) == 3
    assert [env.step(u)[4]["base_queries"] for u in (0, 1, 2)] == [1, 0, 0]


def test_a_model_for_another_environment_is_refused_before_the_first_step() -> None:
    model = made("ppo")
    with pytest.raises(SpaceError, match=r"a policy for another action space: its actions are Discrete\(4\)"):
        wrap(World(BOX, TWO), model, wait=0, durations=(2,))
    with pytest.raises(SpaceError, match="a policy for other observations"):
        wrap(World(spaces.Box(-1, 1, (4,)), spaces.Discrete(4)), model, wait=0, durations=(2,))
    wrap(World(spaces.Box(-1, 1, (3,)), spaces.Discrete(4)), model, wait=0, durations=(2,))
    with pytest.raises(SpaceError, match="a policy for another action space"):
        wrap(World(BOX, spaces.Box(-1, 1, (2,))), made("sac"), wait=0, durations=(2,))


def test_a_recurrent_model_keeps_its_state_between_queries_and_forgets_it_with_the_episode() -> None:
    world = World(BOX, spaces.Discrete(4))
    model = RecurrentPPO("MlpLstmPolicy", world, seed=0, device="cpu", policy_kwargs={"lstm_hidden_size": 8})
    shake(model)
    env = wrap(world, model, wait=0, durations=(2,))
    different = 0
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        state, start = None, np.array([True])
        for decision in (0, 2, 0, 0, 2, 0, 0, 0):
            expected = 0
            if decision == 0:
                memoryless, _ = model.predict(observation, None, np.array([True]), deterministic=True)
                action, state = model.predict(observation, state, start, deterministic=True)
                expected, start = int(action), np.array([False])
                different += expected != int(memoryless)
            observation = env.step(decision)[0]
            assert world.taken == expected
    assert different > 0, "its state makes no difference; this test shows nothing"


class Net(torch.nn.Module):
    """Values of three actions, in training mode with noise."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)
        self.drop = torch.nn.Dropout(0.9)

    def forward(self, x: Any) -> Any:
        assert x.dtype == torch.float32
        assert x.ndim == 2
        assert not torch.is_grad_enabled()
        return self.drop(self.layer(x))


def test_a_module_answers_its_largest_value() -> None:
    torch.manual_seed(0)
    net = Net()
    env = wrap(gym.make("MountainCar-v0"), net, wait=1, durations=(2,))
    env.reset(seed=0)
    policy = as_policy(net, env.observation_space, spaces.Discrete(3))
    batch = np.random.default_rng(0).normal(size=(1000, 2))
    weights = net.layer.weight.detach().numpy(), net.layer.bias.detach().numpy()
    expected = (batch.astype(np.float32) @ weights[0].T + weights[1]).argmax(axis=1)
    answers, _ = policy.predict(batch)
    assert np.array_equal(answers, expected)
    assert not net.training
    assert len(np.unique(expected)) > 1
    assert policy.predict(batch[7])[0] == expected[7]
    assert as_policy(net).predict(batch[7])[0] == expected[7]
    assert env.step(0)[4]["base_queries"] == 1
    below = as_policy(net, env.observation_space, spaces.Discrete(3, start=-1))
    assert np.array_equal(below.predict(batch)[0], expected - 1)


def test_a_model_and_a_module_need_not_know_an_added_wait() -> None:
    cartpole = gym.make("CartPole-v1")
    bases = (DQN("MlpPolicy", cartpole, buffer_size=10, device="cpu"), torch.nn.Linear(4, 2), torch.nn.Linear(4, 3))
    for base in bases:
        env = wrap(AddedWait(cartpole, no_force), base, wait=2, durations=(2,))
        env.reset(seed=0)
        assert env.step(0)[4]["base_queries"] == 1
    four = wrap(AddedWait(cartpole, no_force), torch.nn.Linear(4, 4), wait=2, durations=(2,))
    four.reset(seed=0)
    with pytest.raises(SpaceError, match="gives 4 values, and this environment has 3 actions"):
        four.step(0)


def test_modules_that_are_no_policies() -> None:
    box = spaces.Box(-1, 1, (2,))
    with pytest.raises(SpaceError, match="gives 3 values, and this environment has 4 actions"):
        as_policy(Net(), box, spaces.Discrete(4)).predict(np.zeros(2))
    with pytest.raises(SpaceError, match="a value or logit for each of the actions of a Discrete space"):
        wrap(gym.make("Pendulum-v1"), Net(), wait=0, durations=(2,))
    with pytest.raises(SpaceError, match=r"answered \(1, 1, 2\)"):
        as_policy(torch.nn.Unflatten(1, (1, 2)), box, spaces.Discrete(2)).predict(np.zeros(2))
    with pytest.raises(SpaceError, match="answered tuple"):
        as_policy(torch.nn.LSTM(2, 2), box, spaces.Discrete(2)).predict(np.zeros(2))
    broken = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(broken.weight, float("nan"))
    with pytest.raises(NotFiniteError, match="not finite"):
        as_policy(broken, box, spaces.Discrete(2)).predict(np.zeros(2))
    with pytest.raises(SpaceError, match="not an array of numbers"):
        as_policy(Net()).predict({"a": np.zeros(2)})


# skrl's agents; the models are written for skrl 2.

skrl = pytest.importorskip("skrl.models.torch")


class Shared:
    """One linear layer from observations to the sizes that a mixin wants."""

    def __init__(self, observations: Any, actions: Any, outputs: int) -> None:
        skrl.Model.__init__(self, observation_space=observations, action_space=actions, device="cpu")
        self.net = torch.nn.Linear(3, outputs)
        torch.nn.init.normal_(self.net.weight)

    def values(self, inputs: Any) -> Any:
        return self.net(inputs["observations"])


class QNetwork(Shared, skrl.DeterministicMixin, skrl.Model):
    def __init__(self, observations: Any, actions: Any, outputs: int) -> None:
        Shared.__init__(self, observations, actions, outputs)
        skrl.DeterministicMixin.__init__(self)

    def compute(self, inputs: Any, role: str = "") -> Any:
        return self.values(inputs), {}


class Categories(Shared, skrl.CategoricalMixin, skrl.Model):
    def __init__(self, observations: Any, actions: Any, outputs: int) -> None:
        Shared.__init__(self, observations, actions, outputs)
        skrl.CategoricalMixin.__init__(self)

    def compute(self, inputs: Any, role: str = "") -> Any:
        return self.values(inputs), {}


class ManyCategories(Shared, skrl.MultiCategoricalMixin, skrl.Model):
    def __init__(self, observations: Any, actions: Any, outputs: int) -> None:
        Shared.__init__(self, observations, actions, outputs)
        skrl.MultiCategoricalMixin.__init__(self)

    def compute(self, inputs: Any, role: str = "") -> Any:
        return self.values(inputs), {}


class Gauss(Shared, skrl.GaussianMixin, skrl.Model):
    def __init__(self, observations: Any, actions: Any, outputs: int) -> None:
        Shared.__init__(self, observations, actions, outputs)
        skrl.GaussianMixin.__init__(self)

    def compute(self, inputs: Any, role: str = "") -> Any:
        return self.values(inputs), {"log_std": torch.zeros(2)}


class Remembers(Categories):
    def get_specification(self) -> Any:
        return {"rnn": {"sizes": [(1, 1, 4)]}}


def skrl_agent(kind: str, model: Any, actions: spaces.Space[Any], outputs: int) -> Any:
    library = importlib.import_module(f"skrl.agents.torch.{kind}")
    role = "q_network" if kind == "dqn" else "policy"
    explore: dict[str, Any] = {
        "dqn": {"random_timesteps": 10**6, "exploration_scheduler": lambda t, n: 1.0},
        "td3": {"random_timesteps": 10**6},
        "ppo": {},
    }
    cfg = getattr(library, f"{kind.upper()}_CFG")(**explore[kind])
    torch.manual_seed(0)
    models = {role: model(BOX, actions, outputs)}
    spaces_of = {"observation_space": BOX, "state_space": None, "action_space": actions}
    return getattr(library, kind.upper())(models=models, **spaces_of, device="cpu", cfg=cfg)


@pytest.mark.parametrize(
    ("kind", "model", "actions", "outputs"),
    [
        ("dqn", QNetwork, spaces.Discrete(4), 4),
        ("ppo", Categories, spaces.Discrete(4), 4),
        ("ppo", ManyCategories, SEVERAL, 5),
        ("ppo", Gauss, ARM, 2),
        ("td3", QNetwork, ARM, 2),
    ],
)
def test_a_skrl_agent_is_a_base_policy_without_its_exploration(
    kind: str, model: Any, actions: spaces.Space[Any], outputs: int
) -> None:
    agent = skrl_agent(kind, model, actions, outputs)
    policy = as_policy(agent)
    layer = next(iter(agent.models.values())).net
    batch = samples(BOX, 1000)
    values = layer(torch.as_tensor(batch)).detach().numpy()
    if isinstance(actions, spaces.Box):
        expected = np.clip(values, actions.low, actions.high)
        assert (expected != values).any()
    elif isinstance(actions, spaces.Discrete):
        expected = values.argmax(axis=1)
    else:
        expected = np.stack([values[:, :3].argmax(axis=1), values[:, 3:].argmax(axis=1)], axis=1)
    assert policy.batched  # type: ignore[attr-defined]
    assert np.array_equal(policy.predict(batch)[0], expected)
    assert np.array_equal(policy.predict(batch[3])[0], expected[3])
    env = wrap(World(BOX, actions), agent, wait=actions.sample(), durations=(2,))
    env.reset(seed=0)
    assert [env.step(u)[4]["base_queries"] for u in (0, 2)] == [1, 0]
    with pytest.raises(SpaceError, match="a policy for another action space"):
        wrap(World(BOX, spaces.Discrete(9)), agent, wait=0, durations=(2,))


def test_a_skrl_agent_samples_if_it_is_asked_to() -> None:
    policy = as_policy(skrl_agent("ppo", Categories, spaces.Discrete(4), 4))
    drawn = policy.predict(np.zeros((1000, 3), np.float32), deterministic=False)[0]
    assert len(np.unique(drawn)) > 1


def test_what_skrl_has_that_is_no_policy() -> None:
    with pytest.raises(SettingError, match="give its agent"):
        as_policy(QNetwork(BOX, TWO, 2))
    with pytest.raises(SettingError, match="recurrent or a table"):
        as_policy(skrl_agent("ppo", Remembers, TWO, 2))
