"""Keys from bytes, as terminals send them, in any portions."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.cli.top.keyboard import KeyDecoder


def keys(*portions: bytes) -> list[str]:
    decoder = KeyDecoder()
    return [key for portion in portions for key in decoder.feed(portion)]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (b"q", ["q"]),
        (b"qs/", ["q", "s", "/"]),
        (b"\x1b[A\x1b[B\x1b[C\x1b[D", ["up", "down", "right", "left"]),
        (b"\x1bOA\x1bOB\x1bOH\x1bOF", ["up", "down", "home", "end"]),
        (b"\x1b[5~\x1b[6~\x1b[1~\x1b[4~\x1b[H\x1b[F", ["page up", "page down", "home", "end", "home", "end"]),
        (b"\t\x1b[Z\r\x7f\x08", ["tab", "back tab", "enter", "backspace", "backspace"]),
        ("ä€😀".encode(), ["ä", "€", "😀"]),
        (b"\x1b[1;5Aq", ["q"]),  # Ctrl and an arrow has no meaning
        (b"\x1b[200~q", ["q"]),
        (b"\x1bxq", ["q"]),
        (b"\x00\x01q", ["q"]),
        (b"\xff\xfe\x80q", ["q"]),
    ],
)
def test_keys_have_names_and_what_is_none_is_left_out(typed: bytes, expected: list[str]) -> None:
    assert keys(typed)[-len(expected) :] == expected
    assert len(keys(typed)) == len(expected)


def test_an_escape_alone_is_a_key_once_nothing_follows() -> None:
    decoder = KeyDecoder()
    assert [*decoder.feed(b"\x1b")] == []
    assert decoder.waits
    assert [*decoder.flush()] == ["escape"]
    assert not decoder.waits
    assert [*decoder.feed(b"\x1b"), *decoder.feed(b"[A")] == ["up"]
    assert [*decoder.flush()] == []


@given(st.lists(st.sampled_from([b"q", b"\x1b[A", b"\x1b[6~", b"\x1bOF", "ä€".encode(), b"\t"])), st.data())
def test_portions_make_no_difference(typed: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(typed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    ends = [0, *cuts, len(whole)]
    portions = [whole[first:end] for first, end in pairwise(ends)]
    assert keys(*portions) == keys(whole)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_no_bytes_are_an_error_and_each_key_is_a_name_or_a_character(portions: list[bytes]) -> None:
    for key in keys(*portions):
        assert len(key) == 1 or key.replace(" ", "").isalpha()
        assert key.isprintable()
