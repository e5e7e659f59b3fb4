"""PCI devices close to NUMA nodes of trees: the ways to divide them that placement is asked for."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.request import RequestGroup
from roost.model.spec import NumaPolicy, PciRequest
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.request.demand.numa_groups import MOST_WAYS, near_nodes


def nodes(*vcpus: int) -> list[RequestGroup]:
    return [RequestGroup({"VCPU": amount}, f"_NUMA{number}") for number, amount in enumerate(vcpus)]


def devices(count: int = 1, policy: NumaPolicy | None = "required", id: str = "a") -> PciRequest:
    return PciRequest(id=id, count=count, specs=({},), alias="gpu", numa_policy=policy)


def test_nodes_that_ask_for_the_same_are_alike() -> None:
    near = frozenset({"_NUMA0", "a-0"})
    assert list(near_nodes(nodes(1, 1), [devices()])) == [(near,)]
    assert list(near_nodes(nodes(1, 2), [devices()])) == [(near,), (frozenset({"_NUMA1", "a-0"}),)]
    assert list(near_nodes(nodes(1, 1), [devices(2)])) == [
        (frozenset({"_NUMA0", "a-0", "a-1"}),),
        (near, frozenset({"_NUMA1", "a-1"})),
    ]


@pytest.mark.parametrize("policy", ["preferred", "legacy", None])
def test_devices_that_may_be_anywhere_are_close_first(policy: NumaPolicy | None) -> None:
    near, must = frozenset({"_NUMA0", "a-0"}), frozenset({"_NUMA0", "b-0"})
    assert list(near_nodes(nodes(1), [devices(policy=policy)])) == [(near,), ()]
    both = [devices(policy=policy), devices(policy="socket", id="b")]
    assert list(near_nodes(nodes(1), both)) == [(near | must,), (must,)]


def test_too_many_ways_are_refused_or_left_out() -> None:
    with pytest.raises(
        BadRequestSpec, match="8 PCI devices that must be close to 4 NUMA nodes can be divided"
    ):
        list(near_nodes(nodes(1, 2, 3, 4), [devices(8)]))
    assert list(near_nodes(nodes(1, 2, 3, 4), [devices(8, "preferred")])) == [()]
    assert len(list(near_nodes(nodes(1, 1, 1, 1), [devices(8)]))) == 15
    with pytest.raises(BadRequestSpec):
        list(near_nodes(nodes(*range(1, 9)), [devices(999)]))


@given(
    st.lists(st.integers(1, 2), min_size=1, max_size=3), st.lists(st.integers(1, 2), min_size=1, max_size=2)
)
def test_each_way_to_have_devices_close_is_asked_for(vcpus: list[int], counts: list[int]) -> None:
    """Whatever nodes of a host serve the guest's and the devices, some way allows it."""
    wanted = [devices(count, id=f"r{at}") for at, count in enumerate(counts)]
    groups = nodes(*vcpus)
    try:
        ways = list(near_nodes(groups, wanted))
    except BadRequestSpec:
        return
    assert len(ways) <= MOST_WAYS
    asked = {
        tuple(
            tuple(sum(name.startswith(f"r{at}-") for name in _near(way, node)) for at in range(len(counts)))
            for node in groups
        )
        for way in ways
    }
    for close in product(*(product(range(len(groups)), repeat=count) for count in counts)):
        share = [tuple(each.count(node) for each in close) for node in range(len(groups))]
        orders = _orders(share, vcpus)
        assert asked & orders


def _near(way: tuple[frozenset[str], ...], node: RequestGroup) -> frozenset[str]:
    return frozenset[str]().union(*(each for each in way if node.suffix in each))


def _orders(share: list[tuple[int, ...]], vcpus: list[int]) -> set[tuple[tuple[int, ...], ...]]:
    """All ways that differ in the order of nodes that ask for the same."""
    size = len(vcpus)
    return {
        tuple(share[at] for at in order)
        for order in product(range(size), repeat=size)
        if sorted(order) == list(range(size)) and all(vcpus[at] == vcpus[to] for to, at in enumerate(order))
    }
