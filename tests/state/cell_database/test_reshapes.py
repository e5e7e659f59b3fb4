"""Which rows follow which claims, and when a reshape may begin."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from roost.model.instance import RESHAPED
from roost.model.spec import Selection
from roost.state.cell_database.arrivals import AddInstances, find_instances
from roost.state.cell_database.history import read_history
from roost.state.cell_database.reshapes import (
    Claimed,
    ReshapeBegun,
    ReshapeMark,
    begin_reshape,
    follow_claims,
    read_reshape_marks,
)
from support.cells import NOW, instance, opened_cell

NODE = "node-a"
TREE = {NODE: "a", "card": "a-gpu1"}
FLAT = {NODE: {"VCPU": 1, "VGPU": 1}}
MOVED = {NODE: {"VCPU": 1}, "card": {"VGPU": 1}}
MARK = ReshapeMark(NODE, 7, 100.0)


def selected(generation: int | None) -> Selection:
    return Selection("a", NODE, "cell1", FLAT, {"": [NODE]}, 0.5, generation=generation)


@pytest.mark.parametrize(
    ("generation", "claimed", "node", "follows"),
    [
        (1, Claimed(MOVED, 2), NODE, True),
        (None, Claimed(MOVED, 2), NODE, True),
        (2, Claimed(MOVED, 2), NODE, False),
        (3, Claimed(MOVED, 2), NODE, False),
        # The claim was gone and made again.
        (3, Claimed(FLAT, 1), NODE, True),
        (1, Claimed({"other-tree": {"VCPU": 1}}, 2), NODE, False),
        (1, Claimed(MOVED, 2), "node-b", False),
    ],
)
def test_row_follows_a_newer_claim_of_its_node_alone(
    tmp_path: Path, generation: int | None, claimed: Claimed, node: str, follows: bool
) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            there = replace(instance(), node=node, selection=selected(generation))
            await cell.write(AddInstances((there,), NOW))
            changed = await cell.write(follow_claims(NODE, TREE, {"i": claimed}, NOW))
            row = (await cell.read(find_instances(("i",))))["i"]
            assert (changed == ["i"]) is follows
            if follows:
                selection = row.selection
                assert selection is not None
                assert (selection.allocations, selection.generation) == (
                    claimed.allocations,
                    claimed.generation,
                )
                assert selection.mappings == {"": [*claimed.allocations]}
                history = await cell.read(read_history("i"))
                told = [each.reason for each in history.transitions if each.state == RESHAPED]
                # A claim that was made again is where it was.
                assert told == (
                    ["holds 1 VCPU of a; 1 VGPU of a-gpu1"] if claimed.allocations == MOVED else []
                )
                assert history.complete
            else:
                assert row == there

    asyncio.run(run())


def test_one_reshape_of_a_tree_at_a_time_and_none_with_rows_that_are_behind(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            rows = [
                replace(instance("here"), node=NODE, selection=selected(1)),
                replace(instance("older"), node=NODE, selection=selected(None)),
                replace(instance("behind"), node=NODE, selection=selected(1)),
                replace(instance("elsewhere", "b"), selection=selected(1)),
            ]
            await cell.write(AddInstances(tuple(rows), NOW))
            generations = {"here": 1, "older": 4, "behind": 2, "elsewhere": 1, "unknown": 1}
            begun = await cell.write(begin_reshape(MARK, generations))
            assert begun == ReshapeBegun(behind=("behind", "elsewhere", "unknown"))
            assert await cell.read(read_reshape_marks()) == []
            assert (await cell.write(begin_reshape(MARK, {"here": 1, "older": 4}))).may_go_on
            assert (await cell.write(begin_reshape(MARK, {}))).marked
            assert await cell.read(read_reshape_marks(before=100.0)) == []
            assert await cell.read(read_reshape_marks(before=101.0)) == [MARK]
            await cell.write(follow_claims(NODE, TREE, {}, NOW, ends=replace(MARK, generation=8)))
            assert await cell.read(read_reshape_marks()) == [MARK]
            await cell.write(follow_claims(NODE, TREE, {}, NOW, ends=MARK))
            assert await cell.read(read_reshape_marks()) == []

    asyncio.run(run())
