"""The amounts of all trees as of a commit are what the fleet had then."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.dashboard.past.fleet_columns import PastColumns, columns_at, present_providers
from roost.dashboard.past.index_entries import key_of
from roost.dashboard.past.row_keys import RowKeys
from roost.fleet import Fleet
from roost.fleet.host_levels import tree_uses
from support.past_histories import histories, made, view_of


@settings(max_examples=25)
@given(steps=histories, size=st.sampled_from((1, 4, 1000)), behind=st.integers(0, 5))
def test_amounts_of_all_trees(steps: Sequence[Any], size: int, behind: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "roost.db", steps, size, behind))


async def _compare(file: Path, steps: Sequence[Any], size: int, behind: int) -> None:
    async with made(file, steps) as history:
        view = view_of(history.ledger.database, size)
        past = await history.fleets()
        # The index may have commits that the fleet does not have yet.
        fleet = await past.at(past.version - behind)
        keys = RowKeys()
        await keys.prepare(fleet)
        by_row = keys.of(fleet)
        assert by_row is not None
        present = present_providers(fleet, by_row)
        for version in range(present.version, min(history.holdings), -1):
            compare(columns_at(present, view, version), await past.at(version))
            assert list(keys.of(fleet)[fleet.rows()]) == [key_of(fleet.uuid(row)) for row in fleet.rows()]


def compare(columns: PastColumns, fleet: Fleet) -> None:
    rows = fleet.rows()
    uuids = [fleet.uuid(row) for row in rows]
    places = columns.places(np.array([key_of(uuid) for uuid in uuids], dtype=np.uint64))
    assert (places >= 0).all()
    assert columns.existed.sum() == len(rows)
    roots = [uuids.index(fleet.uuid(row)) for row in fleet.roots(rows)]
    assert columns.roots[places].tolist() == places[roots].tolist()
    for name in {*fleet.inventoried_classes(), *columns.classes}:
        uses = tree_uses(fleet, name)
        at = columns.places(np.array([key_of(fleet.uuid(row)) for row in uses.roots], dtype=np.uint64))
        trees = columns.trees(name)
        assert trees.capacity[at].tolist() == uses.capacity.tolist()
        assert trees.used[at].tolist() == uses.used.tolist()
        assert trees.reserved[at].tolist() == uses.reserved.tolist()
        assert trees.total[at].tolist() == uses.total.tolist()
