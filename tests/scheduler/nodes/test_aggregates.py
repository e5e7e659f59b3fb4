"""The node table: host aggregates, their metadata and members."""

import pytest

from roost.model.aggregate import Aggregate, HostAggregate
from roost.model.node_event import AggregateRemoved, AggregateSet, MembershipsSet
from roost.scheduler.nodes.table import NodeTable
from support.clouds import join, report, table_of, tell

FAST = HostAggregate("agg-fast", "fast", {"availability_zone": "az1", "ssd": "yes"})
SLOW = HostAggregate("agg-slow", "slow", {"availability_zone": "az2"})


def test_metadata_follows_aggregates_and_their_members() -> None:
    table = table_of([report("a", "a", aggregates=(FAST,)), report("b", "b", aggregates=(FAST, SLOW))])
    zones = table.metadata("availability_zone")
    assert zones is not None
    assert [zones.of(0), zones.of(1)] == [("az1",), ("az1", "az2")]
    assert table.metadata("other") is None
    assert table.aggregates_with("availability_zone", "az1") == {"agg-fast"}
    assert table.aggregates_with("availability_zone", "az2") == {"agg-slow"}

    tell(table, [report("b", "b")])
    assert table.aggregates(1) == ()
    assert table.aggregates_with("availability_zone", "az2") == {"agg-slow"}, "an empty zone is a zone"
    table.apply_to_aggregates(AggregateRemoved("agg-slow"))
    assert table.aggregates_with("availability_zone", "az2") == frozenset()
    table.apply_to_aggregates(AggregateRemoved("agg-fast"))
    assert table.aggregates_with("availability_zone", "az1") == frozenset()
    assert zones.of(0) == ()


def test_aggregate_whose_metadata_changes_concerns_all_its_members() -> None:
    table = table_of([report("a", "a", aggregates=(FAST,)), report("b", "b"), report("c", "c")])
    join(table, "c", FAST)
    end = table.invalidations.end
    table.apply_to_aggregates(AggregateSet(HostAggregate("agg-fast", "fast", {"ssd": "no"})))
    assert table.aggregates_with("availability_zone", "az1") == frozenset()
    assert table.aggregates_with("ssd", "no") == {"agg-fast"}
    ssd = table.metadata("ssd")
    assert ssd is not None
    assert [ssd.of(index) for index in range(3)] == [("no",), (), ("no",)]
    changed = table.invalidations.since(end)
    assert changed is not None
    assert changed == {0, 2}


def test_aggregates_are_read_as_they_are_kept_and_only_what_differs_is_an_event() -> None:
    table = NodeTable([report("a", "a"), report("b", "b")])

    def kept(uuid: str, zone: str, *members: str) -> Aggregate:
        return Aggregate(
            uuid=uuid, name=uuid, metadata={"availability_zone": zone}, members=frozenset(members)
        )

    one, two = kept("one", "az1", "a", "later"), kept("two", "az1", "a")
    events = table.set_aggregates([one, two], {"one", "two"})
    assert events == [
        AggregateSet(one.named),
        AggregateSet(two.named),
        MembershipsSet("a", ("one", "two")),
        MembershipsSet("later", ("one",)),
    ]
    table.update([report("later", "later")])
    assert table.aggregates(2) == (one.named,), "a member that comes after its aggregate"
    assert table.set_aggregates([one, two], {"one", "two"}) == []
    one = kept("one", "az1", "b")
    events = table.set_aggregates([one], {"one"})
    assert events == [
        MembershipsSet("a", ()),
        MembershipsSet("b", ("one",)),
        MembershipsSet("later", ()),
        AggregateRemoved("two"),
    ]
    assert [table.aggregates(index) for index in range(3)] == [(), (one.named,), ()]
    table.remove(["b"])
    assert table.metadata("availability_zone") is None
    table.update([report("b", "b")])
    assert table.metadata("availability_zone") is not None, "a node that comes back is a member still"


def test_membership_counts_once_its_aggregate_is_there() -> None:
    """As where the journal has forgotten that an aggregate was made, since it was changed later."""
    table = NodeTable([report("a", "a")])
    table.apply(MembershipsSet("a", ("agg-fast",)))
    assert table.aggregates(0) == ()
    table.apply(AggregateSet(FAST))
    assert table.aggregates(0) == (FAST,)


@pytest.mark.parametrize("comes", [False, True])
def test_structure_rises_when_a_metadata_key_comes_or_goes(comes: bool) -> None:
    plain, fast = report("a", "a"), report("a", "a", aggregates=(FAST,))
    before, after = (plain, fast) if comes else (fast, plain)
    table = table_of([before, report("b", "b")])
    structure = table.structure
    tell(table, [after])
    assert table.structure > structure
    assert (table.metadata("availability_zone") is not None) is comes
