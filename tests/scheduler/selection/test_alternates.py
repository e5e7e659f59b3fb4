"""Alternates: same cell, never the own host, with a candidate that fits, and the group's policy kept."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from roost.model.spec import Destination, ServerGroup
from support.clouds import spec
from support.offering import (
    MadeUp,
    Only,
    driven,
    hosts,
    named_filters,
    no_chance,
    plugins,
    scheduling_request,
    select,
)


def placed(
    free: list[int],
    count: int = 1,
    wanted: int = 2,
    cells: tuple[str, ...] = ("cell1",),
    group: ServerGroup | None = None,
    allowed: tuple[int, ...] | None = None,
    refusing: frozenset[str] = frozenset(),
) -> tuple[Destination, ...]:
    filters = named_filters("ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter")
    chosen = plugins(*([] if allowed is None else [Only(*allowed)]), *filters)
    asked = scheduling_request(count, of=spec(group=group), num_alternates=wanted, min_count=1)
    outcome, _ = driven(
        select(asked, hosts(len(free), cells), MadeUp(free), chosen, no_chance),
        lambda claim: "no" if claim.candidate.root in refusing else None,
    )
    return outcome.destinations


def names(destination: Destination) -> list[str]:
    return [other.host for other in destination.alternates]


def test_best_first_and_not_the_own_host() -> None:
    [one] = placed([3, 9, 5, 7])
    assert (one.selected.host, names(one)) == ("host1", ["host3", "host2"])


def test_fewer_if_there_are_no_more() -> None:
    [one] = placed([3, 9], wanted=5)
    assert names(one) == ["host0"]


def test_same_cell_only() -> None:
    [one] = placed([3, 9, 5, 7], cells=("x", "y"), wanted=3)
    assert (one.selected.cell, names(one)) == ("y", ["host3"])


def test_not_where_a_filter_forbids() -> None:
    [one] = placed([3, 9, 5, 7], allowed=(0, 1, 2))
    assert names(one) == ["host2", "host0"]


def test_not_a_host_that_refused() -> None:
    [one] = placed([3, 9, 5, 7], refusing=frozenset({"node1"}))
    assert (one.selected.host, names(one)) == ("host3", ["host2", "host0"])


def test_not_a_host_that_is_full_by_now() -> None:
    destinations = placed([1, 1, 1, 1], count=3, wanted=2)
    assert [names(one) for one in destinations] == [["host3"]] * 3


def test_instances_begin_at_different_hosts() -> None:
    destinations = placed([9, 9, 5, 5, 5, 5], count=2, wanted=2)
    assert [one.selected.host for one in destinations] == ["host0", "host1"]
    assert [names(one) for one in destinations] == [["host2", "host3"], ["host4", "host5"]]


def test_round_again_when_there_are_few_and_the_runs_own_hosts_last() -> None:
    destinations = placed([9, 9, 5, 5, 5], count=2, wanted=4)
    assert [names(one) for one in destinations] == [
        ["host2", "host3", "host4", "host1"],
        ["host2", "host3", "host4", "host0"],
    ]


def test_allocations_are_ready_to_be_claimed() -> None:
    [one] = placed([3, 9], wanted=1)
    [other] = one.alternates
    assert (other.node, other.allocations, other.mappings) == (
        "node0",
        {"node0": {"VCPU": 1}},
        {"": ["way0"]},
    )


def test_many_hosts_that_cannot_be_used_are_passed_over() -> None:
    # More than are sorted at first.
    [one] = placed([500, *range(400, 200, -1), 5, 4], allowed=None, wanted=1)
    assert names(one) == ["host1"]
    [one] = placed([500, *range(400, 200, -1), 5, 4], allowed=(0, 201), wanted=2)
    assert names(one) == ["host201"]


def test_first_of_an_affinity_group_may_fail_over_to_any_host() -> None:
    [one] = placed([9, 5, 4], group=ServerGroup("g", "affinity"))
    assert names(one) == ["host1", "host2"]


def test_member_of_an_affinity_group_may_not_leave_the_others() -> None:
    group = ServerGroup("g", "affinity")
    assert [names(one) for one in placed([9, 5, 4], count=2, group=group)] == [[], []]
    [one] = placed([9, 5, 4], group=ServerGroup("g", "affinity", ("host0", "host2")))
    assert (one.selected.host, names(one)) == ("host0", ["host2"])


def test_members_of_an_anti_affinity_group_have_alternates_of_their_own() -> None:
    group = ServerGroup("g", "anti-affinity")
    destinations = placed([9, 8, 7, 6, 5], count=2, wanted=2, group=group)
    assert [names(one) for one in destinations] == [["host2", "host3"], ["host4"]]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=9),
    st.integers(1, 4),
    st.integers(0, 4),
    st.sampled_from([("x",), ("x", "y")]),
    st.integers(0, 2),
    st.lists(st.sampled_from(["host0", "host1", "host2"]), max_size=2),
)
def test_whatever_fails_over_the_promises_hold(
    free: list[int], count: int, wanted: int, cells: tuple[str, ...], most: int, members: list[str]
) -> None:
    group = ServerGroup("g", "anti-affinity", tuple(members), most) if most else None
    destinations = placed(free, count, wanted, cells, group)
    here = Counter(one.selected.host for one in destinations)
    for one in destinations:
        found = names(one)
        assert len(found) <= wanted
        assert len(set(found)) == len(found)
        assert one.selected.host not in found
        assert {other.cell for other in one.alternates} <= {one.selected.cell}
        for other in found:
            number = int(other.removeprefix("host"))
            assert here[other] < free[number], "an alternate has no room left"
    if most:
        # Even if all of them move, to any of their alternates at once.
        together = here + Counter(members)
        together += Counter(other for one in destinations for other in names(one))
        moved = {other for one in destinations for other in names(one)}
        assert all(together[host] <= most for host in moved)


def test_order_is_by_weight_then_by_uuid() -> None:
    [one] = placed([9, 5, 6, 5, 6, 1], wanted=5)
    assert names(one) == ["host2", "host4", "host1", "host3", "host5"]
    weights = [other.weight for other in one.alternates]
    assert weights == sorted(weights, reverse=True)
