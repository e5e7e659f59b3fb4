"""Decisions on instances that keep what they hold, or hand it over, are made again: the same."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.allocation import HandedClaim, KeptAllocations
from roost.model.spec import RequestSpec, ServerGroup
from roost.placement.client import HttpPlacement
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.journal import JournalWriter
from roost.scheduler.request.changed import Changes
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database
from support.clouds import NOW, fill, holding, over_http, spec, uuid_of
from support.databases import Place
from support.hardware_clouds import OPTIONS, REQUESTS, hardware_cloud
from support.ledgers import opened
from support.redeciding import redecided

INSTANCES = [uuid_of(0xA0 + number) for number in range(4)]
NEW = uuid_of(0xAF)
MIGRATIONS = {each: uuid_of(0xB0 + number) for number, each in enumerate(INSTANCES)}
HOSTS = {uuid_of(number): f"host{number}" for number in range(3)}
GROUPED = msgspec.structs.replace(REQUESTS[0], group=ServerGroup("g", "anti-affinity"))


class Meddled(HttpPlacement):
    """A placement service where others write once, just before the claims."""

    before_claims: Callable[[], Awaitable[None]] | None = None

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        before, self.before_claims = self.before_claims, None
        if before is not None:
            await before()
        await super().write_allocations(writes)


def free(ledger: Ledger, provider: str) -> int:
    columns = ledger.known().inventory_columns("VCPU")
    slot = columns.slot(ledger.known().row(provider))
    return int(columns.capacity.item(slot)) - int(columns.used.item(slot))


async def worked(path: Path, wire: bool, way: str) -> None:
    """Move an instance in a server group and with an assignment, then another into what is left.

    ``way``: "beside" what they hold, as in an evacuation; or "handed" to their migrations.
    """
    url = f"sqlite:///{path / 'api.db'}"
    api = Database(url)
    async with AsyncExitStack() as stack:
        [ledger] = await stack.enter_async_context(opened(Place("sqlite", (url,)), 1))
        SCHEMA.prepare(api)
        cloud = hardware_cloud(3)
        await fill(ledger, cloud)
        records = RecordQueue(await open_sql_records(f"sqlite:///{path / 'records.db'}", Retention(0, 0)))
        pools = HostPools(cloud.table(), msgspec.structs.replace(OPTIONS, explain_seconds=0.0))
        gateway: Gateway = LocalGateway(ledger, pools)
        if wire:
            placement = await stack.enter_async_context(over_http(ledger, Meddled))
            gateway = HttpGateway(placement, pools)
        journal = JournalWriter(api, pools.table)
        await journal.write(NOW)
        scheduler = Scheduler(gateway, records, lambda: NOW)

        def moving(
            of: RequestSpec, instances: tuple[str, ...], kept: dict[str, KeptAllocations]
        ) -> HostRequest:
            if way == "beside":
                return HostRequest(of, instances, beside=kept)
            handed = {
                each: HandedClaim(one.allocations, one.generation, consumer=MIGRATIONS[each])
                for each, one in kept.items()
            }
            return HostRequest(of, instances, handed=handed)

        async def move(of: RequestSpec, *instances: str) -> None:
            held = ledger.database.read_now(held_by_all)
            kept = {
                each: KeptAllocations(held[each].allocations, held[each].consumer.generation)
                for each in instances
                if each in held
            }
            ignored = frozenset(HOSTS[each] for each in kept[instances[0]].allocations)
            ignoring = msgspec.structs.replace(of, ignore_hosts=ignored)
            await scheduler.select_destinations(moving(ignoring, instances, kept))

        await scheduler.select_destinations(HostRequest(GROUPED, tuple(INSTANCES[:2])))
        await scheduler.select_destinations(HostRequest(REQUESTS[4], (INSTANCES[2],)))
        await move(GROUPED, INSTANCES[0])
        await move(REQUESTS[4], INSTANCES[2], INSTANCES[3])
        with pytest.raises(NoValidHost):
            await move(GROUPED, INSTANCES[1])
        with pytest.raises(ConcurrentUpdate):
            late = KeptAllocations({uuid_of(0): {"PCPU": 2}}, 7)
            await scheduler.select_destinations(moving(REQUESTS[4], (INSTANCES[1],), {INSTANCES[1]: late}))
        if wire:
            # Others are first: one of two instances is claimed, and given back when the other is refused.
            [source] = ledger.database.read_now(held_by_all)[INSTANCES[1]].allocations
            one, full = (each for each in HOSTS if each != source)

            async def take() -> None:
                taken = {one: {"VCPU": free(ledger, one) - 1}, full: {"VCPU": free(ledger, full)}}
                await ledger.execute(WriteAllocations((holding(uuid_of(0xBEE), taken),)))

            placement.before_claims = take
            with pytest.raises(NoValidHost):
                await move(spec(disk_gb=0), INSTANCES[1], NEW)
            held = ledger.database.read_now(held_by_all)[INSTANCES[1]]
            assert (held.allocations.keys(), held.consumer.generation) == ({source}, 3)
        await journal.write(NOW)
        await journal.close()
        await records.close()
    await api.close()


WAYS = pytest.mark.parametrize("way", ["beside", "handed"])


@WAYS
@pytest.mark.parametrize("wire", [False, True])
def test_they_are_the_same(tmp_path: Path, wire: bool, way: str) -> None:
    asyncio.run(worked(tmp_path, wire, way))
    made, impossible = asyncio.run(redecided(tmp_path))
    assert {each.run.id: (each.differences, each.run) for each in made if each.differences} == {}
    beside = [each for each in made if getattr(each.run, way)]
    placed = [each for each in beside if each.run.destinations]
    assert [len(each.run.instances) for each in placed] == [1, 2]
    assert [each.run.destinations[0].selected.generation for each in placed] == [2, 2]
    assert all(bool(each.run.told) == wire for each in placed)
    assert sum(each.run.refusal is not None for each in beside) >= 1 + wire
    assert sum(impossible.values()) <= 1
    assert all("consumer generation conflict" in text for text in impossible)


@WAYS
def test_on_todays_state_what_they_hold_counts_as_used(tmp_path: Path, way: str) -> None:
    asyncio.run(worked(tmp_path, False, way))
    made, _ = asyncio.run(redecided(tmp_path, Changes(now=True)))
    beside = [each for each in made if getattr(each.run, way)]
    assert beside
    assert all("generation conflict" not in str(each.outcome.refusal) for each in beside)
