"""The layout of maps: its order, its groups, and when it is another one."""

import asyncio

import pytest

from roost.model.aggregate import HostAggregate
from roost.model.node_event import AggregateSet
from roost.scheduler.nodes.host_layout import HostGroup, HostLayout, HostLayouts
from roost.scheduler.nodes.table import NodeTable
from support.clouds import join, report, table_of, tell

NORTH = HostAggregate("north", "north", {"availability_zone": "north"})
RACK1 = HostAggregate("rack1", "rack1", {"rack": "r1"})
RACK2 = HostAggregate("rack2", "rack2", {"rack": "r2"})


@pytest.fixture
def table() -> NodeTable:
    """Four hosts, two of them in a zone, three in racks, in two cells."""
    return table_of(
        [
            report("d", "4", cell="cell2"),
            report("b", "2", aggregates=(NORTH, RACK2)),
            report("a", "1", aggregates=(RACK1,)),
            report("c", "3", cell="cell2", aggregates=(NORTH, RACK1)),
        ]
    )


def names(table: NodeTable, layout: HostLayout) -> list[str]:
    return [table.hosts[index] for index in layout.nodes.tolist()]


def test_hosts_are_by_zone_then_cell_then_name(table: NodeTable) -> None:
    layout = HostLayouts(table, "nova").layout()
    assert names(table, layout) == ["b", "c", "a", "d"]
    assert layout.groups == (
        HostGroup("north", "", "cell1", 0, 1),
        HostGroup("north", "", "cell2", 1, 1),
        HostGroup("nova", "", "cell1", 2, 1),
        HostGroup("nova", "", "cell2", 3, 1),
    )


def test_a_label_groups_within_a_zone(table: NodeTable) -> None:
    join(table, "4", RACK1, RACK2)
    layout = HostLayouts(table, "nova").layout("rack")
    assert [(each.zone, each.label, each.cell) for each in layout.groups] == [
        ("north", "r1", "cell2"),
        ("north", "r2", "cell1"),
        ("nova", "r1", "cell1"),
        ("nova", "r1, r2", "cell2"),
    ]
    assert names(table, layout) == ["c", "b", "a", "d"]


def test_a_table_without_nodes_has_no_groups() -> None:
    layout = HostLayouts(NodeTable(), "nova").layout("rack")
    assert (layout.nodes.tolist(), layout.groups) == ([], ())


def test_a_layout_is_kept_until_a_host_comes_goes_or_moves(table: NodeTable) -> None:
    layouts = HostLayouts(table, "nova")
    seen = [layouts.layout()]
    tell(table, [report("a", "1", failed_builds=3, aggregates=(RACK1,))])
    assert layouts.layout() is seen[0]
    for change in (
        lambda: tell(table, [report("e", "5")]),
        lambda: table.remove(["2"]),
        lambda: tell(table, [report("a", "1", cell="cell2")]),
        lambda: tell(table, [report("z", "3", cell="cell2")]),
        lambda: join(table, "1", NORTH),
        lambda: table.apply_to_aggregates(
            AggregateSet(HostAggregate("north", "north", {"availability_zone": "south"}))
        ),
    ):
        change()
        layout = layouts.layout()
        assert layout.version not in {each.version for each in seen}
        assert layout.version == HostLayouts(table, "nova").layout().version
        seen.append(layout)


def test_two_processes_have_one_version_whatever_came_first(table: NodeTable) -> None:
    reports = [table.report(index) for index in reversed(table.indexes())]
    other = NodeTable(reports)
    for index in other.indexes():
        join(other, other.nodes[index], *table.aggregates(table.index_of_node(other.nodes[index]) or 0))
    assert HostLayouts(other, "nova").layout().version == HostLayouts(table, "nova").layout().version
    assert HostLayouts(other, "south").layout().version != HostLayouts(table, "nova").layout().version


def test_a_layout_that_was_prepared_apart_is_the_same(
    table: NodeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.scheduler.nodes.host_layout._FEW", 0)
    monkeypatch.setattr("roost.scheduler.nodes.host_layout._AT_ONCE", 3)
    tell(table, [report("b", "6", nodename="ß"), report("b", "5", nodename="a"), report("B", "7")])
    prepared = HostLayouts(table, "nova")

    async def main() -> None:
        await prepared.prepare()
        assert names(table, prepared.layout()) == names(table, HostLayouts(table, "nova").layout())
        assert prepared.layout().version == HostLayouts(table, "nova").layout().version
        # A node that comes while names are sorted is not left out.
        tell(table, [report("0", "8")])
        sorting = asyncio.create_task(prepared.prepare())
        await asyncio.sleep(0)
        table.remove(["6"])
        await sorting

    asyncio.run(main())
    assert names(table, prepared.layout()) == names(table, HostLayouts(table, "nova").layout())
