"""Text from outside, made storable."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.text import MAX_TEXT, clean_text, clean_values, error_text, is_storable


@given(
    st.text(st.characters() | st.characters(categories=["Cs"]) | st.just("\0"), max_size=30),
    st.integers(1, 40),
)
def test_clean_text_can_be_stored_and_clean_text_stays_as_it_is(text: str, limit: int) -> None:
    clean = clean_text(text, limit)
    assert len(clean) <= limit
    assert "\0" not in clean
    clean.encode()
    assert clean_text(clean, limit) == clean
    if len(text) <= limit and is_storable(text, limit):
        assert clean == text


def test_what_cannot_be_stored_is_replaced() -> None:
    assert clean_text("disk \udc80 is\0 full, 磁盘满了") == "disk \ufffd is\ufffd full, 磁盘满了"


def test_long_text_is_cut_and_says_so() -> None:
    assert clean_text("x" * 9, 5) == "xxxx…"
    assert len(clean_text("x" * 1_000_000)) == MAX_TEXT


@pytest.mark.parametrize("name", ["", "x" * 256, "\0", "a\udfff"])
def test_name_that_cannot_be_stored(name: str) -> None:
    assert not is_storable(name, 255)
    assert is_storable("compute-1", 255)


def test_values_are_cleaned_however_deep_they_are() -> None:
    value = {"a\0": ["\udc80", {"b": ("c", 1, None, True, 1.5)}]}
    assert json.loads(json.dumps(clean_values(value)).encode()) == {
        "a\ufffd": ["\ufffd", {"b": ["c", 1, None, True, 1.5]}]
    }


def test_error_whose_text_cannot_be_had_is_named() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert error_text(Odd()) == "Odd"
    assert error_text(ValueError()) == "ValueError"
    assert error_text(ValueError("\udc80")) == "\ufffd"
