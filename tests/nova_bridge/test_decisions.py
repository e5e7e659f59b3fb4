"""Calls of Nova are decided as by its own scheduler, also those whose instance holds something already."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.spec import RequestSpec
from roost.nova.calls import NovaRefusal, SelectCall
from roost.nova.database.states import EVACUATION
from roost.nova.decisions import (
    BAD_REQUEST,
    NETWORKS_UNKNOWN,
    NOT_ENOUGH_HOSTS,
    PLACEMENT_AWAY,
    AnswerOptions,
    NovaDecisions,
)
from roost.nova.instance_facts import InstanceFacts, UnfinishedMigration
from roost.nova.networks import NetworksUnknown
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.placement.service import PlacementService
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler import Scheduler
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.selection.host_pools import HostPools
from roost.storage import DatabaseUnavailable
from support.clouds import NOW, Cloud, filled, flat, holding, uuid_of
from support.nova_specs import UUID, flavor, made, request_spec

OTHER = uuid_of(0xB1)
THREE_ATTEMPTS = AnswerOptions(max_attempts=3)
ASKED = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}


class Bridge:
    """The decisions of a bridge on a ledger, with facts of instances as a test says."""

    def __init__(
        self, ledger: Ledger, scheduler: Scheduler, records: RecordQueue, options: AnswerOptions
    ) -> None:
        self.ledger = ledger
        self.table = scheduler.table
        self.facts_of: dict[str, InstanceFacts] = {}
        self.away = self.networks_away = False
        self.looks = self.renewals = self.changes = 0
        self.decide = NovaDecisions(
            scheduler,
            PlacementService(ledger),
            records,
            self,
            options,
            self,
            checked=False,
            filled=self._filled,
            sleep=self._sleep,
        )

    async def facts(self, instance: str) -> InstanceFacts | None:
        if self.away:
            raise DatabaseUnavailable("a cell does not answer")
        self.looks += 1
        return self.facts_of.get(instance)

    async def look(self) -> None: ...

    async def renew(self) -> None:
        self.renewals += 1

    async def _sleep(self, seconds: float) -> None: ...

    async def _filled(self, spec: RequestSpec) -> RequestSpec:
        if self.networks_away:
            raise NetworksUnknown("the network service does not answer: http://neutron")
        return spec

    async def call(self, spec: dict[str, Any] | None = None, *instances: str, **more: Any) -> list[Any]:
        more.setdefault("request_id", "req-1")
        return await self.decide(SelectCall(spec or request_spec(), instances or (UUID,), **more))

    async def hosts(self, *args: Any, **more: Any) -> list[list[str]]:
        found = await self.call(*args, **more)
        return [[each["nova_object.data"]["service_host"] for each in one] for one in found]

    async def hold(self, consumer: str, *numbers: int) -> None:
        held = {uuid_of(number): dict(ASKED) for number in numbers}
        await self.ledger.execute(WriteAllocations((holding(consumer, held),)))

    def held(self, consumer: str = UUID) -> dict[str, dict[str, int]]:
        found = self.ledger.database.read_now(held_by_all).get(consumer)
        return {} if found is None else dict(found.allocations)

    def version(self) -> int:
        return self.ledger.known().version


Work = Callable[[Bridge], Coroutine[Any, Any, None]]


@asynccontextmanager
async def opened(
    folder: Path, cloud: Cloud, options: AnswerOptions = THREE_ATTEMPTS
) -> AsyncIterator[Bridge]:
    records = RecordQueue(await open_sql_records(f"sqlite:///{folder / 'records.db'}", Retention()))
    try:
        async with filled(folder / "placement.db", cloud) as ledger:
            scheduler = Scheduler(LocalGateway(ledger, HostPools(cloud.table())), records, lambda: NOW)
            yield Bridge(ledger, scheduler, records, options)
    finally:
        await records.close()


@pytest.fixture
def bridged(tmp_path: Path) -> Callable[[Work], None]:
    """Runs work on the bridge of a cloud of four equal hosts."""

    def run(work: Work) -> None:
        async def whole() -> None:
            async with opened(tmp_path, flat(4)) as bridge:
                await work(bridge)

        asyncio.run(whole())

    return run


def test_a_boot_is_claimed_with_alternates(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        [hosts] = await bridge.hosts()
        assert len(set(hosts)) == 3
        assert [*bridge.held().values()] == [ASKED]
        assert bridge.looks == 0, "a usual boot reads no cell"
        [one] = await bridge.hosts(None, OTHER, alternates=False)
        assert len(one) == 1

    bridged(work)


def test_callers_without_objects_get_the_dicts_of_before_them(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        [found] = await bridge.call(objects=False)
        assert found.keys() == {"host", "nodename", "limits"}
        assert found["host"] == found["nodename"]

    bridged(work)


def test_several_instances_have_a_list_each(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        found = await bridge.hosts(request_spec(num_instances=2), UUID, OTHER)
        assert [len(each) for each in found] == [3, 3]
        assert bridge.held(UUID) and bridge.held(OTHER)

    bridged(work)


def test_a_refusal_names_no_host(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call(request_spec(flavor=flavor(vcpus=9)))
        assert refused.value.kind == "NoValidHost"
        reason = refused.value.kwargs["reason"]
        assert "host0" not in reason and "\n" not in reason and "VCPU" in reason
        assert not bridge.held()
        assert bridge.renewals == 1

    bridged(work)


def test_without_public_reasons_a_refusal_has_novas_words(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path, flat(4), AnswerOptions(public_reasons=False)) as bridge:
            with pytest.raises(NovaRefusal) as refused:
                await bridge.call(request_spec(flavor=flavor(vcpus=9)))
            assert refused.value.kwargs == {"reason": ""}, "placement offers none"
            with pytest.raises(NovaRefusal) as refused:
                await bridge.call(request_spec(ignore_hosts=[f"host{number}" for number in range(4)]))
            assert refused.value.kwargs == {"reason": NOT_ENOUGH_HOSTS}

    asyncio.run(work())


def test_a_conflict_about_a_claim_that_is_gone_is_told_as_one(
    bridged: Callable[[Work], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(bridge: Bridge) -> None:
        async def conflict(*_: Any) -> None:
            raise ConcurrentUpdate("the consumer has another generation")

        monkeypatch.setattr(Scheduler, "select_destinations", conflict)
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call()
        assert refused.value.kind == "AllocationUpdateFailed"
        assert refused.value.kwargs["consumer_uuid"] == UUID

    bridged(work)


def test_a_spec_that_cannot_be_served_is_a_refusal_too(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call(request_spec(force_hosts=["nowhere"]))
        assert refused.value.kwargs == {"reason": BAD_REQUEST}

    bridged(work)


def test_a_call_that_comes_twice_claims_once(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        first = await bridge.call()
        held, version = bridge.held(), bridge.version()
        assert await bridge.call() == first
        assert (bridge.held(), bridge.version()) == (held, version)

    bridged(work)


def test_a_call_that_comes_to_another_process_is_answered_from_what_is_held(
    bridged: Callable[[Work], None],
) -> None:
    async def work(bridge: Bridge) -> None:
        # The first scheduler has died before its run was recorded.
        await bridge.hold(UUID, 2)
        version = bridge.version()
        assert await bridge.hosts() == [["host2"]]
        assert bridge.version() == version

    bridged(work)


def test_audit_that_judged_a_claim_before_it_was_answered_frees_nothing(
    bridged: Callable[[Work], None],
) -> None:
    async def work(bridge: Bridge) -> None:
        # An unshelve whose first answer was lost: the instance is in a cell, and on no host.
        bridge.facts_of[UUID] = InstanceFacts("cell1", None, None)
        first = await bridge.call()
        held = bridge.held()
        free = msgspec.structs.replace(holding(UUID, {}), generation=1)
        assert await bridge.call() == first
        with pytest.raises(ConcurrentUpdate):
            await bridge.ledger.execute(WriteAllocations((free,)))
        assert bridge.held() == held

    bridged(work)


def test_what_is_held_for_another_request_is_no_answer(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        await bridge.hold(UUID, 2)
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call(request_spec(flavor=flavor(vcpus=2)))
        assert refused.value.kind == "AllocationUpdateFailed"

    bridged(work)


def test_an_evacuation_is_claimed_beside_what_the_instance_holds(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        await bridge.hold(UUID, 0)
        leaving = UnfinishedMigration(OTHER, EVACUATION, "host0", "host0")
        bridge.facts_of[UUID] = InstanceFacts("cell1", "host0", "host0", (leaving,))
        [[host]] = await bridge.hosts(request_spec(ignore_hosts=["host0"]), alternates=False)
        node = uuid_of(int(host.removeprefix("host")))
        assert bridge.held() == {uuid_of(0): ASKED, node: ASKED}

    bridged(work)


def test_a_second_delivery_of_an_evacuation_claims_nothing_more(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        await bridge.hold(UUID, 0)
        leaving = UnfinishedMigration(OTHER, EVACUATION, "host0", "host0")
        bridge.facts_of[UUID] = InstanceFacts("cell1", "host0", "host0", (leaving,))
        spec = request_spec(ignore_hosts=["host0"])
        first = await bridge.call(spec, alternates=False)
        held = bridge.held()
        assert await bridge.call(spec, alternates=False) == first
        assert bridge.held() == held

    bridged(work)


@pytest.mark.parametrize("migrations", [(), (UnfinishedMigration(OTHER, "resize", "host0", "host0"),)])
def test_a_late_decision_claims_nothing_for_an_instance_on_its_host(
    bridged: Callable[[Work], None], migrations: tuple[UnfinishedMigration, ...]
) -> None:
    async def work(bridge: Bridge) -> None:
        # The conductor has given up, and has moved the migration's allocation back to the instance.
        await bridge.hold(UUID, 0)
        bridge.facts_of[UUID] = InstanceFacts("cell1", "host0", "host0", migrations)
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call()
        assert refused.value.kind == "AllocationUpdateFailed"
        assert refused.value.kwargs["consumer_uuid"] == UUID
        assert bridge.held() == {uuid_of(0): ASKED}

    bridged(work)


def test_while_a_cell_is_away_nothing_is_claimed_beside(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        await bridge.hold(UUID, 0)
        bridge.away = True
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call()
        assert refused.value.kwargs == {"reason": PLACEMENT_AWAY}
        assert bridge.held() == {uuid_of(0): ASKED}

    bridged(work)


def test_the_migration_that_holds_for_an_instance_does_not_count_against_it(
    bridged: Callable[[Work], None],
) -> None:
    async def work(bridge: Bridge) -> None:
        group = made("InstanceGroup", "1.11", uuid=uuid_of(0x61), policy="anti-affinity", hosts=[])
        [[host]] = await bridge.hosts(request_spec(instance_group=group), alternates=False)
        node = uuid_of(int(host.removeprefix("host")))
        # Nova moves the claim to the migration, and asks for the same host.
        moved = holding(OTHER, bridge.held())
        away = msgspec.structs.replace(holding(UUID, {}), generation=1)
        await bridge.ledger.execute(WriteAllocations((away, moved)))
        migration = UnfinishedMigration(OTHER, "resize", host, host)
        bridge.facts_of[UUID] = InstanceFacts("cell1", host, host, (migration,))
        group["nova_object.data"]["hosts"] = [host]
        there = made("Destination", "1.4", host=host)
        found = await bridge.hosts(
            request_spec(instance_group=group, requested_destination=there), alternates=False
        )
        assert found == [[host]]
        assert bridge.held() == {node: ASKED}

    bridged(work)


def test_networks_that_cannot_be_read_are_no_valid_host_and_nothing_is_claimed(
    bridged: Callable[[Work], None],
) -> None:
    async def work(bridge: Bridge) -> None:
        bridge.networks_away = True
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call()
        assert refused.value.kind == "NoValidHost"
        assert refused.value.kwargs == {"reason": NETWORKS_UNKNOWN}
        assert bridge.held() == {}
        bridge.networks_away = False
        await bridge.call()
        assert bridge.held() != {}

    bridged(work)


def test_a_boot_into_a_group_needs_no_cell_that_is_away(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        bridge.away = True
        group = made("InstanceGroup", "1.11", uuid=uuid_of(0x61), policy="anti-affinity", hosts=[])
        [[_]] = await bridge.hosts(request_spec(instance_group=group), alternates=False)
        assert bridge.held()

    bridged(work)


def test_another_unshelve_is_not_answered_by_the_claim_of_an_earlier_one(
    bridged: Callable[[Work], None],
) -> None:
    async def work(bridge: Bridge) -> None:
        bridge.facts_of[UUID] = InstanceFacts("cell1", None, None)
        first = await bridge.call()
        assert await bridge.call() == first
        held = bridge.held()
        with pytest.raises(NovaRefusal) as refused:
            await bridge.call(request_id="req-2")
        assert refused.value.kind == "AllocationUpdateFailed"
        assert bridge.held() == held

    bridged(work)


def test_a_call_that_comes_twice_still_counts_on_its_node(bridged: Callable[[Work], None]) -> None:
    async def work(bridge: Bridge) -> None:
        await bridge.call()
        before = bridge.table.outstanding.of(UUID)
        assert before is not None
        await bridge.call()
        assert bridge.table.outstanding.of(UUID) == before

    bridged(work)
