"""Lines and rows of a trace, with their file and line number for error messages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from roost.bench.errors import TraceError
from roost.model.vocabulary import MAX_INT

_LONGEST_SHOWN: Final = 60
"""Most characters of a value in an error message. A longer value is cut."""


class TraceLine(msgspec.Struct, frozen=True, gc=False):
    """One line of a trace, without its line end; ``number`` counts from 1."""

    path: Path
    number: int
    text: str

    def wrong(self, problem: str, value: object) -> TraceError:
        """Return the error for a problem with a value of this line."""
        shown = ascii(value)
        if len(shown) > _LONGEST_SHOWN:
            shown = shown[:_LONGEST_SHOWN] + "..."
        return TraceError(self.path, self.number, f"{problem}: {shown}")

    def number_of(self, what: str, text: str, least: int = 0, most: int = MAX_INT) -> int:
        """Return ``text`` as a whole number. ``what`` names it in the error.

        Raises:
            TraceError: it is not a whole number from ``least`` to ``most``.
        """
        # int() accepts "1_000", " 7" and the digits of other scripts as well.
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_INT))
        if not plain or not least <= int(text) <= most:
            raise self.wrong(f"{what} is not a whole number from {least} to {most}", text)
        return int(text)


class TraceRow(msgspec.Struct, frozen=True, gc=False):
    """One row of a CSV trace: its line, and its fields by column name."""

    line: TraceLine
    fields: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.fields[column]

    def number(self, column: str, least: int = 0, most: int = MAX_INT) -> int:
        """Return the whole number in a column; see `TraceLine.number_of`."""
        return self.line.number_of(column, self.fields[column], least, most)


def read_lines(path: Path) -> list[TraceLine]:
    """Return all lines of a file.

    Bytes that are not UTF-8 become ``\\xNN``, which no reader of a line accepts.

    Raises:
        TraceError: the file cannot be read or is empty.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {error.strerror or error}") from error
    lines = text.removesuffix("\n").split("\n")
    if lines == [""]:
        raise TraceError(path, None, "is empty")
    return [TraceLine(path, number, line) for number, line in enumerate(lines, 1)]


def read_rows(path: Path, columns: Sequence[str]) -> list[TraceRow]:
    """Return all rows of a CSV file without quotes, whose first line names the columns.

    Raises:
        TraceError: the file cannot be read, lacks one of ``columns``, or has a row of another length.
    """
    header, *lines = read_lines(path)
    names = header.text.split(",")
    for column in columns:
        if column not in names:
            raise header.wrong(f"the first line does not name the column {column}", header.text)
    rows = []
    for line in lines:
        fields = line.text.split(",")
        if len(fields) != len(names):
            raise line.wrong(f"{len(fields)} fields where {len(names)} are expected", line.text)
        rows.append(TraceRow(line, dict(zip(names, fields, strict=True))))
    return rows
