"""Samples of what the ledger does not have: states of hosts and instances, and decisions.

Those of minutes are kept for a day, those of hours for a month. They are in one file, which is replaced as a
whole; without it they begin anew.
"""

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from roost.process.durable_file import replace_file

MINUTE: Final = 60
HOUR: Final = 3_600

MOST_MINUTES: Final = 24 * 60
MOST_HOURS: Final = 31 * 24
"""Samples that are kept."""

_NAME: Final = "samples"
_CHECKSUM: Final = 4
_log = structlog.get_logger()


class PastSample(msgspec.Struct, frozen=True, array_like=True):
    """A sample of a minute or an hour. ``at``: its end, in whole seconds since the epoch.

    Of the end: ``hosts`` that are up, disabled and down; ``instances`` by state, None if not known; ``use``:
    used and capacity by class. Of the whole time: ``runs`` and the ``refused`` ones of them, None if they are
    not counted.
    """

    at: int
    hosts: tuple[int, int, int]
    instances: dict[str, int] | None = None
    use: dict[str, tuple[int, int]] = {}
    runs: int | None = None
    refused: int | None = None


class _StoredSamples(msgspec.Struct, frozen=True, array_like=True):
    minutes: list[PastSample]
    hours: list[PastSample]


class SampleStore:
    """Samples in ascending order. ``folder``: None: they are kept in memory alone."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / _NAME
        self.minutes: list[PastSample] = []
        self.hours: list[PastSample] = []

    def load(self) -> None:
        """Read the file. One that is damaged is ignored."""
        if self._file is None:
            return
        try:
            content = self._file.read_bytes()
            checksum, body = content[:_CHECKSUM], content[_CHECKSUM:]
            if int.from_bytes(checksum, "little") != zlib.crc32(body):
                raise ValueError("its checksum is wrong")
            stored = msgspec.msgpack.decode(body, type=_StoredSamples)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            _log.warning("the samples of the past begin anew", file=str(self._file), error=str(error))
            return
        self.minutes, self.hours = stored.minutes, stored.hours

    def encoded(self) -> bytes:
        """Return the content of the file."""
        body = msgspec.msgpack.encode(_StoredSamples(self.minutes, self.hours))
        return zlib.crc32(body).to_bytes(_CHECKSUM, "little") + body

    def write(self, content: bytes) -> None:
        """Replace the file. Raises: `OSError`."""
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, content)

    def add(self, sample: PastSample) -> None:
        """Add the sample of a minute, and that of the hour which it begins or ends."""
        if self.minutes and sample.at <= self.minutes[-1].at:
            return
        before = self.minutes[-1].at if self.minutes else None
        self.minutes.append(sample)
        if before is not None and (sample.at - 1) // HOUR != (before - 1) // HOUR:
            self._add_hour((before - 1) // HOUR)
        del self.minutes[:-MOST_MINUTES]

    def fill(self, decisions: Iterable[tuple[int, int, int]]) -> None:
        """Fill in the decisions of minutes that have no sample: the end of each, its runs and refused ones.

        Such a sample knows no hosts: their numbers are -1.
        """
        known = {each.at for each in self.minutes}
        new = [
            PastSample(at, UNKNOWN_HOSTS, None, {}, runs, refused)
            for at, runs, refused in decisions
            if at not in known
        ]
        self.minutes = sorted([*self.minutes, *new], key=lambda each: each.at)[-MOST_MINUTES:]

    def _add_hour(self, hour: int) -> None:
        of_hour = [each for each in self.minutes if (each.at - 1) // HOUR == hour]
        if not of_hour or (self.hours and self.hours[-1].at >= (hour + 1) * HOUR):
            return
        runs, refused = (_sum(getattr(each, name) for each in of_hour) for name in ("runs", "refused"))
        last = of_hour[-1]
        self.hours.append(PastSample((hour + 1) * HOUR, last.hosts, last.instances, last.use, runs, refused))
        del self.hours[:-MOST_HOURS]


UNKNOWN_HOSTS: Final = (-1, -1, -1)
"""The hosts of a minute of which only the decisions are known."""


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


def by_time(samples: Sequence[PastSample], times: Sequence[int], step: int) -> list[PastSample | None]:
    """Return for each time the last sample of the step before it; None if there is none."""
    found: list[PastSample | None] = []
    at = 0
    for time in times:
        while at < len(samples) and samples[at].at <= time:
            at += 1
        last = samples[at - 1] if at else None
        found.append(last if last is not None and last.at > time - step else None)
    return found
