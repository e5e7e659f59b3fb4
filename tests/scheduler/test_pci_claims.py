"""Claims of PCI devices on a ledger: none twice before nodes report, freed ones again, cards in trees."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.fleet.hardware.pci_aliases import aliases_from
from roost.model.assignment import Assignment
from roost.model.inventory import Inventory
from roost.model.node import NodeInstance
from roost.model.request import RequestGroup
from roost.model.spec import PciRequest, Selection
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.errors import NoAlternate
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.options import PciOptions
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from support.clouds import NOW, Cloud, Kept, Provider, filled, flat, report, spec, uuid_of
from support.numa_hosts import two_cells
from support.scheduling import INSTANCES, Room, Within

ALIAS = '{"name": "gpu", "vendor_id": "10de", "product_id": "2236"}'
FILTERS = ("ComputeFilter", "PciPassthroughFilter")
CLASS = "CUSTOM_PCI_10DE_2236"


def options(*, in_placement: bool = False) -> SchedulerOptions:
    return SchedulerOptions(filters=FILTERS, pci=PciOptions(aliases_from([ALIAS]), in_placement))


def card(address: str, **more: Any) -> dict[str, object]:
    ids = {"vendor_id": "10de", "product_id": "2236", "dev_type": "type-PCI"}
    return {**ids, "numa_node": None, "count": 1, "address": address, **more}


def two_cards_each(hosts: int) -> Cloud:
    return flat(hosts, pci_device_pools=(card("0000:81:00.0"), card("0000:82:00.0")))


async def placed(room: Room, first: int, count: int, text: str = "gpu:1") -> list[Selection]:
    wanted = spec(extra_specs={"pci_passthrough:alias": text})
    names = INSTANCES[first : first + count]
    destinations = await room.scheduler.select_destinations(HostRequest(wanted, tuple(names)))
    return [each.selected for each in destinations]


def devices(selections: list[Selection]) -> list[tuple[str, str]]:
    found = []
    for each in selections:
        assert each.assignment is not None
        assert each.assignment.node == each.node
        found += [(each.host, address) for address in sorted(each.assignment.addresses)]
    return found


def test_a_burst_gets_each_device_once_and_a_freed_one_again(within: Within) -> None:
    async def work(room: Room) -> None:
        first = await placed(room, 0, 3)
        then = await placed(room, 3, 1)
        taken = devices([*first, *then])
        assert sorted(taken) == [
            (host, address) for host in ("host0", "host1") for address in ("0000:81:00.0", "0000:82:00.0")
        ]
        extra = {"pci_passthrough:alias": "gpu:1"}
        assert "PCI devices free" in await room.refusal(extra_specs=extra)
        await free(room, INSTANCES[2])
        assert devices(await placed(room, 5, 1)) == [taken[2]]
        fleet = await room.ledger.current()
        assert sum(len(fleet.assigned.on(node)) for node in fleet.assigned.nodes()) == 4

    within(two_cards_each(2), work, options())


async def free(room: Room, instance: str) -> None:
    write = ConsumerWrite(
        consumer=instance, allocations={}, project_id="project", user_id="user", generation=1
    )
    await room.ledger.execute(WriteAllocations((write,)))


def test_a_report_that_lists_the_instance_counts_its_devices_once(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await placed(room, 0, 1)
        [(_, taken)] = devices([one])
        left = tuple(
            each for each in two_cards_each(1).reports[0].pci_device_pools if each["address"] != taken
        )
        node = uuid_of(0)
        # The report does not list the instance yet: what it lacks, somebody else must have.
        room.scheduler.table.update([report("host0", node, pci_device_pools=left)])
        [two] = await placed(room, 1, 1)
        assert devices([two]) != devices([one])
        listed = {INSTANCES[0]: NodeInstance("project")}
        room.scheduler.table.update(
            [report("host0", node, pci_device_pools=left, instances=listed, num_instances=1)]
        )
        assert "PCI devices free" in await room.refusal(extra_specs={"pci_passthrough:alias": "gpu:1"})

    within(two_cards_each(1), work, options())


def test_several_devices_and_ports_of_one_request(within: Within) -> None:
    vf = {"vendor_id": "8086", "product_id": "154c", "dev_type": "type-VF", "numa_node": 0}
    pool = vf | {"count": 2, "devices": ["v1", "v2"], "physical_network": "net", "remote_managed": "false"}
    port = PciRequest(id="port", specs=({"physical_network": "net", "remote_managed": "False"},))

    async def work(room: Room) -> None:
        wanted = spec(extra_specs={"pci_passthrough:alias": "gpu:2"}, pci_requests=(port,))
        [one] = await room.scheduler.select_destinations(HostRequest(wanted, tuple(INSTANCES[:1])))
        assert one.selected.host == "host1"
        assert one.selected.assignment is not None
        found = {each.request: each.addresses for each in one.selected.assignment.devices}
        assert found["port"] == ("v1",)
        assert [each.count for each in one.selected.assignment.devices] == [1, 1, 1]

    cloud = two_cards_each(2)
    cloud.reports[1] = msgspec.structs.replace(
        cloud.reports[1], pci_device_pools=(*cloud.reports[1].pci_device_pools, pool)
    )
    within(cloud, work, options())


@pytest.mark.parametrize("extra_specs", [{}, {"hw:numa_nodes": "1"}], ids=["pci", "pci and numa"])
def test_a_port_with_bandwidth_gets_a_device_of_the_card_that_serves_it(
    tmp_path: Path, extra_specs: dict[str, str]
) -> None:
    cards = [uuid_of(0x1000), uuid_of(0x1001)]
    bandwidth = "NET_BW_EGR_KILOBIT_PER_SEC"
    cloud = flat(1)
    cloud.providers += [
        Provider(uuid, {bandwidth: Inventory(total)}, uuid_of(0))
        for uuid, total in zip(cards, (100, 2000), strict=True)
    ]
    vf = {"vendor_id": "8086", "product_id": "154c", "dev_type": "type-VF", "numa_node": 0}
    pools = tuple(
        vf
        | {
            "count": 1,
            "devices": [f"v{number}"],
            "physical_network": "net",
            "parent_ifname": f"name of {uuid}",
        }
        for number, uuid in enumerate(cards)
    )
    cloud.reports = [report("host0", uuid_of(0), pci_device_pools=pools, numa_topology=two_cells())]
    chosen = msgspec.structs.replace(options(), filters=(*FILTERS, "NUMATopologyFilter"))

    async def main() -> None:
        async with filled(tmp_path / "roost.db", cloud) as ledger:
            scheduler = Scheduler(LocalGateway(ledger, HostPools(cloud.table(), chosen)), Kept(), lambda: NOW)

            async def place(port: str, amount: int) -> Assignment | None:
                wanted = spec(
                    extra_specs=extra_specs,
                    requested_resources=(RequestGroup({bandwidth: amount}, port),),
                    pci_requests=(
                        PciRequest(id=port, specs=({"physical_network": "net"},), requester_id=port),
                    ),
                )
                [one] = await scheduler.select_destinations(HostRequest.new(wanted, 1))
                return one.selected.assignment

            first = await place("port-1", 1000)
            assert first is not None
            assert first.addresses == {"v1"}
            with pytest.raises(NoValidHost):
                # The second card has bandwidth and no device, the first one has a device.
                await place("port-2", 1000)
            last = await place("port-3", 50)
            assert last is not None
            assert last.addresses == {"v0"}

    asyncio.run(main())


def test_an_alternate_has_devices_of_its_own(within: Within) -> None:
    async def work(room: Room) -> None:
        wanted = spec(extra_specs={"pci_passthrough:alias": "gpu:2"})
        [one] = await room.scheduler.select_destinations(HostRequest(wanted, tuple(INSTANCES[:1]), 2))
        assert len(one.alternates) == 2
        taker = msgspec.structs.replace(
            wanted, force_hosts=(), ignore_hosts=frozenset({one.selected.host, one.alternates[1].host})
        )
        await room.scheduler.select_destinations(HostRequest(taker, tuple(INSTANCES[1:2])))
        swapped = await room.scheduler.use_alternate(
            AlternateRequest(
                wanted,
                INSTANCES[0],
                one.selected,
                one.alternates,
                reason="broken",
                run=one.run,
                request_id="req-1",
            )
        )
        assert swapped.selected is not None
        assert swapped.selected.host == one.alternates[1].host
        assert len(devices([swapped.selected])) == 2
        # What the failed host had is free again.
        again = msgspec.structs.replace(wanted, ignore_hosts=frozenset())
        [other] = await room.scheduler.select_destinations(HostRequest(again, tuple(INSTANCES[2:3])))
        assert other.selected.host == one.selected.host
        failed, full = swapped.selected, one.alternates[:1]
        with pytest.raises(NoAlternate):
            await room.scheduler.use_alternate(
                AlternateRequest(
                    wanted,
                    INSTANCES[0],
                    failed,
                    tuple(full),
                    reason="broken",
                    run=one.run,
                    request_id="req-1",
                )
            )

    within(two_cards_each(3), work, options())


def in_tree(cards: int) -> Cloud:
    """One host whose cards are resource providers as well."""
    cloud = flat(1)
    for number in range(cards):
        cloud.providers.append(Provider(uuid_of(0x1000 + number), {CLASS: Inventory(1)}, uuid_of(0)))
    pools = tuple(
        card(f"0000:{number:02x}:00.0", rp_uuid=uuid_of(0x1000 + number)) for number in range(cards)
    )
    cloud.reports = [report("host0", uuid_of(0), pci_device_pools=pools)]
    return cloud


def test_devices_are_those_that_the_claim_names_in_placement(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await placed(room, 0, 1, "gpu:2")
        providers = sorted(one.mappings[f"pci_0-{number}"][0] for number in range(2))
        assert one.assignment is not None
        assert sorted(each.pool.partition("rp_uuid=")[2] for each in one.assignment.devices) == providers
        # All that are left, of which the groups can be served in 6! orders.
        [all_others] = await placed(room, 1, 1, "gpu:6")
        assert not set(devices([one])) & set(devices([all_others]))
        extra = {"pci_passthrough:alias": "gpu:1"}
        await room.refusal(extra_specs=extra)

    within(in_tree(8), work, options(in_placement=True))


def test_virtual_gpus_of_one_group_are_of_one_physical_gpu(within: Within) -> None:
    def cloud(*sizes: int) -> Cloud:
        made = flat(1)
        for number, size in enumerate(sizes):
            made.providers.append(Provider(uuid_of(0x1000 + number), {"VGPU": Inventory(size)}, uuid_of(0)))
        return made

    async def fits(room: Room) -> None:
        [one] = await room.scheduler.select_destinations(
            HostRequest(spec(extra_specs={"resources:VGPU": "2"}), tuple(INSTANCES[:1]))
        )
        assert one.selected.allocations[uuid_of(0x1001)] == {"VGPU": 2}
        await room.refusal(extra_specs={"resources:VGPU": "2"})
        assert await room.scheduler.select_destinations(
            HostRequest(spec(extra_specs={"resources:VGPU": "1"}), tuple(INSTANCES[1:2]))
        )

    within(cloud(1, 2), fits)


def test_the_mapping_of_accelerators_is_part_of_the_claim(within: Within) -> None:
    async def work(room: Room) -> None:
        groups = tuple(RequestGroup({CLASS: 1}, f"device_profile_{number}") for number in range(2))
        [one] = await room.scheduler.select_destinations(
            HostRequest(spec(requested_resources=groups), tuple(INSTANCES[:1]))
        )
        chosen = {suffix: uuids for suffix, uuids in one.selected.mappings.items() if suffix}
        assert chosen.keys() == {"device_profile_0", "device_profile_1"}
        for [uuid] in chosen.values():
            assert one.selected.allocations[uuid] == {CLASS: 1}

    within(in_tree(2), work)
