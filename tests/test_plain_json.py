from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letitcook.errors import FileFormatError
from letitcook.storage.plain_json import DEEPEST, parse_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_what_json_writes_is_read_as_it_was(value: object) -> None:
    assert parse_json(json.dumps(value).encode(), "x") == value


@given(st.binary())
def test_anything_else_is_a_declared_error(data: bytes) -> None:
    try:
        parse_json(data, "x")
    except FileFormatError as error:
        assert str(error).startswith("x is damaged")


@pytest.mark.parametrize(
    "text",
    ["1e999", "-1e999", "NaN", "Infinity", "1" * 5000, str(2**63), "[" * 100_000, "[" * 500 + "]" * 500, '{"a":'],
)
def test_hostile_texts(text: str) -> None:
    with pytest.raises(FileFormatError, match="x is damaged"):
        parse_json(text.encode(), "x")


def test_the_deepest_that_is_read() -> None:
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST, "x") is not None
    with pytest.raises(FileFormatError, match="levels of brackets"):
        parse_json(b"[" * (DEEPEST + 1) + b"1" + b"]" * (DEEPEST + 1), "x")
