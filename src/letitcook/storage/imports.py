"""Things of the user's own, by name: modules that are installed, or in the current folder."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from letitcook.errors import SettingError, UnknownNameError


def look_here() -> None:
    """Let modules be found in the current folder too, after all others: a file there takes no library's place."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def module_named(name: str) -> Any:
    """Import a module, or raise why it cannot be.

    >>> module_named("math").__name__
    'math'
    """
    look_here()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise SettingError(f"no module named {name!r} in {Path.cwd()} or among the installed packages") from error
        raise SettingError(f"the module {name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        raise SettingError(f"the module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def thing_named(module: Any, path: str, what: str) -> Any:
    """Return what a dotted name means in a module; `what` says what is looked for.

    >>> thing_named(module_named("math"), "floor", "function")(1.5)
    1
    """
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name, thing in vars(module).items() if callable(thing) and not name.startswith("_")]
            raise UnknownNameError(f"{what} in the module {module.__name__!r}", path, names or ["none"])
        found = getattr(found, part)
    return found
