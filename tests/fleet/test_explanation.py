"""Explanations against the plain oracle."""

from hypothesis import HealthCheck, given, settings

from roost.fleet.explanation import cumulative_queries, explain
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup, all_of
from support import oracle
from support.fleets import fleet_of, queries, worlds
from support.oracle import Provider, World


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), queries())
def test_steps_only_narrow_and_the_last_is_exact(world: World, query: CandidateQuery) -> None:
    steps = explain(fleet_of(world), query)
    counts = [step.trees for step in steps]
    assert counts == sorted(counts, reverse=True)
    with_candidates = [root for root, found in oracle.candidates(world, query).items() if found]
    assert counts[-1] == len(with_candidates)


@settings(deadline=None)
@given(queries())
def test_the_last_constraint_leaves_nothing_of_the_query_out(query: CandidateQuery) -> None:
    *_, (_, last) = cumulative_queries(query)
    assert last.groups == query.groups
    assert last.isolate == query.isolate
    assert (last.root_required, last.root_forbidden) == (query.root_required, query.root_forbidden)


def test_each_constraint_is_blamed_for_what_it_removes() -> None:
    small = Provider(None, {"VCPU": Inventory(2)})
    plain = Provider(None, {"VCPU": Inventory(8)})
    fast = Provider(None, {"VCPU": Inventory(8)}, traits=frozenset({"CUSTOM_FAST"}))
    off = Provider(None, {"VCPU": Inventory(8)}, traits=frozenset({"CUSTOM_FAST", "CUSTOM_OFF"}))
    group = RequestGroup({"VCPU": 4}, required=all_of("CUSTOM_FAST"))
    query = CandidateQuery((group,), root_forbidden=frozenset({"CUSTOM_OFF"}))
    fleet = fleet_of({"small": small, "plain": plain, "fast": fast, "off": off})
    assert explain(fleet, query) == [
        ("4 VCPU", 3),
        ("required CUSTOM_FAST", 2),
        ("root forbids CUSTOM_OFF", 1),
    ]
