from __future__ import annotations

import ast
import pickle
import resource
import sys
import zipfile
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import letitcook
from letitcook import make, wrap
from letitcook.adapters import as_policy, named_policy, sb3_zip
from letitcook.adapters.sb3_normalise import read_statistics
from letitcook.adapters.sb3_spaces import RebuildError, action_space_of, observation_space_of
from letitcook.errors import FileFormatError, SettingError, UnknownNameError

FOREIGN = Path(letitcook.__file__).parent / "foreign"


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*.py")), ids=lambda p: p.name)
def test_no_other_library_is_imported_with_the_module(path: Path) -> None:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.partition(".")[0] for name in names} & {"torch", "stable_baselines3", "sb3_contrib", "skrl"}


# What is a policy.


def test_a_function_is_asked_one_observation_at_a_time_unless_it_says_otherwise() -> None:
    def act(observation: Any) -> Any:
        return np.asarray(observation)[..., 0] > 0

    assert as_policy(act).predict([1.0, 2.0]) == (True, None)
    assert not as_policy(act).batched  # type: ignore[attr-defined]
    act.batched = True  # type: ignore[attr-defined]
    assert as_policy(act).batched  # type: ignore[attr-defined]


class Full:
    def predict(self, observation: Any, memory: Any = None, first: Any = None, deterministic: bool = True) -> Any:
        return (memory, first, deterministic), "state"


class Some:
    def predict(self, observation: Any, deterministic: bool) -> Any:
        return deterministic


class Stateful:
    def predict(self, observation: Any, *, state: Any) -> Any:
        return observation, (state or 0) + 1


class Bare:
    def predict(self, observation: Any) -> Any:
        return [observation, observation, observation]


class Anything:
    def predict(self, *args: Any, **kwargs: Any) -> Any:
        return (args, kwargs), None


def test_an_object_is_given_the_arguments_that_it_takes() -> None:
    start = np.array([True])
    assert as_policy(Full()).predict(1, "s", start, deterministic=False) == (("s", start, False), "state")
    assert as_policy(Some()).predict(1, "s", start, deterministic=False) == (False, None)
    assert as_policy(Stateful()).predict(1, 4, start) == (1, 5)
    assert as_policy(Bare()).predict(1, "s", start) == ([1, 1, 1], None)
    assert as_policy(Anything()).predict(1, "s", start)[0] == ((1, "s", start), {"deterministic": True})
    assert not as_policy(Bare()).batched  # type: ignore[attr-defined]


def test_what_is_a_policy_already_stays_what_it_is() -> None:
    once = as_policy(Bare())
    assert as_policy(once) is once
    function = as_policy(lambda observation: 0)
    assert as_policy(function) is function
    learned = letitcook.plan(make("cook")).policy
    assert as_policy(learned) is learned
    bare = Bare()
    assert as_policy(bare).base is bare  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("thing", "why"),
    [
        (3, "3 .int. is not a policy; give a Stable-Baselines3"),
        (None, "None .NoneType. is not a policy"),
        ("sb3:dqn:model.zip", "name of a policy, not a policy; letitcook.named_policy"),
        (Bare, r"Bare is a class, not a policy; give an object of it: Bare\(...\)"),
        (Path("model.zip"), "is not a policy"),
    ],
)
def test_what_is_no_policy(thing: Any, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        as_policy(thing)
    with pytest.raises(SettingError, match=why):
        wrap(make("cook").unwrapped, thing, wait=4, durations=(2,))


# Policies by name.


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A current directory with a module of its own; what it changes in Python's lists is put back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    (tmp_path / "my_robot.py").write_text(
        "import my_helper\n"
        "def act(observation):\n    return my_helper.TWO\n"
        "class Thing:\n    def predict(self, observation):\n        return 5\n"
        "thing = Thing()\nnumber = 3\n"
    )
    (tmp_path / "my_helper.py").write_text("TWO = 2\n")
    (tmp_path / "my_needs.py").write_text("import a_package_that_nobody_has\n")
    (tmp_path / "my_slip.py").write_text("def act(observation:\n")
    (tmp_path / "my_crash.py").write_text("1 / 0\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_of_the_current_directory(here: Path) -> None:
    assert named_policy("my_robot:act").predict(0) == (2, None)
    assert named_policy("my_robot:thing").predict(0) == (5, None)
    assert named_policy("my_robot:thing.predict").predict(0) == (5, None)


@pytest.mark.parametrize(
    ("spec", "error", "why"),
    [
        ("my_robot", SettingError, "'my_robot' does not name a policy; write sb3:ALGORITHM:FILE.zip"),
        (":act", SettingError, "does not name a policy"),
        ("my_robot:", SettingError, "does not name a policy"),
        ("", SettingError, "does not name a policy"),
        ("sb3:dqn", SettingError, "does not name a file of Stable-Baselines3"),
        ("sb3:dqn:", SettingError, "does not name a file of Stable-Baselines3"),
        ("sb3:dqn:missing.zip", FileFormatError, "there is no file missing.zip"),
        ("sb3:dqqn:missing.zip", UnknownNameError, "no algorithm named 'dqqn'. Did you mean 'dqn'"),
        ("my_robbot:act", SettingError, "no module named 'my_robbot' in"),
        ("my_robot.inside:act", SettingError, "cannot be imported|no module named 'my_robot.inside'"),
        ("my_robot.py:act", SettingError, "is a file; name the module in it, from its directory: my_robot:act"),
        ("robots/my_robot:act", SettingError, "is a file"),
        ("my_robot:actt", UnknownNameError, "no policy in the module 'my_robot' named 'actt'. Did you mean 'act'"),
        ("my_robot:thing.act", UnknownNameError, "named 'thing.act'"),
        ("my_robot:number", SettingError, "3 .int. is not a policy"),
        ("my_robot:Thing", SettingError, "is a class, not a policy"),
        ("my_needs:act", SettingError, "'my_needs' needs 'a_package_that_nobody_has', which is not installed"),
        ("my_slip:act", SettingError, "'my_slip' cannot be imported: SyntaxError"),
        ("my_crash:act", SettingError, "'my_crash' cannot be imported: ZeroDivisionError"),
        (".relative:act", SettingError, "cannot be imported"),
    ],
)
def test_names_that_name_no_policy(here: Path, spec: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        named_policy(spec)


# Files of Stable-Baselines3, as far as that goes without PyTorch.


def test_reading_a_model_without_pytorch_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", "{}")
    with pytest.raises(SettingError, match=r"needs PyTorch: pip install 'letitcook\[torch\]'"):
        named_policy(f"sb3:dqn:{tmp_path / 'model.zip'}")
    with pytest.raises(SettingError, match="needs stable-baselines3: pip install stable-baselines3"):
        named_policy(f"sb3:dqn:{tmp_path / 'model.zip'}", trust_pickle=True)


@pytest.mark.parametrize(
    ("weights", "data", "algo"),
    [
        (["q_net.q_net.0.weight"], {}, "dqn"),
        (["quantile_net.quantile_net.0.weight"], {}, "qrdqn"),
        (["action_net.weight", "value_net.weight"], {"clip_range": 0.2}, "ppo"),
        (["action_net.weight", "value_net.weight", "lstm_actor.weight_ih_l0"], {"clip_range": 0.2}, "recurrentppo"),
        (["action_net.weight", "value_net.weight"], {}, "a2c"),
        (["actor.mu.weight", "actor.log_std.weight"], {}, "sac"),
        (["actor.mu.0.weight"], {}, "td3"),
        (["something.else"], {}, None),
    ],
)
def test_the_weights_tell_the_algorithm(weights: list[str], data: dict[str, Any], algo: str | None) -> None:
    assert sb3_zip.algorithm_of(data, dict.fromkeys(weights)) == algo


def as_text(space: spaces.Space[Any]) -> dict[str, Any]:
    """Return a space as Stable-Baselines3 shows it: what JSON cannot hold, as it prints."""
    kind = f"<class '{type(space).__module__}.{type(space).__name__}'>"
    shown = {name: value if isinstance(value, str) else str(value) for name, value in vars(space).items()}
    return {**shown, ":type:": kind, ":serialized:": "?", "_shape": list(space.shape or ()), "dtype": str(space.dtype)}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-2.0, 3.5, (2,)),
        spaces.Box(np.array([[-1.0, -np.inf], [0.25, 1e-3]]), np.array([[1.0, np.inf], [0.5, 1e6]]), dtype=np.float64),
        spaces.Discrete(4),
        spaces.MultiDiscrete([3, 2, 5]),
        spaces.MultiBinary(3),
    ],
)
def test_an_action_space_from_its_text(space: spaces.Space[Any]) -> None:
    outputs = spaces.flatdim(space)
    assert action_space_of(as_text(space), None, outputs) == space
    with pytest.raises(RebuildError, match=f"its network gives {outputs + 1} numbers"):
        action_space_of(as_text(space), None, outputs + 1)


def test_the_environments_own_bounds_are_better_than_their_text() -> None:
    exact = spaces.Box(np.float32(-0.0123456789), np.float32(0.0123456789), (2,))
    read = action_space_of(as_text(exact), None, 2)
    assert np.allclose(read.high, exact.high, rtol=1e-6)  # type: ignore[attr-defined]
    assert action_space_of(as_text(exact), exact, 2) is exact
    assert action_space_of(as_text(exact), spaces.Box(-1, 1, (3,)), 2) == read


def test_spaces_that_are_not_read() -> None:
    long = spaces.Box(-1, 1, (2000,))
    with pytest.raises(RebuildError, match="not a number or an array of numbers"):  # printed with ... in the middle
        action_space_of(as_text(long), None, 2000)
    assert action_space_of(as_text(long), long, 2000) is long
    assert observation_space_of(as_text(long), 2000).shape == (2000,)
    with pytest.raises(RebuildError, match="images"):
        observation_space_of(as_text(spaces.Box(0, 255, (4, 4, 3), np.uint8)), 48)
    with pytest.raises(RebuildError, match="does not begin at 0"):
        observation_space_of(as_text(spaces.Discrete(3, start=1)), 3)
    with pytest.raises(RebuildError, match="more than one axis"):
        observation_space_of(as_text(spaces.MultiDiscrete([[2, 2], [2, 2]])), 8)  # type: ignore[list-item]
    with pytest.raises(RebuildError, match="numbers of the type int32"):
        action_space_of(as_text(spaces.Box(0, 9, (2,), np.int32)), None, 2)
    for text in (None, {}, {":type:": "<class 'gymnasium.spaces.text.Text'>"}, "Discrete(2)"):
        with pytest.raises(RebuildError, match="a space of it is"):
            observation_space_of(text, 2)


class _Hostile:
    """What runs code when it is unpickled by Python's own reader."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


class RunningMeanStd:
    """As Stable-Baselines3 has it."""

    def __init__(self, mean: Any, var: Any) -> None:
        self.mean, self.var, self.count = mean, var, 1e-4


class VecNormalize:
    """What its pickle holds of Stable-Baselines3's own, with a space and a random generator among it."""

    def __init__(self, mean: Any, var: Any, **other: Any) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, np.shape(mean), seed=3)
        self.observation_space.sample()
        self.obs_rms, self.ret_rms = RunningMeanStd(mean, var), RunningMeanStd(np.zeros(()), np.ones(()))
        self.norm_obs, self.norm_obs_keys, self.returns = True, None, np.zeros(1)
        self.epsilon, self.clip_obs, self.gamma = 1e-8, 10.0, np.float64(0.99)
        self.more = (OrderedDict(a=1), deque([1]), {2}, frozenset({3}), np.random.default_rng(0))
        self.__dict__.update(other)


@pytest.mark.parametrize("protocol", range(3, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.dtype(">f8")])
def test_statistics_are_what_was_pickled(tmp_path: Path, protocol: int, kind: Any) -> None:
    file = tmp_path / "vecnormalize.pkl"
    mean, var = np.arange(6).reshape(2, 3).astype(kind), np.asfortranarray(np.arange(1, 7).reshape(2, 3).astype(kind))
    content = VecNormalize(mean, var, clip_obs=np.float32(5.0))
    file.write_bytes(pickle.dumps(content, protocol))
    found = read_statistics(file)
    assert found is not None and (found.epsilon, found.clip) == (1e-8, 5.0)
    np.testing.assert_array_equal(found.mean, mean)
    np.testing.assert_array_equal(found.var, var)
    seen = np.full((2, 3), 2.0)
    expected = np.clip((seen - mean) / np.sqrt(var + 1e-8), -5.0, 5.0)
    np.testing.assert_allclose(found(seen), expected, rtol=1e-6)
    file.write_bytes(pickle.dumps(VecNormalize(mean, var, norm_obs=False), protocol))
    assert read_statistics(file) is None


def nested(levels: int) -> list[Any]:
    """Return a list that is small and would be an array of `2 ** levels` numbers."""
    found: list[Any] = [1.0, 1.0]
    for _ in range(levels - 1):
        found = [found, found]
    return found


ARRAY = np.zeros(3)
HOSTILE = {
    "a list that grows": pickle.dumps(VecNormalize(ARRAY, ARRAY, obs_rms=RunningMeanStd(nested(30), nested(30)))),
    "objects": pickle.dumps(VecNormalize(ARRAY, ARRAY, obs_rms=RunningMeanStd(ARRAY.astype(object), ARRAY))),
    "a memo of 64 GB": b"\x80\x04Nr\xff\xff\xff\xff.",
    "a memo of 64 GB, in text": b"Np4294967295\n.",
    "bytes that are not there": b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b".",
    "tuples that are hashed": b"\x80\x04})" + b"\x85" * 150_000 + b"Ns.",
    "a long way": b"\x80\x04" + b"N0" * 200_000 + b"N.",
    "a shape that is not there": pickle.dumps(VecNormalize(ARRAY, ARRAY), 4).replace(
        b"K\x03\x85", b"J\xff\xff\xff\x7f\x85"
    ),
    "a variance below 0": pickle.dumps(VecNormalize(ARRAY, ARRAY - 1.0)),
    "no number": pickle.dumps(VecNormalize(ARRAY + np.nan, ARRAY)),
    "other shapes": pickle.dumps(VecNormalize(ARRAY, np.zeros(2))),
    "text": pickle.dumps(VecNormalize(ARRAY, ARRAY, epsilon="1")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_files_that_would_take_memory_or_the_process_are_refused(tmp_path: Path, what: str) -> None:
    file = tmp_path / "vecnormalize.pkl"
    file.write_bytes(HOSTILE[what])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FileFormatError, match="does not hold statistics"):
        read_statistics(file)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_a_file_of_statistics_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "vecnormalize.pkl"
    with file.open("wb") as out:
        out.truncate(2**40)
    with pytest.raises(FileFormatError, match="more than 16,777,216 bytes"):
        read_statistics(file)


def test_nothing_in_a_file_of_statistics_is_run(tmp_path: Path) -> None:
    file, trace = tmp_path / "vecnormalize.pkl", tmp_path / "trace"
    file.write_bytes(pickle.dumps(_Hostile(trace)))
    with pytest.raises(FileFormatError, match="does not hold statistics"):
        read_statistics(file)
    assert not trace.exists()
    pickle.loads(file.read_bytes())
    assert trace.exists()  # so it would have run
    for content in (b"", b"no pickle", pickle.dumps({"obs_rms": 1}), pickle.dumps([np.zeros(3)])):
        file.write_bytes(content)
        with pytest.raises(FileFormatError, match="does not hold statistics"):
            read_statistics(file)
