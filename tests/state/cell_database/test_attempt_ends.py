"""The cell records how each attempt ended: built, failed, or abandoned because its instance was deleted."""

import asyncio
from pathlib import Path

import msgspec

from roost.model.record import ABANDONED, BUILT, FAILED, Attempt
from roost.storage import Database
from support.cells import NOW, built, failed, instance, selection
from support.clouds import Kept
from support.driven_cell import DrivenCell


def ends(path: Path, *events: object) -> list[Attempt]:
    """The ends that are recorded while a cell goes through events."""
    kept = Kept()

    async def run() -> None:
        database = Database(f"sqlite:///{path / 'cell.db'}")
        cell = DrivenCell("cell1", database, lambda: NOW, kept)
        for event in events:
            await event(cell)
        await database.close()

    asyncio.run(run())
    return kept.attempts


def shown(attempts: list[Attempt]) -> list[tuple[object, ...]]:
    return [(each.ordinal, each.host, each.result, each.reason, each.finished_at) for each in attempts]


def test_builds_end_their_attempts_once(tmp_path: Path) -> None:
    first = msgspec.structs.replace(selection("a"), ordinal=3, weight=2.5)
    second = msgspec.structs.replace(selection("b"), ordinal=4)
    [failure, success] = ends(
        tmp_path,
        lambda cell: cell.add([msgspec.structs.replace(instance(), selection=first)]),
        lambda cell: cell.report([failed(reason="no IP")]),
        lambda cell: cell.report([failed(reason="no IP")]),
        lambda cell: cell.reassign("i", 1, second, ()),
        lambda cell: cell.report([failed(reason="late")]),
        lambda cell: cell.report([built(host="b", attempt=2)]),
        lambda cell: cell.delete(["i"]),
    )
    assert shown([failure, success]) == [(3, "a", FAILED, "no IP", NOW), (4, "b", BUILT, None, NOW)]
    assert (failure.run, failure.request_id, failure.instance) == (instance().run, instance().request_id, "i")
    assert (failure.weight, failure.node, failure.cell) == (2.5, first.node, first.cell)


def test_a_deleted_instance_abandons_the_attempt_that_is_under_way(tmp_path: Path) -> None:
    found = ends(
        tmp_path,
        lambda cell: cell.add([msgspec.structs.replace(instance(), selection=selection("a"))]),
        lambda cell: cell.delete(["i"]),
        lambda cell: cell.delete(["i"]),
        lambda cell: cell.report([built()]),
    )
    reason = "the instance was deleted before its build had ended"
    assert shown(found) == [(1, "a", ABANDONED, reason, NOW)]


def test_an_instance_of_an_earlier_version_has_the_ordinal_of_its_attempt(tmp_path: Path) -> None:
    found = ends(
        tmp_path,
        lambda cell: cell.add([msgspec.structs.replace(instance(), selection=None)]),
        lambda cell: cell.report([built()]),
    )
    assert shown(found) == [(1, "a", BUILT, None, NOW)]
