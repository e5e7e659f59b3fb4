"""A program waits for databases that are away at its start, and for nothing else."""

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import structlog.testing

from roost.ledger import SCHEMA
from roost.model.errors import OperatorError
from roost.server.workers.database_wait import open_when_there, prepare_unless_away
from roost.storage import Database, DatabaseUnavailable
from support.databases import Servers
from support.serving import Serving
from support.waiting import patience, wait_for

SERVER = "postgresql+psycopg://roost@db.example/roost"


def test_opening_waits_until_the_database_answers_and_closes_what_it_had_opened() -> None:
    story: list[str] = []

    async def open_(stack: AsyncExitStack) -> str:
        story.append("open")
        stack.callback(story.append, "close")
        if story.count("open") < 3:
            # As records tell of their database.
            raise OperatorError("cannot keep records") from DatabaseUnavailable("away")
        return "opened"

    async def away(error: OperatorError) -> None:
        story.append(str(error))

    async def run() -> None:
        async with AsyncExitStack() as stack:
            assert await open_when_there(stack, open_, away, pause=0.0) == "opened"
            assert story == ["open", "close", "cannot keep records", "open", "close", "open"]
        assert story[-1] == "close"

    asyncio.run(run())


def test_another_error_while_it_waits_is_told_and_the_same_one_is_not() -> None:
    errors = ["no route", "no route", "wrong password", "wrong password"]
    first: list[str] = []

    async def open_(_: AsyncExitStack) -> None:
        if errors:
            raise DatabaseUnavailable(errors.pop(0))

    async def away(error: OperatorError) -> None:
        first.append(str(error))

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await open_when_there(stack, open_, away, pause=0.0)

    with structlog.testing.capture_logs() as logs:
        asyncio.run(run())
    assert first == ["no route"]
    assert [each["error"] for each in logs] == ["wrong password"]


def test_a_wrong_configuration_ends_the_start_at_once() -> None:
    async def open_(_: AsyncExitStack) -> None:
        raise OperatorError("no such option")

    async def away(_: OperatorError) -> None:
        raise AssertionError("it is not away")

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await open_when_there(stack, open_, away)

    with pytest.raises(OperatorError, match="no such option"):
        asyncio.run(run())


def test_only_a_server_that_is_away_is_left_to_the_workers() -> None:
    def fail_with(error: OperatorError) -> None:
        raise error

    prepare_unless_away(lambda: fail_with(DatabaseUnavailable("away")), (SERVER, None))
    for error, url in (
        (DatabaseUnavailable("no such folder"), "sqlite:////nowhere/roost.db"),
        (OperatorError("tables of another revision"), SERVER),
    ):
        with pytest.raises(OperatorError, match=str(error)):
            prepare_unless_away(lambda error=error: fail_with(error), (url,))


def test_placement_starts_without_its_server_says_so_and_serves_when_it_comes(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers.new("postgresql", "late")
    server.start()
    try:
        [url] = server.urls(server.create_database())
        database = Database(url)
        SCHEMA.upgrade(database)
        asyncio.run(database.close())
        server.stop()
        serving = Serving(url, tmp_path / "log", waits=False)
        try:

            def answer(path: str) -> httpx.Response | None:
                try:
                    return httpx.get(
                        f"{serving.url}{path}", headers={"x-auth-token": "admin"}, timeout=patience(60)
                    )
                except httpx.TransportError:
                    return None

            wait_for(lambda: answer("/readyz") is not None)
            found = answer("/readyz")
            assert found is not None and found.status_code == 503
            reason = "the start waits for it; the log has the error"
            assert found.json()["checks"] == [{"name": "database", "passed": False, "reason": reason}]
            refused = answer("/resource_providers")
            assert refused is not None and refused.status_code == 503
            assert "waits for its database" in refused.json()["errors"][0]["detail"]
            assert "roost: Placement API on" not in serving.said()
            server.start()
            wait_for(lambda: "roost: Placement API on" in serving.said())
            served = answer("/resource_providers")
            assert served is not None and served.status_code == 200
            ready = answer("/readyz")
            assert ready is not None and ready.json()["ready"]
            # Each error once: a slow server also says that it is starting.
            waits = re.findall(r"the start waits for a database +error=(.*)", serving.said())
            assert waits and len(waits) == len(set(waits))
        finally:
            serving.end()
    finally:
        server.kill()
