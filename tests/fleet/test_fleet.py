"""A fleet under changes: applied and undone, forked, and refused when they contradict it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.fleet import Fleet, Inconsistent, ProviderNotFound
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
)
from roost.model.inventory import Inventory
from support.fleets import AGGREGATES, CLASSES, TRAITS, fleet_of, inventories, snapshot, some, worlds
from support.oracle import SHARING, Provider, World

Held = dict[str, dict[str, dict[str, int]]]
"""What each consumer holds, which the fleet does not know."""


def names(data: st.DataObject, among: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(data.draw(some(among))))


def provider_change(data: st.DataObject, fleet: Fleet, uuid: str) -> ProviderChanged:
    """A provider comes, moves, is renamed, or goes if it has nothing."""
    others = sorted(set(fleet.uuids()) - {uuid})
    name = data.draw(st.sampled_from([f"name of {uuid}", f"new name of {uuid}"]))
    if uuid not in fleet:
        parent = data.draw(st.sampled_from([None, *others]))
        row = fleet.free_row() + data.draw(st.sampled_from([0, 0, 0, 2]))
        if row < fleet.n_rows:
            row = fleet.free_row()
        return ProviderChanged(uuid, row, None, ProviderFacts(name, parent, 0))
    row = fleet.row(uuid)
    before = fleet.facts(row)
    bare = not (fleet.children(row) or fleet.traits_of(row) or fleet.aggregates_of(row) or fleet.usages(row))
    if bare and data.draw(st.booleans()):
        return ProviderChanged(uuid, row, before, None)
    below = {fleet.uuid(other) for other in fleet.subtree(row)}
    parent = data.draw(st.sampled_from([None, *(other for other in others if other not in below)]))
    return ProviderChanged(uuid, row, before, ProviderFacts(name, parent, before.generation + 1))


def valid_change(data: st.DataObject, fleet: Fleet, held: Held) -> Change:
    """Any change that follows from the fleet as it is."""
    uuid = data.draw(st.sampled_from([f"p{i}" for i in range(5)]))
    kind = data.draw(st.integers(0, 7))
    if kind == 7:
        ids = data.draw(st.sampled_from([fleet.resource_classes, fleet.traits]))
        number = None if "CUSTOM_X" in ids else 7
        type_ = ResourceClassChanged if ids is fleet.resource_classes else TraitChanged
        return type_("CUSTOM_X", ids.get("CUSTOM_X"), number)
    if uuid not in fleet or kind == 0:
        return provider_change(data, fleet, uuid)
    row = fleet.row(uuid)
    if kind == 1:
        generation = fleet.generation.item(row)
        return GenerationChanged(uuid, generation, generation + 1)
    if kind == 2:
        after = data.draw(st.dictionaries(st.sampled_from(CLASSES), inventories()))
        return InventoryChanged(uuid, fleet.inventories(row), after)
    if kind == 3:
        return TraitsChanged(uuid, fleet.traits_of(row), names(data, (*TRAITS, SHARING)))
    if kind == 4:
        return AggregatesChanged(uuid, fleet.aggregates_of(row), names(data, AGGREGATES))
    consumer = data.draw(st.sampled_from(["c1", "c2"]))
    resources = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 5), min_size=1)
    holds = data.draw(st.dictionaries(st.sampled_from(sorted(fleet.uuids())), resources, max_size=3))
    change = AllocationsChanged(consumer, None, None, held.get(consumer, {}), holds)
    held[consumer] = holds
    return change


@settings(deadline=None)
@given(st.data())
def test_changes_can_be_undone_and_forks_are_independent(data: st.DataObject) -> None:
    fleet = Fleet()
    held: Held = {}
    snapshots, changes = [snapshot(fleet)], []
    fork_at = data.draw(st.integers(0, 15))
    fork = fleet.fork()
    for number in range(data.draw(st.integers(1, 25))):
        if number == fork_at:
            fork = fleet.fork()
        change = valid_change(data, fleet, held)
        fleet.apply(change)
        changes.append(change)
        snapshots.append(snapshot(fleet))

    forked_at = min(fork_at, len(changes)) if fork_at < len(changes) else 0
    assert snapshot(fork) == snapshots[forked_at], "the fork has seen changes of the original"
    for change in changes[forked_at:]:
        fork.apply(change)
    assert snapshot(fork) == snapshots[-1]

    back_to = data.draw(st.integers(0, len(changes)))
    fleet.undo(changes[back_to:])
    assert snapshot(fleet) == snapshots[back_to]
    fleet.undo(changes[:back_to])
    assert snapshot(fleet) == snapshots[0]
    assert snapshot(fork) == snapshots[-1], "the fork has seen the original's undoing"


@settings(deadline=None)
@given(st.data())
def test_invalidations_name_every_row_that_has_changed(data: st.DataObject) -> None:
    fleet = Fleet()
    held: Held = {}
    for _ in range(data.draw(st.integers(1, 25))):
        before, end = by_row(fleet), fleet.invalidations.end
        change = valid_change(data, fleet, held)
        fleet.apply(change)
        after = by_row(fleet)
        different = {row for row in before.keys() | after.keys() if before.get(row) != after.get(row)}
        changed = fleet.invalidations.since(end)
        assert changed is not None
        assert different <= changed
        assert fleet.invalidations.since(fleet.invalidations.end) == set()


def by_row(fleet: Fleet) -> dict[int, object]:
    """What there is to know of each row, but for its generation."""
    found: dict[int, object] = {}
    for row in fleet.rows().tolist():
        facts = fleet.facts(row)
        found[row] = (
            facts.name, facts.parent, fleet.uuid(row), fleet.uuid(fleet.root.item(row)), fleet.usages(row),
            fleet.inventories(row), fleet.traits_of(row), fleet.aggregates_of(row),
        )  # fmt: skip
    return found


@settings(deadline=None)
@given(worlds(), st.integers(0, 3))
def test_a_fleet_has_what_the_changes_say(world: World, first_row: int) -> None:
    fleet = fleet_of(world, first_row)
    told = snapshot(fleet)["providers"]
    assert told.keys() == world.keys()
    for number, (uuid, provider) in enumerate(world.items()):
        assert told[uuid]["row"] == first_row + number
        assert told[uuid]["facts"] == ProviderFacts(f"name of {uuid}", provider.parent, 0)
        assert told[uuid]["inventories"] == provider.inventories
        assert told[uuid]["traits"] == tuple(sorted(provider.traits))
        assert told[uuid]["aggregates"] == tuple(sorted(provider.aggregates))
        assert {name: n for name, n in told[uuid]["usages"].items() if n} == provider.used
    assert fleet.free_row() == (0 if first_row else len(world))


ROOT = ProviderFacts("root", None, 3)
CHILD = ProviderFacts("child", "root", 0)
GRANDCHILD = ProviderFacts("grandchild", "child", 0)
DISK = {"DISK_GB": Inventory(100)}


@pytest.fixture
def fleet() -> Fleet:
    """A tree of three; the root has disk (5 in use), a trait and an aggregate."""
    fleet = Fleet()
    fleet.apply(ResourceClassChanged("DISK_GB", None, 2))
    fleet.apply(TraitChanged("CUSTOM_RED", None, 1))
    for row, facts in enumerate((ROOT, CHILD, GRANDCHILD)):
        fleet.apply(ProviderChanged(facts.name, row, None, facts))
    fleet.apply(InventoryChanged("root", {}, DISK))
    fleet.apply(TraitsChanged("root", (), ("CUSTOM_RED",)))
    fleet.apply(AggregatesChanged("root", (), ("agg-a",)))
    fleet.apply(AllocationsChanged("c", None, None, {}, {"root": {"DISK_GB": 5}}))
    return fleet


def moved(facts: ProviderFacts, **to: Any) -> ProviderFacts:
    return ProviderFacts(to.get("name", facts.name), to.get("parent", facts.parent), facts.generation)


CONTRADICTIONS: dict[str, Change] = {
    "the generation is another": GenerationChanged("root", 2, 3),
    "the uuid is taken": ProviderChanged("root", 3, None, ProviderFacts("other", None, 0)),
    "the name is taken": ProviderChanged("new", 3, None, ProviderFacts("root", None, 0)),
    "the row is taken": ProviderChanged("new", 1, None, ProviderFacts("new", None, 0)),
    "the row is negative": ProviderChanged("new", -1, None, ProviderFacts("new", None, 0)),
    "neither before nor after": ProviderChanged("root", 0, None, None),
    "not as it was": ProviderChanged("child", 1, moved(CHILD, parent=None), moved(CHILD, name="x")),
    "not where it was": ProviderChanged("child", 2, CHILD, moved(CHILD, name="x")),
    "renamed to a name that is taken": ProviderChanged("child", 1, CHILD, moved(CHILD, name="root")),
    "under itself": ProviderChanged("child", 1, CHILD, moved(CHILD, parent="child")),
    "under its child": ProviderChanged("root", 0, ROOT, moved(ROOT, parent="grandchild")),
    "deleted with children": ProviderChanged("child", 1, CHILD, None),
    "deleted as it was not": ProviderChanged("grandchild", 2, CHILD, None),
    "other inventory": InventoryChanged("root", {"DISK_GB": Inventory(99)}, {}),
    "inventory of a class that nobody has": InventoryChanged("child", {"CUSTOM_X": Inventory(9)}, {}),
    "other traits": TraitsChanged("root", (), ("CUSTOM_FAST",)),
    "traits that nobody has": TraitsChanged("child", ("CUSTOM_X",), ()),
    "other aggregates": AggregatesChanged("root", ("agg-a", "agg-b"), ()),
    "more freed than used": AllocationsChanged("c", None, None, {"root": {"DISK_GB": 6}}, {}),
    "more freed than used, though more is taken": AllocationsChanged(
        "c", None, None, {"root": {"DISK_GB": 6}}, {"root": {"DISK_GB": 7}}
    ),
    "freed what nobody has": AllocationsChanged("c", None, None, {"child": {"VCPU": 1}}, {}),
    "the second of two": AllocationsChanged("c", None, None, {"root": {"DISK_GB": 5}, "child": {"X": 1}}, {}),
    "a class with another id": ResourceClassChanged("DISK_GB", 3, None),
    "a class that is there": ResourceClassChanged("DISK_GB", None, 3),
    "a trait that is not there": TraitChanged("CUSTOM_X", 1, None),
}

UNKNOWN: dict[str, Change] = {
    "generation": GenerationChanged("nobody", 0, 1),
    "update": ProviderChanged("nobody", 3, CHILD, ROOT),
    "delete": ProviderChanged("nobody", 3, CHILD, None),
    "parent of a new one": ProviderChanged("new", 3, None, ProviderFacts("new", "nobody", 0)),
    "new parent": ProviderChanged("child", 1, CHILD, moved(CHILD, name="x", parent="nobody")),
    "inventory": InventoryChanged("nobody", {}, DISK),
    "traits": TraitsChanged("nobody", (), ("CUSTOM_RED",)),
    "aggregates": AggregatesChanged("nobody", (), ("agg-a",)),
    "held": AllocationsChanged(
        "c", None, None, {"root": {"DISK_GB": 5}, "nobody": {"DISK_GB": 1}}, {"root": {"DISK_GB": 9}}
    ),
    "holds": AllocationsChanged(
        "c", None, None, {"root": {"DISK_GB": 5}}, {"child": {"VCPU": 1}, "nobody": {"DISK_GB": 1}}
    ),
}


@pytest.mark.parametrize("why", CONTRADICTIONS)
def test_a_change_that_contradicts_the_fleet_is_refused_whole(fleet: Fleet, why: str) -> None:
    before = snapshot(fleet)
    with pytest.raises(Inconsistent):
        fleet.apply(CONTRADICTIONS[why])
    assert snapshot(fleet) == before


@pytest.mark.parametrize("what", UNKNOWN)
def test_a_change_of_an_unknown_provider_is_refused_whole(fleet: Fleet, what: str) -> None:
    before = snapshot(fleet)
    with pytest.raises(ProviderNotFound) as refused:
        fleet.apply(UNKNOWN[what])
    assert refused.value.uuid == "nobody"
    assert snapshot(fleet) == before


def test_a_commit_applies_whole_or_not_at_all(fleet: Fleet) -> None:
    before = snapshot(fleet)
    rise = GenerationChanged("root", 3, 4)
    with pytest.raises(Inconsistent):
        fleet.advance(1, [rise, TraitsChanged("child", (), ("CUSTOM_RED",)), rise], 17.0)
    assert snapshot(fleet) == before
    assert fleet.version == 0
    assert fleet.changed_at[:3].tolist() == [0.0, 0.0, 0.0]

    fleet.advance(1, [rise], 17.0)
    assert fleet.version == 1
    assert fleet.changed_at[:3].tolist() == [17.0, 0.0, 0.0]


@pytest.mark.parametrize("version", [0, 2])
def test_a_commit_out_of_turn_is_refused(fleet: Fleet, version: int) -> None:
    with pytest.raises(Inconsistent):
        fleet.advance(version, [], 17.0)


def test_a_commit_may_delete_a_provider_that_it_changes(fleet: Fleet) -> None:
    fleet.advance(1, [ProviderChanged("grandchild", 2, GRANDCHILD, None)], 17.0)
    assert "grandchild" not in fleet
    assert fleet.free_row() == 2


def test_re_parenting_moves_the_whole_subtree(fleet: Fleet) -> None:
    fleet.apply(ProviderChanged("child", 1, CHILD, moved(CHILD, parent=None)))
    assert fleet.root[:3].tolist() == [0, 1, 1]
    assert fleet.subtree(1) == [1, 2]
    assert fleet.children(0) == ()


def test_unchanged_parts_of_an_allocation_are_not_touched(fleet: Fleet) -> None:
    """Freeing and taking again would lose the slot of a provider whose inventory is gone."""
    fleet.apply(InventoryChanged("root", DISK, {}))
    fleet.apply(InventoryChanged("child", {}, DISK))
    assert fleet.inventory_columns("DISK_GB").ascending
    same = {"root": {"DISK_GB": 5}}
    fleet.apply(AllocationsChanged("c", None, None, same, {**same, "child": {"DISK_GB": 1}}))
    assert fleet.inventory_columns("DISK_GB").ascending
    assert fleet.usages(0) == {"DISK_GB": 5}


def test_unknown_names_have_no_providers() -> None:
    fleet = fleet_of({"p": Provider()})
    assert "q" not in fleet
    assert fleet.row_named("q") is None
    assert (
        len(fleet.with_trait("CUSTOM_X"))
        == len(fleet.in_aggregate("x"))
        == fleet.inventory_columns("X").n
        == 0
    )
    with pytest.raises(ProviderNotFound):
        fleet.row("q")
