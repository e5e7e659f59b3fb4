"""Amounts that several providers of one tree give together."""

import pytest
from hypothesis import HealthCheck, given, settings

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.feasibility import feasibilities
from roost.model.allocation import Candidate
from roost.model.change import AllocationsChanged
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup, all_of
from support.fleets import fleet_of, splitting_queries, splitting_worlds
from support.oracle import Provider, World, answer, candidates_at, splits_at


def check(world: World, query: CandidateQuery) -> None:
    """Each tree has all its unsplit candidates, or else the one split that the rule demands."""
    fleet = fleet_of(world)
    search, kept = CandidateSearch(fleet, query), feasibilities(fleet).of(query)
    kept.catch_up()
    everything = []
    for uuid, provider in world.items():
        if provider.parent is not None:
            continue
        root = fleet.row(uuid)
        found = list(search.at(root)) if root in search.anchors else []
        everything += found
        assert list(kept.at(root)) == found
        unsplit, splits = candidates_at(world, query, uuid), splits_at(world, query, uuid)
        assert all(each.root == uuid for each in found)
        if splits:
            [split] = found
            assert answer(split) in splits
            assert kept.is_local(root)
            assert list(kept.local_at(root)) == found
        else:
            assert {*map(answer, found)} == unsplit
            assert len(found) == len(unsplit)
    assert {*map(answer, search)} == {*map(answer, everything)}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(splitting_worlds(), splitting_queries())
def test_a_tree_is_served_unsplit_or_else_by_the_one_split_of_the_rule(
    world: World, query: CandidateQuery
) -> None:
    check(world, query)


@pytest.mark.nightly
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(splitting_worlds(3), splitting_queries())
def test_a_tree_is_served_unsplit_or_else_by_the_one_split_of_the_rule_at_length(
    world: World, query: CandidateQuery
) -> None:
    check(world, query)


def host(*nodes: Provider, traits: frozenset[str] = frozenset(), disk: int = 100) -> World:
    """Return a host with a disk and these NUMA nodes."""
    world = {"host": Provider(None, {"DISK_GB": Inventory(disk)}, traits=traits)}
    for number, node in enumerate(nodes):
        node.parent = "host"
        world[f"numa{number}"] = node
    return world


def node(vcpus: int, memory: int = 1000, **units: int) -> Provider:
    return Provider(None, {"VCPU": Inventory(vcpus, **units), "MEMORY_MB": Inventory(memory)})


def asking(vcpus: int, memory: int = 100, **group: object) -> CandidateQuery:
    resources = {"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": 1}
    return CandidateQuery(
        (RequestGroup(resources, **group),),  # type: ignore[arg-type]
        can_split=("MEMORY_MB", "PCPU", "VCPU"),
    )


def found(world: World, query: CandidateQuery) -> list[Candidate]:
    return list(CandidateSearch(fleet_of(world), query))


def test_a_request_that_fits_on_one_provider_is_not_split() -> None:
    candidates = found(host(node(4), node(2)), asking(4))
    # Memory may come from either node, as ever.
    assert [each.allocations["numa0"]["VCPU"] for each in candidates] == [4, 4]


def test_the_provider_with_most_free_gives_first_and_equal_ones_are_taken_by_uuid() -> None:
    [candidate] = found(host(node(4), node(6), node(4)), asking(11))
    assert candidate.allocations == {
        "host": {"DISK_GB": 1},
        "numa1": {"VCPU": 6},
        "numa0": {"VCPU": 4, "MEMORY_MB": 100},
        "numa2": {"VCPU": 1},
    }
    assert candidate.mappings == {"": ["host", "numa1", "numa0", "numa2"]}


def test_each_part_keeps_the_units_of_its_inventory() -> None:
    nodes = (node(7, step_size=2), node(6, max_unit=3), node(5, min_unit=4))
    [candidate] = found(host(*nodes), asking(13))
    assert {uuid: held.get("VCPU") for uuid, held in candidate.allocations.items()} == {
        "host": None,
        "numa0": 6,
        "numa1": 3,
        "numa2": 4,
    }
    assert not found(host(*nodes), asking(12)), "the last node gives 4 or more, and 3 are missing"


def test_a_class_that_a_granular_group_requests_too_and_a_device_are_never_split() -> None:
    world = host(node(4), node(4))
    unsuffixed = RequestGroup({"VCPU": 6})
    both = (unsuffixed, RequestGroup({"VCPU": 1}, "_1"))
    assert found(world, CandidateQuery((unsuffixed,), can_split=("VCPU",)))
    assert not found(world, CandidateQuery(both, can_split=("VCPU",)))
    assert not found(world, CandidateQuery((unsuffixed,), can_split=("MEMORY_MB",)))


def test_required_traits_may_be_on_the_provider_of_any_part_or_of_the_rest() -> None:
    fast = all_of("CUSTOM_FAST")
    nodes = (node(4), node(4))
    assert not found(host(*nodes), asking(6, required=fast))
    assert found(host(*nodes, traits=frozenset(("CUSTOM_FAST",))), asking(6, required=fast))
    nodes[1].traits = frozenset(("CUSTOM_FAST",))
    assert found(host(*nodes), asking(6, required=fast))


def hosts(number: int) -> World:
    world: World = {}
    for each in range(number):
        world[f"host{each}"] = Provider(None, {"DISK_GB": Inventory(100)})
        for numa in range(2):
            world[f"numa{each}-{numa}"] = Provider(f"host{each}", node(4).inventories)
    return world


@pytest.mark.parametrize("number", [20, 200])
def test_a_claim_costs_the_providers_that_it_touches_however_many_hosts_there_are(number: int) -> None:
    fleet: Fleet = fleet_of(hosts(number))
    kept = feasibilities(fleet).of(asking(6))
    assert len(kept.local_roots()) == number
    assert (kept.full_evaluations, kept.searches) == (1, 1)
    for claim in range(10):
        [candidate] = kept.local_at(fleet.row(f"host{claim}"))
        fleet.apply(AllocationsChanged(f"c{claim}", None, None, {}, candidate.allocations))
        kept.catch_up()
    assert len(kept.local_roots()) == number - 10
    assert (kept.full_evaluations, kept.evaluated) == (1, 30)


def test_a_split_is_made_of_what_is_left_after_the_claims_of_the_run() -> None:
    fleet = fleet_of(hosts(1))
    kept = feasibilities(fleet).of(asking(5))
    root = fleet.row("host0")
    [candidate] = kept.local_at(root)
    taken = {"numa0-1": {"VCPU": 2}}
    fleet.apply(AllocationsChanged("c", None, None, {}, taken))
    [after] = kept.splits_at(root)
    assert candidate.allocations["numa0-0"]["VCPU"] == after.allocations["numa0-0"]["VCPU"] == 4
    fleet.apply(AllocationsChanged("d", None, None, {}, {"numa0-0": {"VCPU": 2}}))
    assert not list(kept.splits_at(root))
