"""Which providers may serve which trees, against the plain oracle."""

from hypothesis import HealthCheck, given, settings

from roost.fleet.candidates import CandidateSearch
from roost.fleet.reach import is_flat, reach_of, trees_served
from roost.model.request import CandidateQuery
from support import oracle
from support.fleets import fleet_of, queries, worlds
from support.oracle import World


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_the_pairs_of_tree_and_provider_are_those_of_the_oracle(world: World) -> None:
    fleet = fleet_of(world)
    reach = reach_of(fleet)
    pairs = [
        (fleet.uuid(anchor), fleet.uuid(row))
        for anchor, row in zip(reach.anchors.tolist(), reach.rows.tolist(), strict=True)
    ]
    roots = [uuid for uuid, provider in world.items() if provider.parent is None]
    expected = {(root, uuid) for root in roots for uuid in world if oracle.reaches(world, uuid, root)}
    assert set(pairs) == expected
    assert len(pairs) == len(expected), "a pair is named twice"
    assert reach.shared.tolist() == [oracle.root_of(world, uuid) != root for root, uuid in pairs]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_a_sharing_provider_serves_other_trees_only(world: World) -> None:
    fleet = fleet_of(world)
    for row in fleet.sharing().rows().tolist():
        uuid, served = fleet.uuid(row), trees_served(fleet, row).tolist()
        assert served == sorted(set(served))
        others = {
            fleet.row(root)
            for root, provider in world.items()
            if provider.parent is None
            and root != oracle.root_of(world, uuid)
            and oracle.shares_with(world, uuid, root)
        }
        assert set(served) == others


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), queries())
def test_in_a_flat_fleet_no_candidate_has_several_providers(world: World, query: CandidateQuery) -> None:
    fleet = fleet_of(world)
    if is_flat(fleet, query):
        assert all(len(candidate.allocations) == 1 for candidate in CandidateSearch(fleet, query))
