"""Offers straight from the fleet: each offered host has a candidate with something of its own tree."""

from hypothesis import HealthCheck, given, settings

from roost.model.change import AllocationsChanged
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup
from roost.scheduler.candidates.fleet_candidates import FleetCandidates
from roost.scheduler.nodes.table import NodeTable
from support import oracle
from support.clouds import report
from support.fleets import CLASSES, fleet_of, queries, worlds
from support.oracle import SHARING, Provider, World


def table_of(world: World) -> NodeTable:
    """A host for each root, in another order than the rows'."""
    roots = [uuid for uuid, provider in world.items() if provider.parent is None]
    return NodeTable(report(f"host-{uuid}", uuid) for uuid in reversed(roots))


def offers_of(world: World, query: CandidateQuery) -> tuple[FleetCandidates, NodeTable]:
    table = table_of(world)
    return FleetCandidates(fleet_of(world), query, table), table


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(worlds(), queries())
def test_offered_are_the_hosts_with_a_candidate_of_their_own(world: World, query: CandidateQuery) -> None:
    offers, table = offers_of(world, query)
    expected = {}
    for root, answers in oracle.candidates(world, query).items():
        own = {
            answer
            for answer in answers
            if any(oracle.root_of(world, provider) == root for provider, _, _ in answer[0])
        }
        if own:
            expected[root] = own
    hosts = offers.index.tolist()
    assert hosts == sorted(set(hosts), key=table.nodes.__getitem__)
    found = {
        table.nodes[host]: {oracle.answer(each) for each in offers.candidates(position)}
        for position, host in enumerate(hosts)
    }
    assert found == expected
    for name in CLASSES:
        for position, host in enumerate(hosts):
            total = offers.capacity(name).item(position), offers.used(name).item(position)
            assert total == oracle.tree_totals(world, name, table.nodes[host])


CPU = {"VCPU": Inventory(4)}
DISK = {"DISK_GB": Inventory(10)}
SHARED: World = {
    "nfs": Provider(None, DISK, traits=frozenset({SHARING}), aggregates=frozenset({"agg-a"})),
    "host0": Provider(None, CPU, aggregates=frozenset({"agg-a"})),
    "host1": Provider(None, CPU, aggregates=frozenset({"agg-a"})),
}


def test_claims_count_on_every_tree_that_gives_something() -> None:
    fleet = fleet_of(SHARED)
    table = NodeTable([report("store", "nfs"), report("a", "host0"), report("b", "host1")])
    query = CandidateQuery((RequestGroup({"VCPU": 1, "DISK_GB": 6}),))
    offers = FleetCandidates(fleet, query, table)
    assert [table.hosts[host] for host in offers.index] == ["a", "b"]
    assert offers.used("VCPU").tolist() == [0, 0]
    [candidate] = offers.candidates(0)
    assert candidate.allocations == {"host0": {"VCPU": 1}, "nfs": {"DISK_GB": 6}}
    fleet.apply(AllocationsChanged("c", None, None, {}, candidate.allocations))
    assert list(offers.claimed(candidate)) == [0]
    assert offers.used("VCPU").tolist() == [1, 0]
    # The disk that both could use has too little left.
    assert list(offers.candidates(0)) == list(offers.candidates(1)) == []


def test_what_is_all_from_sharing_providers_is_for_no_host() -> None:
    offers, table = offers_of(SHARED, CandidateQuery((RequestGroup({"DISK_GB": 1}),)))
    assert [table.nodes[host] for host in offers.index] == ["nfs"]
