"""The node table: its rows, hosts, services and columns."""

import gc
import math

import numpy as np
import pytest

from roost.fleet import Fleet
from roost.model.aggregate import HostAggregate
from roost.model.change import ProviderChanged, ProviderFacts
from roost.model.node import NodeInstance, SupportedInstance
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.weights import HostWeights
from roost.scheduler.request.scheduling_request import GroupPlacement
from support.clouds import NOW, report, tell
from support.offering import MadeUp, named_weighers, scheduling_request

FAST = HostAggregate("agg-fast", "fast", {"availability_zone": "az1", "ssd": "yes"})


def fleet_of(*uuids: str) -> Fleet:
    fleet = Fleet()
    for row, uuid in enumerate(uuids):
        fleet.apply(ProviderChanged(uuid, row, None, ProviderFacts(uuid, None, 0)))
    return fleet


def hosts_at(table: NodeTable, fleet: Fleet) -> list[int]:
    return table.indexes_of_rows(fleet, fleet.rows()).tolist()


def test_index_of_a_host_stays() -> None:
    table = NodeTable([report("a", "node-a"), report("b", "node-b")])
    table.update([report("c", "node-c"), report("a", "node-a", enabled=False)])
    assert [table.index(name) for name in "abcx"] == [0, 1, 2, None]
    assert table.enabled[: len(table)].tolist() == [False, True, True]
    assert table.report(0).enabled is False


def test_ties_break_by_uuid_whatever_came_and_went_before() -> None:
    table = NodeTable([report("a", "node-c"), report("b", "node-a"), report("c", "node-d")])
    assert table.tie_rank.tolist() == [1, 0, 2]
    table.remove(["node-c"])
    table.update([report("d", "node-e"), report("e", "node-b")])
    there = sorted(range(table.size), key=table.tie_rank.tolist().__getitem__)
    assert [table.nodes[index] for index in there] == ["node-a", "node-b", "node-d", "node-e"]


def test_cells_are_numbered_as_they_come_and_hosts_may_move() -> None:
    table = NodeTable([report("a", "a", cell="x"), report("b", "b", cell="y")])
    table.update([report("a", "a", cell="y")])
    assert table.cells == ["x", "y"]
    assert table.cell[: len(table)].tolist() == [1, 1]


def test_metrics_are_nan_where_not_reported() -> None:
    table = NodeTable([report("a", "a", metrics={"heat": 20.0}), report("b", "b")])
    assert table.metric("heat")[0] == 20.0
    assert math.isnan(table.metric("heat")[1])
    assert np.isnan(table.metric("power")).all()
    table.update([report("a", "a", metrics={"power": 1.0})])
    assert np.isnan(table.metric("heat")).all()
    assert table.metric("power")[0] == 1.0


def test_metric_that_is_not_finite_counts_as_not_reported() -> None:
    table = NodeTable([report("a", "a", metrics={"heat": math.inf}), report("b", "b", metrics={"heat": 1.0})])
    assert math.isnan(table.metric("heat")[0])


def test_rows_without_a_host_and_hosts_without_a_row() -> None:
    table = NodeTable([report("gone", "nowhere"), report("a", "node-a")])
    assert hosts_at(table, fleet_of("disk", "node-a")) == [-1, 1]


def test_rows_are_found_anew_when_providers_come_and_hosts_report() -> None:
    table = NodeTable([report("a", "node-a")])
    fleet = fleet_of("node-b")
    assert hosts_at(table, fleet) == [-1]
    fleet.apply(ProviderChanged("node-a", 1, None, ProviderFacts("node-a", None, 0)))
    assert hosts_at(table, fleet) == [-1, 0]
    table.update([report("b", "node-b")])
    assert hosts_at(table, fleet) == [1, 0]


def test_rows_are_found_anew_in_a_fleet_that_was_loaded_again() -> None:
    table = NodeTable([report("a", "node-a"), report("b", "node-b")])
    first = fleet_of("node-a", "node-b")
    assert hosts_at(table, first) == [0, 1]
    del first
    gc.collect()
    # As likely as not at the same address, and of the same roster.
    assert hosts_at(table, fleet_of("node-b", "node-a")) == [1, 0]


def test_host_that_is_made_anew_has_another_root_provider() -> None:
    table = NodeTable([report("a", "old")])
    table.update([report("a", "new")])
    assert table.index_of_node("old") is None
    assert table.index_of_node("new") == 0
    assert hosts_at(table, fleet_of("old", "new")) == [-1, 0]


def test_service_with_many_nodes() -> None:
    table = NodeTable(report("ironic", f"n{number}", nodename=f"blade-{number}") for number in range(4))
    assert len(table) == 4
    assert list(table.indexes_of_host("ironic")) == [0, 1, 2, 3]
    assert table.index("ironic", "blade-2") == table.index_of_node("n2") == 2
    assert table.index("ironic") == 0
    assert table.index("ironic", "other") is None
    assert table.service[:4].tolist() == [0, 0, 0, 0]
    # The latest heartbeat of its nodes is the service's; one that dies takes all along.
    table.update([report("ironic", "n3", nodename="blade-3", last_seen=NOW + 50)])
    assert table.seen_since(NOW + 10)[:4].all()
    at = table.invalidations.end
    assert not table.seen_since(NOW + 60)[:4].any()
    assert table.invalidations.since(at) == {0, 1, 2, 3}
    # The clock of the service goes back: what the others reported counts again.
    table.update([report("ironic", "n3", nodename="blade-3", last_seen=NOW - 7)])
    assert table.last_seen[0] == NOW - 1


def test_node_goes_to_another_service() -> None:
    table = NodeTable([report("one", "n", nodename="x"), report("two", "m", last_seen=NOW - 500)])
    assert table.seen_since(NOW - 60)[:2].tolist() == [True, False]
    structure = table.structure
    table.update([report("two", "n", nodename="x", last_seen=NOW - 500)])
    assert table.structure > structure
    assert list(table.indexes_of_host("one")) == []
    assert list(table.indexes_of_host("two")) == [1, 0]
    assert table.index("one", "x") is None
    assert table.seen_since(NOW - 60)[:2].tolist() == [False, False]


def test_columns_are_what_nodes_report() -> None:
    kvm = (SupportedInstance("x86_64", "kvm", "hvm"),)
    full = report(
        "a",
        "n",
        service_version=66,
        hypervisor_type="QEMU",
        hypervisor_version=8_000_000,
        supported_instances=kvm,
        host_ip="10.0.0.1",
        num_instances=3,
        num_io_ops=2,
        free_ram_mb=-5,
        images=frozenset({"cirros"}),
        instances={"i": NodeInstance("project", "small", "cirros")},
    )
    table = NodeTable([report("b", "m"), full])
    assert table.service_version[:2].tolist() == [0, 66]
    assert table.hypervisor_version[:2].tolist() == [0, 8_000_000]
    assert (table.num_instances[1], table.num_io_ops[1], table.free_ram_mb[1]) == (3, 2, -5)
    assert np.isnan(table.free_ram_mb[0])
    assert np.isnan(table.free_disk_mb[:2]).all()
    assert table.hypervisor_type.of(1) == "QEMU"
    assert table.host_ip.of(1) == "10.0.0.1"
    assert table.supported_instances.of(1) == kvm
    assert set(table.indexes_with_image("cirros")) == {1}
    assert table.indexes_of_instance("i") == (1,)
    # A move: both nodes report it, then only the new one.
    table.update([report("b", "m", instances={"i": NodeInstance()})])
    assert set(table.indexes_of_instance("i")) == {0, 1}
    table.update([report("a", "n")])
    assert table.indexes_of_instance("i") == (0,)
    assert table.indexes_with_image("cirros") == ()


def test_a_claim_on_a_node_that_was_removed_counts_on_no_other_node() -> None:
    table = NodeTable([report("a", "n"), report("b", "m")])
    with table.reading():
        # A run over HTTP holds the row while placement is asked.
        row = table.index_of_node("n")
        assert row is not None
        table.claim("earlier", row, 512)
        table.remove(["n"])
        table.claim("i", row, 512)
        table.claim("earlier", row, 512)
    table.update([report("c", "o")])
    assert table.index_of_node("o") == row
    assert (table.num_instances[row], len(table.outstanding)) == (0, 0)
    with table.reading():
        table.remove(["o"])
        table.update([report("c", "o")])
        again = table.index_of_node("o")
        assert again not in (None, row)
        table.claim("i", row, 512)
    assert (table.num_instances[row], table.num_instances[again]) == (0, 1)


def test_removed_node_is_found_nowhere_and_its_row_is_used_again() -> None:
    loaded = {
        "metrics": {"heat": 1.0},
        "aggregates": (FAST,),
        "failed_builds": 2,
        "instances": {"i": NodeInstance()},
        "images": frozenset({"cirros"}),
        "hypervisor_type": "QEMU",
    }
    table = NodeTable([report("a", "n", **loaded), report("b", "m")])
    assert table.seen_since(NOW - 60)[:2].all()
    structure = table.structure
    table.remove(["n", "unknown"])
    assert table.structure > structure
    assert (len(table), table.size) == (1, 2)
    assert table.index_of_node("n") is table.index("a") is None
    assert table.indexes_of_instance("i") == table.indexes_with_image("cirros") == ()
    assert table.metadata("availability_zone") is None
    assert not table.aggregates_with("availability_zone", "az1")
    assert not table.failed_builds.any()
    assert np.isnan(table.metric("heat")).all()
    assert not (table.enabled[0] or table.seen_since(NOW - 60)[0])
    assert hosts_at(table, fleet_of("n", "m")) == [-1, 1]
    table.update([report("c", "o")])
    assert (len(table), table.size, table.index("c")) == (2, 2, 0)
    assert table.hypervisor_type.of(0) == ""
    assert table.enabled[0]
    assert table.seen_since(NOW - 60)[:2].all()


def test_row_is_not_used_again_while_a_run_may_hold_it() -> None:
    table = NodeTable([report("a", "n"), report("b", "m")])
    with table.reading():
        table.remove(["n"])
        assert (table.hosts[0], table.nodes[0], table.report(0).host) == ("a", "n", "a")
        with table.reading():
            table.update([report("c", "o")])
        assert table.index("c") == 2
    table.update([report("d", "p")])
    assert table.index("d") == 0


def test_nothing_is_left_of_nodes_that_come_and_go() -> None:
    table = NodeTable([report("stays", "stays")])

    def kept() -> int:
        return sum(len(each) for each in vars(table).values() if hasattr(each, "__len__"))

    def come_and_go(first: int, number: int) -> None:
        for each in range(first, first + number):
            more = {
                "nodename": f"blade {each}",
                "host_ip": f"ip {each}",
                "metrics": {f"metric {each}": 1.0},
                "instances": {f"instance {each}": NodeInstance()},
                "images": frozenset({f"image {each}"}),
                "aggregates": (HostAggregate(f"agg {each}", "", {f"key {each}": "x"}),),
            }
            tell(table, [report(f"host {each}", f"node {each}", **more)])
            table.remove([f"node {each}"])
            table.set_aggregates([], set())

    come_and_go(0, 10)
    before = kept()
    come_and_go(10, 2_000)
    assert table.size == 2
    assert len(table.last_seen) <= 16
    assert kept() == before


REPORTED = [
    {"num_instances": 1},
    {"num_io_ops": 1},
    {"failed_builds": 1},
    {"hypervisor_version": 8},
    {"free_ram_mb": 0},
    {"free_disk_mb": 0},
]


@pytest.mark.parametrize("reported", REPORTED, ids=str)
def test_a_column_that_was_reported_once_is_weighed_from_then_on(reported: dict[str, int]) -> None:
    """A weigher that had numbers at the start of a run has them until its end, whatever nodes report."""
    [column] = reported
    table = NodeTable([report("a", "a"), report("b", "b")])
    assert not table.has(column)
    structure = table.structure
    table.update([report("a", "a", **reported)])
    assert table.has(column)
    assert table.structure == structure + 1
    table.update([report("a", "a")])
    table.remove(["b"])
    assert table.has(column)


def test_a_run_goes_on_when_a_host_builds_again_in_the_middle() -> None:
    failing = [report("a", "a", failed_builds=1, num_instances=2), report("b", "b", failed_builds=2)]
    table = NodeTable(failing)
    made = named_weighers("BuildFailureWeigher", "NumInstancesWeigher")
    asked = scheduling_request(multipliers={"BuildFailureWeigher": 10.0, "NumInstancesWeigher": 1.0})
    everyone = np.ones(2, dtype=np.bool_)
    weighing = HostWeights(table, MadeUp([1, 1]), everyone, made, asked, GroupPlacement())
    assert [weighing.weight(0), weighing.weight(1)] == [1.0, -10.0]
    table.update([report("a", "a"), report("b", "b")])
    weighing.claimed([0, 1])
    assert [weighing.weight(0), weighing.weight(1)] == [0.0, 0.0]
