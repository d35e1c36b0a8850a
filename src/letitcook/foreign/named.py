"""Policies by name: a file of Stable-Baselines3, or something that Python can import."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from letitcook.errors import SettingError, UnknownNameError
from letitcook.foreign import sb3_zip
from letitcook.foreign.adapt import as_policy
from letitcook.wmdp import Policy

FORMS = "sb3:ALGORITHM:FILE.zip (such as sb3:dqn:model.zip) or MODULE:NAME (such as my_robot:act)"
"""The names that are understood."""


def named_policy(spec: str, trust_pickle: bool = False) -> Policy:
    """Return the policy that `sb3:ALGORITHM:FILE.zip` or `MODULE:NAME` names.

    A file is read without unpickling; `trust_pickle=True` loads it with Stable-Baselines3's own loader, which
    executes code in the file. A module is imported, also from the current directory; what it names is a function
    observation -> action, or an object with `predict`.

    >>> named_policy("math:floor").predict(1.5)
    (1, None)
    """
    first, colon, rest = spec.partition(":")
    if not colon or not first or not rest:
        raise SettingError(f"{spec!r} does not name a policy; write {FORMS}")
    if first == "sb3":
        algo, colon, file = rest.partition(":")
        if not colon or not algo or not file:
            raise SettingError(f"{spec!r} does not name a file of Stable-Baselines3; write sb3:ALGORITHM:FILE.zip")
        return sb3_zip.read(Path(file), algo, trust_pickle=trust_pickle)
    if first.endswith(".py") or "/" in first:
        module = Path(first).stem
        raise SettingError(f"{first!r} is a file; name the module in it, from its directory: {module}:{rest}")
    return as_policy(_attribute(_module(first), rest))


def _module(name: str) -> Any:
    """Import a module, also from the current directory."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise SettingError(f"no module named {name!r} in {here} or among the installed packages") from error
        raise SettingError(f"the module {name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        raise SettingError(f"the module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _attribute(module: Any, path: str) -> Any:
    """Return what a dotted name means in a module."""
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name, thing in vars(module).items() if callable(thing) and not name.startswith("_")]
            raise UnknownNameError(f"policy in the module {module.__name__!r}", path, names or ["none"])
        found = getattr(found, part)
    return found
