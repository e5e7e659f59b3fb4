"""Tables: on a screen they fit, elsewhere a row is a line, and no value commands the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from roost.cli.tables import folded, table_lines

HEADER = ("uuid", "state", "reason")
UUID = "4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11"
REASON = "no host has 2 of the 4 VCPU that are wanted, and the trait CUSTOM_FAST_DISK"
ROWS = [(UUID, "error", REASON), (UUID, "active", "")]


def test_without_a_screen_each_row_is_a_line_without_an_end() -> None:
    lines = list(table_lines(HEADER, ROWS))
    assert lines == [f"{'uuid':36}  state   reason", f"{UUID}  error   {REASON}", f"{UUID}  active"]


def test_numbers_are_aligned_to_the_right() -> None:
    assert list(table_lines(("host", "vcpus"), [("a", "4"), ("b", "1000")], numbers=1)) == [
        "host  vcpus",
        "a         4",
        "b      1000",
    ]


@pytest.mark.parametrize("width", range(20, 130, 3))
def test_on_a_screen_everything_is_shown_and_fits(width: int) -> None:
    lines = list(table_lines(HEADER, ROWS, width=width))
    assert "".join("".join(lines).split()).count(UUID) == 2
    longest_word = max(len("uuid  ") + len(UUID), *(len(each) for each in REASON.split()))
    assert max(map(cell_len, lines)) <= max(width, longest_word + 2)
    for word in REASON.split():
        assert any(word in line for line in lines), word


def test_a_screen_that_is_too_narrow_gets_a_block_for_each_row() -> None:
    assert list(table_lines(("uuid", "state"), [(UUID, "error"), (UUID, "active")], width=40)) == [
        f"uuid   {UUID}",
        "state  error",
        "",
        f"uuid   {UUID}",
        "state  active",
    ]


def test_a_block_has_no_line_for_an_empty_value() -> None:
    rows = [(UUID, "", "error"), (UUID, "web", "")]
    assert list(table_lines(("uuid", "name", "state"), rows, width=40)) == [
        f"uuid   {UUID}",
        "state  error",
        "",
        f"uuid   {UUID}",
        "name   web",
    ]


def test_control_characters_and_line_ends_are_shown_as_escapes() -> None:
    [_, line] = table_lines(("name",), [("a\x1b[2J\nb\t\u202e",)])
    assert line == r"a\x1b[2J\nb\t\u202e"


def test_wide_characters_keep_the_columns() -> None:
    lines = list(table_lines(("name", "state"), [("機械", "up"), ("a", "down")]))
    assert lines[1] == "機械  up"
    assert lines[2] == "a     down"


@given(st.text("ab𠀀é \t", max_size=60), st.integers(2, 20))
def test_folded_lines_are_as_wide_as_they_may_be_and_lose_nothing(text: str, width: int) -> None:
    lines = folded(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert max(map(cell_len, folded("a" * 30, width, whole_words=True))) == 30
