"""What a user can do wrong.

The tree; the command line turns any of them into one line and exit code 2, every other exception is a bug::

    LetItCookError (ValueError)
    ├── UnknownNameError    no such task, method, preset, suite, ... (with a suggestion)
    ├── SettingError        a number or a choice outside what is allowed
    ├── SuiteError          a file of experiments that cannot be used, with the line at fault
    ├── SpaceError          an environment whose spaces do not fit what was requested
    ├── FinitenessError     an environment that cannot be enumerated, or is too large
    ├── NotFiniteError      NaN or infinity from an environment or a policy
    ├── EnvironmentTimeError  an environment that did not return in time
    ├── ErrandError         other work that overran its prediction or disturbed the waiting task
    ├── OutputError         a folder that cannot be written, or holds something else
    └── FileFormatError     a saved file that is missing, damaged or of another kind
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from types import TracebackType


class LetItCookError(ValueError):
    """Base of everything a user can mend; the message says what, why and what to do next."""


class UnknownNameError(LetItCookError):
    """A name that does not exist, with the nearest one that does."""

    def __init__(self, kind: str, name: str, known: Iterable[str], see: str | None = None) -> None:
        names = list(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."
        super().__init__(f"no {kind} named {name!r}. {hint}" + (f" See: {see}" if see else ""))


class SettingError(LetItCookError):
    """A setting outside what is allowed."""


class SuiteError(LetItCookError):
    """A file of experiments that cannot be used; the message begins with `FILE:LINE`."""


class SpaceError(LetItCookError):
    """An environment or a policy whose spaces do not fit."""


class FinitenessError(LetItCookError):
    """An environment that cannot be enumerated into tables."""


class NotFiniteError(LetItCookError):
    """NaN or infinity where a number is needed."""


class EnvironmentTimeError(LetItCookError):
    """An environment that did not return in time."""


class ErrandError(LetItCookError):
    """Other work that broke its word: it took longer than predicted, or disturbed the waiting task."""


class OutputError(LetItCookError):
    """An output folder that cannot be used."""


class FileFormatError(LetItCookError):
    """A file that is missing, damaged or of another kind."""


def quiet_interrupts() -> None:
    """Let ctrl-C while the command line is still being loaded end it in one line; other programs are left alone."""
    command = sys.argv[0].replace("\\", "/").rpartition("/")[2] if sys.argv else ""
    as_module = command == "-m" and "letitcook" in sys.orig_argv
    if command.removesuffix(".exe") == "letitcook" or as_module:
        sys.excepthook = _said_shortly


def _said_shortly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(kind, error, trace)
