"""Lines and rows of a trace: their values, and the errors with file and line."""

from pathlib import Path

import pytest

from roost.bench.errors import ReplayError, TraceError
from roost.bench.replay.tracefile import TraceLine, read_lines, read_rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.csv"


@pytest.mark.parametrize("text", ["one\ntwo\n", "one\ntwo", "one\r\ntwo\r\n"])
def test_lines_are_numbered_from_one_whatever_ends_them(path: Path, text: str) -> None:
    path.write_bytes(text.encode())
    assert read_lines(path) == [TraceLine(path, 1, "one"), TraceLine(path, 2, "two")]


def test_only_line_ends_end_a_line(path: Path) -> None:
    path.write_bytes("one\x0b\x85\u2028one\n\ntwo".encode())
    assert [line.text for line in read_lines(path)] == ["one\x0b\x85\u2028one", "", "two"]


def test_bytes_that_are_not_text_stay_visible(path: Path) -> None:
    path.write_bytes(b"\xff\n")
    assert read_lines(path)[0].text == "\\xff"


@pytest.mark.parametrize("text", ["", "\n"])
def test_empty_file_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(TraceError, match=r"trace\.csv: is empty$"):
        read_lines(path)


def test_file_that_cannot_be_read_is_refused(path: Path) -> None:
    with pytest.raises(ReplayError, match=r"trace\.csv: cannot be read: No such file or directory$"):
        read_lines(path)
    with pytest.raises(TraceError, match=r"cannot be read: Is a directory$"):
        read_lines(path.parent)


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("2147483647", 2**31 - 1)])
def test_whole_numbers_are_read(path: Path, text: str, number: int) -> None:
    assert TraceLine(path, 1, "").number_of("amount", text) == number


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1_000", "1.5", "1e3", "٣", "²", "2147483648", "9" * 5000]
)
def test_everything_else_is_no_whole_number(path: Path, text: str) -> None:
    with pytest.raises(
        TraceError, match=r"trace\.csv:7: amount is not a whole number from 0 to 2147483647: '"
    ):
        TraceLine(path, 7, "").number_of("amount", text)


def test_error_is_one_short_line_whatever_the_value(path: Path) -> None:
    error = TraceLine(path, 3, "").wrong("too odd", "a\nb\x1b\u2028" * 1000)
    assert "\n" not in str(error) and "\x1b" not in str(error) and str(error).isprintable()
    assert len(str(error)) < len(str(path)) + 100
    assert (error.path, error.line) == (path, 3)


def test_rows_are_read_by_column_name(path: Path) -> None:
    path.write_text("size,name,more\n7,a,\n8,b,x\n")
    rows = read_rows(path, ("name", "size"))
    assert [(row["name"], row.number("size"), row.line.number) for row in rows] == [("a", 7, 2), ("b", 8, 3)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\na\n", r":1: the first line does not name the column size: 'name'$"),
        ("name,size\na,1\nb\n", r":3: 1 fields where 2 are expected: 'b'$"),
        ("name,size\na,1,2\n", r":2: 3 fields where 2 are expected: 'a,1,2'$"),
        ("name,size\na,1\n\nb,2\n", r":3: 1 fields where 2 are expected: ''$"),
    ],
)
def test_rows_that_do_not_fit_their_header_are_refused(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_rows(path, ("name", "size"))
