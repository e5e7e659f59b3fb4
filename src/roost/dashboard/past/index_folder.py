"""The folder of the index: one file for each range of commits. Any of them may be deleted or damaged."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from roost.dashboard.past.index_block import IndexBlock
from roost.dashboard.past.index_file import DamagedFile, StoredBlock, encoded, read_block
from roost.process.durable_file import replace_file

_SUFFIX: Final = ".past"
_log = structlog.get_logger()


class IndexFolder:
    """The files of an index, by the number of the range of commits that each has.

    ``path``: it is made if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def numbers(self) -> list[int]:
        """Return the numbers of the ranges that have a file, the highest first; none without the folder."""
        names = [each.stem for each in self._path.glob(f"*{_SUFFIX}")] if self._path.is_dir() else []
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def read(self, number: int) -> StoredBlock | None:
        """Map the file of a range into memory; None if there is none. A damaged one is removed."""
        path = self._file(number)
        try:
            return read_block(path)
        except FileNotFoundError:
            return None
        except (DamagedFile, OSError) as error:
            _log.warning("a file of the index of the past is made again", file=str(path), error=str(error))
            self.remove(number)
            return None

    def write(self, number: int, block: IndexBlock, history: str, token: str) -> StoredBlock:
        """Write the file of a range durably, and map it into memory. Raises: `OSError`, `DamagedFile`."""
        self._path.mkdir(parents=True, exist_ok=True)
        replace_file(self._file(number), encoded(block, history, token))
        return read_block(self._file(number))

    def remove(self, number: int) -> None:
        """Remove the file of a range. Blocks that are mapped into memory stay as they are."""
        with contextlib.suppress(OSError):
            self._file(number).unlink()

    def clear_leftovers(self) -> None:
        """Remove what a process that was killed has left half written."""
        for each in self._leftovers():
            with contextlib.suppress(OSError):
                each.unlink()

    def _leftovers(self) -> Iterator[Path]:
        return self._path.glob(f".*{_SUFFIX}.new") if self._path.is_dir() else iter(())

    def _file(self, number: int) -> Path:
        return self._path / f"{number:012d}{_SUFFIX}"
