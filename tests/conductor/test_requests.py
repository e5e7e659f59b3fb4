"""Build requests and mappings."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import sqlalchemy as sa

from roost.conductor.requests import PAGE, Requests, mapped_cells, waiting_requests
from roost.conductor.tables import SCHEMA, build_requests
from roost.model.instance import BuildRequest
from roost.model.spec import Image, RequestedDestination
from roost.storage import Database
from support.conducting import request


@asynccontextmanager
async def requests(directory, clock=lambda: 1.0):
    database = Database(f"sqlite:///{directory / 'api.db'}")
    try:
        kept = Requests(database, clock)
        await kept.map_cells({"cell0": "sqlite:///0", "cell1": "sqlite:///1"})
        yield kept, database
    finally:
        await database.close()


def test_request_comes_back_as_it_was_in_order_of_acceptance(tmp_path) -> None:
    async def run() -> None:
        times = iter((2.0, 1.0, 3.0))
        first = msgspec.structs.replace(request(2, policy="affinity"), request_id="b")
        second = msgspec.structs.replace(request(1), request_id="a")
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
                    await kept.finish(made[-1], {})
            assert len(counted) == len(made) - 1
            assert [each async for each in kept.waiting()] == made[:-1]
            assert list(database.read_now(lambda connection: list(waiting_requests(connection)))) == made[:-1]
            assert [each async for each in kept.waiting("req-150")] == [made[150]]
            assert await kept.waiting_for("i20") == made[20]
            assert await kept.waiting_for("I20") is None
            assert await kept.waiting_for("%") is None

    asyncio.run(run())


def test_finished_request_is_a_mapping_for_each_instance(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, _):
            wanted = request(1100)
            await kept.accept(wanted)
            cells = {uuid: f"cell{number % 2}" for number, uuid in enumerate(wanted.instances)}
            for _ in range(2):
                await kept.finish(wanted, cells)
                assert [each async for each in kept.waiting()] == []
                assert await kept.cells_of([*wanted.instances, "unknown"]) == cells
                assert await kept.every_mapping() == cells
            await kept.unmap(wanted.instances[:1099])
            assert list(await kept.every_mapping()) == ["i1099"]

    asyncio.run(run())


def test_cell_that_moved_has_its_new_place(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            await kept.map_cells({"cell1": "sqlite:///moved", "cell2": "sqlite:///2"})
            assert database.read_now(mapped_cells) == {
                "cell0": "sqlite:///0",
                "cell1": "sqlite:///moved",
                "cell2": "sqlite:///2",
            }

    asyncio.run(run())


def test_request_stored_before_hints_were_lists_is_read_after_the_upgrade(tmp_path) -> None:
    async def run() -> None:
        async with requests(tmp_path) as (kept, database):
            wanted = request(
                1,
                scheduler_hints={"query": ("[]",), "same_host": ("i7",)},
                image=Image(properties={"hw_disk_bus": "sc\u00f6si"}),
                requested_destination=RequestedDestination(host="a"),
            )
            await kept.accept(wanted)
            old = msgspec.to_builtins(wanted)
            for name in ("image", "requested_destination"):
                del old["spec"][name]
            old["spec"] |= {
                "scheduler_hints": {"query": "[]", "same_host": "i7"},
                "image_properties": {"hw_disk_bus": "sc\u00f6si"},
                "requested_host": "a",
            }

            def revert(connection: sa.Connection) -> None:
                connection.execute(
                    sa.update(build_requests).values(request=msgspec.json.encode(old).decode())
                )
                connection.execute(
                    sa.insert(build_requests).values(request_id="bad", request="{}", accepted_at=9.0)
                )
                connection.execute(sa.text("UPDATE conductor_schema SET version_num = '0003'"))

            await database.write(revert)
            SCHEMA.upgrade(database)
            assert [each async for each in kept.waiting()] == [wanted]

    asyncio.run(run())
