"""The standard streams of a command, which may be closed, full, or without a reader."""

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
"""Flags with which the descriptors 0 to 2 are opened if they are closed.

Standard output is opened for reading: a command fails to write its results and says so, while a service,
which writes none, runs.
"""


class OutputLost(OperatorError):
    """The results of a command cannot be written to standard output."""


class OutputUnread(OutputLost):
    """The reader of standard output has gone, as ``head`` does. No message is printed."""


class _StandardOutput(io.FileIO):
    """The descriptor of standard output. Raises `OutputLost` where text or bytes cannot be written."""

    def write(self, data: "ReadableBuffer") -> int:
        with _lost():
            return super().write(data)


class _StandardError(io.TextIOWrapper):
    """Standard error. Messages that cannot be written are dropped, and do not end the process."""

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
    """Open the closed standard streams, and replace all of them by streams with the errors of this module.

    A file that a process opens gets the lowest free descriptor. If a standard stream were closed, a database
    could get its descriptor, and printed text would be written into the database.
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
    """Return a stream at a descriptor, with the encoding of the previous one. Terminals are line buffered."""
    return kind(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )


def _is_at(stream: TextIO | None, number: int) -> bool:
    """Return whether a stream is the process's own at a descriptor, not a replacement such as a test's."""
    try:
        return stream is None or stream.fileno() == number
    except (OSError, ValueError):
        return False


def drop_standard_output() -> None:
    """Drop the buffer that standard output cannot write: the interpreter would write it again at its end."""
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
