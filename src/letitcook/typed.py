"""Values for typed settings, as JSON, TOML and users give them."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin


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
