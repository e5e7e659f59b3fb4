"""The time limits of a cell, by coroutines that see what stands still on their own clock."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from roost.conductor.time_limits import AT_ONCE, TimeLimits, limit_builds, limit_deletions, trim_past
from roost.model.instance import (
    ASSIGNED,
    DELETING,
    DESTROYED,
    ERROR,
    FAILED,
    STARTING,
    AttemptKey,
    DestroyOrder,
)
from roost.process.asyncio_context import AsyncioContext
from roost.state.cell_database.building import ConfirmAttempt
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.cell_database.history import PRUNED_AT_ONCE, read_history
from roost.state.cell_database.host_work import SESSION, session_name, work_of_hosts
from roost.state.leases import AcquireLease, renew_lease
from roost.storage import DatabaseUnavailable
from support.cells import NOW, instance, opened_cell
from support.works import arguments_of

LIMITS = TimeLimits(build_seconds=100.0, destroy_seconds=100.0)


class Ended(Exception):
    """It has looked as often as the test wants."""


class Clock:
    """A monotonic clock that sleeping moves. Before each look ``before`` is called with its number."""

    def __init__(self, cell, looks: int, before=None) -> None:
        self.cell, self.looks, self.before = cell, looks, before
        self.now, self.look = 0.0, 0
        self.out = False

    async def read(self, work):
        self.look += 1
        if self.before is not None:
            await self.before(self)
        if self.out:
            raise DatabaseUnavailable("gone")
        return await self.cell.read(work)

    async def write(self, work):
        return await self.cell.write(work)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.look == self.looks:
            raise Ended

    async def run(self, keep: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        context = AsyncioContext(
            lambda _: self, clock=lambda: NOW, monotonic=lambda: self.now, sleep=self.sleep
        )
        with suppress(Ended):
            await keep(context, *arguments)


async def state(cell, uuid: str = "i") -> str:
    return (await cell.find([uuid]))[uuid].state


def test_build_that_its_host_never_confirms_fails_when_its_time_is_over(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.add([instance(), instance("starting")])
            await cell.write(ConfirmAttempt(AttemptKey("starting", 1), "a", NOW))
            await Clock(cell, 20).run(limit_builds, "cell1", LIMITS)
            assert await state(cell) == ASSIGNED
            await Clock(cell, 21).run(limit_builds, "cell1", LIMITS)
            assert (await state(cell), await state(cell, "starting")) == (FAILED, STARTING)
            assert (await cell.read(work_of_hosts(("a",)))).orders == [DestroyOrder("i", 1, "a")]

    asyncio.run(run())


def test_builds_of_a_large_outage_are_ended_by_several_transactions(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.add([instance(f"i{n}") for n in range(AT_ONCE + 1)])
            ended: list[int] = []

            class Counting(Clock):
                async def write(self, work):
                    ended.append(len(arguments_of(work)["keys"]))
                    return await super().write(work)

            await Counting(cell, looks=22).run(limit_builds, cell.name, LIMITS)
            assert ended == [AT_ONCE, 1]
            assert len(await cell.in_state(FAILED)) == AT_ONCE + 1

    asyncio.run(run())


def test_time_that_the_database_was_away_counts_for_nobody(tmp_path) -> None:
    async def outage(clock: Clock) -> None:
        clock.out = clock.look == 15

    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.add([instance()])
            await Clock(cell, 30, outage).run(limit_builds, "cell1", LIMITS)
            assert await state(cell) == ASSIGNED
            await Clock(cell, 36, outage).run(limit_builds, "cell1", LIMITS)
            assert await state(cell) == FAILED

    asyncio.run(run())


def test_deletion_waits_for_its_host_as_long_as_that_lives(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            session = AcquireLease(
                name=session_name("a"), kind=SESSION, holder="agent", host="a", service_version=0, now=NOW
            )
            await cell.write(session)
            await cell.add([instance()])
            await cell.write(DeleteInstances(("i",), NOW, "cell1"))

            async def live(clock: Clock) -> None:
                if clock.look <= 60:
                    await cell.write(renew_lease(session_name("a"), "agent", 1, clock.look))

            await Clock(cell, 79, live).run(limit_deletions, "cell1", LIMITS)
            assert await state(cell) == DELETING
            await Clock(cell, 90, live).run(limit_deletions, "cell1", LIMITS)
            assert await state(cell) == DESTROYED
            assert (await cell.read(work_of_hosts(("a",)))).orders == [DestroyOrder("i", 1, "a")]

    asyncio.run(run())


def test_histories_are_forgotten_when_their_time_is_over(tmp_path) -> None:
    """All of them, though one transaction does not take so many."""

    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            many = [f"i{number}" for number in range(PRUNED_AT_ONCE + 1)]
            await cell.add([instance(uuid, state=ERROR, host=None, attempt=0) for uuid in (*many, "kept")])
            await cell.delete([*many, "kept"])
            await cell.forget(many)
            for days, there in ((1.0, True), (-1.0, False)):
                limits = replace(LIMITS, history_days=days)
                await Clock(cell, 0).run(trim_past, "cell1", limits)
                for uuid in (many[0], many[-1]):
                    assert (await cell.read(read_history(uuid)) is not None) is there
            assert await cell.read(read_history("kept")) is not None

    asyncio.run(run())
