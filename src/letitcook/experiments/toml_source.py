"""A TOML text that knows on which line anything in it stands, for messages."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from letitcook.errors import SuiteError

Where = tuple[str | int, ...]
"""A place in the file, as keys and indices from the top: `("rows", 1, "settings", "slack")`."""
Table = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """The text of a file, and the line on which anything in it stands."""

    file: str
    text: str

    def document(self) -> Table:
        """Return what the text says."""
        try:
            document = tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # a ValueError alone: a number of thousands of digits
            raise self._not_toml(error) from error
        places: list[tuple[Where, Any]] = [((), document)]
        while places:
            where, value = places.pop()
            if isinstance(value, int) and abs(value) >= 2**63:
                raise self.error(where, "this number is too large; TOML's whole numbers have 64 bits")
            inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            places.extend(((*where, key), part) for key, part in inner)
        return document

    def error(self, where: Where, what: str) -> SuiteError:
        """Return an error that names the line of a place."""
        return SuiteError(f"{self.file}:{self.line(where)}: {what}")

    def line(self, where: Where) -> int:
        """Return the line on which a place begins: the first with which the text from its top holds that place.

        The parser keeps no lines. It is requested the top of the text instead, with what is open there closed.
        """
        lines = self.text.split("\n")
        return max(1, bisect_left(range(len(lines)), True, key=lambda n: _holds(_top(lines[:n]), where)))

    def _not_toml(self, error: ValueError | RecursionError) -> SuiteError:
        lines = self.text.split("\n")
        said = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL)
        if said is not None:
            line = int(said[2] or len(self.text.rstrip().split("\n")))
            what = said[1] + (f" (column {said[3]})" if said[3] else " (the file ends too early)")
        else:
            line = bisect_left(range(len(lines)), True, key=lambda n: _breaks(lines[:n], type(error)))
            what = "a number is too long, or lists are too deep"
        return SuiteError(f"{self.file}:{line}: this is not TOML: {what}; text stands in quotes, see docs/suites.md")


_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""(?!")|(?P<basic>\Z))'  # strings of many lines, perhaps not yet closed
    r"|'''.*?(?:'''(?!')|(?P<literal>\Z))"
    r'|"(?:\\.|[^"\\\n])*"' + r"|'[^'\n]*'|#[^\n]*|[\[\]{}]",
    re.DOTALL,
)


def _top(lines: list[str]) -> Table:
    """Return what the first lines of a document say, with what they leave open closed."""
    for n in range(len(lines), 0, -1):
        text = "\n".join(lines[:n]) + "\n"
        closing = ""
        for token in _TOKEN.finditer(text):
            if token[0] in ("[", "{"):
                closing = {"[": "]", "{": "}"}[token[0]] + closing
            elif token[0] in ("]", "}"):
                closing = closing[1:]
            elif token["basic"] is not None or token["literal"] is not None:
                closing = token[0][:3] + closing
        try:
            return tomllib.loads(text + closing)
        except (ValueError, RecursionError):
            continue
    return {}


def _holds(document: Any, where: Where) -> bool:
    """Return whether a document goes on to a place."""
    try:
        for step in where:
            document = document[step]
    except LookupError:
        return False
    return True


def _breaks(lines: list[str], kind: type[Exception]) -> bool:
    try:
        tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError:
        return False
    except kind:
        return True
    return False
