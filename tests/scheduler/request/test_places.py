"""Hosts that a request names, pairs of queries, and rebuilds: what is claimed and what the record says."""

from typing import Any

import numpy as np
import pytest

from roost.fleet.columns import Bools
from roost.model.inventory import Inventory
from roost.model.spec import Image, RequestedDestination, RequestedNetwork
from roost.scheduler import SchedulerOptions
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec, RequestFilterFailed
from roost.scheduler.nodes.cells import uuid_of_cell
from roost.scheduler.options import RequestFilterOptions, Workarounds
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from support.clouds import Cloud, Provider, flat, report, uuid_of
from support.scheduling import Room, Within

AGGREGATE = uuid_of(0xA6)
AWAY = {"extra_specs": {"aggregate_instance_extra_specs:ssd": "yes"}}
"""A request that the filter of extra specs keeps from every host."""


class ImageFilter:
    """A filter that runs on rebuild and lets an image with one property pass on one host only."""

    name = "ImageFilter"
    depends_on_claims = False
    runs_on_rebuild = True

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        named = request.spec.image_properties.get("only", "host0")
        return np.array([hosts.table.hosts[index] == named for index in hosts.index.tolist()])


def farm() -> Cloud:
    """Two hosts of one node each, and a service with two nodes in another cell."""
    inventories = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192), "DISK_GB": Inventory(100)}
    names = [("host0", ""), ("host1", ""), ("farm", "n2"), ("farm", "n3")]
    return Cloud(
        [Provider(uuid_of(number), dict(inventories)) for number in range(4)],
        [
            report(host, uuid_of(number), nodename=name, cell="cell2" if name else "cell1")
            for number, (host, name) in enumerate(names)
        ],
    )


def nodes(room: Room) -> set[str]:
    """The nodes that hold anything."""
    return {node for allocations in room.held().values() for node in allocations}


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({"requested_host": "farm"}, {2, 3}),
        ({"requested_destination": RequestedDestination(host="farm", node="n3")}, {3}),
        ({"requested_destination": RequestedDestination(cell="cell2")}, {2, 3}),
        ({"requested_destination": RequestedDestination(cell="cell2", cell_uuid=uuid_of(0xCE))}, {2, 3}),
        (
            {"requested_destination": RequestedDestination(cell="one", cell_uuid=uuid_of_cell("cell2"))},
            {2, 3},
        ),
        ({"requested_destination": RequestedDestination(host="FARM", node="N3")}, {3}),
        ({"force_hosts": ("Host1",), "ignore_hosts": frozenset({"Farm"})}, {1}),
        ({"ignore_hosts": frozenset({"FARM", "HOST0"})}, {1}),
        ({"force_nodes": ("N2",)}, {2}),
        ({"force_hosts": ("farm", "host1")}, {1, 2, 3}),
        ({"force_nodes": ("n2",)}, {2}),
        ({"ignore_hosts": frozenset({"farm"})}, {0, 1}),
        ({"retried_hosts": frozenset({"host0", "gone"})}, {1, 2, 3}),
        (
            {"requested_destination": RequestedDestination(cell="cell2", allow_cross_cell_move=True)},
            {0, 1, 2, 3},
        ),
    ],
)
def test_only_the_named_places_are_used(within: Within, wishes: dict[str, Any], expected: set[int]) -> None:
    async def work(room: Room) -> None:
        # An instance takes more than half of a node.
        await room.place(len(expected), 0, 5, **wishes)
        assert nodes(room) == {uuid_of(number) for number in expected}

    async def one_more(room: Room) -> None:
        assert await room.refusal(len(expected) + 1, 0, 5, **wishes)

    within(farm(), one_more)
    within(farm(), work)


def test_the_record_names_the_place_that_left_no_host(within: Within) -> None:
    async def work(room: Room) -> None:
        reason = await room.refusal(
            1, 0, force_hosts=("host0", "host1"), retried_hosts=frozenset({"host0", "host1"})
        )
        assert reason == (
            "2 of 4 hosts are none of the hosts that have failed the request; none of these is the host that "
            "the request names; the closest, farm/n2, is not the host that the request names"
        )
        steps = [(step.name, step.left) for step in room.kept.runs[0].steps]
        assert steps[-2:] == [("retried_hosts", 2), ("force_hosts", 0)]

    within(farm(), work)


def test_forced_hosts_are_judged_by_no_filter_but_claimed(within: Within) -> None:
    async def work(room: Room) -> None:
        assert "AggregateInstanceExtraSpecsFilter" in await room.refusal(1, 0, **AWAY)
        hints = {"_nova_check_type": ("live_migrate",)}
        judged = await room.refusal(1, 0, force_hosts=("host0",), scheduler_hints=hints, **AWAY)
        assert "AggregateInstanceExtraSpecsFilter" in judged
        assert "VCPU" in await room.refusal(1, 0, 9, force_hosts=("host0",))
        assert await room.place(1, 0, force_hosts=("host1",), **AWAY) == ["host1"]

    within(farm(), work, SchedulerOptions(filters=("AggregateInstanceExtraSpecsFilter",)))


def pinned() -> Cloud:
    """host0 offers PCPU, host1 only VCPU, host2 neither."""
    rest = {"MEMORY_MB": Inventory(8192), "DISK_GB": Inventory(100)}
    kinds: list[dict[str, Inventory]] = [{"PCPU": Inventory(4)}, {"VCPU": Inventory(4)}, {}]
    return Cloud(
        [Provider(uuid_of(number), {**kind, **rest}) for number, kind in enumerate(kinds)],
        [report(f"host{number}", uuid_of(number)) for number in range(3)],
    )


DEDICATED = {"extra_specs": {"hw:cpu_policy": "dedicated"}}


def test_dedicated_processors_are_taken_from_pcpu_and_where_there_are_none_from_vcpu(within: Within) -> None:
    async def work(room: Room) -> None:
        assert sorted(await room.place(2, 1, 3, **DEDICATED)) == ["host0", "host1"]
        taken = [allocations for held in room.held().values() for allocations in held.values()]
        assert sorted(name for each in taken for name in each if name.endswith("CPU")) == ["PCPU", "VCPU"]

    async def three(room: Room) -> None:
        reason = await room.refusal(3, 0, 3, **DEDICATED)
        assert reason == (
            "only 2 of 3 instances fit: none of 3 hosts has 3 PCPU free; "
            "the closest, host0, has 1 of the 3 PCPU wanted; it fits with 1 PCPU instead of 3"
        )
        assert "has 5 PCPU free" in await room.refusal(1, 0, 5, **DEDICATED)

    within(pinned(), work)
    within(pinned(), three)


def test_dedicated_processors_are_only_pcpu_by_option(within: Within) -> None:
    async def work(room: Room) -> None:
        reason = await room.refusal(2, 0, 3, **DEDICATED)
        assert reason.startswith("only 1 of 2 instances fit: none of 3 hosts has 3 PCPU free")
        assert await room.place(1, 1, 3, **DEDICATED) == ["host0"]

    within(pinned(), work, SchedulerOptions(workarounds=Workarounds(disable_fallback_pcpu_query=True)))


def test_rebuild_is_judged_by_filters_that_say_so_and_claims_nothing(within: Within) -> None:
    async def work(room: Room) -> None:
        here = {"operation": "rebuild", "requested_host": "host0", **AWAY}
        # The instance takes the whole host: placement would find no room for another one.
        assert await room.place(1, 0, 99, **here) == ["host0"]
        assert room.held() == {}
        other = {**here, "image": Image(properties={"only": "host1"})}
        assert await room.refusal(1, 0, 99, **other) == "no host left after ImageFilter"
        with pytest.raises(BadRequestSpec, match="a rebuild names the host of its instance"):
            await room.place(1, operation="rebuild")

    path = f"{ImageFilter.__module__}.ImageFilter"
    options = SchedulerOptions(
        filters=("AggregateInstanceExtraSpecsFilter", "ImageFilter"), available_filters=(path,)
    )
    within(farm(), work, options)


def test_segments_of_networks_are_looked_up_in_placement(within: Within) -> None:
    segments = [uuid_of(0x51), uuid_of(0x52), uuid_of(0x53)]
    cloud = flat(3)
    cloud.providers[1].aggregates = frozenset({AGGREGATE})
    cloud.providers.append(Provider(segments[0], {}, aggregates=frozenset({AGGREGATE})))
    cloud.providers.append(Provider(segments[1], {}))

    async def work(room: Room) -> None:
        for segment in segments[1:]:  # One is in no aggregate, and one is unknown.
            with pytest.raises(RequestFilterFailed, match=f"port p: segment {segment} is in no aggregate"):
                await room.place(requested_networks=(RequestedNetwork(port_id="p", segments=(segment,)),))
        networks = (RequestedNetwork(port_id="p", segments=(segments[0],)),)
        assert await room.place(requested_networks=networks) == ["host1"]

    routed = RequestFilterOptions(query_placement_for_routed_network_aggregates=True)
    within(cloud, work, SchedulerOptions(request_filters=routed))
