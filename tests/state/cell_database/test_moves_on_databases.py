"""The transactions of a move do the same on every database: forth and back, with what hosts are told."""

import asyncio
from typing import Any

import msgspec

from roost.conductor.agent_endpoint.host_orders import move_work, read_work_keys
from roost.model.instance import ACTIVE, AttemptKey, BuildResult, DestroyOrder, PowerResult, Requester
from roost.model.move import Move, MoveRefused
from roost.model.move_states import (
    CLEANING,
    DELETED,
    DISCARDING,
    DONE,
    FREEING,
    REVERTED,
    STOPPING,
    SWITCHED,
    UNDOING,
)
from roost.model.spec import Flavor
from roost.process.context import Work
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.arrivals import AddInstances, find_instances
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.cell_database.guests import GuestsReported
from roost.state.cell_database.host_work import hosts_with_orders
from roost.state.cell_database.instance_search import count_remaining
from roost.state.cell_database.move_orders import guests_of_moves
from roost.state.cell_database.move_reports import confirm_target, note_moves_destroyed, report_target
from roost.state.cell_database.move_work import find_moves_wanting_work, go_on, take_moves, take_target
from roost.state.cell_database.moves import (
    MoveFilter,
    begin_move,
    confirm_move,
    find_moves,
    list_moves,
    prune_moves,
    read_steps,
    revert_move,
)
from roost.state.cell_database.power import report_power
from roost.storage import Database
from support.cells import NOW, instance, selection
from support.clouds import spec
from support.databases import Place
from support.upgrading import upgrade_empty

BY = Requester("operator", "admin", "req")
ONE = "i1"


class Played:
    """A cell on a database, whose conductors and hosts a test plays. The instance is on host ``a``."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def do(self, work: Any) -> Any:
        return await self.database.write(work)

    async def add(self) -> None:
        held = msgspec.structs.replace(selection("a"), generation=1)
        there = instance(ONE, "a", state=ACTIVE, selection=held, spec=spec(1), epoch=1)
        await self.do(AddInstances((there,), NOW))

    async def begin(self, uuid: str, **named: Any) -> Move | MoveRefused:
        work: Work[Any] = begin_move(uuid=uuid, instance=ONE, by=BY, at=NOW, **{"kind": "migrate"} | named)
        begun: Move | MoveRefused = await self.do(work)
        return begun

    async def move(self, uuid: str) -> Move:
        found: dict[str, Move] = await self.do(find_moves((uuid,)))
        return found[uuid]

    async def own(self, uuid: str) -> Move:
        assert uuid in await self.do(find_moves_wanting_work("me", 9))
        [taken] = await self.do(take_moves("me", (uuid,)))
        return taken  # type: ignore[no-any-return]

    async def told(self, host: str) -> set[tuple[str, int]]:
        """The orders of a host, as it is told of them."""
        keys = await self.do(read_work_keys({host: frozenset()}))
        found = await self.do(move_work(keys.moves)) if keys.moves else {}
        return {(part.kind, part.instance.attempt) for part in found.get(host, ())}

    async def power(self, host: str, attempt: int, runs: bool) -> None:
        reports = [PowerResult(ONE, attempt, runs)]
        await self.do(lambda c: report_power(c, host, reports, NOW))

    async def run_on(self, uuid: str, host: str, attempt: int) -> None:
        """Play conductor and hosts from the request until the instance runs on a host."""
        move = await self.own(uuid)
        claimed = msgspec.structs.replace(selection(host), generation=2)
        assert await self.do(take_target(move=move, selection=claimed, alternates=(), run="r", at=NOW))
        key, source = AttemptKey(ONE, attempt), move.source
        assert await self.told(host) == {("build", attempt)}
        assert await self.do(lambda c: confirm_target(c, key, host, NOW)) is None
        assert (await self.move(uuid)).state == STOPPING
        assert await self.told(source.host) == {("stop", source.attempt)}
        await self.power(source.host, source.attempt, runs=False)
        assert await self.do(lambda c: confirm_target(c, key, host, NOW)) is True
        built = BuildResult(ONE, host, attempt)
        assert await self.do(lambda c: report_target(c, built, NOW)) is not None
        assert await self.do(lambda c: report_target(c, built, NOW)) is None

    async def destroyed(self, host: str, attempt: int) -> None:
        done = [DestroyOrder(ONE, attempt, host)]
        await self.do(lambda c: note_moves_destroyed(c, done, NOW))


def playing(place: Place, play: Any) -> None:
    async def run() -> None:
        database = Database(place.url)
        upgrade_empty(SCHEMA, database)
        played = Played(database)
        try:
            await played.add()
            await play(played)
        finally:
            await database.close()

    asyncio.run(run())


def test_forth_and_the_source_cleans_up(place: Place) -> None:
    async def play(cell: Played) -> None:
        flavor = Flavor("big", 2, 2048)
        begun = await cell.begin("m1", kind="resize", flavor=flavor)
        assert await cell.begin("m1", kind="resize", flavor=flavor) == begun
        assert isinstance(await cell.begin("m2"), MoveRefused)
        await cell.run_on("m1", "b", 2)
        there = (await cell.do(find_instances((ONE,))))[ONE]
        assert (there.host, there.attempt, there.flavor, there.move) == ("b", 2, "big", "m1")
        # The source keeps its guest, and neither host has lost or found one.
        assert [host for host, _ in await cell.do(lambda c: guests_of_moves(c, ["a", "b"]))] == ["a"]
        for host, guests in (("a", {}), ("b", {ONE: 2})):
            compared = await cell.do(GuestsReported(host, guests, NOW))
            assert not (compared.lost or compared.found or compared.unknown)
        assert await cell.told("a") == {("destroy", 1)}
        refused = await cell.begin("m2")
        assert isinstance(refused, MoveRefused)
        assert "when host a has destroyed what it had" in refused.reason
        await cell.destroyed("a", 1)
        assert (await cell.move("m1")).state == FREEING
        owned = await cell.own("m1")
        assert await cell.do(go_on(move=owned, to=DONE, at=NOW))
        assert not await cell.do(go_on(move=owned, to=DONE, at=NOW))
        assert (await cell.do(find_instances((ONE,))))[ONE].move is None
        steps = [each.state for each in await cell.do(read_steps("m1"))]
        assert (steps[0], steps[-1], len(steps)) == ("requested", DONE, 9)
        assert [each.uuid for each in await cell.do(list_moves(MoveFilter(host="b"), 9))] == ["m1"]
        assert not await cell.do(hosts_with_orders())
        assert (await cell.do(count_remaining(()))).moving_since is None
        assert await cell.do(prune_moves(NOW + 1)) == 1

    playing(place, play)


def test_forth_and_back(place: Place) -> None:
    async def play(cell: Played) -> None:
        await cell.begin("m1", confirms=False)
        await cell.run_on("m1", "b", 2)
        assert (await cell.move("m1")).state == SWITCHED
        assert isinstance(await cell.do(revert_move("m1", NOW)), Move)
        assert isinstance(await cell.do(confirm_move("m1", NOW)), MoveRefused)
        assert await cell.told("b") == {("stop", 2)}
        await cell.power("b", 2, runs=False)
        assert await cell.told("a") == {("start", 1)}
        await cell.power("a", 1, runs=True)
        assert (await cell.move("m1")).state == UNDOING
        there = (await cell.do(find_instances((ONE,))))[ONE]
        assert (there.host, there.attempt) == ("a", 1)
        back = msgspec.structs.replace(selection("a"), generation=3)
        assert await cell.do(go_on(move=await cell.own("m1"), to=DISCARDING, at=NOW, holds=back))
        await cell.destroyed("b", 2)
        assert await cell.do(go_on(move=await cell.own("m1"), to=REVERTED, at=NOW))
        there = (await cell.do(find_instances((ONE,))))[ONE]
        assert (there.selection.generation, there.move) == (3, None)
        # The attempt that was reverted is not given twice.
        await cell.begin("m2")
        await cell.run_on("m2", "b", 3)
        assert (await cell.move("m2")).state == CLEANING

    playing(place, play)


def test_a_deletion_tells_both_hosts(place: Place) -> None:
    async def play(cell: Played) -> None:
        await cell.begin("m1", confirms=False)
        await cell.run_on("m1", "b", 2)
        await cell.do(DeleteInstances((ONE,), NOW, "cell1"))
        assert (await cell.move("m1")).state == DELETED
        assert await cell.do(hosts_with_orders()) == {"a"}
        keys = await cell.do(read_work_keys({"b": frozenset()}))
        assert (keys.instances, keys.moves) == ((ONE,), ())

    playing(place, play)
