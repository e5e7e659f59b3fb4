"""Reads a file of lines from either end. A last line without a newline is not read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from roost.records.errors import RecordsUnavailable

BLOCK = 1 << 16
"""Bytes that are read at a time."""


def lines_forwards(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines from the first to the last, without their newlines."""
    for line in file:
        if line.endswith(b"\n"):
            yield line[:-1]


def lines_backwards(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines from the last to the first, each with the offset in bytes of its start."""
    end = at = file.seek(0, os.SEEK_END)
    pieces: list[bytes] = []  # Of the line whose start is not read yet; the last piece first.
    complete = False  # Whether that line has a newline.
    while end:
        start = max(0, end - BLOCK)
        file.seek(start)
        head, *lines = file.read(end - start).split(b"\n")
        end = start
        while lines:
            line = b"".join((lines.pop(), *reversed(pieces)))
            pieces.clear()
            at -= len(line)
            if complete:
                yield at, line
            at -= 1
            complete = True
        pieces.append(head)
    if complete:
        yield 0, b"".join(reversed(pieces))


def line_number(file: BinaryIO, offset: int) -> int:
    """Return the number, from 1, of the line that starts at ``offset``."""
    newlines = 0
    file.seek(0)
    while offset and (block := file.read(min(BLOCK, offset))):
        newlines += block.count(b"\n")
        offset -= len(block)
    return newlines + 1


def count_lines(file: BinaryIO, start: bytes) -> int:
    """Return how many lines have this start, an unfinished one included. Reads blocks, for speed."""
    found = 0
    wanted = b"\n" + start
    rest = b"\n"  # What is before the first line, or the last bytes of the block before.
    file.seek(0)
    while block := file.read(BLOCK):
        found += (rest + block).count(wanted)
        rest = (rest + block)[-len(start) :]
    return found


@contextmanager
def reported(verb: str, path: Path) -> Iterator[None]:
    """Turn an OSError of an operation on the file ``path`` into `RecordsUnavailable`."""
    try:
        yield
    except OSError as error:
        raise RecordsUnavailable(f"cannot {verb} records file {path}: {error.strerror}") from error
