"""Policies by name: a file of Stable-Baselines3, or something that Python can import."""

from __future__ import annotations

from pathlib import Path

from letitcook.adapters import sb3_zip
from letitcook.adapters.policies import as_policy
from letitcook.core.decisions import Policy
from letitcook.errors import SettingError
from letitcook.storage.imports import module_named, thing_named

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
    return as_policy(thing_named(module_named(first), rest, "policy"))
