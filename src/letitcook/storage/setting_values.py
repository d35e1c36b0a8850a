"""Values for typed settings, as JSON, TOML and users give them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from letitcook.errors import FileFormatError, SettingError, UnknownNameError

S = TypeVar("S")
"""A dataclass of settings; `RENAMED` in it maps names of older versions to those of today."""


def setting_types(kind: type[Any]) -> dict[str, Any]:
    """Return the settings of a class with their types."""
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


def with_overrides(settings: S, overrides: Mapping[str, Any]) -> S:
    """Return settings with other values for some of them, or raise what is wrong with a name or a value.

    >>> from letitcook.finite.settings import QSettings
    >>> with_overrides(QSettings(), {"alpha": 1}).alpha
    1.0
    >>> with_overrides(QSettings(), {"sub_waits": True})
    Traceback (most recent call last):
    ...
    letitcook.errors.SettingError: the setting 'sub_waits' is now called 'intra_option'
    """
    types, renamed = setting_types(type(settings)), getattr(settings, "RENAMED", {})
    changes = {}
    for name, value in overrides.items():
        if name in renamed:
            raise SettingError(f"the setting {name!r} is now called {renamed[name]!r}")
        if name not in types:
            raise UnknownNameError("setting", name, types)
        try:
            changes[name] = converted(value, types[name])
        except TypeError:
            raise SettingError(f"{name} = {value!r} is of the wrong type; give {said(types[name])}") from None
    return replace(settings, **changes)  # type: ignore[type-var]


def read_settings(kind: type[S], data: Mapping[str, Any]) -> S:
    """Return the settings that were saved as plain data, by this version or an older one."""
    types, renamed = setting_types(kind), getattr(kind, "RENAMED", {})
    try:
        return kind(
            **{name: converted(value, types[name]) for old, value in data.items() if (name := renamed.get(old, old))}
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise FileFormatError(f"the settings of a run are damaged or of another version ({error!r})") from error


def converted(value: Any, wanted: Any) -> Any:
    """Return a value as a setting of type `wanted` is kept, or raise TypeError.

    >>> converted([128, 64], tuple[int, ...]), converted(1, float)
    ((128, 64), 1.0)
    """
    kind, parts = get_origin(wanted), get_args(wanted)
    if kind in (Union, UnionType):
        return None if value is None else converted(value, next(part for part in parts if part is not NoneType))
    if kind is tuple and isinstance(value, list | tuple):
        inner = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
        if len(value) == len(inner):
            return tuple(map(converted, value, inner))
    if kind is Literal and isinstance(value, str) and value in parts:
        return value
    if type(value) is wanted or (type(value) is int and wanted is float):
        return wanted(value)
    raise TypeError


def said(wanted: Any) -> str:
    """Say in words what a setting of type `wanted` takes.

    >>> said(float | None), said(tuple[int, ...])
    ('a number', '[a whole number, ...]')
    """
    kind, parts = get_origin(wanted), get_args(wanted)
    if kind in (Union, UnionType):
        return said(next(part for part in parts if part is not NoneType))
    if kind is Literal:
        return " or ".join(map(repr, parts))
    if kind is tuple:
        return f"[{', '.join('...' if part is Ellipsis else said(part) for part in parts)}]"
    return {bool: "true or false", int: "a whole number", float: "a number"}[wanted]


def amount_or_share(name: str, text: str | float) -> tuple[float, float]:
    """Return an accepted loss of task return as an amount and a share, one of which is 0.

    >>> amount_or_share("margin", "1%"), amount_or_share("margin", 0.5)
    ((0.0, 0.01), (0.5, 0.0))
    """
    said = str(text).strip()
    try:
        number = float(said.removesuffix("%"))
    except ValueError:
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise SettingError(f"{name} = {text} is not allowed; give a task return of at least 0, or a share: 1%")
    return (0.0, number / 100.0) if said.endswith("%") else (number, 0.0)
