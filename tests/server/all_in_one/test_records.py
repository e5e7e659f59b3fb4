"""Records that cannot be written or trimmed stop no part of a system."""

import asyncio
from pathlib import Path

import pytest

from roost.ledger.retention import CommitRetention
from roost.model.instance import ACTIVE
from roost.model.record import BUILT, FAILED, REFUSED, Attempt
from roost.records import DamagedRecords, RecordQueue
from roost.records.errors import RecordsError, RecordsUnavailable
from roost.server.all_in_one.system import System
from roost.server.parts import databases
from support.recording import FAULTS, failing_backend
from support.systems import SMALL, differences, opened_system, options_in, states, wanted
from support.waiting import patience

KEEP_COMMITS = CommitRetention(interval=0.0)
"""Old commits are not removed. Old records are, all the same."""


@pytest.mark.parametrize("how", FAULTS)
def test_a_system_works_and_stops_while_no_record_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def run() -> None:
        queue = RecordQueue(failing_backend(how), retry_seconds=0.01, close_seconds=0.1)

        async def opened(_: object) -> RecordQueue:
            return queue

        monkeypatch.setattr(databases, "open_records", opened)
        system = await System.open(tmp_path, SMALL, options_in(tmp_path))
        await system.super_conductor.accept(wanted("first", 5))
        await system.settle()
        assert list((await states(system)).values()) == [ACTIVE] * 5
        async with asyncio.timeout(patience(30)):
            await system.close()
        assert queue.dropped + queue.failed == 1 + 5 + 5  # the run, five attempts, and their ends
        assert await differences(tmp_path) == []

    asyncio.run(run())


@pytest.mark.parametrize("error", [DamagedRecords("line 4: not a record"), RecordsUnavailable("gone")])
def test_a_system_works_while_its_records_cannot_be_trimmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: RecordsError
) -> None:
    async def run() -> None:
        monkeypatch.setattr(databases, "TRIM_SECONDS", 0.01)
        async with opened_system(tmp_path, retention=KEEP_COMMITS) as system:
            tried = asyncio.Semaphore(0)

            async def fail(now: float) -> int:
                tried.release()
                raise error

            monkeypatch.setattr(system.records.backend, "trim", fail)
            async with asyncio.timeout(patience(30)):
                await tried.acquire()
                await tried.acquire()
            await system.super_conductor.accept(wanted("first", 5))
            await system.settle()
            assert list((await states(system)).values()) == [ACTIVE] * 5

    asyncio.run(run())


def test_every_attempt_has_an_end_once_the_system_is_settled(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, failure_rate=0.4, max_attempts=9) as system:
            await system.super_conductor.accept(wanted("first", 8))
            await system.settle()
            await system.records.flush()
            [found] = await system.records.backend.last(9)
            active = {uuid for uuid, state in (await states(system)).items() if state == ACTIVE}
        by_instance: dict[str, list[Attempt]] = {}
        for attempt in found.attempts:
            by_instance.setdefault(attempt.instance, []).append(attempt)
        assert by_instance.keys() == set(found.run.instances)
        for instance, attempts in by_instance.items():
            assert [each.ordinal for each in attempts] == [*range(1, len(attempts) + 1)]
            results = [each.result for each in attempts]
            assert results[-1] == (BUILT if instance in active else FAILED)
            assert set(results[:-1]) <= {FAILED, REFUSED}
            assert all(each.finished_at is not None and each.finished_at >= each.at for each in attempts)
        assert any(len(attempts) > 1 for attempts in by_instance.values())

    asyncio.run(run())
