"""Docstrings as Markdown for the API reference: examples and literal blocks become fenced code."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!>>>)(?!\s*$).*\n?)*)+", re.MULTILINE)
LITERAL = re.compile(r"::$\n\n((?:^(?: {4}.*)?\n?)+)", re.MULTILINE)


def as_markdown(docstring: str) -> str:
    """Return a docstring with its `>>>` examples and its `::` blocks fenced.

    An example lasts until the next empty line, as in doctest.
    """
    text = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring)
    return LITERAL.sub(lambda found: f":\n\n```text\n{_unindented(found[1])}\n```\n\n", text)


def _unindented(block: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in block.strip("\n").splitlines())


class DoctestFences(griffe.Extension):
    """Hands mkdocstrings Markdown in place of plain docstrings."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
