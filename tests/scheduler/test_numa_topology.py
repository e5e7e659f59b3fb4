"""NUMATopologyFilter: which hosts it lets pass, and what it assigns to their candidates."""

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from roost.fleet.hardware.cell_fit import CellLimits
from roost.fleet.hardware.fit import fit
from roost.fleet.hardware.host_topology import decoded
from roost.fleet.hardware.pci_pools import pools_of
from roost.model.allocation import Candidate
from roost.model.assignment import Assigned, AssignedCell, AssignedDevices, Assignment
from roost.model.node import NodeReport
from roost.model.spec import NetworkMetadata, PciRequest, RequestSpec
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.filters.numa_topology import NumaOptions, NUMATopologyFilter
from roost.scheduler.nodes.numa_columns import is_exact
from roost.scheduler.nodes.numa_reports import core_numbers
from roost.scheduler.nodes.numa_topologies import NumaTopologies
from roost.scheduler.plugins.plugin_calls import ask_key
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.demand.guest_topology import guest_topology
from roost.scheduler.request.scheduling_request import GroupPlacement
from support import numa_worlds
from support.clouds import report, spec, table_of
from support.numa_hosts import enveloped, reported, reported_cell, two_cells
from support.offering import MadeUp, scheduling_request

PINNED = {"hw:cpu_policy": "dedicated"}


class Taken(MadeUp):
    """Offers where consumers have assignments on nodes."""

    def __init__(self, count: int) -> None:
        super().__init__([1] * count)
        self.on: dict[str, dict[str, Assignment]] = {}

    def assigned(self, node: str) -> Assigned:
        return self.on.get(node, {})


def numa_report(number: int, topology: Mapping[str, Any] | None, **more: Any) -> NodeReport:
    made = None if topology is None else dict(topology)
    return report(f"host{number}", f"node{number}", numa_topology=made, **more)


def wanting(vcpus: int = 2, memory_mb: int = 512, **more: Any) -> RequestSpec:
    return spec(vcpus, memory_mb, **more)


def passed(
    reports: list[NodeReport], of: RequestSpec, taken: Mapping[str, Mapping[str, Assignment]] | None = None
) -> list[str] | None:
    """The hosts that the filter lets pass; None if it says nothing."""
    offers = Taken(len(reports))
    offers.on = {node: dict(each) for node, each in (taken or {}).items()}
    view = HostView(table_of(reports), offers)
    mask = NUMATopologyFilter(NumaOptions()).mask(view, scheduling_request(of=of), GroupPlacement())
    if mask is None:
        return None
    return [name for name, may in zip(view.table.hosts, mask.tolist(), strict=True) if may]


def narrowed(
    one: NodeReport, of: RequestSpec, taken: Mapping[str, Assignment] | None = None, **options: Any
) -> list[Candidate]:
    """What the filter leaves of the one candidate of a host."""
    offers = Taken(1)
    offers.on = {one.node: dict(taken or {})}
    host = OneHost(table_of([one]), offers, 0, offers.level)
    [judge] = [NUMATopologyFilter(NumaOptions(**options))]
    return list(judge.narrow(host, list(offers.candidates(0)), scheduling_request(of=of)))


def test_requests_without_a_topology_are_not_judged() -> None:
    assert passed([numa_report(0, None)], wanting()) is None
    assert passed([numa_report(0, None)], wanting(extra_specs={"hw:cpu_policy": "shared"})) is None
    [candidate] = narrowed(numa_report(0, two_cells()), wanting())
    assert (candidate.assignment, candidate.limits) == (None, {})


def test_hosts_pass_whose_cells_have_room() -> None:
    reports = [
        numa_report(0, two_cells()),
        numa_report(1, enveloped(two_cells((2, 2)))),
        numa_report(2, None),
        numa_report(3, two_cells(pinned_cpus=[0, 1, 2])),
        numa_report(4, two_cells((1, 1))),
    ]
    assert passed(reports, wanting(extra_specs=PINNED)) == ["host0", "host1", "host3"]
    assert passed(reports, wanting(4, extra_specs=PINNED)) == ["host0", "host3"]
    assert passed(reports, wanting(6, extra_specs={**PINNED, "hw:numa_nodes": "2"})) == ["host0"]


def test_what_claims_took_since_the_report_is_used() -> None:
    reports = [numa_report(0, two_cells((2, 2))), numa_report(1, two_cells((2, 2)))]
    cell = AssignedCell(guest=0, host=0, pinned=((0, 0),))
    taken = {
        "node0": {"c": Assignment("node0", (cell, msgspec.structs.replace(cell, host=1, pinned=((0, 3),))))}
    }
    assert passed(reports, wanting(extra_specs=PINNED), taken) == ["host1"]
    [candidate] = narrowed(reports[0], wanting(1, extra_specs=PINNED), taken["node0"])
    assert candidate.assignment is not None
    assert candidate.assignment.cpus == {1}


def test_a_host_is_looked_at_again_when_it_reports_or_something_is_assigned() -> None:
    offers = Taken(1)
    table = table_of([numa_report(0, two_cells((2, 2)))])
    judge = NUMATopologyFilter(NumaOptions())

    def passes(vcpus: int) -> bool:
        mask = judge.mask(
            HostView(table, offers),
            scheduling_request(of=wanting(vcpus, extra_specs=PINNED)),
            GroupPlacement(),
        )
        assert mask is not None
        return bool(mask[0])

    assert (passes(2), passes(3)) == (True, False)
    table.update([numa_report(0, two_cells((3, 3)))])
    assert passes(3)
    offers.on = {"node0": {"c": Assignment("node0", (AssignedCell(guest=0, host=0, pinned=((0, 0),)),))}}
    assert passes(3)
    offers.on["node0"] = {
        **offers.on["node0"],
        "d": Assignment("node0", (AssignedCell(guest=0, host=1, pinned=((0, 3),)),)),
    }
    assert (passes(2), passes(3)) == (True, False)
    offers.on = {}
    assert passes(3)
    table.update([numa_report(0, None)])
    assert not passes(1)


def test_candidates_say_what_is_assigned_and_the_limits_that_hold() -> None:
    one = numa_report(0, two_cells((4, 4)), cpu_allocation_ratio=4.0, ram_allocation_ratio=1.5)
    network = NetworkMetadata(physnets=frozenset({"red"}))
    [candidate] = narrowed(one, wanting(extra_specs={"hw:numa_nodes": "1"}, network_metadata=network))
    assert candidate.assignment == Assignment(
        "node0", (AssignedCell(guest=0, host=0, shared=2, memory_mb=512),)
    )
    assert candidate.limits == {
        "numa_topology": {
            "cpu_allocation_ratio": 4.0,
            "ram_allocation_ratio": 1.5,
            "network_metadata": {"physnets": ["red"], "tunneled": False},
        }
    }
    assert narrowed(one, wanting(5, extra_specs=PINNED)) == []


def test_used_cells_go_first_if_the_option_says_so() -> None:
    one = numa_report(0, reported(reported_cell(0, range(4), cpu_usage=1), reported_cell(1, range(4, 8))))
    of = wanting(extra_specs={"hw:numa_nodes": "1"})
    for pack, host in ((False, 1), (True, 0)):
        [candidate] = narrowed(one, of, packing_host_numa_cells_allocation_strategy=pack)
        assert candidate.assignment is not None
        assert [cell.host for cell in candidate.assignment.cells] == [host]


def test_devices_and_cells_are_chosen_together() -> None:
    pool = {"vendor_id": "8086", "product_id": "1", "numa_node": 1, "count": 1, "tags": {}}
    asked = PciRequest(id="r", specs=({"vendor_id": "8086"},), numa_policy="required")
    one = numa_report(0, two_cells((2, 4)), pci_device_pools=(pool,))
    of = wanting(extra_specs=PINNED, pci_requests=(asked,))
    assert passed([one, numa_report(1, two_cells())], of) == ["host0"]
    [candidate] = narrowed(one, of)
    assert candidate.assignment is not None
    assert [cell.host for cell in candidate.assignment.cells] == [1]
    [devices] = candidate.assignment.devices
    assert (devices.request, devices.count) == ("r", 1)
    taken = {"c": Assignment("node0", devices=(AssignedDevices("r", devices.pool, 1),))}
    assert narrowed(one, of, taken) == []


def test_a_topology_that_cannot_be_read_takes_no_guest_and_is_logged() -> None:
    bad = two_cells()
    bad["cells"][0]["memory"] = "much"
    with capture_logs() as logs:
        assert passed([numa_report(0, bad)], wanting(extra_specs=PINNED)) == []
    [line] = logs
    assert (line["log_level"], line["host"]) == ("warning", "host0")
    assert "memory" in line["error"]


def test_a_topology_is_decoded_once_and_again_when_it_differs() -> None:
    reports = [numa_report(0, two_cells()), numa_report(1, two_cells()), numa_report(2, None)]
    table = table_of(reports)
    assert table.decode(1)
    assert not table.decode(2)
    first, second = table.numa.of(0), table.numa.of(1)
    assert first == second == decoded(two_cells())
    assert table.numa.of(2) is None
    table.update([numa_report(0, two_cells(), num_instances=3), numa_report(1, two_cells((2, 2)))])
    assert table.numa.of(0) is first
    assert table.numa.of(1) == decoded(two_cells((2, 2)))
    assert not table.decode(1)
    table.update([numa_report(0, None)])
    assert table.numa.of(0) is None
    table.remove(["node1"])
    assert table.numa.of(1) is None


def test_the_worth_of_free_cpus_is_that_of_their_cores() -> None:
    random = Random(7)
    for _ in range(200):
        threads = random.choice((1, 2, 4))
        cells = reported(reported_cell(0, range(12), threads=threads))
        cells["cells"][0]["pinned_cpus"] = random.sample(range(12), random.randrange(13))
        if random.random() < 0.2:
            cells["cells"][0]["siblings"] = []
        [cell] = decoded(cells).cells
        free = [each.bit_count() for each in cell.free_cores]
        in_cores = [number * sum(each >= number for each in free) for number in range(2, threads + 1)]
        most = cell.threads_per_core
        assert core_numbers(cell.siblings, cell.free_cpus, True) == (
            cell.free_cpus.bit_count(),
            sum(free),
            len(free),
            sum(each >= most for each in free),
            max(in_cores, default=0),
        )


def test_a_bad_topology_is_the_requests_fault() -> None:
    [judge] = [NUMATopologyFilter(NumaOptions())]
    with pytest.raises(BadRequestSpec, match="hw:numa_nodes='3' does not divide 2 vCPUs"):
        ask_key(Filter.of(judge), scheduling_request(of=wanting(extra_specs={"hw:numa_nodes": "3"})))


def test_guests_of_many_different_cells_are_fitted_on_each_host() -> None:
    many = {**PINNED, "hw:numa_nodes": "5"}
    first = 0
    for number, count in enumerate((1, 2, 3, 4, 5)):
        many[f"hw:numa_cpus.{number}"] = f"{first}-{first + count - 1}"
        many[f"hw:numa_mem.{number}"] = "16"
        first += count
    of = wanting(15, 80, extra_specs=many)
    guest = guest_topology(of.flavor, None)
    assert guest is not None
    assert not is_exact(guest)

    def host(number: int, *sizes: int) -> NodeReport:
        starts = [sum(sizes[:at]) for at in range(len(sizes))]
        cells = [
            reported_cell(at, range(start, start + size))
            for at, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ]
        return numa_report(number, reported(*cells))

    reports = [host(0, 1, 2, 3, 4, 5), host(1, 1, 1, 3, 5, 5), host(2, 5, 4, 3, 2, 1)]
    view = HostView(table_of(reports), Taken(len(reports)))
    # Each guest cell has a host cell that suits it on the second host, but four of them have three together.
    assert NumaTopologies().fits(guest, view).tolist() == [True, True, True]
    assert passed(reports, of) == ["host0", "host2"]


def lacks(one: NodeReport, of: RequestSpec) -> str:
    """What the filter says that a host lacks, which it excludes."""
    judge, offers = NUMATopologyFilter(NumaOptions()), Taken(1)
    host = OneHost(table_of([one]), offers, 0, offers.level)
    mask = judge.mask(host, scheduling_request(of=of), GroupPlacement())
    assert mask is not None
    assert not mask.any()
    lack = judge.lack(host, scheduling_request(of=of), GroupPlacement())
    assert lack is not None
    assert 0 <= lack.distance <= 1
    return lack.text


def test_what_a_host_lacks_is_said_in_words() -> None:
    eight = wanting(8, extra_specs={**PINNED, "hw:numa_nodes": "2"})
    assert lacks(numa_report(0, None), eight) == "reports no NUMA topology"
    assert lacks(numa_report(0, reported(reported_cell(0, range(9)))), eight) == (
        "has 1 of the 2 NUMA cells asked for"
    )
    assert lacks(numa_report(0, two_cells((1, 3))), eight) == (
        "has no NUMA cell for cell 0 of the guest: the closest, cell 1, "
        "has 3 dedicated CPUs free of the 4 asked for"
    )
    assert lacks(numa_report(0, two_cells((1, 4))), eight) == (
        "has NUMA cells for each of the guest's 2, but not for all at once"
    )
    near = {"physnets": ["red"], "tunneled": False}
    closed = reported(reported_cell(0, [], network_metadata=near), reported_cell(1, range(4)))
    network = NetworkMetadata(physnets=frozenset({"red"}))
    assert lacks(numa_report(0, closed), wanting(2, extra_specs=PINNED, network_metadata=network)) == (
        "has its networks close to other NUMA cells than those with room"
    )
    pool = {"vendor_id": "8086", "product_id": "1", "numa_node": 1, "count": 1, "tags": {}}
    asked = PciRequest(id="r", specs=({"vendor_id": "8086"},), numa_policy="required")
    of = wanting(2, extra_specs=PINNED, pci_requests=(asked,))
    assert lacks(numa_report(0, two_cells((2, 1)), pci_device_pools=(pool,)), of) == (
        "has PCI devices close to other NUMA cells than those with room, or too few"
    )
    assert lacks(numa_report(0, two_cells((2, 1))), of) == "has no PCI devices free"


@pytest.mark.parametrize("count", [400, pytest.param(40_000, marks=pytest.mark.nightly)])
def test_the_columns_say_what_the_fit_says(count: int) -> None:
    random = Random(count)
    hosts = [numa_worlds.topology(random) for _ in range(40)]
    ratios = [numa_worlds.ratios(random) for _ in hosts]
    reports = [
        numa_report(number, each, cpu_allocation_ratio=cpu, ram_allocation_ratio=ram)
        for number, (each, (cpu, ram)) in enumerate(zip(hosts, ratios, strict=True))
    ]
    view = HostView(table_of(reports), Taken(len(reports)))
    topologies = NumaTopologies()
    verdicts = set()
    for _ in range(count // len(hosts)):
        flavor = numa_worlds.flavor(random)
        try:
            guest = guest_topology(flavor, None)
        except BadRequestSpec:
            continue
        assert guest is not None
        assert is_exact(guest)
        exact = [
            fit(decoded(each), guest, CellLimits(*limits)) is not None
            for each, limits in zip(hosts, ratios, strict=True)
        ]
        assert topologies.fits(guest, view).tolist() == exact, flavor
        verdicts.update(exact)
    assert verdicts == {True, False}


@pytest.mark.parametrize("count", [60, pytest.param(6_000, marks=pytest.mark.nightly)])
def test_hosts_pass_that_have_cells_devices_and_networks_close_together(count: int) -> None:
    random = Random(count)
    hosts = 30
    judge, by_columns, verdicts = NUMATopologyFilter(NumaOptions()), 0, set[bool]()
    for world in range(count):
        reports, requests, offers = [], (), Taken(hosts)
        for number in range(hosts):
            pools, asked = numa_worlds.devices(random)
            requests = requests or asked
            for pool in pools:
                pool["dev_type"] = random.choice(("type-PCI", "type-PCI", "type-VF", "vdpa", "type-PF"))
            cpu, ram = numa_worlds.ratios(random)
            reports.append(
                numa_report(
                    number,
                    numa_worlds.topology(random),
                    pci_device_pools=tuple(pools),
                    cpu_allocation_ratio=cpu,
                    ram_allocation_ratio=ram,
                )
            )
            if pools and random.random() < 0.3:
                key = pools_of(pools[:1])[0].key
                devices = AssignedDevices("r", key, random.choice((1, 2)))
                offers.on[f"node{number}"] = {"c": Assignment(f"node{number}", devices=(devices,))}
        if world % 4 == 0:
            requests = ()
        flavor, network = numa_worlds.flavor(random), numa_worlds.network(random)
        of = spec(flavor=flavor, pci_requests=requests, network_metadata=network)
        asking = scheduling_request(of=of)
        try:
            guest = guest_topology(flavor, None)
        except BadRequestSpec:
            continue
        assert guest is not None
        table = table_of(reports)
        mask = judge.mask(HostView(table, offers), asking, GroupPlacement())
        assert mask is not None
        view = HostView(table, offers)
        by_columns += NumaTopologies().fits_close(guest, network, requests, view) is not None
        one_by_one = []
        for position in range(hosts):
            one = OneHost(table, offers, position, offers.level)
            one_by_one.append(bool(judge.narrow(one, list(offers.candidates(position)), asking)))
        assert mask.tolist() == one_by_one, of
        verdicts.update(one_by_one)
    assert verdicts == {True, False}
    assert by_columns > count // 2
