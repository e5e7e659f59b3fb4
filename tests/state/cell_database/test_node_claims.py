"""Claims on the rows of nodes: builds that hold nothing in placement are confirmed while they fit."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from roost.model.instance import ACTIVE, ASSIGNED, FAILED, STARTING, AttemptKey, Instance
from roost.model.node import NodeReport
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.building import ConfirmAttempt, ended_attempts_of
from roost.state.cell_database.node_claims import NO_ROOM
from support.cells import NOW, built, instance, opened_cell, selection
from support.driven_cell import DrivenCell

TWO = NodeReport(node="node-a", host="a", cell="cell1", vcpus=2)


def assigned(uuid: str, generation: int | None = None, vcpus: int = 1) -> Instance:
    chosen = msgspec.structs.replace(
        selection("a"), generation=generation, allocations={"node-a": {"VCPU": vcpus}}
    )
    return instance(uuid, alternates="b", selection=chosen)


def confirm(*uuids: str) -> list[ConfirmAttempt]:
    return [ConfirmAttempt(AttemptKey(uuid, 1), "a", NOW) for uuid in uuids]


async def states(cell: DrivenCell, *uuids: str) -> list[str]:
    found = await cell.read(find_instances(uuids))
    return [found[uuid].state for uuid in uuids]


def using(directory: Path, use: Callable[[DrivenCell], Awaitable[None]]) -> None:
    async def run() -> None:
        async with opened_cell(directory) as cell:
            await use(cell)

    asyncio.run(run())


def test_the_last_room_of_a_node_is_that_of_the_first_who_confirms(tmp_path: Path) -> None:
    async def use(cell: DrivenCell) -> None:
        await cell.heartbeat([TWO])
        await cell.add([assigned("i"), assigned("j"), assigned("k")])
        [first, second, third] = confirm("k", "i", "j")
        assert [await cell.write(first), await cell.write(second), await cell.write(third)] == [
            True,
            True,
            False,
        ]
        assert await states(cell, "i", "j", "k") == [STARTING, FAILED, STARTING]
        failed = (await cell.read(find_instances(("j",))))["j"]
        # The cell's conductor goes on to the next alternate.
        assert [each.host for each in failed.alternates] == ["b"]
        assert "1 VCPU of 2, of which 2 are taken" in (failed.reason or "")
        [attempt] = await cell.read(ended_attempts_of("j"))
        assert (attempt.host, attempt.code, attempt.result) == ("a", NO_ROOM, "failed")
        # A host that asks again gets the same answers.
        assert [await cell.write(first), await cell.write(third)] == [True, False]
        assert len(await cell.read(ended_attempts_of("j"))) == 1

    using(tmp_path, use)


def test_confirmations_that_are_written_together_count_each_other(tmp_path: Path) -> None:
    async def use(cell: DrivenCell) -> None:
        await cell.heartbeat([TWO])
        await cell.add([assigned("i"), assigned("j", vcpus=2), assigned("k")])

        def together(connection: object) -> list[bool]:
            return ConfirmAttempt.together(connection, confirm("i", "j", "k"))  # type: ignore[arg-type]

        assert await cell.database.write(together) == [True, False, True]
        assert await states(cell, "i", "j", "k") == [STARTING, FAILED, STARTING]

    using(tmp_path, use)


def test_what_runs_counts_and_what_has_ended_does_not(tmp_path: Path) -> None:
    async def use(cell: DrivenCell) -> None:
        await cell.heartbeat([TWO])
        await cell.add([assigned("i", vcpus=2), assigned("j")])
        assert await cell.write(confirm("i")[0])
        await cell.report([built("i")])
        assert await states(cell, "i") == [ACTIVE]
        await cell.delete(["i"])
        assert not await cell.write(confirm("j")[0])
        done = (await cell.read(find_instances(("i",))))["i"]
        await cell.destroyed([done])
        await cell.add([assigned("k")])
        assert await cell.write(confirm("k")[0])

    using(tmp_path, use)


@pytest.mark.parametrize(
    ("report", "generation"),
    [
        (TWO, 1),
        (NodeReport(node="node-a", host="a", cell="cell1"), None),
        (msgspec.structs.replace(TWO, cpu_allocation_ratio=1.5), None),
        (NodeReport(node="node-b", host="a", cell="cell1", nodename="b", vcpus=1), None),
    ],
    ids=["claimed in placement", "no amounts", "with a ratio", "another node"],
)
def test_builds_that_nothing_speaks_against_are_confirmed(
    tmp_path: Path, report: NodeReport, generation: int | None
) -> None:
    async def use(cell: DrivenCell) -> None:
        await cell.heartbeat([report])
        await cell.add([assigned("i", generation, vcpus=3)])
        assert await states(cell, "i") == [ASSIGNED]
        assert await cell.write(confirm("i")[0])
        assert await states(cell, "i") == [STARTING]

    using(tmp_path, use)


def test_reserved_amounts_are_not_given_away(tmp_path: Path) -> None:
    async def use(cell: DrivenCell) -> None:
        await cell.heartbeat([msgspec.structs.replace(TWO, reserved_vcpus=1)])
        await cell.add([assigned("i"), assigned("j")])
        assert [await cell.write(each) for each in confirm("i", "j")] == [True, False]

    using(tmp_path, use)
