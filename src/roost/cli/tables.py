"""Tables as plain lines of text, which are folded to fit a screen or have one line a row."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells

GAP = "  "
"""The space between two columns."""

LEAST_TEXT = 16
"""Least width of a column of sentences. If the rows do not fit with it, each row is a block of lines."""


def screen_width() -> int | None:
    """Return the characters of a line on the screen, or of COLUMNS; None if output is not a terminal."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return max(20, shutil.get_terminal_size().columns)
    return None


def one_line(text: str) -> str:
    """Return a text with line ends and other control characters replaced by Python's escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def folded(text: str, width: int, *, whole_words: bool = False) -> list[str]:
    """Return the lines of a text, each in at most so many columns, in which some characters take two.

    Words that are wider are broken. ``whole_words``: they are lines that are too wide.
    """
    if cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *whole, line = [word] if whole_words else chop_cells(word, max(width, 2))
        lines += whole
    return [*lines, line] if line else lines


def shortened(text: str, width: int) -> str:
    """Return a text in at most so many columns. Its end is kept: names of hosts differ there."""
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) > width - 1:
        text = text[1:]
    return f"…{text}"


def table_lines(
    header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0, width: int | None = None
) -> Iterator[str]:
    """Return the lines of a table.

    Args:
        numbers: so many last columns are aligned to the right.
        width: characters of a line. If the rows are wider, sentences are folded; if that is not enough, each
            row is a block of lines. None: each row is one line.
    """
    shown = [[one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    if width is not None and _total(widths) > width:
        folded = _narrowed(shown, widths, width)
        if folded is None:
            yield from _blocks(shown[0], shown[1:], width)
            return
        widths = folded
    right = len(header) - numbers
    for row in shown:
        yield from _row(row, widths, right)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _narrowed(shown: Sequence[Sequence[str]], widths: Sequence[int], width: int) -> list[int] | None:
    """Return widths of columns with which the rows fit when sentences are folded; None if none do."""
    narrow = [*widths]
    while (over := _total(narrow) - width) > 0:
        places = [
            place
            for place, wide in enumerate(narrow)
            if wide > LEAST_TEXT and any(" " in row[place] for row in shown[1:])
        ]
        if not places:
            return None
        widest = max(places, key=lambda place: narrow[place])
        others = [narrow[place] for place in places if place != widest]
        floor = max([LEAST_TEXT, *(each for each in others if each < narrow[widest])])
        narrow[widest] = max(narrow[widest] - over, min(floor, narrow[widest] - 1))
    return narrow


def _row(row: Sequence[str], widths: Sequence[int], right: int) -> Iterator[str]:
    cells = [folded(cell, wide) for cell, wide in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = []
        for place, (lines, wide) in enumerate(zip(cells, widths, strict=True)):
            text = lines[number] if number < len(lines) else ""
            space = " " * (wide - cell_len(text))
            parts.append(space + text if place >= right else text + space)
        yield GAP.join(parts).rstrip()


def _blocks(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield each row as lines of name and value, without empty values, for a screen that is too narrow."""
    names = max(map(cell_len, header))
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, value in zip(header, row, strict=True):
            if not value:
                continue
            space = " " * (names - cell_len(name)) + GAP
            # A uuid that is longer than the line is not folded, so that it can be copied whole.
            lines = folded(value, max(LEAST_TEXT, width - names - len(GAP)), whole_words=True)
            yield f"{name}{space}{lines[0]}".rstrip()
            for line in lines[1:]:
                yield " " * (names + len(GAP)) + line
