"""Feasibility that is kept, against a search of the fleet as it is, after every kind of change."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.fleet.feasibility import Feasibility, feasibilities
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    InventoryChanged,
    ProviderChanged,
    TraitsChanged,
)
from roost.model.request import CandidateQuery
from support.fleets import AGGREGATES, CLASSES, TRAITS, fleet_of, inventories, queries, some, worlds
from support.oracle import SHARING, World


def check(fleet: Fleet, query: CandidateQuery, kept: Feasibility) -> None:
    """What is kept gives the candidates that a search gives, tree by tree and in the same order."""
    kept.catch_up()
    search = CandidateSearch(fleet, query)
    local = search.local_anchors().tolist()
    assert kept.local_roots().tolist() == local
    assert [row for row in range(fleet.n_rows) if kept.is_local(row)] == local
    for root in local:
        assert list(kept.local_at(root)) == list(search.local_at(root))
    for root in range(fleet.n_rows):
        if fleet.alive.item(root) and fleet.parent.item(root) < 0:
            expected = list(search.at(root)) if root in search.anchors else []
            found = CandidateSearch(fleet, query, kept=kept)
            assert (list(found.at(root)) if root in found.anchors else []) == expected
    through = CandidateSearch(fleet, query, kept=kept)
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


def replace_parent(facts, parent, name=None):
    return type(facts)(name or facts.name, parent, facts.generation)


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


def three_of_each(world: World) -> World:
    """Every tree nine times, so that trees of one form are judged all at once."""
    copies: World = {}
    for number in range(9):
        for uuid, provider in world.items():
            parent = None if provider.parent is None or number == 0 else f"{provider.parent}-{number}"
            name = uuid if number == 0 else f"{uuid}-{number}"
            used = dict.fromkeys(provider.inventories, number % 3) if number > 2 else provider.used
            copies[name] = replace(provider, parent=provider.parent if number == 0 else parent, used=used)
    return copies


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), worlds(), st.lists(queries(), min_size=1, max_size=3))
def test_what_is_kept_is_what_a_search_finds(
    data: st.DataObject, world: World, asked: list[CandidateQuery]
) -> None:
    change_and_check(data, world, asked, 6)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), worlds(max_providers=4), queries())
def test_trees_judged_all_at_once_are_judged_alike(
    data: st.DataObject, world: World, query: CandidateQuery
) -> None:
    change_and_check(data, three_of_each(world), [query], 3)


@pytest.mark.nightly
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), worlds(max_providers=8), st.lists(queries(), min_size=1, max_size=3), st.booleans())
def test_what_is_kept_is_what_a_search_finds_at_length(
    data: st.DataObject, world: World, asked: list[CandidateQuery], many: bool
) -> None:
    change_and_check(data, three_of_each(world) if many else world, asked, 12)
