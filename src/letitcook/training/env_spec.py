"""Where a run came from: the environment and the base policy by name, so that a saved run can be played again.

The code itself is not kept, only its names and a fingerprint of the policy's file. Playing such a run loads what the
names say, files as they are found from the current folder; a policy that has changed since is refused before it is
loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, get_type_hints

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from letitcook.adapters import named_policy, sb3_zip
from letitcook.adapters.actions import wait_action
from letitcook.adapters.by_name import FORMS
from letitcook.core.decisions import Cost, check_durations
from letitcook.errors import FileFormatError, LetItCookError, SettingError
from letitcook.storage.folders import as_plain
from letitcook.storage.imports import look_here
from letitcook.storage.setting_values import converted
from letitcook.wrappers.added_wait import AddedWait, passive_named
from letitcook.wrappers.base_policy import BASE
from letitcook.wrappers.hold import HOLD, is_hold
from letitcook.wrappers.waiting import WaitingEnv
from letitcook.wrappers.wrap import wrap


@dataclass(frozen=True)
class WrappedEnvSpec:
    """A waiting environment by names, from scratch or around a base policy: all that it takes to make it again."""

    env: str
    """Gymnasium's id, with its module where it has one: `module:Env-v0`."""
    policy: str | None
    """The base policy: `sb3:ALGO:FILE.zip` or `module:function`; None if there is none."""
    policy_sha256: str | None
    """Fingerprint of the policy's file, or of its module's."""
    durations: tuple[int, ...]
    wait: str | None = None
    """The wait action as it was written, `1`, `0,0` or `hold`; None if it was added."""
    passive: str | None = None
    """What makes the added wait's step, see `added_wait`."""
    env_args: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment, as plain data."""
    cost: Cost = "base"
    """What is to be few: queries of the base policy, or decisions."""
    action_repeat: int = 1
    """Steps that a primitive action lasts."""

    def data(self) -> dict[str, Any]:
        """Return the origin as plain data."""
        plain: dict[str, Any] = as_plain(asdict(self))
        return plain

    @classmethod
    def of_data(cls, data: Any) -> WrappedEnvSpec:
        """Return the origin that `data()` described.

        >>> data = WrappedEnvSpec("MountainCar-v0", "my_code:push", "0" * 64, (2, 4), wait="1").data()
        >>> WrappedEnvSpec.of_data(data).durations
        (2, 4)
        """
        types = get_type_hints(cls)
        if isinstance(data, dict):
            data = {"cost": "decisions", "action_repeat": 1, **data}  # older versions counted decisions
        if not isinstance(data, dict) or set(data) != set(types) or not isinstance(data["env_args"], dict):
            raise FileFormatError("the run does not name an environment and a policy; wrap it anew")
        plain = {name: value for name, value in data.items() if name not in ("env_args", "cost")}
        for name, value in plain.items():
            try:
                plain[name] = converted(value, types[name])
            except TypeError:
                raise FileFormatError(f"the run's environment has {name} = {value!r}; wrap it anew") from None
        if plain["policy"] is not None and plain["policy_sha256"] is None:
            raise FileFormatError("the run's environment has policy_sha256 = None; wrap it anew")
        return cls(
            **{**plain, "durations": check_durations(plain["durations"])}, env_args=data["env_args"], cost=data["cost"]
        )

    def check_policy(self) -> None:
        """Raise if the policy's file is not the one that was wrapped."""
        if self.policy is not None and fingerprint(self.policy) != self.policy_sha256:
            raise FileFormatError(
                f"the policy {self.policy} is not the one that was wrapped: its file has changed "
                "(SHA-256 differs); put the old one back, or wrap the new one"
            )

    def make(self, trust_pickle: bool = False) -> WaitingEnv:
        """Return the waiting environment, or raise why it cannot be made; a base has been queried once."""
        look_here()
        env = made_env(self.env, self.env_args)
        wait: Any
        if self.passive is not None:
            env = added = AddedWait(env, passive_named(self.passive))
            wait = added.wait
        else:
            wait = HOLD if is_hold(self.wait) else read_action(self.wait or "", env.action_space)
        if self.policy is None:
            waiting = WaitingEnv(env, wait, self.durations, cost=self.cost, action_repeat=self.action_repeat)
        else:
            waiting = wrap(env, named_policy(self.policy, trust_pickle), wait, self.durations, cost=self.cost)
            try_base(waiting, self)
        waiting.env_spec = self
        return waiting


def fingerprint(policy: str) -> str:
    """Return the SHA-256 of a policy's file, with the normalisation beside it if there is one; nothing is loaded.

    >>> len(fingerprint("json.decoder:JSONDecoder"))
    64
    """
    kind, _, rest = policy.partition(":")
    path = Path(rest.partition(":")[2]) if kind == "sb3" else module_file(kind)
    try:
        if kind == "sb3" and path.name:
            with suppress(FileFormatError):  # then the path itself says what is wrong with it
                return hashlib.sha256(b"".join(file.read_bytes() for file in sb3_zip.files_of(path))).hexdigest()
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise FileFormatError(
            f"the policy's file {path} cannot be read: {error.strerror or error}; "
            "give it as seen from the current folder, such as sb3:dqn:model.zip"
        ) from error


def module_file(name: str) -> Path:
    """Return the file of a module, which is found but not loaded, nor are the packages around it."""
    look_here()
    parts = name.split(".")
    found = PathFinder.find_spec(parts[0]) if all(parts) else None
    for n in range(2, len(parts) + 1):
        places = None if found is None else found.submodule_search_locations
        found = None if places is None else PathFinder.find_spec(".".join(parts[:n]), places)
    if found is None or found.origin is None:
        raise SettingError(f"no module named {name!r} in the current folder or installed; name a policy as {FORMS}")
    return Path(found.origin)


def env_arguments(given: Iterable[str]) -> dict[str, Any]:
    """Return what `KEY=VALUE` texts say; a value is JSON, Python's True, False and None, or else text.

    >>> env_arguments(["goal_velocity=0.01", "render_mode=rgb_array", "sutton=False"])
    {'goal_velocity': 0.01, 'render_mode': 'rgb_array', 'sutton': False}
    """
    arguments: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise SettingError(f"--env-arg {text!r} is not KEY=VALUE; write it like map_name=8x8")
        if key in arguments:
            raise SettingError(f"--env-arg {key} is given twice; give it once")
        try:
            arguments[key] = json.loads({"True": "true", "False": "false", "None": "null"}.get(value, value))
        except json.JSONDecodeError:
            arguments[key] = value
        _check_finite(key, arguments[key])
    return arguments


def _check_finite(key: str, value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise SettingError(f"--env-arg {key} has a number that is not finite; give a finite one") from None


def made_env(name: str, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Return the environment of a Gymnasium id, or raise why there is none.

    >>> made_env("MountainCra-v0", {})
    Traceback (most recent call last):
    ...
    letitcook.errors.SettingError: the environment 'MountainCra-v0' cannot be made: Environment `MountainCra` ...
    """
    try:
        return gym.make(name, **arguments)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise SettingError(f"the environment {name!r} cannot be made: {error}") from error
    except Exception as error:  # its own code may raise anything on arguments that it does not like
        raise SettingError(f"the environment {name!r} cannot be made: {said(error)}") from error


def read_action(text: str, space: spaces.Space[Any]) -> Any:
    """Return the action of `space` that is written as `1`, `0.5` or `0,0,1`; one number fills an action of several.

    >>> read_action("1", spaces.Discrete(3)), read_action("0", spaces.Box(-1.0, 1.0, (2,))).tolist()
    (1, [0.0, 0.0])
    """
    try:
        numbers = [float(part) if set(part) & set(".enif") else int(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(f"wait action {text!r} is not a number, or several with commas in between") from None
    if len(numbers) == 1:
        return wait_action(numbers[0], space)
    fits = space.shape is not None and len(numbers) == np.prod(space.shape)
    return wait_action(np.array(numbers).reshape(space.shape) if fits else numbers, space)


def try_base(env: WaitingEnv, origin: WrappedEnvSpec) -> None:
    """Query the base policy once, so that one that does not fit is found before anything is learned."""
    try:
        env.reset(seed=0)
        env.step(BASE)
    except LetItCookError:
        raise
    except Exception as error:  # other people's code may raise anything
        raise SettingError(
            f"the policy {origin.policy} failed at its first observation of {origin.env}: {said(error)}; "
            "was it trained for another environment?"
        ) from error


def said(error: Exception) -> str:
    """Return an error of other people's code in one line, with the place where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return " ".join(f"{type(error).__name__}: {error}{place}".split())
