"""What a request or a deletion costs the API database does not hang on how many there are."""

import asyncio
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roost.state.api_database.build_requests import (
    AcceptRequest,
    FinishRequest,
    RequestKey,
    delete_owned,
    retake_request,
    take_requests,
)
from roost.state.api_database.mappings import take_over_deletions
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database
from support.conducting import request
from support.databases import Servers


def test_a_request_that_is_taken_over_is_found_by_its_key(servers: Servers, tmp_path: Path) -> None:
    """A statement that had to read the table was compiled first: a hundred of them exceeded each limit."""
    plans: dict[str, list[str]] = {}

    def explain(
        connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
    ) -> None:
        if statement.startswith(("UPDATE", "DELETE")):
            with cursor.connection.cursor() as other:
                other.execute(f"EXPLAIN {statement}", parameters)
                plans[statement] = [line for [line] in other.fetchall()]

    async def use() -> None:
        with servers.place("postgresql", tmp_path) as place:
            database = Database(place.url)
            SCHEMA.upgrade(database)
            sa.event.listen(sa.Engine, "before_cursor_execute", explain)
            try:
                await work(database)
            finally:
                sa.event.remove(sa.Engine, "before_cursor_execute", explain)
                await database.close()

    async def work(database: Database) -> None:
        one = request(1)
        await database.write(AcceptRequest(one, 1.0))
        free = RequestKey(one.request_id, None, 1)
        taken = await database.write(take_requests((free,), "first"))
        again = await database.write(take_requests((taken.owned[0].key,), "second"))
        key = again.owned[0].key
        assert not await database.write(retake_request(taken.owned[0].key))
        assert await database.write(retake_request(key))
        key = RequestKey(key.request_id, key.owner, key.epoch + 1)
        assert await database.write(delete_owned(key, one.instances, 1.0))
        assert await database.write(take_over_deletions(((one.instances[0], "second"),), "third"))
        assert await database.write(FinishRequest(key))

    asyncio.run(use())
    assert len(plans) >= 5
    whole = {statement: plan for statement, plan in plans.items() if any("Seq Scan" in line for line in plan)}
    assert whole == {}


def test_a_table_that_must_be_read_as_a_whole_is_read_without_compiling_the_plan(
    servers: Servers, tmp_path: Path
) -> None:
    async def use() -> None:
        with servers.place("postgresql", tmp_path) as place:
            database = Database(place.url)
            SCHEMA.upgrade(database)
            try:
                for ask in (database.read, database.write):
                    plan = await ask(lambda connection: connection.execute(WHOLE).scalars().all())
                    assert any("Seq Scan" in line for line in plan)
                    assert not [line for line in plan if "JIT" in line]
            finally:
                await database.close()

    asyncio.run(use())


WHOLE = sa.text("EXPLAIN SELECT * FROM build_requests")
