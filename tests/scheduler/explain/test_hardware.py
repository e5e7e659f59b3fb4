"""What explanations say where the cells or the devices of hosts are missing is true; each
relaxation works."""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from roost.fleet import Fleet
from roost.fleet.hardware.pci_aliases import aliases_from
from roost.ledger import State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.inventory import Inventory
from roost.model.node import NodeReport
from roost.model.reasons import Reasons, Relaxation
from roost.model.spec import RequestSpec
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.scheduler import SchedulerOptions
from roost.scheduler.explain import explanation
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.gateways.local import Decide
from roost.scheduler.options import DEFAULT_FILTERS, PciOptions
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import NOW, report, spec, table_of, uuid_of
from support.numa_hosts import two_cells

ALIAS = "pci_passthrough:alias"
GPU = '{"name": "gpu", "vendor_id": "10de", "product_id": "2236", "device_type": "type-PCI"}'
OPTIONS = SchedulerOptions(
    filters=tuple(dict.fromkeys((*DEFAULT_FILTERS, "NUMATopologyFilter", "PciPassthroughFilter"))),
    pci=PciOptions(aliases_from([GPU])),
)


def gpus(count: int, **more: Any) -> tuple[dict[str, Any], ...]:
    return (
        {
            "vendor_id": "10de",
            "product_id": "2236",
            "dev_type": "type-PCI",
            "count": count,
            "numa_node": 0,
            **more,
        },
    )


def explain(reports: Mapping[str, Mapping[str, Any]], vcpus: int, **extra_specs: str) -> Reasons:
    """Why hosts that report this do not fit a flavor."""
    fleet = Fleet()
    state = State(fleet, {}, NOW)
    RegisterStandardNames().run(state)
    nodes: list[NodeReport] = []
    for number, (host, reported) in enumerate(reports.items()):
        node = uuid_of(number)
        CreateProvider(node, host).run(state)
        inventories = {
            name: Inventory(amount)
            for name, amount in (("VCPU", 64), ("PCPU", 64), ("MEMORY_MB", 9000), ("DISK_GB", 900))
        }
        SetInventories(node, inventories).run(state)
        nodes.append(report(host, node, **reported))
    of = spec(vcpus, 512, extra_specs={name.replace("__", ":"): value for name, value in extra_specs.items()})
    table = table_of(nodes)
    plugins = Plugins.enabled(OPTIONS)
    mark = len(state.changes)

    def asked(of: RequestSpec) -> SchedulingRequest:
        queries = placement_queries(of, FilterFacts(table, OPTIONS))
        return SchedulingRequest.of(HostRequest(of, (uuid_of(0xA),)), queries, OPTIONS, NOW)

    def fits(of: RequestSpec, without: Collection[str] = ()) -> bool:
        request = asked(of)
        left = [each for each in plugins.filters if each.name not in without]
        state.name(request.instances)
        pools = HostPools(table, OPTIONS, Plugins(left, plugins.weighers))
        outcome = Decide(request, pools).run(state).outcome
        state.take_back(mark)
        table.release(*request.instances)
        return bool(outcome.destinations)

    assert not fits(of)
    snapshot = FleetSnapshot(fleet, HostPools(table, OPTIONS, plugins))
    found = explanation.explain(snapshot, asked(of))
    for relaxation in found.relaxations:
        # Each does work as it says.
        left_out, changed = [], of
        for part in relaxation.parts or (relaxation,):
            if part.kind == "filter":
                assert part.text == f"without {part.name}"
                left_out.append(part.name)
            else:
                changed = with_less(changed, part)
                # It is the smallest change on these hosts.
                assert not fits(with_less(of, replace(part, after=(part.after or 0) + 1)))
        assert fits(changed, left_out), relaxation
    return found


def with_less(of: RequestSpec, relaxation: Relaxation) -> RequestSpec:
    flavor, name, after = of.flavor, relaxation.name, relaxation.after
    if relaxation.kind == "devices":
        text = flavor.extra_specs["pci_passthrough:alias"]
        fewer = text.replace(f"{name}:{relaxation.before}", f"{name}:{after}")
        return replace(of, flavor=replace(flavor, extra_specs={**flavor.extra_specs, ALIAS: fewer}))
    return replace(of, flavor=replace(flavor, **{name: after}))


def relaxed(reasons: Reasons) -> list[tuple[str, str | None]]:
    return [(each.text, each.host) for each in reasons.relaxations]


def test_a_refusal_for_want_of_numa_cells_says_what_is_missing() -> None:
    reports = {
        "h0": {"numa_topology": two_cells((2, 2))},
        "h1": {"numa_topology": two_cells((4, 4), pinned_cpus=[0, 1])},
        "h2": {},
    }
    found = explain(reports, 6, hw__cpu_policy="dedicated")
    guest = "room in NUMA cells for the guest (1 cell, 6 dedicated vCPUs, 512 MiB)"
    assert found.sentence == (
        f"none of 3 hosts has {guest}; the closest, h1, has no NUMA cell: "
        "the closest, cell 1, has 4 dedicated CPUs free of the 6 asked for; it fits with 4 vCPUs instead of 6"
    )
    assert found.public == f"no host has {guest}; it fits with 4 vCPUs instead of 6"
    assert [(each.host, each.distance) for each in found.misses] == [
        ("h1", 0.3333),
        ("h0", 0.6667),
        ("h2", 1.0),
    ]
    assert relaxed(found) == [("4 vCPUs instead of 6", "h1"), ("without NUMATopologyFilter", "h1")]


def test_a_refusal_for_want_of_pci_devices_says_what_is_missing() -> None:
    reports = {"h0": {"pci_device_pools": gpus(1)}, "h1": {"pci_device_pools": gpus(2)}, "h2": {}}
    found = explain(reports, 1, pci_passthrough__alias="gpu:3")
    assert found.sentence == (
        "none of 3 hosts has enough PCI devices free (3 for alias gpu); "
        "the closest, h1, has 2 of the 3 PCI devices free that alias gpu asks for; "
        "it fits with 2 PCI devices of alias gpu instead of 3"
    )
    assert found.public == (
        "no host has enough PCI devices free (3 for alias gpu); "
        "it fits with 2 PCI devices of alias gpu instead of 3"
    )
    assert relaxed(found) == [
        ("2 PCI devices of alias gpu instead of 3", "h1"),
        ("without PciPassthroughFilter", "h1"),
    ]


def test_memory_of_a_guest_is_lowered_to_what_a_cell_has() -> None:
    reports = {"h0": {"numa_topology": two_cells((4, 4), memory=300)}}
    found = explain(reports, 2, hw__numa_nodes="1")
    assert relaxed(found)[0] == ("300 MiB of memory instead of 512", "h0")


def test_a_host_is_named_where_each_lacks_cells_and_devices() -> None:
    reports = {"h0": {}, "h1": {"numa_topology": two_cells(), "pci_device_pools": gpus(1)}}
    found = explain(reports, 2, hw__cpu_policy="dedicated", pci_passthrough__alias="gpu:2")
    assert found.sentence == (
        "none of 2 hosts has room in NUMA cells for the guest (1 cell, 2 dedicated vCPUs, 512 MiB) near its "
        "PCI devices; the closest, h1, has PCI devices close to other NUMA cells than those with "
        "room, or too few; it fits with 1 PCI device of alias gpu instead of 2"
    )
    assert relaxed(found) == [("1 PCI device of alias gpu instead of 2", "h1")]


def test_a_pair_is_named_where_no_single_change_works() -> None:
    reports = {"h0": {"numa_topology": two_cells((2, 2))}}
    found = explain(reports, 2, hw__cpu_policy="dedicated", pci_passthrough__alias="gpu:1")
    assert relaxed(found) == [("without NUMATopologyFilter and without PciPassthroughFilter", "h0")]
    assert found.sentence.endswith(
        "; no single change works, both of these do: "
        "without NUMATopologyFilter, and without PciPassthroughFilter"
    )
    assert "Filter" not in found.public
