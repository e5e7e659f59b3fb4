"""A fleet from whole columns, as they come out of tables.

Why not change by change, as everything else: a hundred thousand hosts with three inventories and forty traits
each took 14 seconds so, most of them for asking whether one more row contradicts the others. Tables have
keys that answer that for all rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Float64, Int32, Int64, Rows
from roost.fleet.errors import Inconsistent
from roost.fleet.fleet import Fleet
from roost.fleet.inventory_columns import InventoryColumns
from roost.fleet.rowset import RowSet

_DEEPEST = 64
"""Each look at all rows finds the roots of trees twice as deep; nothing is 2**64 deep."""


Numbers = npt.NDArray[Any]


class Providers(NamedTuple):
    """All providers, by ascending row: parallel columns. ``parents``: rows, -1 for roots."""

    rows: Rows
    uuids: Sequence[str]
    names: Sequence[str]
    parents: Int32
    generations: Int64
    changed_at: Float64


class Inventories(NamedTuple):
    """All inventories of one class, by ascending row: parallel columns, named as in `InventoryColumns`."""

    rows: Rows
    total: Numbers
    reserved: Numbers
    min_unit: Numbers
    max_unit: Numbers
    step_size: Numbers
    ratio: Numbers


NameSets = Iterable[tuple[tuple[str, ...], Sequence[int]]]
"""Sorted names, and the rows that have just these."""


def load_fleet(
    providers: Providers,
    inventories: Mapping[str, Inventories],
    traits: NameSets,
    aggregates: NameSets,
    used: Mapping[str, tuple[Rows, Int64]],
) -> Fleet:
    """A fleet with all of this. ``used``: by class, rows and how much of it is allocated from each.

    Raises `Inconsistent` for a provider below itself.
    """
    fleet = Fleet()
    _fill_providers(fleet, providers)
    for name, columns in inventories.items():
        fleet._inventories[name] = InventoryColumns.of(columns._asdict())
    _fill_sets(fleet, traits, fleet._traits_of, fleet._with_trait)
    _fill_sets(fleet, aggregates, fleet._aggregates_of, fleet._in_aggregate)
    for name, (rows, amounts) in used.items():
        fleet._inventories.setdefault(name, InventoryColumns()).use_all(rows, amounts)
    return fleet


def _fill_providers(fleet: Fleet, providers: Providers) -> None:
    rows, parents = providers.rows, providers.parents
    if not len(rows):
        return
    fleet._grow(int(rows[-1]) + 1)
    listed = rows.tolist()
    if len(listed) == fleet.n_rows:
        fleet._uuid, fleet._name = list(providers.uuids), list(providers.names)
    else:
        for row, uuid, name in zip(listed, providers.uuids, providers.names, strict=True):
            fleet._uuid[row], fleet._name[row] = uuid, name
        free = np.ones(fleet.n_rows, dtype=np.bool_)
        free[rows] = False
        fleet._free_rows = np.flatnonzero(free)[::-1].tolist()
    fleet._row_of = dict(zip(providers.uuids, listed, strict=True))
    fleet._row_named = dict(zip(providers.names, listed, strict=True))
    fleet.provider_set_version = len(listed)
    fleet.alive[rows] = True
    fleet.generation[rows] = providers.generations
    fleet.changed_at[rows] = providers.changed_at
    fleet.parent[rows] = parents
    fleet.root[rows] = _roots(fleet, rows)
    below = np.flatnonzero(parents >= 0)
    for row, parent in zip(rows[below].tolist(), parents[below].tolist(), strict=True):
        fleet._children.setdefault(parent, []).append(row)


def _roots(fleet: Fleet, rows: Rows) -> npt.NDArray[np.integer]:
    above = np.where(fleet.parent >= 0, fleet.parent, np.arange(len(fleet.parent), dtype=np.int32))
    for _ in range(_DEEPEST):
        further = above[above]
        if np.array_equal(further, above):
            break
        above = further
    roots = above[rows]
    loose = rows[fleet.parent[roots] >= 0]
    if len(loose):
        raise Inconsistent(f"resource provider {fleet.uuid(loose.item(0))} would be below itself")
    return roots


def _fill_sets(
    fleet: Fleet, sets: NameSets, names_of: list[tuple[str, ...]], index: dict[str, RowSet]
) -> None:
    having: dict[str, list[Rows]] = {}
    for names, rows in sets:
        names = fleet._intern(names)
        for row in rows:
            names_of[row] = names
        column = np.array(rows, dtype=np.intp)
        for name in names:
            having.setdefault(name, []).append(column)
    for name, columns in having.items():
        index[name] = RowSet.of(np.concatenate(columns), fleet.n_rows)
