"""Allocation candidates against the plain oracle, and the rules that were once broken, one by one."""

import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, islice, zip_longest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.fleet.candidates import CandidateSearch, SearchLimits
from roost.fleet.choices import Choice
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup, all_of
from support import oracle
from support.fleets import fleet_of, queries, worlds
from support.oracle import SHARING, Provider, World

SMALL = SearchLimits(first_providers=1)
"""Fleets here are small, and yet are matched in several blocks."""


def found(world: World, query: CandidateQuery) -> list[oracle.Answer]:
    return [oracle.answer(candidate) for candidate in CandidateSearch(fleet_of(world), query, SMALL)]


def check(world: World, query: CandidateQuery, limits: SearchLimits = SMALL) -> None:
    fleet = fleet_of(world)
    expected = oracle.candidates(world, query)
    search = CandidateSearch(fleet, query, limits)

    answers = [oracle.answer(candidate) for candidate in search]
    assert len(set(answers)) == len(answers), "two candidates are equal"
    assert set(answers) == set().union(*expected.values()), "iteration"
    for candidate in search:
        assert oracle.answer(candidate) in expected[candidate.root], "the candidate is not of this tree"

    anchors = [fleet.uuid(row) for row in search.anchors.tolist()]
    assert search.anchors.tolist() == sorted(set(search.anchors.tolist()))
    assert set(anchors) >= set(expected), "a tree with candidates is not among the anchors"
    if search.single_provider:
        assert set(anchors) == set(expected), "single, but an anchor has no candidate"
    for row, anchor in zip(search.anchors.tolist(), anchors, strict=True):
        there = list(search.at(row))
        assert {candidate.root for candidate in there} <= {anchor}
        assert {oracle.answer(candidate) for candidate in there} == expected.get(anchor, set()), "at"
        if search.single_provider:
            assert len(there) == 1


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), queries())
def test_candidates_are_those_of_the_oracle(world: World, query: CandidateQuery) -> None:
    check(world, query)


@pytest.mark.nightly
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(max_providers=8), queries())
def test_candidates_are_those_of_the_oracle_at_length(world: World, query: CandidateQuery) -> None:
    check(world, query)


def three_of_each(data: st.DataObject, world: World) -> World:
    """Every tree three times, some providers with other use: most trees are alike, and some nearly."""
    copies: World = {}
    for number in range(3):
        for uuid, provider in world.items():
            parent = None if provider.parent is None else f"{provider.parent}-{number}"
            used = data.draw(st.integers(0, 3)) if data.draw(st.integers(0, 4)) == 0 else None
            copies[f"{uuid}-{number}"] = replace(
                provider,
                parent=parent,
                used=provider.used if used is None else dict.fromkeys(provider.inventories, used),
            )
    return copies


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), worlds(max_providers=4), queries(), st.sampled_from([0, 3, 2**13]))
def test_trees_that_are_alike_have_each_their_own_candidates(
    data: st.DataObject, world: World, query: CandidateQuery, kept: int
) -> None:
    copies = three_of_each(data, world)
    limits = SearchLimits(first_providers=1, first_trees=1, max_layouts=2, max_positions=kept)
    check(copies, query, limits)
    fleet = fleet_of(copies)

    def search() -> CandidateSearch:
        return CandidateSearch(fleet, query, limits)

    anchors = search().anchors
    alone = [list(search().choices_at(anchor)) for anchor in anchors.tolist()]
    assert [list(tree) for tree in search().choices_by_tree(anchors)] == alone, "one tree after the other"
    turns = list(zip_longest(*search().choices_by_tree(anchors)))
    in_turn = [[turn[number] for turn in turns if turn[number]] for number in range(len(alone))]
    assert in_turn == alone, "a candidate of each tree in turn"
    assert search().have_candidates(anchors).tolist() == [bool(tree) for tree in alone]
    assert list(search().choices()) == first_of_each(chain(*alone)), "all, and each once"
    in_breadth = (choice for turn in turns for choice in turn if choice)
    assert list(search().choices_breadth_first()) == first_of_each(in_breadth), "breadth first, and each once"


def first_of_each(choices: Iterable[Choice]) -> list[Choice]:
    """The choices without those that take from the same providers as an earlier one."""
    once: dict[tuple[int, ...], Choice] = {}
    for choice in choices:
        once.setdefault(choice[1], choice)
    return list(once.values())


DISK = {"DISK_GB": Inventory(100)}
CPU = {"VCPU": Inventory(8)}
SHARED_DISK = Provider(None, DISK, traits=frozenset({SHARING}), aggregates=frozenset({"agg-a"}))


def unsuffixed(**resources: int) -> RequestGroup:
    return RequestGroup(resources)


def test_sharing_provider_alone_is_one_candidate_however_many_trees_it_serves() -> None:
    hosts = {f"host{i}": Provider(None, CPU, aggregates=frozenset({"agg-a"})) for i in range(3)}
    query = CandidateQuery((unsuffixed(DISK_GB=10),))
    assert len(found({"nfs": SHARED_DISK, **hosts}, query)) == 1
    assert len(found({**hosts, "nfs": SHARED_DISK}, query)) == 1
    for world in ({"nfs": SHARED_DISK, **hosts}, {**hosts, "nfs": SHARED_DISK}):
        assert len(list(CandidateSearch(fleet_of(world), query).choices_breadth_first())) == 1


def test_granular_group_is_in_an_aggregate_only_by_itself() -> None:
    world = {
        "host": Provider(None, {}, aggregates=frozenset({"agg-a"})),
        "numa": Provider("host", CPU),
    }
    inside = RequestGroup({"VCPU": 1}, member_of=all_of("agg-a"))
    outside = RequestGroup({"VCPU": 1}, forbidden_aggregates=frozenset({"agg-a"}))
    assert len(found(world, CandidateQuery((inside,)))) == 1
    assert found(world, CandidateQuery((outside,))) == []
    granular = RequestGroup({"VCPU": 1}, "_1", member_of=all_of("agg-a"))
    assert found(world, CandidateQuery((granular,))) == []
    granular = RequestGroup({"VCPU": 1}, "_1", forbidden_aggregates=frozenset({"agg-a"}))
    assert len(found(world, CandidateQuery((granular,)))) == 1


def test_several_member_of_are_met_by_the_provider_or_by_its_root_not_by_half_each() -> None:
    world = {
        "host": Provider(None, {}, aggregates=frozenset({"agg-a"})),
        "numa": Provider("host", CPU, aggregates=frozenset({"agg-b"})),
    }
    group = RequestGroup({"VCPU": 1}, member_of=all_of("agg-a", "agg-b"))
    assert found(world, CandidateQuery((group,))) == []


def test_sharing_provider_serves_trees_only_if_itself_in_the_aggregate_asked_for() -> None:
    world = {
        "nfs": SHARED_DISK,
        "host": Provider(None, CPU, aggregates=frozenset({"agg-a", "az"})),
    }
    group = RequestGroup({"VCPU": 1, "DISK_GB": 1}, member_of=all_of("az"))
    assert found(world, CandidateQuery((group,))) == []


@pytest.mark.parametrize(("suffix", "combined"), [("", False), ("_1", True)])
def test_in_tree_of_a_sharing_provider_ties_only_the_unsuffixed_group_to_its_tree(
    suffix: str, combined: bool
) -> None:
    world = {"nfs": SHARED_DISK, "host": Provider(None, CPU, aggregates=frozenset({"agg-a"}))}
    disk = RequestGroup({"DISK_GB": 1}, suffix, in_tree="nfs")
    query = CandidateQuery((disk, RequestGroup({"VCPU": 1}, "_2")))
    assert bool(found(world, query)) is combined


# Requests that cannot be met, on which a search without foresight would not end.


def host_with_devices(devices: int, units: int) -> World:
    device = {"CUSTOM_GPU": Inventory(units)}
    children = {f"device{i}": Provider("host", device) for i in range(devices)}
    return {"host": Provider(None, CPU), **children}


def same(count: int, amount: int = 1) -> tuple[RequestGroup, ...]:
    return tuple(RequestGroup({"CUSTOM_GPU": amount}, f"_{i}") for i in range(count))


def test_one_isolated_group_more_than_devices_ends() -> None:
    assert found(host_with_devices(32, 4), CandidateQuery(same(33), isolate=True)) == []


def test_isolated_groups_that_compete_for_part_of_the_devices_end() -> None:
    world = host_with_devices(40, 4)
    for i in range(8):
        world[f"device{i}"].traits = frozenset({"CUSTOM_RED"})
    # Nine groups want one of eight red devices; the others have plenty of room.
    red = tuple(RequestGroup({"CUSTOM_GPU": 1}, f"_red{i}", all_of("CUSTOM_RED")) for i in range(9))
    assert found(world, CandidateQuery((*same(16), *red), isolate=True)) == []


def test_isolated_groups_find_the_only_way() -> None:
    world = host_with_devices(12, 4)
    for i in range(12):
        world[f"device{i}"].traits = frozenset(f"CUSTOM_T{j}" for j in range(i + 1))
    groups = tuple(RequestGroup({"CUSTOM_GPU": 1}, f"_{i}", all_of(f"CUSTOM_T{i}")) for i in range(12))
    (only,) = found(world, CandidateQuery(groups, isolate=True))
    assert only[1] == frozenset((f"_{i}", frozenset({f"device{i}"})) for i in range(12))


def test_more_units_than_all_devices_have_ends() -> None:
    assert found(host_with_devices(8, 8), CandidateQuery(same(65))) == []


def test_units_that_do_not_divide_evenly_end() -> None:
    assert found(host_with_devices(8, 8), CandidateQuery(same(17, 3))) == []


def test_mixed_amounts_that_cannot_be_packed_end() -> None:
    query = CandidateQuery((*same(9, 5), *(RequestGroup({"CUSTOM_GPU": 3}, f"_s{i}") for i in range(4))))
    assert found(host_with_devices(8, 8), query) == []


def test_same_subtree_without_room_ends() -> None:
    world = {"host": Provider()}
    for numa in ("numa0", "numa1"):
        world[numa] = Provider("host", CPU)
        for i in range(4):
            world[f"{numa}-device{i}"] = Provider(numa, {"CUSTOM_GPU": Inventory(4)})
    groups = (RequestGroup({"VCPU": 1}, "_cpu"), *same(17))
    subtree = frozenset(group.suffix for group in groups)
    assert found(world, CandidateQuery(groups, same_subtree=(subtree,))) == []


def test_more_groups_than_python_has_stack() -> None:
    groups = tuple(RequestGroup({"CUSTOM_GPU": 1}, f"_{i}") for i in range(1500))
    search = CandidateSearch(fleet_of(host_with_devices(2, 2000)), CandidateQuery(groups))
    assert len(list(islice(search, 3))) == 3


def test_reading_a_few_candidates_does_not_build_them_all() -> None:
    search = CandidateSearch(fleet_of(host_with_devices(32, 32)), CandidateQuery(same(32)))
    tracemalloc.start()
    assert len(list(islice(search, 100))) == 100
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
