"""Fleets for tests: made from a plain `World`, drawn at random, and returned as one comparable value."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from roost.fleet import Fleet
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitsChanged,
)
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup
from support.oracle import SHARING, Provider, World

CLASSES = ("VCPU", "DISK_GB", "CUSTOM_GPU")
TRAITS = ("CUSTOM_FAST", "CUSTOM_RED")
AGGREGATES = ("agg-a", "agg-b")
SUFFIXES = ("_1", "_2", "_3")


def fleet_of(world: World, first_row: int = 0) -> Fleet:
    """Return a fleet with the providers of ``world`` in its order, at rows from ``first_row``."""
    fleet = Fleet()
    for row, (uuid, provider) in enumerate(world.items(), first_row):
        facts = ProviderFacts(f"name of {uuid}", provider.parent, 0)
        fleet.apply(ProviderChanged(uuid, row, None, facts))
        if provider.inventories:
            fleet.apply(InventoryChanged(uuid, {}, dict(provider.inventories)))
        if provider.traits:
            fleet.apply(TraitsChanged(uuid, (), tuple(sorted(provider.traits))))
        if provider.aggregates:
            fleet.apply(AggregatesChanged(uuid, (), tuple(sorted(provider.aggregates))))
        if provider.used:
            fleet.apply(AllocationsChanged("consumer", None, None, {}, {uuid: dict(provider.used)}))
    return fleet


def snapshot(fleet: Fleet) -> dict[str, Any]:
    """Return all that the public interface of a fleet returns, without its version and time."""
    names: dict[int, str] = {fleet.row(uuid): uuid for uuid in fleet.uuids()}
    classes = sorted(fleet.inventoried_classes())

    def named(rows: Sequence[int]) -> list[str]:
        return sorted(names[row] for row in rows)

    def stock(resource_class: str) -> dict[str, Any]:
        columns = fleet.inventory_columns(resource_class)
        slots = range(columns.n)
        assert [columns.slot(columns.row.item(slot)) for slot in slots] == list(slots)
        return {
            names[columns.row.item(slot)]: (
                columns.inventory(columns.row.item(slot)),
                columns.used.item(slot),
                columns.capacity.item(slot),
            )
            for slot in slots
        }

    assert fleet.rows().tolist() == sorted(names)
    assert all(fleet.row_named(fleet.name(row)) == row for row in names)
    assert all(fleet.uuid(row) == uuid for row, uuid in names.items())
    return {
        "free row": fleet.free_row(),
        "has trees": fleet.has_trees,
        "length": len(fleet),
        "resource classes": dict(fleet.resource_classes),
        "traits": dict(fleet.traits),
        "providers": {
            uuid: {
                "row": row,
                "facts": fleet.facts(row),
                "root": names[fleet.root.item(row)],
                "children": named(fleet.children(row)),
                "subtree": named(fleet.subtree(row)),
                "traits": fleet.traits_of(row),
                "aggregates": fleet.aggregates_of(row),
                "inventories": fleet.inventories(row),
                "usages": fleet.usages(row),
            }
            for row, uuid in names.items()
        },
        "stock": {name: stock(name) for name in classes},
        "with trait": {name: named(fleet.with_trait(name).rows().tolist()) for name in (*TRAITS, SHARING)},
        "groups": {
            group: (
                {uuid: named(rows) for uuid, rows in fleet.groups.providers(group).items()},
                {uuid: named(rows) for uuid, rows in fleet.groups.members(group).items()},
                dict(zip(*(column.tolist() for column in fleet.groups.hosts(group)), strict=True)),
            )
            for group in fleet.groups.names()
        },
        "assigned": {node: dict(fleet.assigned.on(node)) for node in fleet.assigned.nodes()},
        "owners": {
            owner: fleet.owner_usages.usages(owner.project_id, owner.user_id)
            for owner in sorted(fleet.owner_usages.owners())
        },
        "in aggregate": {name: named(fleet.in_aggregate(name).rows().tolist()) for name in AGGREGATES},
    }


def inventories() -> st.SearchStrategy[Inventory]:
    """Draw small inventories, some of them with unusual units."""
    plain = st.builds(Inventory, total=st.integers(1, 8))
    odd = st.builds(
        Inventory,
        total=st.integers(1, 8),
        reserved=st.integers(0, 3),
        min_unit=st.integers(1, 3),
        max_unit=st.integers(1, 8),
        step_size=st.integers(1, 3),
        allocation_ratio=st.sampled_from([0.3, 0.5, 1.0, 1.5, 16.0]),
    )
    return plain | odd


def some(
    names: Sequence[str], min_size: int = 0, max_size: int | None = None
) -> st.SearchStrategy[frozenset[str]]:
    """Draw some of ``names``."""
    most = len(names) if max_size is None else max_size
    return st.sets(st.sampled_from(names), min_size=min_size, max_size=most).map(frozenset)


@st.composite
def worlds(draw: st.DrawFn, max_providers: int = 6) -> World:
    """Draw small fleets with several roots, trees of up to three levels, sharing providers, and overuse."""
    world: World = {}
    depth: dict[str, int] = {}
    for number in range(draw(st.integers(1, max_providers))):
        above = [uuid for uuid in world if depth[uuid] < 2]
        parent = draw(st.sampled_from([None, *above]))
        uuid = f"p{number}"
        depth[uuid] = 0 if parent is None else depth[parent] + 1
        has = draw(st.dictionaries(st.sampled_from(CLASSES), inventories()))
        world[uuid] = Provider(
            parent=parent,
            inventories=has,
            used={name: n for name in has if (n := draw(st.integers(0, 4)))},
            traits=draw(some((*TRAITS, SHARING))),
            aggregates=draw(some(AGGREGATES)),
        )
    return world


def resources(min_size: int, max_size: int = 2) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 4), min_size=min_size, max_size=max_size)


@st.composite
def groups(draw: st.DrawFn, suffix: str, min_resources: int = 1) -> RequestGroup:
    """Draw a request group with few constraints."""
    required = draw(st.lists(some(TRAITS, 1), max_size=2))
    return RequestGroup(
        resources=draw(resources(min_resources)),
        suffix=suffix,
        required=tuple(required),
        forbidden=draw(some((*TRAITS, SHARING), max_size=1)) if draw(st.booleans()) else frozenset(),
        member_of=tuple(draw(st.lists(some(AGGREGATES, 1), max_size=2))) if draw(st.booleans()) else (),
        forbidden_aggregates=draw(some(AGGREGATES, max_size=1)) if draw(st.booleans()) else frozenset(),
        in_tree=draw(st.sampled_from([None, None, None, "p0", "p1", "p2", "nowhere"])),
    )


@st.composite
def queries(draw: st.DrawFn) -> CandidateQuery:
    """Draw candidate queries that the API accepts."""
    suffixes = draw(st.sampled_from([(), (), SUFFIXES[:1], SUFFIXES[:2], SUFFIXES]))
    subtrees = draw(st.lists(some(suffixes, 1), max_size=2)) if suffixes else []
    together = frozenset[str]().union(*subtrees)
    asked = [draw(groups(suffix, 0 if suffix in together else 1)) for suffix in suffixes]
    if not any(group.resources for group in asked) or draw(st.booleans()):
        asked.insert(draw(st.integers(0, len(asked))), draw(groups("")))
    return CandidateQuery(
        groups=tuple(asked),
        isolate=draw(st.booleans()),
        isolated=draw(some(suffixes)) if suffixes and draw(st.booleans()) else frozenset(),
        same_subtree=tuple(subtrees),
        root_required=draw(some(TRAITS, max_size=1)) if draw(st.booleans()) else frozenset(),
        root_forbidden=draw(some(TRAITS, max_size=1)) if draw(st.booleans()) else frozenset(),
    )


@st.composite
def splitting_worlds(draw: st.DrawFn, max_hosts: int = 2, max_nodes: int = 4) -> World:
    """Draw hosts whose processors and memory are on NUMA nodes, their disks on the host or in a pool."""
    world: World = {}
    for host in range(draw(st.integers(1, max_hosts))):
        few = some((*TRAITS,), max_size=1)
        disk = {"DISK_GB": draw(inventories())} if draw(st.booleans()) else {"DISK_GB": Inventory(9)}
        aggregates = frozenset(AGGREGATES[:1]) if draw(st.booleans()) else draw(some(AGGREGATES))
        world[f"p{host}"] = Provider(None, disk, traits=draw(few), aggregates=aggregates)
        for number in draw(st.permutations(range(draw(st.integers(1, max_nodes))))):
            plain = st.builds(Inventory, total=st.integers(3, 6))
            has = {"VCPU": draw(plain | inventories()), "MEMORY_MB": Inventory(draw(st.integers(4, 20)))}
            if draw(st.integers(0, 2)) == 0:
                has["DISK_GB"] = draw(inventories())
            above = [uuid for uuid in world if uuid.startswith(f"p{host}")]
            world[f"p{host}-{number}"] = Provider(
                draw(st.sampled_from((f"p{host}", f"p{host}", above[-1]))),
                has,
                used={name: n for name in has if (n := draw(st.sampled_from((0, 0, 1, 2))))},
                traits=draw(few),
                aggregates=draw(some(AGGREGATES, max_size=1)),
            )
    if draw(st.integers(0, 3)) == 0:
        pool = draw(st.dictionaries(st.sampled_from(("DISK_GB", "DISK_GB", "VCPU")), inventories()))
        world["pool"] = Provider(
            None, pool, traits=frozenset((SHARING,)), aggregates=frozenset(AGGREGATES[:1])
        )
    return world


@st.composite
def splitting_queries(draw: st.DrawFn) -> CandidateQuery:
    """Draw candidate queries that allow processors, memory or both to be split."""
    names = {"VCPU", *draw(some(("MEMORY_MB", "DISK_GB")))}
    amounts = {
        name: draw(st.integers(1, 3) if name == "DISK_GB" else st.integers(3, 14)) for name in sorted(names)
    }
    required = draw(some(TRAITS, 1)) if draw(st.integers(0, 2)) == 0 else None
    plain = RequestGroup(required=() if required is None else (required,))
    asked = draw(groups("")) if draw(st.integers(0, 4)) == 0 else plain
    granular = [
        RequestGroup({draw(st.sampled_from(("DISK_GB", "DISK_GB", "VCPU"))): 1}, suffix)
        for suffix in draw(st.sampled_from([(), (), (), (), SUFFIXES[:1], SUFFIXES[:2]]))
    ]
    return CandidateQuery(
        groups=(*granular, msgspec.structs.replace(asked, resources=amounts)),
        isolate=draw(st.booleans()),
        root_required=draw(some(TRAITS, max_size=1)) if draw(st.integers(0, 4)) == 0 else frozenset(),
        can_split=draw(st.sampled_from([("VCPU",), ("MEMORY_MB", "VCPU"), ("MEMORY_MB", "VCPU")])),
    )
