"""Build requests and mappings."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
import sqlalchemy as sa

from roost.model.instance import BuildRequest
from roost.state.api_database.build_requests import (
    AcceptRequest,
    FinishRequest,
    InstanceExists,
    MapInstances,
    RequestKey,
    find_free_requests,
    retake_request,
    take_over_mappings,
    take_requests,
)
from roost.state.api_database.cell_mappings import at_urls, mapped_cells
from roost.state.api_database.mappings import (
    DeleteMapped,
    InstanceMapping,
    find_free_deletions,
    forget_instances,
    page_of_mappings,
    take_over_deletions,
)
from roost.state.api_database.request_reads import PAGE, Requests, waiting_requests
from roost.state.api_database.tables import instance_mappings
from roost.state.leases import AcquireLease, vacate_leases
from roost.storage import Database
from support.conducting import request


class Accepting(Requests):
    """Requests that accept as the conductor A does."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        super().__init__(database)
        self._clock = clock

    async def accept(self, request: BuildRequest) -> int:
        return await self.database.write(AcceptRequest(request, self._clock(), "A"))


@asynccontextmanager
async def requests(directory, clock=lambda: 1.0):
    database = Database(f"sqlite:///{directory / 'api.db'}")
    try:
        kept = Accepting(database, clock)
        await kept.map_cells({"cell0": "sqlite:///0", "cell1": "sqlite:///1"})
        yield kept, database
    finally:
        await database.close()


def test_request_comes_back_as_it_was_in_order_of_acceptance(tmp_path) -> None:
    async def run() -> None:
        times = iter((2.0, 1.0, 3.0))
        first = msgspec.structs.replace(request(2, policy="affinity"), request_id="b")
        second = msgspec.structs.replace(request(1), request_id="a", instances=("j0",))
        async with requests(tmp_path, lambda: next(times)) as (kept, _):
            await kept.accept(first)
            await kept.accept(second)
            await kept.accept(msgspec.structs.replace(first, min_count=9))
        async with requests(tmp_path) as (kept, _):
            assert [each async for each in kept.waiting()] == [second, first]

    asyncio.run(run())


def test_requests_of_several_pages_come_once_each_and_in_order(tmp_path) -> None:
    async def run() -> None:
        # Every three requests are accepted at the same time.
        async with requests(tmp_path, lambda: len(made) // 3) as (kept, database):
            made: list[BuildRequest] = []
            for number in range(2 * PAGE + 5):
                asked = msgspec.structs.replace(
                    request(1), request_id=f"req-{number:03}", instances=(f"i{number}",)
                )
                await kept.accept(asked)
                made.append(asked)
            counted: list[int] = []
            pages = kept.waiting()
            async for _ in pages:
                counted.append(len(counted))
                if len(counted) == PAGE:
                    await database.write(FinishRequest(RequestKey("req-204", "A", 1)))
            assert len(counted) == len(made) - 1
            assert [each async for each in kept.waiting()] == made[:-1]
            assert list(database.read_now(lambda connection: list(waiting_requests(connection)))) == made[:-1]
            assert [each async for each in kept.waiting("req-150")] == [made[150]]
            assert await kept.waiting_among(["req-020", "REQ-021", "%"]) == {"req-020": made[20]}

    asyncio.run(run())


def test_every_instance_of_a_request_is_mapped_from_its_acceptance(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            wanted = request(1100)
            assert await kept.accept(wanted) == 1
            assert await kept.accept(wanted) == 0, "it is there already"
            found = await kept.mappings([*wanted.instances, "unknown"])
            assert found.keys() == set(wanted.instances)
            assert found["i7"] == InstanceMapping("i7", None, 0, "req", "project", "user", False, 1.0)
            assert await kept.cells_of(wanted.instances) == {}
            cells = {uuid: f"cell{number % 2}" for number, uuid in enumerate(wanted.instances)}
            going = await database.write(MapInstances("req", "A", 1, cells))
            assert going == set(wanted.instances)
            assert await kept.cells_of(wanted.instances) == cells
            assert await database.write(FinishRequest(RequestKey("req", "A", 1)))
            assert [each async for each in kept.waiting()] == []
            await database.write(forget_instances(wanted.instances[:1099], 9.0))
            assert [each.instance_uuid for each in await kept.page(page_of_mappings(most=10))] == ["i1099"]

    asyncio.run(run())


def test_pages_of_mappings_are_of_one_request_or_project(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, _):
            await kept.accept(request(3))
            other = msgspec.structs.replace(request(1), request_id="other", instances=("j0",))
            spec = msgspec.structs.replace(other.spec, project_id="theirs")
            await kept.accept(msgspec.structs.replace(other, spec=spec))

            async def page(most: int, after: str = "", **more: object) -> list[str]:
                asked = page_of_mappings(most=most, after=after, **more)
                return [each.instance_uuid for each in await kept.page(asked)]

            assert await page(2) == ["i0", "i1"]
            assert await page(2, "i1") == ["i2", "j0"]
            assert await page(9, request_ids=("other",)) == ["j0"]
            assert await page(9, request_ids=("req", "no such", "other")) == ["i0", "i1", "i2", "j0"]
            assert await page(9, request_ids=("other",), project_id="project") == []
            assert await page(9, project_id="project") == ["i0", "i1", "i2"]

    asyncio.run(run())


def test_a_request_has_one_owner_and_a_stale_one_changes_nothing(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            await kept.accept(request(2))
            lease = AcquireLease(name="a", kind="conductor", holder="A", host="", service_version=0, now=0.0)
            held = await database.write(lease)
            assert await database.read(find_free_requests("B", 10)) == [], "its owner holds a lease"
            await database.write(vacate_leases([held]))
            [free] = await database.read(find_free_requests("B", 10))
            assert free == RequestKey("req", "A", 1)
            taken = await database.write(take_requests((free,), "B"))
            [owned] = taken.owned
            assert (owned.key, owned.request) == (RequestKey("req", "B", 2), request(2))
            assert (await database.write(take_requests((free,), "C"))).owned == []
            # What the first owner still does comes to nothing.
            first = RequestKey("req", "A", 1)
            assert await database.write(MapInstances(*first, {"i0": "cell1"})) is None
            assert await database.write(take_over_mappings(*first)) is None
            assert not await database.write(retake_request(first))
            assert not await database.write(FinishRequest(first))
            assert await kept.cells_of(["i0", "i1"]) == {}
            # The owner itself tries again under another number.
            assert await database.write(retake_request(owned.key))
            assert await database.write(MapInstances(*owned.key, {"i0": "cell1"})) is None
            again = RequestKey("req", "B", 3)
            found = await database.write(take_over_mappings(*again))
            assert [each.epoch for each in found] == [2, 2]
            assert await database.write(MapInstances(*again, {"i0": "cell1"})) == {"i0"}

    asyncio.run(run())


def test_numbers_of_owners_that_went_back_with_their_database_are_refused(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            await kept.accept(request(1))
            await database.write(
                lambda connection: connection.execute(sa.update(instance_mappings).values(epoch=7))
            )
            assert await database.write(MapInstances("req", "A", 1, {"i0": "cell1"})) is None

    asyncio.run(run())


def test_a_deletion_is_work_that_has_one_owner(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            await kept.accept(request(3))
            known = await database.write(DeleteMapped(("i0", "i1", "none"), 1.0, "A"))
            assert [each.deleted for each in known.values()] == [True, True]
            assert (await database.write(DeleteMapped(("i0",), 2.0, "B"))).keys() == {"i0"}
            going = await database.write(MapInstances("req", "A", 1, {"i0": "cell1", "i2": "cell1"}))
            assert going == {"i2"}, "what is deleted is placed nowhere"
            free = await database.read(find_free_deletions("B", 10))
            assert sorted(free) == [("i0", "A"), ("i1", "A")], "A holds no lease"
            taken = await database.write(take_over_deletions(tuple(free), "B"))
            assert sorted(each.instance_uuid for each in taken) == ["i0", "i1"]
            assert await database.write(take_over_deletions(tuple(free), "C")) == []
            await database.write(forget_instances(("i0", "i1"), 9.0))
            assert (await kept.mappings(["i0", "i1", "i2"])).keys() == {"i2"}
            assert await database.read(find_free_deletions("B", 10)) == []

    asyncio.run(run())


def test_cell_that_moved_has_its_new_place(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            await kept.map_cells({"cell1": "sqlite:///moved", "cell2": "sqlite:///2"})
            assert tuple(database.read_now(mapped_cells).values()) == at_urls(
                {"cell0": "sqlite:///0", "cell1": "sqlite:///moved", "cell2": "sqlite:///2"}
            )

    asyncio.run(run())


def test_a_request_that_is_finished_is_not_accepted_again(tmp_path):
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            await kept.accept(request(2))
            [key] = await database.read(find_free_requests("A", 10))
            assert await database.write(FinishRequest(key))
            with pytest.raises(InstanceExists, match="request req names instances that exist already"):
                await kept.accept(request(2))
            other = msgspec.structs.replace(request(3), request_id="other")
            with pytest.raises(InstanceExists, match="request other"):
                await kept.accept(other)
            assert [each async for each in kept.waiting()] == []
            assert await kept.mapping("i2") is None

    asyncio.run(run())


def test_free_requests_are_looked_for_some_at_a_time(tmp_path):
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            for number in range(5):
                named = msgspec.structs.replace(
                    request(1), request_id=f"r{number}", instances=(f"i{number}",)
                )
                await kept.accept(named)
            found = await database.read(find_free_requests("B", 3))
            assert [key.request_id for key in found] == ["r0", "r1", "r2"]

    asyncio.run(run())
