"""The queue in front of a backend of records: it never fails, never waits, and counts what it loses."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from roost.records import RecordQueue, RunWithAttempts
from roost.records.queue import BATCH_LIMIT
from support.recording import Backend
from support.waiting import patience

BEGIN = "scheduling records cannot be written"
END = "scheduling records are written again"


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with capture_logs() as captured:
        yield captured


def put(queue: RecordQueue, *made: RunWithAttempts) -> None:
    for one in made:
        queue.put([one.run], one.attempts)


def test_records_reach_the_backend_in_order(make, logs):
    async def run():
        backend = Backend()
        queue = RecordQueue(backend)
        made = [make(number) for number in range(9)]
        put(queue, *made)
        assert queue.waiting == 27
        assert await queue.flush()
        assert queue.waiting == 0
        assert backend.runs == [one.run for one in made]
        assert backend.attempts == [attempt for one in made for attempt in one.attempts]
        await queue.close()
        assert backend.closed

    asyncio.run(run())
    assert logs == []


def test_records_that_wait_together_share_a_write_up_to_a_limit(make):
    async def run():
        backend = Backend()
        queue = RecordQueue(backend)
        put(queue, *(make(number) for number in range(BATCH_LIMIT)))
        await queue.flush()
        assert len(backend.runs) == BATCH_LIMIT
        # Two attempts with each run; no entry is split.
        assert backend.writes == 4

    asyncio.run(run())


def test_a_flush_waits_for_what_was_put_before_it_and_not_for_what_comes_meanwhile(make):
    class Busy(Backend):
        """Further records come while it writes, until it has written enough."""

        async def write(self, runs, attempts, reasons=()):
            await super().write(runs, attempts, reasons)
            await asyncio.sleep(0)
            if len(self.runs) < 1000:
                put(queue, make(len(self.runs)))

    backend = Busy()
    queue = RecordQueue(backend)

    async def run():
        put(queue, make(0))
        assert await queue.flush()
        assert 1 <= len(backend.runs) < 10
        assert queue.waiting
        await queue.close()
        assert (len(backend.runs), queue.dropped) == (1000, 0)

    asyncio.run(run())


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_an_outage_is_outlived_and_logged_once(make, logs, how):
    async def run():
        backend = Backend(how, works=False)
        queue = RecordQueue(backend, limit=9, retry_seconds=0.001, slow_seconds=0.001)
        put(queue, *(make(number) for number in range(5)))
        assert not await queue.flush(seconds=0.05)
        assert (queue.waiting, queue.dropped, queue.failed) == (9, 6, 0)
        backend.works.set()
        assert await queue.flush()
        assert [run.version for run in backend.runs] == [0, 1, 2]
        put(queue, make(7))
        assert await queue.flush()
        await queue.close()
        assert queue.dropped == 6

    asyncio.run(run())
    assert [log["event"] for log in logs] == [BEGIN, END]
    assert logs[1]["lost"] == 6


def test_a_slow_answer_is_logged_though_nothing_is_lost(make, logs):
    async def run():
        backend = Backend("hangs", works=False)
        queue = RecordQueue(backend, slow_seconds=0.001)
        put(queue, make(1))
        await queue.flush(seconds=0.05)
        assert [(log["event"], log["reason"]) for log in logs] == [(BEGIN, "no answer after 0.001 seconds")]
        backend.works.set()
        await queue.flush()

    asyncio.run(run())
    assert [(log["event"], log.get("lost")) for log in logs[1:]] == [(END, 0)]


def test_each_outage_is_logged(make, logs):
    async def run():
        backend = Backend()
        queue = RecordQueue(backend, retry_seconds=0.001)
        for number in range(2):
            backend.works.clear()
            put(queue, make(number))
            await queue.flush(seconds=0.02)
            backend.works.set()
            await queue.flush()

    asyncio.run(run())
    assert [log["event"] for log in logs] == [BEGIN, END] * 2


def test_refused_records_are_counted_and_their_neighbours_are_written(make, logs):
    class Choosy(Backend):
        async def write(self, runs, attempts, reasons=()):
            if any(run.row.version in (3, 4, 11) for run in runs):
                raise ValueError("an odd value")
            await super().write(runs, attempts, reasons)

    async def run():
        backend = Choosy()
        queue = RecordQueue(backend)
        put(queue, *(make(number) for number in range(16)))
        assert await queue.flush()
        assert [run.version for run in backend.runs] == [n for n in range(16) if n not in (3, 4, 11)]
        assert (queue.dropped, queue.failed) == (0, 9)
        put(queue, make(20))
        await queue.flush()

    asyncio.run(run())
    assert [log["event"] for log in logs] == [BEGIN, END]
    assert logs[0]["reason"] == "ValueError: an odd value"
    assert logs[1]["lost"] == 9


def test_a_run_that_cannot_be_encoded_is_counted_and_the_next_is_written(make, logs):
    async def run():
        backend = Backend()
        queue = RecordQueue(backend)
        odd = make(1)
        queue.put([msgspec.structs.replace(odd.run, spec={"odd": object()})], odd.attempts)
        assert (queue.waiting, queue.failed) == (0, 3)
        put(queue, make(2))
        assert await queue.flush()
        assert [run.version for run in backend.runs] == [2]
        assert (queue.dropped, queue.failed) == (0, 3)

    asyncio.run(run())
    assert [log["event"] for log in logs] == [BEGIN, END]
    assert logs[1]["lost"] == 3


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_close_ends_in_time_and_counts_what_it_dropped(make, logs, how):
    async def run():
        queue = RecordQueue(Backend(how, works=False), retry_seconds=0.001, close_seconds=0.05)
        put(queue, make(1), make(2))
        async with asyncio.timeout(patience(30)):
            await queue.close()
        assert (queue.dropped, queue.waiting) == (6, 0)
        put(queue, make(3))
        assert (queue.dropped, queue.waiting) == (9, 0)

    asyncio.run(run())
    assert "scheduling records were dropped at the end" in [log["event"] for log in logs]


def test_close_writes_what_waits(make):
    async def run():
        backend = Backend()
        queue = RecordQueue(backend)
        put(queue, *(make(number) for number in range(50)))
        await queue.close()
        assert (len(backend.runs), queue.dropped) == (50, 0)
        assert backend.closed

    asyncio.run(run())
