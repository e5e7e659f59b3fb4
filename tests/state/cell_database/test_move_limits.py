"""Moves at once: as many begin from, and go to, a host and within a cell as the limits allow."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from roost.model.instance import ACTIVE, Requester
from roost.model.move import Move
from roost.model.move_states import FAILED_MOVE, PREPARING, RETRYING, SWITCHED
from roost.process.context import Work
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.move_changes import enter
from roost.state.cell_database.move_limits import (
    MoveCounts,
    MoveLimits,
    begin_moves,
    count_moves,
    find_moves_to_begin,
)
from roost.state.cell_database.move_work import find_moves_wanting_work, take_moves, take_target
from roost.state.cell_database.moves import begin_move, find_moves
from roost.state.cell_database.tables import metadata, moves
from roost.state.leases import AcquireLease, vacate_all
from roost.storage import Database, Transaction, transaction
from support.cells import NOW, instance, selection
from support.clouds import spec
from support.databases import Place

LIMITS = MoveLimits(per_host=2, per_cell=3)
KIND = "cell-conductor"
BY = Requester("operator", "admin", "req")


def requested(number: int, host: str, began: float = NOW) -> list[Work[Any]]:
    """An instance on a host, and its move, which is requested."""
    held = replace(selection(host), generation=1)
    uuid = f"i{number}"
    there = instance(uuid, host, state=ACTIVE, selection=held, spec=spec(1), epoch=1)
    begin = begin_move(uuid=f"m{number}", instance=uuid, kind="migrate", by=BY, at=began)
    return [AddInstances((there,), NOW), begin]


def lease(name: str, holder: str = "") -> AcquireLease:
    return AcquireLease(name=name, kind=KIND, holder=holder or name, host="here", service_version=0, now=NOW)


class Tables:
    """The tables of a cell in memory."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def do(self, work: Work[Any]) -> Any:
        return work(self.connection)

    def request(self, number: int, host: str, began: float = NOW) -> None:
        for work in requested(number, host, began):
            self.do(work)

    def begin(self, owner: str = "me") -> list[str]:
        return [each.uuid for each in begin_moves(owner, LIMITS)(self.connection)]

    def move(self, uuid: str) -> Move:
        return find_moves((uuid,))(self.connection)[uuid]

    def enter(self, uuid: str, state: str) -> None:
        assert enter(self.connection, self.move(uuid), state, NOW)

    def take(self, uuid: str, host: str) -> bool | None:
        return take_target(
            move=self.move(uuid), selection=selection(host), alternates=(), run="r", at=NOW, limits=LIMITS
        )(self.connection)

    def counts(self) -> MoveCounts:
        return count_moves("begun")(self.connection)

    @property
    def full(self) -> frozenset[str]:
        return count_moves("placed")(self.connection).full_hosts(LIMITS)


@pytest.fixture
def cell() -> Iterator[Tables]:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection)
        tables = Tables(connection)
        for holder in ("me", "other"):
            tables.do(lease(holder))
        yield tables
    engine.dispose()


def test_the_oldest_begin_as_many_as_a_host_and_the_cell_may_have(cell: Tables) -> None:
    for number, host in enumerate("aaabbb"):
        cell.request(number, host, began=NOW - number)
    assert cell.do(find_moves_to_begin(LIMITS)) == ["m5", "m4", "m2"]
    assert cell.begin() == ["m5", "m4", "m2"]
    assert cell.counts() == MoveCounts({"a": 1, "b": 2}, 3)
    assert cell.begin("other") == []


def test_a_move_that_waits_is_no_work_of_a_conductor_until_it_begins(cell: Tables) -> None:
    for number in range(3):
        cell.request(number, "a")
    assert cell.do(find_moves_wanting_work("me", 9)) == []
    assert cell.do(take_moves("me", ("m0", "m1", "m2"))) == []
    assert cell.begin() == ["m0", "m1"]
    assert sorted(cell.do(find_moves_wanting_work("me", 9))) == ["m0", "m1"]
    assert cell.do(find_moves_wanting_work("other", 9)) == []


def test_a_move_whose_owner_dies_still_counts_and_is_taken_over(cell: Tables) -> None:
    for number in range(3):
        cell.request(number, "a")
    cell.begin()
    cell.do(vacate_all(KIND))
    cell.do(lease("other", "restarted"))
    assert cell.begin("restarted") == []
    assert sorted(cell.do(find_moves_wanting_work("restarted", 9))) == ["m0", "m1"]


def test_a_move_counts_until_its_instance_has_switched_or_stays(cell: Tables) -> None:
    for number in range(4):
        cell.request(number, "a")
    cell.begin()
    cell.take("m0", "b")
    for state in (PREPARING, RETRYING):
        assert cell.move("m0").state == state or cell.enter("m0", state) is None
        assert cell.begin() == []
    assert cell.counts() == MoveCounts({"a": 2}, 2), "a target that failed has one less"
    cell.enter("m0", SWITCHED)
    assert cell.begin() == ["m2"]
    cell.enter("m1", FAILED_MOVE)
    assert cell.begin() == ["m3"]


def test_a_target_takes_as_many_as_it_may_have(cell: Tables) -> None:
    for number, host in enumerate("abc"):
        cell.request(number, host)
    cell.begin()
    assert [cell.take(uuid, "d") for uuid in ("m0", "m1", "m2")] == [True, True, None]
    assert cell.move("m2").target is None
    assert cell.full == {"d"}
    cell.enter("m0", SWITCHED)
    assert cell.take("m2", "d") is True


def test_moves_from_a_dead_host_wait_for_the_cell_and_their_targets_alone(cell: Tables) -> None:
    for number in range(4):
        cell.request(number, "a")
    cell.do(lambda connection: connection.execute(sa.update(moves).values(kind="evacuate")))
    assert cell.begin() == ["m0", "m1", "m2"]
    assert cell.counts() == MoveCounts({}, 0, 3)
    cell.take("m0", "b")
    assert cell.counts() == MoveCounts({"b": 1}, 0, 3)


def test_two_hosts_whose_moves_want_each_other_do_not_wait_for_ever(cell: Tables) -> None:
    for number, host in enumerate("ab"):
        cell.request(number, host)
        cell.request(number + 2, host)
    cell.do(begin_moves("me", MoveLimits(per_host=2, per_cell=9)))
    assert cell.full == frozenset(), "they look for targets"
    limits = {"m0": True, "m2": True, "m1": None, "m3": None}
    assert {uuid: cell.take(uuid, "b" if uuid in ("m0", "m2") else "a") for uuid in limits} == limits
    for uuid in ("m0", "m2"):
        cell.enter(uuid, SWITCHED)
    assert [cell.take(uuid, "a") for uuid in ("m1", "m3")] == [True, True]


def test_a_move_that_takes_an_alternate_does_not_count_against_itself(cell: Tables) -> None:
    for number in range(2):
        cell.request(number, "a")
    cell.begin()
    assert [cell.take(uuid, "b") for uuid in ("m0", "m1")] == [True, True]
    cell.enter("m0", RETRYING)
    assert cell.full == {"a"}
    assert cell.take("m0", "b") is True


@transaction
def all_of(connection: sa.Connection, works: tuple[Work[Any], ...]) -> None:
    for work in works:
        work(connection)


def test_two_conductors_at_the_same_moment_begin_no_more_than_one_would(place: Place) -> None:
    async def run() -> None:
        first, second = (Database(place.at(number)) for number in range(2))
        SCHEMA.upgrade(first)
        try:
            works = [work for number in range(12) for work in requested(number, f"host{number}")]
            await first.write(all_of(tuple(works)))
            begun = await asyncio.gather(
                *(
                    each.write(begin_moves(f"c{number}", LIMITS))
                    for number, each in enumerate((first, second))
                )
            )
            assert sum(map(len, begun)) == LIMITS.per_cell
            counted: Transaction[MoveCounts] = count_moves("begun")
            assert (await second.read(counted)).in_cell == LIMITS.per_cell
        finally:
            await first.close()
            await second.close()

    asyncio.run(run())


ROUNDS = 6


def test_two_moves_that_get_one_target_at_the_same_moment_do_not_exceed_its_limit(place: Place) -> None:
    limits = MoveLimits(per_host=1, per_cell=99)

    async def run() -> None:
        databases = [Database(place.at(number)) for number in range(2)]
        SCHEMA.upgrade(databases[0])
        try:
            works = [work for number in range(2 * ROUNDS) for work in requested(number, f"host{number}")]
            await databases[0].write(all_of(tuple(works)))
            begun = await databases[0].write(begin_moves("me", limits))
            for number in range(ROUNDS):
                pair = begun[2 * number : 2 * number + 2]
                taken = await asyncio.gather(
                    *(
                        database.write(
                            take_target(
                                move=move,
                                selection=selection(f"target{number}"),
                                alternates=(),
                                run="r",
                                at=NOW,
                                limits=limits,
                            )
                        )
                        for database, move in zip(databases, pair, strict=True)
                    )
                )
                assert sorted(map(str, taken)) == ["None", "True"]
        finally:
            for database in databases:
                await database.close()

    asyncio.run(run())
