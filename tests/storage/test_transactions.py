"""Functions of a connection are transactions: bound to arguments, they run when a database runs them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.storage import Database, entering, short_read, states_entered, transaction


@transaction
def add(connection: Connection, number: int, *, times: int = 1) -> int:
    """Add."""
    return int(connection.execute(sa.select(sa.literal(number) * times)).scalar_one())


@entering("failed", "ended")
def end(connection: Connection, name: str) -> str:
    """End."""
    return name


@short_read
def read_nothing(connection: Connection) -> None:
    """Read nothing."""


def test_a_call_runs_nothing_until_a_database_runs_it(tmp_path: Path) -> None:
    async def use(database: Database) -> None:
        call = add(3, times=2)
        assert await database.read(call) == await database.write(call) == 6

    _using(tmp_path, use)


def test_a_transaction_is_part_of_another_one(tmp_path: Path) -> None:
    async def use(database: Database) -> None:
        assert await database.write(lambda connection: add(2)(connection) + add(3)(connection)) == 5

    _using(tmp_path, use)


def test_a_short_read_runs_without_a_transaction(tmp_path: Path) -> None:
    async def use(database: Database) -> None:
        begun: list[object] = []
        await database.read(add(1))
        sa.event.listen(database._engine, "begin", begun.append)
        await database.read(read_nothing())
        assert begun == []
        await database.read(add(1))
        assert len(begun) == 1

    _using(tmp_path, use)


def _using(folder: Path, use: Callable[[Database], Awaitable[None]]) -> None:
    async def run() -> None:
        database = Database(f"sqlite:///{folder / 'a.db'}")
        await use(database)
        await database.close()

    asyncio.run(run())


def test_its_name_and_arguments_are_shown() -> None:
    call = add(3, times=2)
    assert repr(call) == "add(3, times=2)"
    assert call.name == add.__name__ == "add"
    assert add.__doc__ == "Add."
    assert call.function is add


def test_calls_with_the_same_arguments_are_equal() -> None:
    assert add(3, times=2) == add(3, times=2)
    assert len({add(3, times=2), add(3, times=2), add(3), add(4)}) == 3
    assert add(3) != end("3")


def test_the_states_that_rows_enter_by_it_are_told() -> None:
    assert states_entered(end("a")) == ("failed", "ended")
    assert states_entered(add(1)) == ()
    assert states_entered(lambda connection: None) == ()
