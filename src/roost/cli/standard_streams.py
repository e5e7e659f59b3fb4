"""The standard streams of a command, also where they are closed, full, or read by nobody."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from roost.model.errors import OperatorError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
"""Flags for opening the descriptors 0 to 2 where they are closed.

Standard output is opened for reading: a command that has results fails to write them and says so, while a
service, which writes none, runs.
"""


class OutputLost(OperatorError):
    """The results of a command cannot be written to standard output."""


class OutputUnread(OutputLost):
    """The reader of standard output has gone, as ``head`` does. There is nobody to tell."""


class _StandardOutput(io.FileIO):
    """The descriptor of standard output. Raises `OutputLost` where text or bytes cannot be written."""

    def write(self, data: "ReadableBuffer") -> int:
        with _lost():
            return super().write(data)


class _StandardError(io.TextIOWrapper):
    """Standard error. Messages that cannot be written are dropped: they end no command and no service."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


@contextlib.contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise OutputUnread("standard output is read by nobody") from error
    except OSError as error:
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        raise OutputLost(f"standard output cannot be written: {reason}") from error


def repair_standard_streams() -> None:
    """Open the standard streams that are closed, and give those of the process the errors of this module.

    A file that a process opens gets the lowest free descriptor. With closed streams that of a database would
    be one of them, and what is printed would be written into the database.
    """
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
    if _is_at(sys.stdout, 1):
        sys.stdout = cast(TextIO, _opened(_StandardOutput(1, "wb", closefd=False), sys.stdout))
    if _is_at(sys.stderr, 2):
        sys.stderr = cast(TextIO, _opened(io.FileIO(2, "wb", closefd=False), sys.stderr, _StandardError))


def _opened(
    raw: io.FileIO, before: TextIO | None, kind: type[io.TextIOWrapper] = io.TextIOWrapper
) -> io.TextIOWrapper:
    """A stream at a descriptor, with the encoding of the one before. Lines for people come at once."""
    return kind(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )


def _is_at(stream: TextIO | None, number: int) -> bool:
    """Return whether a stream is the process's own, and not one that was put in its place."""
    try:
        return stream is None or stream.fileno() == number
    except (OSError, ValueError):
        return False


def drop_standard_output() -> None:
    """Drop what standard output has buffered and cannot write: the interpreter would try again at its end."""
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
