"""Hosts whose NUMA nodes are child providers: requests with NUMA nodes, and others that are split."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from roost.fleet.hardware.pci_aliases import aliases_from
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.spec import Destination, RequestSpec
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.options import PciOptions, RequestFilterOptions
from roost.scheduler.request.demand.numa_groups import NUMA_ROOT, NumaModel
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from support.clouds import NOW, Cloud, Kept, Provider, filled, flat, over_http, report, spec, uuid_of
from support.wire import Room, Within

TWO_NODES = {"hw:numa_nodes": "2"}
WIRES = pytest.mark.parametrize("wire", [False, True], ids=["in the process", "over HTTP"])


def numa(host: int, node: int) -> str:
    return uuid_of(0x1000 + 16 * host + node)


def trees(count: int, vcpus: int = 4, memory_mb: int = 4096, **more: int) -> Cloud:
    """Return hosts with a disk and two NUMA nodes each."""
    has = {"VCPU": Inventory(vcpus), "PCPU": Inventory(4), "MEMORY_MB": Inventory(memory_mb)}
    has |= {name: Inventory(total) for name, total in more.items()}
    providers = []
    for host in range(count):
        providers.append(Provider(uuid_of(host), {"DISK_GB": Inventory(100)}))
        providers += [
            Provider(numa(host, node), dict(has), uuid_of(host), frozenset((NUMA_ROOT,))) for node in range(2)
        ]
    return Cloud(providers, [report(f"host{host}", uuid_of(host)) for host in range(count)])


@asynccontextmanager
async def scheduling(
    folder: Path, cloud: Cloud, wire: bool, model: NumaModel = "trees", **more: object
) -> AsyncIterator[Scheduler]:
    options = SchedulerOptions(request_filters=RequestFilterOptions(numa_model=model), **more)  # type: ignore[arg-type]
    async with filled(folder / "roost.db", cloud) as ledger, over_http(ledger) as placement:
        pools = HostPools(cloud.table(), options)
        gateway: Gateway = HttpGateway(placement, pools) if wire else LocalGateway(ledger, pools)
        yield Scheduler(gateway, Kept(), lambda: NOW)


def taken(placed: Destination, host: int, name: str) -> list[int]:
    """Return the amounts of a class on the NUMA nodes of a host."""
    return [placed.selected.allocations.get(numa(host, node), {}).get(name, 0) for node in range(2)]


@WIRES
def test_each_numa_node_of_a_guest_is_on_a_node_of_the_host(tmp_path: Path, wire: bool) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, trees(1), wire) as scheduler:
            wanted = spec(4, 2048, extra_specs=TWO_NODES)
            [first] = await scheduler.select_destinations(HostRequest.new(wanted, 1))
            assert (taken(first, 0, "VCPU"), taken(first, 0, "MEMORY_MB")) == ([2, 2], [1024, 1024])
            assert {*first.selected.mappings} == {"", "_NUMA0", "_NUMA1"}
            pinned = spec(2, 2048, extra_specs={"hw:cpu_policy": "dedicated"})
            [second] = await scheduler.select_destinations(HostRequest.new(pinned, 1))
            assert sorted(taken(second, 0, "PCPU")) == [0, 2]
            [third] = await scheduler.select_destinations(HostRequest.new(wanted, 1))
            assert taken(third, 0, "VCPU") == [2, 2]
            with pytest.raises(NoValidHost):
                await scheduler.select_destinations(HostRequest.new(wanted, 1))

    asyncio.run(main())


@WIRES
def test_a_request_without_numa_nodes_is_split_where_no_node_has_all(tmp_path: Path, wire: bool) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, trees(2), wire) as scheduler:
            [small] = await scheduler.select_destinations(HostRequest.new(spec(1, 512), 1, 1))
            host = int(small.selected.host[-1])
            [other] = small.alternates
            [split] = await scheduler.select_destinations(HostRequest.new(spec(6, 512), 1))
            there = int(split.selected.host[-1])
            assert sorted(taken(split, there, "VCPU")) == ([2, 4] if there != host else [3, 3])
            assert other.host != small.selected.host
            assert {*split.selected.mappings[""]} == {*split.selected.allocations}

    asyncio.run(main())


def test_a_later_request_is_split_among_what_earlier_ones_have_left(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, trees(1), False) as scheduler:
            placed = await scheduler.select_destinations(HostRequest.new(spec(3, 512), 2))
            assert [sorted(taken(each, 0, "VCPU")) for each in placed] == [[0, 3], [0, 3]]
            [last] = await scheduler.select_destinations(HostRequest.new(spec(2, 512), 1))
            assert taken(last, 0, "VCPU") == [1, 1]

    asyncio.run(main())


def test_a_run_goes_on_by_splits_when_the_unsplit_candidates_are_used_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, trees(1, vcpus=5), False) as scheduler:
            placed = await scheduler.select_destinations(HostRequest.new(spec(3, 512), 3))
            assert [sorted(taken(each, 0, "VCPU")) for each in placed] == [[0, 3], [0, 3], [1, 2]]

    asyncio.run(main())


@WIRES
def test_an_alternate_gives_its_own_nodes(tmp_path: Path, wire: bool) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, trees(4), wire) as scheduler:
            for wanted in (spec(4, 1024, extra_specs=TWO_NODES), spec(6, 512)):
                [placed] = await scheduler.select_destinations(HostRequest.new(wanted, 1, 1))
                found = await scheduler.use_alternate(
                    AlternateRequest(
                        wanted,
                        placed.instance,
                        placed.selected,
                        placed.alternates,
                        reason="no IP",
                        run=placed.run,
                        request_id="req-1",
                    )
                )
                assert found.selected is not None
                host = int(found.selected.host[-1])
                assert host != int(placed.selected.host[-1])
                amounts = [found.selected.allocations[numa(host, node)]["VCPU"] for node in range(2)]
                assert sum(amounts) == wanted.flavor.vcpus

    asyncio.run(main())


@WIRES
def test_memory_is_in_huge_pages_of_the_best_size_that_a_host_has(tmp_path: Path, wire: bool) -> None:
    async def main() -> None:
        cloud = trees(1, CUSTOM_HUGEPAGES_2048KB=600)
        async with scheduling(tmp_path, cloud, wire) as scheduler:
            pages = {"hw:mem_page_size": "large"}
            [placed] = await scheduler.select_destinations(
                HostRequest.new(spec(1, 1024, extra_specs=pages), 1)
            )
            assert sorted(taken(placed, 0, "CUSTOM_HUGEPAGES_2048KB")) == [0, 512]
            with pytest.raises(BadRequestSpec, match="No such resource class CUSTOM_HUGEPAGES_1048576KB"):
                only = {"hw:mem_page_size": "1GB"}
                await scheduler.select_destinations(HostRequest.new(spec(1, 1024, extra_specs=only), 1))

    asyncio.run(main())


@WIRES
def test_hosts_that_report_topologies_and_hosts_that_are_trees_serve_together(
    tmp_path: Path, wire: bool
) -> None:
    async def main() -> None:
        cloud = flat(1)
        tree = trees(2)
        providers = [each for each in tree.providers if each.uuid != uuid_of(0) and each.parent != uuid_of(0)]
        cloud.providers.extend(providers)
        cloud.reports.append(tree.reports[1])
        filters = ("ComputeFilter", "NUMATopologyFilter")
        async with scheduling(tmp_path, cloud, wire, "both", filters=filters) as scheduler:
            # The flat host reports no topology, so that the tree is the only one that serves.
            [placed] = await scheduler.select_destinations(
                HostRequest.new(spec(4, 1024, extra_specs=TWO_NODES), 1)
            )
            assert placed.selected.host == "host1"
            assert taken(placed, 1, "VCPU") == [2, 2]

    asyncio.run(main())


def no_pages(within: Within, wanted: RequestSpec, text: str) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(BadRequestSpec, match=re.escape(text)):
            await room.scheduler.select_destinations(HostRequest.new(wanted, 1))

    within(trees(1), work, numa_model="trees")


def test_a_placement_service_that_is_not_roost_is_not_asked_to_split(within: Within) -> None:
    text = "it cannot split VCPU or MEMORY_MB among the providers of a tree (can_split)"
    no_pages(within, spec(6, 512), text)


def test_numa_nodes_alone_are_asked_of_any_placement_service(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.scheduler.select_destinations(
            HostRequest.new(spec(4, 1024, extra_specs=TWO_NODES), 1)
        )
        assert taken(placed, 0, "VCPU") == [2, 2]
        port = (RequestGroup({"PCPU": 1}, "_port"),)
        wanted = spec(2, 1024, extra_specs=TWO_NODES, requested_resources=port)
        with pytest.raises(BadRequestSpec, match="keep some of the request groups apart"):
            await room.scheduler.select_destinations(HostRequest.new(wanted, 1))

    within(trees(1), work, numa_model="trees")


def test_the_client_reads_splits_to_its_limit(tmp_path: Path) -> None:
    async def main() -> None:
        async with filled(tmp_path / "roost.db", trees(3)) as ledger, over_http(ledger) as placement:
            group = RequestGroup({"VCPU": 6})
            query = CandidateQuery((group,), can_split=("VCPU",))
            for limit in (2, 3, None):
                requests, summaries = await placement.candidates(query, limit)
                assert len(requests) == (limit or 3)
                assert len(summaries) == 3 * (limit or 3)

    asyncio.run(main())


def test_a_refusal_names_what_no_host_has_even_if_it_were_split(tmp_path: Path) -> None:
    async def main() -> None:
        async with scheduling(tmp_path, trees(2), False) as scheduler:
            with pytest.raises(NoValidHost) as refused:
                await scheduler.select_destinations(HostRequest.new(spec(9, 512), 1))
            assert "9 VCPU" in str(refused.value)
            with pytest.raises(NoValidHost) as refused:
                await scheduler.select_destinations(HostRequest.new(spec(10, 512, extra_specs=TWO_NODES), 1))
            assert "5 VCPU" in str(refused.value)

    asyncio.run(main())


ALIAS = '{"name": "gpu", "vendor_id": "10de", "product_id": "2236"}'
GPU = "CUSTOM_PCI_10DE_2236"
DEVICES = PciOptions(aliases_from([ALIAS], in_placement=True), in_placement=True)


def card(node: int) -> str:
    """Return the card below a node of the one host."""
    return uuid_of(0x2000 + node)


@WIRES
def test_devices_below_the_nodes_of_a_guest_are_close_to_it(tmp_path: Path, wire: bool) -> None:
    cloud = trees(1)
    cloud.providers += [Provider(card(node), {GPU: Inventory(1)}, numa(0, node)) for node in range(2)]

    async def main() -> None:
        async with scheduling(tmp_path, cloud, wire, pci=DEVICES) as scheduler:

            def wanted(vcpus: int, policy: str, count: int = 1, nodes: int = 1) -> RequestSpec:
                extra = {"hw:numa_nodes": str(nodes), "pci_passthrough:alias": f"gpu:{count}"}
                return spec(vcpus, 256, extra_specs={**extra, "hw:pci_numa_affinity_policy": policy})

            with pytest.raises(NoValidHost):
                await scheduler.select_destinations(HostRequest.new(wanted(1, "required", 2), 1))
            [first] = await scheduler.select_destinations(HostRequest.new(wanted(2, "required"), 1))
            [at] = [node for node in range(2) if first.selected.mappings["_NUMA0"] == [numa(0, node)]]
            assert first.selected.mappings["pci_0-0"] == [card(at)]
            # The node of the other card is full after this.
            await scheduler.select_destinations(
                HostRequest.new(spec(4, 256, extra_specs={"hw:numa_nodes": "1"}), 1)
            )
            for policy in ("required", "socket"):
                with pytest.raises(NoValidHost):
                    await scheduler.select_destinations(HostRequest.new(wanted(2, policy), 1))
            [last] = await scheduler.select_destinations(HostRequest.new(wanted(2, "preferred"), 1))
            assert last.selected.mappings["pci_0-0"] == [card(1 - at)]
            assert last.selected.mappings["_NUMA0"] == [numa(0, at)]

    asyncio.run(main())


@WIRES
def test_devices_are_divided_among_the_nodes_of_a_guest(tmp_path: Path, wire: bool) -> None:
    cloud = trees(1)
    cloud.providers += [Provider(card(node), {GPU: Inventory(1)}, numa(0, node)) for node in range(2)]

    async def main() -> None:
        async with scheduling(tmp_path, cloud, wire, pci=DEVICES) as scheduler:
            extra = {**TWO_NODES, "pci_passthrough:alias": "gpu:2", "hw:pci_numa_affinity_policy": "required"}
            [placed] = await scheduler.select_destinations(
                HostRequest.new(spec(2, 256, extra_specs=extra), 1)
            )
            cards = {placed.selected.mappings[f"pci_0-{number}"][0] for number in range(2)}
            assert cards == {card(0), card(1)}

    asyncio.run(main())
