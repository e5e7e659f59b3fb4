"""Two processes at one database: deadlocks, locks, and the nodes of a cluster."""

import asyncio
from collections.abc import Callable
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa

from roost.storage import ANSWER_SECONDS, Database, DatabaseUnavailable
from support.databases import SERVERS, Place
from support.things import put, things, using


def at_two(
    place: Place, one: Callable[..., Any], other: Callable[..., Any], answer_seconds: float = ANSWER_SECONDS
) -> list[Any]:
    """Run two works at once, each on a database of its own; what became of them."""

    async def use(database: Database) -> list[Any]:
        databases = [Database(place.at(number), answer_seconds=answer_seconds) for number in (1, 2)]
        database.write_now(lambda connection: [put(number)(connection) for number in (1, 2)])
        answers = await asyncio.gather(
            databases[0].write(one), databases[1].write(other), return_exceptions=True
        )
        for each in databases:
            await each.close()
        return [*answers, things(database)]

    answers: list[Any] = using(place, use)
    return answers


@pytest.mark.parametrize("place", SERVERS, indirect=True)
def test_two_that_wait_for_each_other_are_both_done(place):
    """A deadlock; on Galera, where they meet only at COMMIT, a failed certification."""
    met = Barrier(2)

    def moving(*numbers: int) -> Callable[[sa.Connection], int]:
        runs = []

        def work(connection: sa.Connection) -> int:
            runs.append(1)
            for number in numbers:
                connection.exec_driver_sql(f"UPDATE things SET number = number + 10 WHERE number = {number}")
                if len(runs) == 1 and number == numbers[0]:
                    met.wait(60)
            return len(runs)

        return work

    first, second, left = at_two(place, moving(1, 2), moving(2, 1))
    assert max(first, second) > 1
    assert left == [11, 12]


@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
def test_a_lock_is_waited_for_no_longer_than_an_operation_may_take(place):
    taken, done = Barrier(2), Barrier(2)

    def holding(connection: sa.Connection) -> str:
        connection.exec_driver_sql("UPDATE things SET number = 11 WHERE number = 1")
        taken.wait(60)
        done.wait(60)
        return "done"

    def waiting(connection: sa.Connection) -> None:
        taken.wait(60)
        try:
            connection.exec_driver_sql("UPDATE things SET number = 21 WHERE number = 1")
        finally:
            done.wait(60)

    first, second, left = at_two(place, holding, waiting, answer_seconds=4)
    assert first == "done"
    assert isinstance(second, DatabaseUnavailable)
    assert left == [2, 11]


@pytest.mark.parametrize("place", ["galera"], indirect=True)
def test_what_one_node_was_told_is_done_is_seen_at_the_others(place):
    async def use(database: Database) -> None:
        others = [Database(place.at(1)), Database(place.at(2))]
        for number in range(99):
            await database.write(put(number))
            for other in others:
                assert len(things(other)) == number + 1
        for other in others:
            await other.close()

    using(place, use)
