"""Archives: runs in a compressed file of JSON lines, apart from the records in use.

A line is one whole run, ``{"run": {…}, "attempts": […]}``; the last run is first. So a line needs no other
line, and any tool can read it: ``zcat FILE | jq .run.id``.

A file gets its name once it is complete and durable. The runs are removed from the records only after the
file has been read back. A kill before that leaves all runs where they are.
"""

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from roost.records.errors import ArchiveError
from roost.records.records import Records, SearchableRecords
from roost.records.rows import RunWithAttempts, encoded
from roost.records.search import Search

WRITE_CHUNK = 500
"""Runs that a restore writes at a time."""

COMPRESSION = 6
"""Level of gzip."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RunWithAttempts).decode


async def archive(records: SearchableRecords, path: Path, until: float) -> int:
    """Move the runs that started before ``until`` (seconds since the epoch) into a new file.

    Returns the number of runs. Without any, no file is made.

    Raises:
        ArchiveError: the file is there already, or cannot be written or read back. No run is removed.
        RecordsError: the records cannot be read or changed.
    """
    if path.exists():
        raise ArchiveError(f"archive {path} is there already")
    temporary = path.with_name(f"{path.name}.new")
    written = 0
    try:
        with _reported("write", path), temporary.open("wb") as raw:
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=COMPRESSION) as file:
                async for some in records.each(Search(until=until)):
                    file.writelines(_encode(each) + b"\n" for each in some)
                    written += len(some)
            raw.flush()
            os.fsync(raw.fileno())
        if not written:
            return 0
        with _reported("write", path):
            temporary.rename(path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
    runs = [each.run.id for each in read_archive(path)]
    if len(runs) != written:
        raise ArchiveError(f"archive {path} has {len(runs)} runs where {written} were written")
    await records.remove(runs)
    return written


async def restore(records: Records, path: Path) -> int:
    """Write all runs of an archive back; returns how many. Runs that are recorded already are unchanged.

    The runs become the last ones in the order of recording. The archive stays.

    Raises:
        ArchiveError: the file cannot be read, or has a line that is no run. Nothing is written.
        RecordsError: the records cannot be written.
    """
    restored = 0
    # The file is read once to its end before anything is written, and then from its end to its beginning.
    with _reported("read", path), tempfile.TemporaryFile() as lines:
        ends = [0]
        for each in read_archive(path):
            ends.append(ends[-1] + lines.write(_encode(each)))
        while len(ends) > 1:
            some: list[RunWithAttempts] = []
            while len(ends) > 1 and len(some) < WRITE_CHUNK:
                end = ends.pop()
                lines.seek(ends[-1])
                some.append(_decode(lines.read(end - ends[-1])))
            await records.write(
                [encoded(each.run) for each in some], [attempt for each in some for attempt in each.attempts]
            )
            restored += len(some)
    return restored


def read_archive(path: Path) -> Iterator[RunWithAttempts]:
    """Yield the runs of an archive, the last one first.

    Raises:
        ArchiveError: the file cannot be read, or a line is not a run.
    """
    number = 0
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                number += 1
                yield _decode(line)
    except msgspec.DecodeError as error:
        raise ArchiveError(f"archive {path}, line {number}: not a run: {error}") from error
    except (EOFError, zlib.error) as error:
        raise ArchiveError(f"archive {path}, after line {number}: {error}") from error
    except OSError as error:
        raise ArchiveError(f"cannot read archive {path}: {error.strerror or error}") from error


def find_in_archive(path: Path, search: Search, limit: int) -> list[RunWithAttempts]:
    """Return the last ``limit`` runs of an archive that a search selects; ``before`` is ignored.

    Raises:
        ArchiveError: the file cannot be read, or a line is not a run.
    """
    wanted = (
        each
        for each in read_archive(path)
        if search.takes_run(each.run) and search.takes_attempts(each.attempts)
    )
    return [*islice(wanted, limit)]


@contextmanager
def _reported(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"cannot {verb} archive {path}: {error.strerror or error}") from error


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
