"""Feasibility that is kept, against a search of the fleet as it is, after every kind of change."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.fleet import Fleet, feasible_trees, tree_bits
from roost.fleet.candidates import CandidateSearch
from roost.fleet.errors import TooMuchWork
from roost.fleet.feasibility import Feasibility, feasibilities
from roost.fleet.work import WorkBudget
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitsChanged,
)
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup
from support.fleets import (
    AGGREGATES,
    CLASSES,
    TRAITS,
    fleet_of,
    inventories,
    queries,
    some,
    splitting_queries,
    splitting_worlds,
    worlds,
)
from support.oracle import SHARING, Provider, World
from support.steps import lines_of


def check(fleet: Fleet, query: CandidateQuery, kept: Feasibility) -> None:
    """What is kept gives the candidates that a search gives, tree by tree and in the same order."""
    kept.catch_up()
    search = CandidateSearch(fleet, query)
    local = search.local_anchors().tolist()
    assert kept.local_roots().tolist() == local
    assert np.flatnonzero(kept.are_local(np.arange(fleet.n_rows + 1))).tolist() == local
    assert [row for row in range(fleet.n_rows) if kept.is_local(row)] == local
    for root in local:
        assert list(kept.local_at(root)) == list(search.local_at(root))
    for root in range(fleet.n_rows):
        if fleet.alive.item(root) and fleet.parent.item(root) < 0:
            expected = list(search.at(root)) if root in search.anchors else []
            found = CandidateSearch(fleet, query, feasibility=kept)
            assert (list(found.at(root)) if root in found.anchors else []) == expected
    through = CandidateSearch(fleet, query, feasibility=kept)
    assert list(through) == list(CandidateSearch(fleet, query))
    breadth = [search.candidate(choice) for choice in CandidateSearch(fleet, query).choices_breadth_first()]
    assert [through.candidate(choice) for choice in through.choices_breadth_first()] == breadth


@st.composite
def changes(draw: st.DrawFn, fleet: Fleet, number: int) -> Sequence[Change]:
    """Draw a change of one provider: use, inventory, traits, aggregates, parent, creation or deletion."""
    uuids = sorted(fleet.uuids())
    uuid = draw(st.sampled_from(uuids))
    row = fleet.row(uuid)
    has = fleet.inventories(row)
    kind = draw(
        st.sampled_from(["use", "use", "use", "inventory", "traits", "aggregates", "parent", "new", "delete"])
    )
    if kind == "use" and has:
        taken = {uuid: {draw(st.sampled_from(sorted(has))): draw(st.integers(1, 3))}}
        return [AllocationsChanged(f"c{number}", None, None, {}, taken)]
    if kind == "inventory":
        kept = {name: inventory for name, inventory in has.items() if name in fleet.usages(row)}
        after = {**draw(st.dictionaries(st.sampled_from(CLASSES), inventories())), **kept}
        if kept and draw(st.booleans()):
            after[sorted(kept)[0]] = draw(inventories())
        return [InventoryChanged(uuid, has, after)]
    if kind == "traits":
        return [TraitsChanged(uuid, fleet.traits_of(row), tuple(sorted(draw(some((*TRAITS, SHARING))))))]
    if kind == "aggregates":
        return [AggregatesChanged(uuid, fleet.aggregates_of(row), tuple(sorted(draw(some(AGGREGATES)))))]
    if kind == "parent":
        facts = fleet.facts(row)
        below = {fleet.uuid(each) for each in fleet.subtree(row)}
        parent = draw(st.sampled_from([None, *(each for each in uuids if each not in below)]))
        return [ProviderChanged(uuid, row, facts, replace_parent(facts, parent))]
    if kind == "new":
        facts = fleet.facts(row)
        made = replace_parent(facts, draw(st.sampled_from([None, uuid])), f"new {number}")
        return [
            ProviderChanged(f"new{number}", fleet.free_row(), None, made),
            InventoryChanged(
                f"new{number}", {}, draw(st.dictionaries(st.sampled_from(CLASSES), inventories()))
            ),
        ]
    if (
        kind == "delete"
        and not fleet.children(row)
        and not any(fleet.usages(row).values())
        and len(uuids) > 1
    ):
        return [
            InventoryChanged(uuid, has, {}),
            TraitsChanged(uuid, fleet.traits_of(row), ()),
            AggregatesChanged(uuid, fleet.aggregates_of(row), ()),
            ProviderChanged(uuid, row, fleet.facts(row), None),
        ]
    return []


def replace_parent(facts: ProviderFacts, parent: str | None, name: str = "") -> ProviderFacts:
    return ProviderFacts(name or facts.name, parent, facts.generation)


def change_and_check(data: st.DataObject, world: World, asked: Sequence[CandidateQuery], steps: int) -> None:
    fleet = fleet_of(world)
    kept = {number: feasibilities(fleet).of(query) for number, query in enumerate(asked)}
    known = {number: set(each.local_roots().tolist()) for number, each in kept.items()}
    ends = {number: each.flips.end for number, each in kept.items()}
    done: list[Change] = []
    for step in range(steps):
        for query, each in zip(asked, kept.values(), strict=True):
            check(fleet, query, each)
        for number, each in kept.items():
            now, flipped = set(each.local_roots().tolist()), each.flips.since(ends[number])
            if flipped is not None:
                assert known[number] ^ now <= flipped, "an answer flipped and nobody says so"
            known[number], ends[number] = now, each.flips.end
        if done and data.draw(st.integers(0, 4)) == 0:
            fleet.undo([done.pop()])
            continue
        for change in data.draw(changes(fleet, step)):
            fleet.apply(change)
            done.append(change)


def nine_of_each(world: World) -> World:
    """Return every tree nine times, so that trees of one form are evaluated all at once."""
    copies: World = {}
    for number in range(9):
        for uuid, provider in world.items():
            parent = None if provider.parent is None or number == 0 else f"{provider.parent}-{number}"
            name = uuid if number == 0 else f"{uuid}-{number}"
            used = dict.fromkeys(provider.inventories, number % 3) if number > 2 else provider.used
            copies[name] = replace(provider, parent=provider.parent if number == 0 else parent, used=used)
    return copies


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), worlds(), st.lists(queries(), min_size=1, max_size=3))
def test_what_is_kept_is_what_a_search_finds(
    data: st.DataObject, world: World, asked: list[CandidateQuery]
) -> None:
    change_and_check(data, world, asked, 5)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), worlds(max_providers=4), queries())
def test_trees_evaluated_all_at_once_are_evaluated_alike(
    data: st.DataObject, world: World, query: CandidateQuery
) -> None:
    change_and_check(data, nine_of_each(world), [query], 3)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.one_of(worlds(), splitting_worlds()), st.one_of(queries(), splitting_queries()))
def test_trees_of_rare_forms_are_evaluated_together_as_one_by_one(
    data: st.DataObject, world: World, query: CandidateQuery
) -> None:
    """Where they have many providers. See `roost.fleet.feasible_trees`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feasible_trees, "_ONE_BY_ONE", 0)
        change_and_check(data, world, [query], steps=3)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.one_of(worlds(), splitting_worlds()), st.one_of(queries(), splitting_queries()))
def test_touched_rows_are_evaluated_together_as_one_by_one(
    data: st.DataObject, world: World, query: CandidateQuery
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feasible_trees, "_FEW_ROWS", 0)
        patch.setattr(tree_bits, "_FEW", 0)
        change_and_check(data, world, [query], steps=3)


@pytest.mark.parametrize("number", [1, 62, 63, 130])
def test_more_amounts_than_a_machine_word_has_bits_are_evaluated_alike(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = {"root": Provider(inventories={"VCPU": Inventory(8)})}
    for each in range(100):
        world[f"p{each:03}"] = Provider(parent="root", inventories={"VGPU": Inventory(1 + 3 * each % 140)})
    groups = (RequestGroup({"VGPU": 1 + n}, suffix=f"_{n}") for n in range(number))
    query = CandidateQuery((RequestGroup({"VCPU": 1}), *groups))
    found = []
    for one_by_one in (0, 1_000):
        monkeypatch.setattr(feasible_trees, "_ONE_BY_ONE", one_by_one)
        kept = feasibilities(fleet_of(world)).of(query)
        found.append(kept._codes.bits(kept._code.item(0)))
    assert found[0] == found[1] > 2 ** (100 * number)


@pytest.mark.nightly
@settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), worlds(max_providers=8), st.lists(queries(), min_size=1, max_size=3), st.booleans())
def test_what_is_kept_is_what_a_search_finds_at_length(
    data: st.DataObject, world: World, asked: list[CandidateQuery], many: bool
) -> None:
    change_and_check(data, nine_of_each(world) if many else world, asked, 12)


NUMA = {"VCPU": Inventory(8)}
GPU = {"CUSTOM_GPU": Inventory(1)}
ON_A_NODE = CandidateQuery(
    (RequestGroup({"VCPU": 2}, "_CPU"), RequestGroup({"CUSTOM_GPU": 1}, "_GPU")),
    same_subtree=(frozenset(("_CPU", "_GPU")),),
)


def hosts(number: int) -> World:
    """Hosts of two NUMA nodes with two GPUs each."""
    world: World = {}
    for host in range(number):
        world[f"host{host}"] = Provider(None, {})
        for node in range(2):
            world[f"numa{host}-{node}"] = Provider(f"host{host}", NUMA)
            for gpu in range(2):
                world[f"gpu{host}-{node}-{gpu}"] = Provider(f"numa{host}-{node}", GPU)
    return world


def take(fleet: Fleet, consumer: str, provider: str, resources: dict[str, int]) -> None:
    fleet.apply(AllocationsChanged(consumer, None, None, {}, {provider: resources}))


@pytest.mark.parametrize("number", [20, 200])
def test_a_claim_costs_the_providers_that_it_touches_however_many_hosts_there_are(number: int) -> None:
    fleet = fleet_of(hosts(number))
    kept = feasibilities(fleet).of(ON_A_NODE)
    assert len(kept.local_roots()) == number
    assert (kept.full_evaluations, kept.searches) == (1, 1)
    for consumer in range(10):
        [candidate, *_] = kept.local_at(fleet.row(f"host{consumer}"))
        fleet.apply(AllocationsChanged(f"c{consumer}", None, None, {}, candidate.allocations))
        kept.catch_up()
    assert (kept.full_evaluations, kept.evaluated) == (1, 20), "a NUMA node and a GPU of each claim"
    assert len(kept.local_roots()) == number
    assert kept.searches == 2, "hosts with the same GPU taken are searched once"


def test_an_answer_that_flips_is_logged_once_and_only_then() -> None:
    fleet = fleet_of(hosts(20))
    kept = feasibilities(fleet).of(ON_A_NODE)
    kept.local_roots()
    root, end = fleet.row("host3"), kept.flips.end
    for number, gpu in enumerate(("gpu3-0-0", "gpu3-0-1", "gpu3-1-0")):
        take(fleet, f"c{number}", gpu, {"CUSTOM_GPU": 1})
        kept.catch_up()
        assert kept.flips.end == end
    take(fleet, "c3", "gpu3-1-1", {"CUSTOM_GPU": 1})
    kept.catch_up()
    assert kept.flips.since(end) == {root}
    assert not kept.is_local(root)
    fleet.undo([AllocationsChanged("c3", None, None, {}, {"gpu3-1-1": {"CUSTOM_GPU": 1}})])
    kept.catch_up()
    assert kept.flips.end == end + 2
    assert kept.is_local(root)


def test_a_pool_counts_for_the_trees_that_it_serves_only_where_the_answer_flips() -> None:
    shared = {"DISK_GB": Inventory(100)}
    world = hosts(20)
    for host in range(10):
        world[f"host{host}"] = Provider(None, {}, aggregates=frozenset({"agg-a"}))
    world["nfs"] = Provider(None, shared, traits=frozenset({SHARING}), aggregates=frozenset({"agg-a"}))
    fleet = fleet_of(world)
    query = CandidateQuery((RequestGroup({"VCPU": 2, "DISK_GB": 10}),))
    kept = feasibilities(fleet).of(query)
    served = [fleet.row(f"host{host}") for host in range(10)]
    assert kept.local_roots().tolist() == sorted(served)
    end, evaluated = kept.flips.end, kept.evaluated
    take(fleet, "c0", "nfs", {"DISK_GB": 90})
    kept.catch_up()
    assert kept.flips.end == end, "there is room for one more"
    take(fleet, "c1", "nfs", {"DISK_GB": 1})
    kept.catch_up()
    assert kept.flips.since(end) == set(served)
    assert (kept.full_evaluations, kept.evaluated) == (1, evaluated), "the pool's own tree lacks a class"
    assert not len(kept.local_roots())


def test_a_pool_that_changes_concerns_the_trees_that_it_serves_before_or_after() -> None:
    shared = {"DISK_GB": Inventory(100)}
    world = hosts(20)
    for host in range(20):
        aggregate = "agg-a" if host < 10 else "agg-b"
        world[f"host{host}"] = Provider(None, {}, aggregates=frozenset({aggregate}))
    world["nfs"] = Provider(None, shared, traits=frozenset({SHARING}), aggregates=frozenset({"agg-a"}))
    fleet = fleet_of(world)
    query = CandidateQuery((RequestGroup({"VCPU": 2, "DISK_GB": 10}),))
    kept = feasibilities(fleet).of(query)
    first, second = ([fleet.row(f"host{host}") for host in some] for some in (range(10), range(10, 20)))

    def changed(change: Change) -> tuple[list[int], set[int]]:
        """Return the roots that are served after a change, and those whose answer has flipped."""
        end = kept.flips.end
        fleet.apply(change)
        kept.catch_up()
        flips = kept.flips.since(end)
        assert flips is not None
        return kept.local_roots().tolist(), flips

    assert kept.local_roots().tolist() == sorted(first)
    evaluated = kept.evaluated
    traits = ("CUSTOM_FAST", SHARING)
    assert changed(TraitsChanged("nfs", (SHARING,), traits)) == (sorted(first), set())
    assert changed(AggregatesChanged("nfs", ("agg-a",), ("agg-b",))) == (sorted(second), {*first, *second})
    assert changed(AggregatesChanged("nfs", ("agg-b",), ("agg-a", "agg-b"))) == (
        sorted([*first, *second]),
        set(first),
    )
    assert changed(TraitsChanged("nfs", traits, ())) == ([], {*first, *second})
    assert changed(TraitsChanged("nfs", (), (SHARING,)))[1] == {*first, *second}
    assert kept.full_evaluations == 1
    assert kept.evaluated == evaluated + 5, "the pool's own tree, each time"
    assert kept.searches == 2, "with the pool, and without it for its own tree"


def test_the_queries_used_last_are_kept() -> None:
    fleet = fleet_of(hosts(1))
    kept = feasibilities(fleet)
    asked = [CandidateQuery((RequestGroup({"VCPU": 1 + number}),)) for number in range(300)]
    first = kept.of(asked[0])
    for query in asked[1:]:
        kept.of(query)
        assert kept.of(asked[0]) is first
    assert len(kept) == 256
    assert feasibilities(fleet.fork()).of(asked[0]) is not first


def test_queries_that_clients_never_repeat_drop_none_that_are_used() -> None:
    kept = feasibilities(fleet_of(hosts(1)))
    used = [CandidateQuery((RequestGroup({"VCPU": 1 + number}),)) for number in range(255)]
    before = [kept.of(query) for query in used]
    for number in range(300):
        assert kept.for_answer(CandidateQuery((RequestGroup({"CUSTOM_GPU": 1 + number}),))) is not None
    assert len(kept) == 256
    assert [kept.of(query) for query in used] == before
    again = kept.for_answer(ON_A_NODE)
    assert again is not None
    assert kept.for_answer(ON_A_NODE) is again is kept.of(ON_A_NODE)


def test_trees_of_a_thousand_forms_are_searched_for_each_answer() -> None:
    world: World = {}
    for number in range(1_001):
        world[f"host{number}"] = Provider(None, NUMA)
        for bit in range(10):
            has = {"VCPU": Inventory(1)} if number >> bit & 1 else {}
            world[f"part{number}-{bit}"] = Provider(f"host{number}", has)
    kept = feasibilities(fleet_of(world))
    assert kept.for_answer(ON_A_NODE) is None


def test_a_search_that_ran_out_of_work_is_not_taken_for_finished() -> None:
    fleet = fleet_of(hosts(20))
    kept = feasibilities(fleet).of(ON_A_NODE)
    every = list(CandidateSearch(fleet, ON_A_NODE))
    with fleet.meter.limited(WorkBudget(3)), pytest.raises(TooMuchWork):
        list(CandidateSearch(fleet, ON_A_NODE, feasibility=kept))
    [root, *_] = kept.local_roots().tolist()
    assert list(kept.local_at(root)) == list(CandidateSearch(fleet, ON_A_NODE).at(root))
    fork = fleet.fork()
    kept = feasibilities(fork).of(ON_A_NODE)
    with fork.meter.limited(WorkBudget(3)), pytest.raises(TooMuchWork):
        list(CandidateSearch(fork, ON_A_NODE, feasibility=kept))
    assert list(CandidateSearch(fork, ON_A_NODE, feasibility=kept)) == every


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), splitting_worlds(), splitting_queries(), st.booleans())
def test_splits_that_are_kept_are_those_found_anew(
    data: st.DataObject, world: World, query: CandidateQuery, many: bool
) -> None:
    change_and_check(data, nine_of_each(world) if many else world, [query], 3)


@pytest.mark.nightly
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), splitting_worlds(), splitting_queries(), st.booleans())
def test_splits_that_are_kept_are_those_found_anew_at_length(
    data: st.DataObject, world: World, query: CandidateQuery, many: bool
) -> None:
    change_and_check(data, nine_of_each(world) if many else world, [query], 8)


def test_trees_are_numbered_before_the_first_query_where_they_are_prepared() -> None:
    """What is numbered is not counted, so that it must not be left to a query."""

    def first_query(*, prepared: bool) -> int:
        fleet = fleet_of(hosts(200))
        kept = feasibilities(fleet)
        if prepared:
            kept.prepare()
        return lines_of(lambda: kept.of(ON_A_NODE))

    assert first_query(prepared=True) < first_query(prepared=False)


def test_the_first_provider_of_a_fleet_may_share() -> None:
    fleet = Fleet()
    anything = CandidateQuery((RequestGroup({}, required=(frozenset({"CUSTOM_FAST"}),)),))
    kept = feasibilities(fleet).of(anything)
    fleet.apply(ProviderChanged("nfs", 0, None, ProviderFacts("nfs", None, 0)))
    fleet.apply(InventoryChanged("nfs", {}, {"DISK_GB": Inventory(9)}))
    fleet.apply(TraitsChanged("nfs", (), (SHARING,)))
    fleet.apply(AggregatesChanged("nfs", (), ("agg-a",)))
    kept.catch_up()
    assert not len(kept.local_roots())
