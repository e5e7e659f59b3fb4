"""Near misses against the plain oracle."""

import sys
from collections.abc import Iterable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from roost.fleet.constraint import (
    ANY_PROVIDER,
    FORBIDDEN,
    FORBIDDEN_AGGREGATES,
    IN_TREE,
    MEMBER_OF,
    RESOURCES,
    ROOT_FORBIDDEN,
    ROOT_REQUIRED,
    Constraint,
    constraints_of,
    replaced,
    without,
)
from roost.fleet.near_misses import explain_fully
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup, all_of
from support import oracle
from support.constraints import WHOLE, meets
from support.fleets import fleet_of, queries, worlds
from support.oracle import Provider, World


def relaxed(
    world: World, query: CandidateQuery, constraint: Constraint, holders: Iterable[str]
) -> tuple[World, CandidateQuery]:
    """World and query with nothing but one constraint relaxed; of an amount, ``holders`` have plenty."""
    if constraint.kind != RESOURCES:
        return world, without(query, constraint)
    other = dict(world)
    for uuid in holders:
        inventories = {**world[uuid].inventories, "PLENTY": Inventory(10**6)}
        other[uuid] = replace(world[uuid], inventories=inventories)
    return other, replaced(query, constraint, "PLENTY")


def having(world: World, constraint: Constraint) -> list[str]:
    return [uuid for uuid, provider in world.items() if set(constraint.names) & set(provider.inventories)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), queries())
def test_a_near_miss_has_a_candidate_without_its_constraint(world: World, query: CandidateQuery) -> None:
    explanation = explain_fully(fleet_of(world), query, 50)
    served = oracle.candidates(world, query)
    distances = [miss.distance for miss in explanation.near_misses]
    assert distances == sorted(distances)
    for miss in explanation.near_misses:
        assert miss.root not in served
        assert 0 < miss.distance <= 1
        assert miss.constraint.kind != RESOURCES or miss.provider in having(world, miss.constraint)
        other_world, other_query = relaxed(world, query, miss.constraint, filter(None, [miss.provider]))
        assert oracle.candidates_at(other_world, other_query, miss.root), miss
        if miss.provider is not None and miss.constraint.kind not in (RESOURCES, *WHOLE):
            assert not meets(world, miss.provider, miss.constraint)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), queries())
def test_every_tree_that_one_constraint_excludes_is_reported(world: World, query: CandidateQuery) -> None:
    explanation = explain_fully(fleet_of(world), query, 100)
    served = oracle.candidates(world, query)
    told = {(miss.constraint, miss.root) for miss in explanation.near_misses}
    # What a sharing provider misses is told of one of the trees that it shares with.
    told |= {
        (miss.constraint, root)
        for miss in explanation.near_misses
        for root in world
        if miss.provider is not None and oracle.shares_with(world, miss.provider, root)
    }
    sole = {step.constraint: step.trees_sole for step in explanation.steps}
    for constraint in constraints_of(query):
        if constraint.kind != ANY_PROVIDER:
            near = set(oracle.candidates(*relaxed(world, query, constraint, having(world, constraint))))
            near -= set(served)
            assert {(constraint, root) for root in near} <= told
            assert sole[constraint] >= len(near)


HOST = Provider(None, {"VCPU": Inventory(8), "DISK_GB": Inventory(100, max_unit=60)})


def explained(query: CandidateQuery, **world: Provider) -> list[tuple[str, str | None, float, int | None]]:
    found = explain_fully(fleet_of(world), query, 10).near_misses
    return [(str(miss.constraint), miss.provider, round(miss.distance, 2), miss.free) for miss in found]


def test_the_nearest_is_first_and_says_by_how_much() -> None:
    query = CandidateQuery((RequestGroup({"VCPU": 8}, required=all_of("CUSTOM_FAST")),))
    fast = replace(HOST, traits=frozenset({"CUSTOM_FAST"}))
    assert explained(
        query,
        full=replace(fast, used={"VCPU": 8}),
        near=replace(fast, used={"VCPU": 2}),
        slow=HOST,
        neither=replace(HOST, used={"VCPU": 1}),
    ) == [
        ("8 VCPU", "near", 0.25, 6),
        ("required CUSTOM_FAST", "slow", 0.5, None),
        ("8 VCPU", "full", 1.0, 0),
    ]


def test_limits_of_an_inventory_are_named() -> None:
    found = explain_fully(
        fleet_of(
            {
                "most": Provider(None, {"VCPU": Inventory(8, max_unit=3)}),
                "least": Provider(None, {"VCPU": Inventory(8, min_unit=5)}),
                "step": Provider(None, {"VCPU": Inventory(8, step_size=3)}),
            }
        ),
        CandidateQuery((RequestGroup({"VCPU": 4}),)),
        10,
    ).near_misses
    assert {(miss.provider, miss.unit) for miss in found} == {
        ("most", "max_unit"),
        ("least", "min_unit"),
        ("step", "step_size"),
    }


def test_an_amount_beyond_all_numbers_is_far_away() -> None:
    assert explained(CandidateQuery((RequestGroup({"VCPU": 10**20}),)), host=HOST) == [
        (f"{10**20} VCPU", "host", 1.0, 8)
    ]


def test_devices_and_shared_storage_are_looked_at_as_one_tree() -> None:
    tree = {
        "host": Provider(None, {"VCPU": Inventory(8)}, aggregates=frozenset({"agg"})),
        "gpu1": Provider("host", {"CUSTOM_GPU": Inventory(2)}, used={"CUSTOM_GPU": 1}),
        "gpu2": Provider("host", {"CUSTOM_GPU": Inventory(1)}, used={"CUSTOM_GPU": 1}),
        "pool": Provider(
            None,
            {"DISK_GB": Inventory(100)},
            used={"DISK_GB": 90},
            traits=frozenset({oracle.SHARING}),
            aggregates=frozenset({"agg"}),
        ),
    }
    disk = RequestGroup({"VCPU": 4, "DISK_GB": 20})
    assert explained(CandidateQuery((disk,)), **tree) == [("20 DISK_GB", "pool", 0.5, 10)]
    gpus = RequestGroup({"CUSTOM_GPU": 2}, "_1")
    assert explained(CandidateQuery((RequestGroup({"VCPU": 4}), gpus)), **tree) == [
        ("group _1: 2 CUSTOM_GPU", "gpu1", 0.5, 1)
    ]


def test_what_other_groups_take_is_not_free() -> None:
    query = CandidateQuery((RequestGroup({"VCPU": 5}, "_1"), RequestGroup({"VCPU": 6}, "_2")))
    assert explained(query, host=HOST) == [
        ("group _2: 6 VCPU", "host", 0.5, 3),
        ("group _1: 5 VCPU", "host", 0.6, 2),
    ]


@pytest.mark.parametrize(
    "kind", [FORBIDDEN, MEMBER_OF, FORBIDDEN_AGGREGATES, IN_TREE, ROOT_REQUIRED, ROOT_FORBIDDEN]
)
def test_each_kind_of_constraint_is_blamed(kind: str) -> None:
    group, query = RequestGroup({"VCPU": 1}), CandidateQuery(())
    match kind:
        case "forbidden":
            group = replace_group(group, forbidden=frozenset({"CUSTOM_RED"}))
        case "member_of":
            group = replace_group(group, member_of=all_of("agg-b"))
        case "forbidden_aggregates":
            group = replace_group(group, forbidden_aggregates=frozenset({"agg-a"}))
        case "in_tree":
            group = replace_group(group, in_tree="other")
        case "root_required":
            query = CandidateQuery((), root_required=frozenset({"CUSTOM_FAST"}))
        case "root_forbidden":
            query = CandidateQuery((), root_forbidden=frozenset({"CUSTOM_RED"}))
    red = replace(HOST, traits=frozenset({"CUSTOM_RED"}), aggregates=frozenset({"agg-a"}))
    asked = CandidateQuery((group,), False, (), query.root_required, query.root_forbidden)
    [miss] = explain_fully(fleet_of({"red": red, "other": Provider()}), asked, 5).near_misses
    assert (miss.constraint.kind, miss.provider) == (kind, "red")


def replace_group(group: RequestGroup, **changes: object) -> RequestGroup:
    return msgspec.structs.replace(group, **changes)


def test_the_work_does_not_grow_with_the_number_of_hosts() -> None:
    assert calls_to_explain(hosts=4_000) < 1.2 * calls_to_explain(hosts=400)


def calls_to_explain(hosts: int) -> int:
    """The calls of Python functions and numpy operations that an explanation takes."""
    world = {
        f"host-{n}": Provider(
            None,
            {"VCPU": Inventory(64), "MEMORY_MB": Inventory(2**18), "DISK_GB": Inventory(4000)},
            used={"VCPU": 40 + n % 24, "MEMORY_MB": 2**17},
            traits=frozenset({"CUSTOM_FAST"} if n % 3 else ()),
            aggregates=frozenset({f"rack-{n // 40}"}),
        )
        for n in range(hosts)
    }
    fleet = fleet_of(world)
    group = RequestGroup(
        {"VCPU": 32, "MEMORY_MB": 2**16, "DISK_GB": 100},
        required=all_of("CUSTOM_FAST"),
        forbidden=frozenset({"CUSTOM_RED"}),
        member_of=(frozenset({"rack-1", "rack-2", "rack-3"}),),
    )
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        explanation = explain_fully(fleet, CandidateQuery((group,)), 10)
    finally:
        sys.setprofile(None)
    assert explanation.served == 0
    return calls
