"""Two processes at the same moment, on every database: whichever comes second sees the other."""

import asyncio

from roost.model.instance import ERROR, FAILED, GONE, BuildRequest
from roost.model.spec import Flavor, RequestSpec
from roost.state.api_database.build_requests import AcceptRequest
from roost.state.api_database.mappings import DeleteMapped, forget_instances
from roost.state.api_database.past import find_known
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.arrivals import AddInstances, Arrival, settle_takeover
from roost.state.cell_database.conductor_work import find_wanting_work, take_work
from roost.state.cell_database.deletions import DeleteInstances, forget_destroyed
from roost.state.cell_database.history import read_history
from roost.state.leases import AcquireLease
from roost.storage import Database
from support.cells import NOW, instance
from support.databases import Place

ROUNDS = 12


def test_insert_that_races_with_a_takeover_or_a_deletion_is_seen_or_refused(place: Place) -> None:
    async def run() -> None:
        first, second = Database(place.url), Database(place.url)
        SCHEMA.upgrade(first)
        try:
            for number in range(ROUNDS):
                uuid = f"i{number}"
                insert = first.write(AddInstances((instance(uuid, epoch=1),), NOW))
                if number % 2:
                    arrivals, here = await asyncio.gather(
                        insert, second.write(settle_takeover((uuid,), 2, NOW))
                    )
                    seen = uuid in here
                else:
                    arrivals, deleted = await asyncio.gather(
                        insert, second.write(DeleteInstances((uuid,), NOW, "cell1"))
                    )
                    seen = uuid in deleted.here
                assert seen == (arrivals[uuid] is Arrival.ADDED)
        finally:
            await first.close()
            await second.close()

    asyncio.run(run())


def test_two_conductors_that_take_work_at_once_share_it(place: Place) -> None:
    async def run() -> None:
        first, second = Database(place.url), Database(place.url)
        SCHEMA.upgrade(first)
        try:
            new = tuple(instance(f"i{number}", state=FAILED) for number in range(20))
            await first.write(AddInstances(new, NOW))
            for database, holder in ((first, "one"), (second, "two")):
                await database.write(lease_of(holder))
            taken: list[str] = []
            while len(taken) < len(new):
                wanting = [await each.read(find_wanting_work("nobody", 15)) for each in (first, second)]
                for got in await asyncio.gather(
                    first.write(take_work("one", tuple(wanting[0]))),
                    second.write(take_work("two", tuple(wanting[1]))),
                ):
                    taken += [each.uuid for each in got]
            assert sorted(taken) == sorted(each.uuid for each in new), "one was taken by both"
        finally:
            await first.close()
            await second.close()

    asyncio.run(run())


def test_instances_that_two_conductors_forget_at_once_keep_their_histories(place: Place) -> None:
    """In the cell, and in the API database."""

    async def run() -> None:
        first, second = Database(place.url), Database(place.url)
        SCHEMA.upgrade(first)
        CONDUCTOR.upgrade(first)
        try:
            for number in range(ROUNDS):
                uuids = tuple(f"i{number}-{each}" for each in range(5))
                spec = RequestSpec(project_id="p", user_id="u", flavor=Flavor("f", 1, 1))
                request = BuildRequest(request_id=f"req{number}", spec=spec, instances=uuids, min_count=1)
                await first.write(AcceptRequest(request, NOW))
                await first.write(DeleteMapped(uuids, NOW))
                buried = tuple(instance(uuid, host=None, state=ERROR) for uuid in uuids)
                await first.write(AddInstances(buried, NOW))
                await first.write(DeleteInstances(uuids, NOW, "cell0"))
                for work in (forget_destroyed(uuids, NOW), forget_instances(uuids, NOW)):
                    await asyncio.gather(first.write(work), second.write(work))
                for uuid in uuids:
                    history = await first.read(read_history(uuid))
                    assert history is not None
                    assert [each.state for each in history.transitions][-1] == GONE
                    known = await first.read(find_known(uuid))
                    assert known is not None
                    assert known.ended_at == NOW
        finally:
            await first.close()
            await second.close()

    asyncio.run(run())


def lease_of(holder: str) -> AcquireLease:
    return AcquireLease(
        name=f"cell-conductor/{holder}",
        kind="cell-conductor",
        holder=holder,
        host="here",
        service_version=0,
        now=NOW,
    )
