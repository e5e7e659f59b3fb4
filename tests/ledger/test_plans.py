"""What a commit costs a database hangs neither on how large its tables are nor on the way to it."""

import asyncio
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from roost.ledger import Ledger
from roost.ledger.commit_states import CommitLimits
from roost.placement.commands.allocations import FreeConsumers, WriteAllocations
from roost.storage import Database
from support.databases import Servers
from support.ledgers import claim, host, opened, run

NAMES = tuple(f"c{number}" for number in range(20))


def test_no_commit_and_no_look_reads_a_whole_table(servers: Servers, tmp_path: Path):
    plans: dict[str, list[str]] = {}

    def explain(
        connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
    ) -> None:
        kind = statement.split(None, 1)[0]
        if kind in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            with cursor.connection.cursor() as other:
                other.execute(f"EXPLAIN {statement}", parameters)
                plans[statement] = [line for [line] in other.fetchall()]

    async def use() -> None:
        with servers.place("postgresql", tmp_path) as place:
            async with opened(place) as [ledger]:
                await run(ledger, *host("p", VCPU=1000))
                # With tables as good as empty: a plan made then is kept when they have become large.
                sa.event.listen(sa.Engine, "before_cursor_execute", explain)
                try:
                    await work(ledger)
                finally:
                    sa.event.remove(sa.Engine, "before_cursor_execute", explain)

    async def work(ledger: Ledger) -> None:
        claims = [claim(name, "p", VCPU=1) for name in NAMES]
        await asyncio.gather(*map(ledger.execute, claims))
        resized = [replace(claim(name, "p", VCPU=2).writes[0], generation=1) for name in NAMES]
        await ledger.execute(WriteAllocations(tuple(resized)))
        await ledger.execute(FreeConsumers(NAMES))

    asyncio.run(use())
    verbs = {statement.split(None, 1)[0] for statement in plans}
    assert verbs == {"SELECT", "INSERT", "UPDATE", "DELETE"}
    whole = {statement: plan for statement, plan in plans.items() if any("Seq Scan" in line for line in plan)}
    assert whole == {}


def test_on_mariadb_many_rows_take_no_more_statements_than_few(servers: Servers, tmp_path: Path):
    async def use() -> list[int]:
        with servers.place("mariadb", tmp_path) as place:
            async with opened(place, 1, CommitLimits(skip=0.0)) as [ledger]:
                for name in NAMES:
                    await run(ledger, *host(f"host of {name}", VCPU=10))
                asked = []
                for names in (NAMES[:1], NAMES[1:]):
                    before = questions(ledger.database)
                    writes = [claim(name, f"host of {name}", VCPU=1).writes[0] for name in names]
                    await ledger.execute(WriteAllocations(tuple(writes)))
                    await ledger.execute(FreeConsumers(names))
                    asked.append(questions(ledger.database) - before)
        return asked

    few, many = asyncio.run(use())
    assert few == many


def questions(database: Database) -> int:
    """How many statements the server was sent until now."""
    status = "SHOW GLOBAL STATUS LIKE 'Questions'"
    return int(database.read_now(lambda connection: connection.exec_driver_sql(status).one()[1]))
