"""Decisions and builds go on while their records cannot be written, and are made once."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from roost.model.instance import ACTIVE, ASSIGNED
from roost.records import RecordQueue
from support.conducting import Conductors, conducting, request
from support.recording import FAULTS, failing_backend


def count_frees(now: Conductors, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """A list that grows by the consumers of each freed claim."""
    freed: list[Sequence[str]] = []
    delete = now.placement.delete_allocations

    async def counted(consumers: Sequence[str]) -> None:
        freed.append(consumers)
        await delete(consumers)

    monkeypatch.setattr(now.placement, "delete_allocations", counted)
    return freed


@pytest.mark.parametrize("how", FAULTS)
def test_a_decision_is_made_once_though_its_record_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def run() -> None:
        queue = RecordQueue(failing_backend(how), retry_seconds=0.01, close_seconds=0.1)
        async with conducting(tmp_path, queue) as now:
            freed = count_frees(now, monkeypatch)
            await now.run(request(10))
            assert {each.state for each in (await now.instances()).values()} == {ASSIGNED}
            assert await now.used() == 10
            assert freed == []
            await now.check()
        await queue.close()
        assert (queue.dropped, queue.failed) == ((0, 11) if how == "refuses" else (11, 0))

    asyncio.run(run())


@pytest.mark.parametrize("how", FAULTS)
def test_a_failed_build_is_retried_once_though_its_record_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def run() -> None:
        queue = RecordQueue(failing_backend(how), retry_seconds=0.01, close_seconds=0.1)
        async with conducting(tmp_path, queue) as now:
            freed = count_frees(now, monkeypatch)
            await now.run(request(1, ignore_hosts=frozenset("de")))
            [first] = (await now.instances()).values()
            await now.build([first.host or ""])
            await now.step()
            [second] = (await now.instances()).values()
            assert (second.state, second.attempt) == (ASSIGNED, 2)
            await now.settle()
            [built] = (await now.instances()).values()
            assert (built.state, built.attempt, built.host) == (ACTIVE, 2, second.host)
            assert freed == []
            await now.check()
        await queue.close()

    asyncio.run(run())
