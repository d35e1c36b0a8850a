"""JSON from files that anybody may have written: finite numbers, little nesting, or one declared error."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from letitcook.errors import FileFormatError

DEEPEST = 64
"""Levels of lists and objects inside each other that are read; files of letitcook have less than ten."""
LARGEST = 2**63
"""Whole numbers from here on do not fit an array's numbers."""


def parse_json(text: bytes, where: object) -> Any:
    """Return what a JSON text says, or raise what is wrong with it; `where` names it in the message.

    >>> parse_json(b'{"steps": 3}', "x.json")
    {'steps': 3}
    >>> parse_json(b'{"steps": 1e999}', "x.json")
    Traceback (most recent call last):
    ...
    letitcook.errors.FileFormatError: x.json is damaged (1e999 is not a finite number); write it anew
    """
    try:
        content: Any = json.loads(
            text.decode("utf-8"), parse_float=_finite, parse_int=_small, parse_constant=_not_a_number
        )
    except RecursionError:
        content = None
        deep = True
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are two of its kinds
        raise FileFormatError(f"{where} is damaged ({error}); write it anew") from error
    else:
        deep = _is_deep(content)
    if deep:
        raise FileFormatError(f"{where} is damaged (more than {DEEPEST} levels of brackets); write it anew")
    return content


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_a_number(text)


def _small(text: str) -> int:
    if len(text) > 20 or abs(int(text)) >= LARGEST:
        raise ValueError(f"{text[:24]} is not a number of 64 bits")
    return int(text)


def _not_a_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number")


def _is_deep(content: Any) -> bool:
    """Return whether lists and objects stand inside each other more than `DEEPEST` times."""
    level = [content]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
