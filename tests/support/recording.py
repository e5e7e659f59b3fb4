"""Backends of records that fail in the ways that disks and databases fail."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from roost.model.record import Attempt, Run, RunReasons
from roost.records import RecordRefused, RecordsUnavailable, Retention, RunWithAttempts
from roost.records.jsonl import JsonLinesRecords
from roost.records.records import Records
from roost.records.rows import EncodedRun, run_with_attempts

FAULTS = ["raises", "hangs", "refuses", "disk full"]
"""The ways in which `failing_backend` fails."""


class Backend:
    """Keeps records in lists while ``works`` is set, which a test may set and clear.

    At other times a write fails if ``how`` is ``raises``, is refused if it is ``refuses``, and waits until
    ``works`` is set if it is ``hangs``.
    """

    def __init__(self, how: str = "raises", *, works: bool = True) -> None:
        self.how = how
        self.works = asyncio.Event()
        if works:
            self.works.set()
        self.runs: list[Run] = []
        self.attempts: list[Attempt] = []
        self.writes = 0
        self.closed = False

    async def write(
        self, runs: Sequence[EncodedRun], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        self.writes += 1
        if not self.works.is_set():
            if self.how == "raises":
                raise RecordsUnavailable("backend is away")
            if self.how == "refuses":
                raise RecordRefused("a value is wrong")
            await self.works.wait()
        self.runs += [run_with_attempts(each.row, (), each.settings).run for each in runs]
        self.attempts += attempts

    async def last(self, n: int) -> list[RunWithAttempts]:
        raise NotImplementedError

    async def find(
        self, request_id: str | None = None, instance: str | None = None, limit: int = 100
    ) -> list[RunWithAttempts]:
        raise NotImplementedError

    async def trim(self, now: float) -> int:
        raise NotImplementedError

    async def close(self) -> None:
        if self.how == "hangs":
            await self.works.wait()
        self.closed = True


def failing_backend(how: str) -> Records:
    """Return a backend that never writes; ``how`` is one of `FAULTS`."""
    if how == "disk full":
        return JsonLinesRecords(Path("/dev/full"), Retention())
    return Backend(how, works=False)
