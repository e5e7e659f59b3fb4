"""Records that cannot be written or trimmed stop no part of a system."""

import asyncio
from pathlib import Path

import pytest

from roost.ledger.retention import Retention
from roost.model.instance import ACTIVE
from roost.records import DamagedRecords, RecordQueue
from roost.records.errors import RecordsError, RecordsUnavailable
from roost.system import System, SystemOptions
from support.recording import FAULTS, failing_backend
from support.systems import SMALL, differences, opened_system, states, wanted

KEEP_COMMITS = Retention(interval=0.0)
"""Old commits are not removed. Old records are, all the same."""


@pytest.mark.parametrize("how", FAULTS)
def test_a_system_works_and_stops_while_no_record_can_be_written(tmp_path: Path, how: str) -> None:
    async def run() -> None:
        queue = RecordQueue(failing_backend(how), retry_seconds=0.01, close_seconds=0.1)
        system = await System.open(tmp_path, SMALL, queue, SystemOptions())
        await system.super_conductor.accept(wanted("first", 5))
        await system.settle()
        assert list((await states(system)).values()) == [ACTIVE] * 5
        async with asyncio.timeout(30):
            await system.close()
        assert queue.dropped + queue.failed == 6
        assert await differences(tmp_path) == []

    asyncio.run(run())


@pytest.mark.parametrize("error", [DamagedRecords("line 4: not a record"), RecordsUnavailable("gone")])
def test_a_system_works_while_its_records_cannot_be_trimmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: RecordsError
) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, retention=KEEP_COMMITS, trim_records_seconds=0.01) as system:
            tried = asyncio.Semaphore(0)

            async def fail(now: float) -> int:
                tried.release()
                raise error

            monkeypatch.setattr(system.records.backend, "trim", fail)
            async with asyncio.timeout(30):
                await tried.acquire()
                await tried.acquire()
            await system.super_conductor.accept(wanted("first", 5))
            await system.settle()
            assert list((await states(system)).values()) == [ACTIVE] * 5

    asyncio.run(run())
