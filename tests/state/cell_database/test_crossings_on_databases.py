"""The transactions of a move to another cell do the same on every database, on either side."""

import asyncio
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from roost.conductor.agent_endpoint.host_orders import move_work, read_work_keys
from roost.conductor.moves.crossing_steps import arriving_half
from roost.model.instance import ACTIVE, AttemptKey, BuildResult, DestroyOrder, PowerResult, Requester
from roost.model.move import Carried, Move, TargetFailure
from roost.model.move_states import (
    CLEANING,
    CONTINUING,
    DELETED,
    DISCARDING,
    DONE,
    FAILED_MOVE,
    RESUMING,
    REVERTED,
    REVERTING,
    STARTING,
    SWITCHED,
)
from roost.model.operator_word import Subject
from roost.state.api_database.cell_mappings import at_urls, write_cell_mappings
from roost.state.api_database.crossings import (
    Crossing,
    NoCrossing,
    begin_crossing,
    crossings_of,
    end_crossing,
    has_free_crossings,
    read_crossings,
    switch_mapping,
    take_crossings,
    turn_crossing,
)
from roost.state.api_database.mappings import find_mappings
from roost.state.api_database.tables import SCHEMA as API_SCHEMA
from roost.state.api_database.tables import instance_mappings
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.arrivals import AddInstances, find_instances
from roost.state.cell_database.arriving_halves import (
    ARRIVED,
    FENCED,
    continue_arriving,
    discard_arriving,
    end_arriving,
    finish_arriving,
    let_arrive,
    recall_arriving,
    release_arriving,
)
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.cell_database.host_work import hosts_with_orders
from roost.state.cell_database.instance_search import count_remaining
from roost.state.cell_database.leaving_halves import (
    admit_leaving,
    fail_leaving,
    find_halves,
    follow_arriving,
    free_leaving,
    let_leave,
    let_start,
    note_ready,
    read_carried,
    read_halves,
    resume_leaving,
)
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.cell_database.move_reports import confirm_target, note_moves_destroyed, report_target
from roost.state.cell_database.move_work import go_on, take_moves, take_target
from roost.state.cell_database.moves import begin_move, confirm_waiting, revert_move
from roost.state.cell_database.power import report_power
from roost.storage import Database
from support.cells import NOW, instance, selection
from support.clouds import spec
from support.databases import Place
from support.upgrading import upgrade_empty

BY = Requester("operator", "admin", "req")
ONE, MOVE = "i1", "m1"
LIMITS = MoveLimits()
KEY = AttemptKey(ONE, 2)
CROSSING = Crossing(MOVE, ONE, "c1", "c2", 7)


class Cells:
    """Two cells on databases of their own. The instance is on host ``a`` of the first."""

    def __init__(self, source: Database, target: Database) -> None:
        self.source, self.target = source, target

    async def begin(self, *, confirms: bool = True) -> None:
        """Have a target in the other cell claimed, and prepare the guest."""
        held = msgspec.structs.replace(selection("a"), generation=1)
        there = instance(ONE, "a", state=ACTIVE, selection=held, spec=spec(1), epoch=1)
        await self.source.write(AddInstances((there,), NOW))
        begin = begin_move(
            uuid=MOVE, instance=ONE, kind="migrate", by=BY, at=NOW, across=True, confirms=confirms
        )
        await self.source.write(begin)
        move = (await self.source.write(take_moves("me", (MOVE,))))[0]
        claimed = msgspec.structs.replace(selection("b"), generation=2, cell="c2")
        take = take_target(move=move, selection=claimed, alternates=(), run="r", at=NOW, cells=("c1", "c2"))
        assert await self.source.write(take)
        assert await self.source.write(admit_leaving(MOVE, 2, LIMITS, NOW)) is True
        assert await self.arrive() == ARRIVED

    async def arrive(self) -> str:
        leaving = (await self.source.read(read_halves((MOVE,))))[MOVE]
        carried = await self.source.read(read_carried(ONE))
        assert carried is not None
        half = arriving_half(leaving, CROSSING, carried, NOW)
        result: str = await self.target.write(let_arrive(half, LIMITS, NOW))
        return result

    async def cross(self) -> None:
        """Have the instance run in the target's cell, where its move waits for a word."""
        await self.begin(confirms=False)
        await self.target.write(lambda c: confirm_target(c, KEY, "b", NOW))
        await self.source.write(note_ready(MOVE, 2, NOW))
        await self.power(self.source, "a", PowerResult(ONE, 1, runs=False))
        assert await self.source.write(let_start(MOVE, 2, NOW))
        await self.target.write(release_arriving(MOVE, 2, await self.carried(self.source), NOW))
        await self.target.write(lambda c: confirm_target(c, KEY, "b", NOW))
        await self.target.write(lambda c: report_target(c, BuildResult(ONE, "b", 2), NOW))
        await self.source.write(let_leave(MOVE, 2, NOW, epoch=CROSSING.epoch, confirmed=False))
        assert await self.states() == [SWITCHED, SWITCHED]

    async def carried(self, database: Database, epoch: int = 0) -> Carried:
        found = await database.read(read_carried(ONE))
        assert found is not None
        return msgspec.structs.replace(found, epoch=epoch)

    async def power(self, database: Database, host: str, report: PowerResult) -> None:
        await database.write(lambda connection: report_power(connection, host, [report], NOW))

    async def states(self) -> list[str | None]:
        found = [(await each.read(read_halves((MOVE,)))).get(MOVE) for each in (self.source, self.target)]
        return [None if each is None else each.state for each in found]


def playing(place: Place, tmp_path: Any, is_source: bool, play: Any) -> None:
    async def run() -> None:
        there, other = Database(place.url), Database(f"sqlite:///{tmp_path}/other.db")
        for database in (there, other):
            upgrade_empty(SCHEMA, database)
        await play(Cells(*((there, other) if is_source else (other, there))))
        for database in (there, other):
            await database.close()

    asyncio.run(run())


async def told(database: Database, host: str) -> set[tuple[str, int]]:
    """The orders of a host by moves, as it is told of them."""
    keys = await database.read(read_work_keys({host: frozenset()}))
    found = await database.read(move_work(keys.moves)) if keys.moves else {}
    return {(part.kind, part.instance.attempt) for part in found.get(host, ())}


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
def test_an_instance_leaves_one_cell_and_arrives_in_the_other(place: Place, tmp_path, is_source) -> None:
    async def play(cells: Cells) -> None:
        source, target = cells.source, cells.target
        await cells.begin()
        assert await cells.arrive() == ARRIVED, "said twice"
        assert await told(target, "b") == {("build", 2)}
        assert await told(source, "b") == set()
        assert await target.write(lambda c: confirm_target(c, KEY, "b", NOW)) is None
        await source.write(note_ready(MOVE, 2, NOW))
        assert await told(source, "a") == {("stop", 1)}
        assert not await source.write(let_start(MOVE, 2, NOW)), "the source has not stopped"
        stopped = [PowerResult(ONE, 1, runs=False)]
        await source.write(lambda c: report_power(c, "a", stopped, NOW))
        assert await target.write(lambda c: confirm_target(c, KEY, "b", NOW)) is None
        assert await source.write(let_start(MOVE, 2, NOW))
        carried = await source.read(read_carried(ONE))
        assert carried is not None
        await target.write(release_arriving(MOVE, 2, carried, NOW))
        assert await target.write(lambda c: confirm_target(c, KEY, "b", NOW)) is True
        assert await cells.states() == [STARTING, STARTING]
        built = BuildResult(ONE, "b", 2)
        assert await target.write(lambda c: report_target(c, built, NOW)) is not None
        assert (await target.read(find_instances((ONE,))))[ONE].host == "b"
        for _ in range(2):
            await source.write(let_leave(MOVE, 2, NOW))
        assert await source.read(find_instances((ONE,))) == {}
        assert await cells.states() == [CLEANING, CLEANING]
        left = await source.read(count_remaining((Subject("c1"), Subject("c1", "a"))))
        assert {*left.instances.values()} == {1}, "the source has still to destroy its guest"
        assert await told(source, "a") == {("destroy", 1)}
        done = [DestroyOrder(ONE, 1, "a")]
        await source.write(lambda c: note_moves_destroyed(c, done, NOW))
        move = (await source.write(take_moves("me", (MOVE,))))[0]
        assert await source.write(go_on(move=move, to=DONE, at=NOW))
        await target.write(finish_arriving(MOVE, NOW))
        assert await cells.states() == [DONE, DONE]
        assert (await target.read(find_instances((ONE,))))[ONE].move is None
        assert [await each.read(find_halves()) for each in (source, target)] == [[], []]

    playing(place, tmp_path, is_source, play)


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
def test_an_instance_comes_back_once_for_each_revert(place: Place, tmp_path, is_source) -> None:
    async def play(cells: Cells) -> None:
        source, target = cells.source, cells.target
        await cells.cross()
        for epoch in (8, 9):
            seen = epoch - 1
            reverting = await target.write(revert_move(MOVE, NOW))
            assert isinstance(reverting, Move)
            await source.write(follow_arriving(MOVE, 2, reverting, NOW))
            assert await cells.states() == [REVERTING, REVERTING]
            assert await told(target, "b") == {("stop", 2)}
            assert await told(source, "a") == set()
            await cells.power(target, "b", PowerResult(ONE, 2, runs=False))
            await source.write(resume_leaving(MOVE, 2, await cells.carried(target, epoch), NOW))
            assert await cells.states() == [RESUMING, RESUMING]
            assert await told(source, "a") == {("start", 1)}
            if epoch == 9:
                break
            await cells.power(source, "a", PowerResult(ONE, 1, runs=True, failure="no"))
            assert await cells.states() == [CONTINUING, RESUMING]
            await target.write(continue_arriving(MOVE, seen, epoch, "no", NOW))
            assert await told(target, "b") == {("start", 2)}
            await cells.power(target, "b", PowerResult(ONE, 2, runs=True))
            [switched] = (await target.read(read_halves((MOVE,)))).values()
            await source.write(follow_arriving(MOVE, 2, switched, NOW))
            # What comes late changes nothing.
            await source.write(resume_leaving(MOVE, 2, await cells.carried(target, epoch), NOW))
            assert await cells.states() == [SWITCHED, SWITCHED]
        await target.write(continue_arriving(MOVE, 7, 8, "no", NOW))
        assert await cells.states() == [RESUMING, RESUMING]
        await cells.power(source, "a", PowerResult(ONE, 1, runs=True))
        row = (await source.read(find_instances((ONE,))))[ONE]
        assert (row.host, row.attempt, row.state, row.move, row.epoch) == ("a", 1, ACTIVE, MOVE, 9)
        move = (await source.write(take_moves("me", (MOVE,))))[0]
        assert await source.write(go_on(move=move, to=DISCARDING, at=NOW, holds=row.selection))
        assert await told(source, "b") == set()
        for _ in range(2):
            await target.write(discard_arriving(MOVE, NOW, held=True))
        assert await target.read(find_instances((ONE,))) == {}
        assert await told(target, "b") == {("destroy", 2)}
        done = [DestroyOrder(ONE, 2, "b")]
        await target.write(lambda c: note_moves_destroyed(c, done, NOW))
        assert await cells.states() == [DISCARDING, REVERTED]
        await source.write(free_leaving(MOVE, 2, NOW))
        assert [each.attempt for each in await source.read(ended_attempts_of(ONE))] == [2]
        move = (await source.write(take_moves("me", (MOVE,))))[0]
        assert await source.write(go_on(move=move, to=REVERTED, at=NOW))
        assert (await source.read(find_instances((ONE,))))[ONE].move is None
        assert [await each.read(find_halves()) for each in (source, target)] == [[], []]

    playing(place, tmp_path, is_source, play)


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
def test_a_move_that_waits_in_another_cell_is_confirmed_there_by_itself(
    place: Place, tmp_path, is_source
) -> None:
    async def play(cells: Cells) -> None:
        await cells.cross()
        later = NOW + 10.0
        assert await cells.source.write(confirm_waiting(later, later)) == []
        assert await cells.target.write(confirm_waiting(later, later)) == [MOVE]
        [confirmed] = (await cells.target.read(read_halves((MOVE,)))).values()
        await cells.source.write(follow_arriving(MOVE, 2, confirmed, later))
        assert await cells.states() == [CLEANING, CLEANING]
        assert await told(cells.source, "a") == {("destroy", 1)}

    playing(place, tmp_path, is_source, play)


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
def test_an_attempt_that_has_ended_does_not_arrive_again(place: Place, tmp_path, is_source) -> None:
    async def play(cells: Cells) -> None:
        await cells.begin()
        failed = fail_leaving(MOVE, 2, TargetFailure("no", retryable=False), NOW, False)
        assert await cells.source.write(failed) is not None
        await cells.target.write(recall_arriving(MOVE, 2, "no", NOW))
        assert await cells.target.read(hosts_with_orders()) == {"b"}
        await cells.target.write(end_arriving(MOVE, ONE, CROSSING.epoch, "no", NOW))
        assert await cells.states() == ["returning", FAILED_MOVE]
        assert await cells.arrive() == FENCED

    playing(place, tmp_path, is_source, play)


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
def test_a_deletion_ends_both_halves(place: Place, tmp_path, is_source) -> None:
    async def play(cells: Cells) -> None:
        await cells.begin()
        for database, name in ((cells.target, "c2"), (cells.source, "c1")):
            await database.write(DeleteInstances((ONE,), NOW, name))
        assert await cells.states() == [DELETED, DELETED]
        assert await cells.target.read(hosts_with_orders()) == {"b"}
        assert await cells.arrive() == FENCED

    playing(place, tmp_path, is_source, play)


def test_a_crossing_is_owned_and_switches_the_mapping_by_its_epoch(place: Place) -> None:
    async def run() -> None:
        database = Database(place.url)
        upgrade_empty(API_SCHEMA, database)

        def put(connection: sa.Connection) -> None:
            write_cell_mappings(at_urls({"c1": "sqlite:///1", "c2": "sqlite:///2"}))(connection)
            connection.execute(
                sa.insert(instance_mappings),
                {
                    "instance_uuid": ONE,
                    "cell": "c1",
                    "epoch": 3,
                    "request_id": "r",
                    "project_id": "p",
                    "user_id": "u",
                    "deleted": False,
                },
            )

        await database.write(put)

        async def begin(move: str, source: str, target: str, seen: int) -> Crossing | NoCrossing:
            work = begin_crossing(
                move=move, instance=ONE, source=source, target=target, owner=None, seen=seen
            )
            begun: Crossing | NoCrossing = await database.write(work)
            return begun

        first = await begin("m1", "c1", "c2", 3)
        assert isinstance(first, Crossing)
        assert (first.epoch, first.is_mapped_to("c2")) == (4, False)
        assert await begin("m1", "c1", "c2", 3) == first
        assert isinstance(await begin("m2", "c2", "c1", 4), NoCrossing)
        assert await database.read(has_free_crossings())
        await database.write(take_crossings("me"))
        assert [each.owner for each in await database.read(crossings_of((ONE,)))] == ["me"]
        assert await database.write(switch_mapping(first, "c2"))
        stale = await begin("m2", "c2", "c1", 3)
        assert isinstance(stale, NoCrossing)
        assert not stale.is_over
        assert await database.write(turn_crossing(first, 4)) == 5
        assert await database.write(turn_crossing(first, 4)) == 5, "once for each revert"
        assert not await database.write(switch_mapping(first, "c2")), "it has turned"
        assert await database.write(turn_crossing(first, 5)) == 6
        turned = (await database.read(read_crossings()))["m1"]
        assert (turned.epoch, turned.is_mapped_to("c1")) == (6, False)
        assert await database.write(switch_mapping(turned, "c1"))
        assert await database.write(switch_mapping(turned, "c2"))
        second = await begin("m2", "c2", "c1", 6)
        assert isinstance(second, Crossing)
        assert not await database.write(switch_mapping(first, "c2")), "it comes late"
        assert await database.write(switch_mapping(second, "c1"))
        assert (await database.read(find_mappings((ONE,))))[ONE].cell == "c1"
        for each in (first, second):
            await database.write(end_crossing(each))
        assert await database.read(read_crossings()) == {}
        await database.close()

    asyncio.run(run())
