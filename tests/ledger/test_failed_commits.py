"""A commit that fails is answered and logged with its cause, and never as another writer's success."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.ledger import Ledger
from roost.placement.commands.names import AddResourceClass
from roost.placement.commands.providers import CreateProvider
from roost.storage import (
    Database,
    DatabaseDamaged,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseRefused,
    DatabaseUnavailable,
)
from support.databases import Place
from support.ledgers import claim, findings_in, holdings_of, host, opened, run, whole


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_said_to_be_full(small_disk):
    path = small_disk / "roost.db"

    async def use() -> None:
        async with opened(path) as [ledger]:
            await run(ledger, *host("p", VCPU=2**30))
            (small_disk / "others").write_bytes(bytes(100_000))
            done = 0
            with pytest.raises(DatabaseFull, match="database or disk is full"):
                while True:
                    await ledger.execute(claim(f"c{done}", "p", VCPU=1))
                    done += 1
            assert len(holdings_of(ledger.database)) == done
            (small_disk / "others").unlink()
            await ledger.execute(claim("after", "p", VCPU=1))
            assert len(holdings_of(ledger.database)) == done + 1

    asyncio.run(use())
    assert findings_in(path) == []


def test_a_file_that_may_not_grow_is_full(tmp_path):
    async def use() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("p", VCPU=2**30))

            def limit(connection: sa.Connection) -> None:
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
                connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

            await ledger.database.write(limit)
            with pytest.raises(DatabaseFull):
                for number in range(1000):
                    await ledger.execute(claim(f"c{number}", "p", VCPU=1))

    asyncio.run(use())


def change(database: Database, *statements: str) -> None:
    """What an operator does to a database by hand."""

    def work(connection: sa.Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    database.write_now(work)


async def fails(ledger: Ledger, expected: type[Exception]) -> None:
    before = whole(await ledger.current())
    with pytest.raises(expected) as failed:
        await ledger.execute(CreateProvider("q", "q"))
    assert type(failed.value) is expected
    assert whole(await ledger.current()) == before


@pytest.mark.parametrize("place", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_a_table_that_is_missing_is_said_to_be(place: Place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            change(ledger.database, "ALTER TABLE resource_providers RENAME TO gone")
            await fails(ledger, DatabaseRefused)
            change(ledger.database, "ALTER TABLE gone RENAME TO resource_providers")
            await ledger.execute(CreateProvider("q", "q"))

    asyncio.run(use())


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_a_rule_of_the_commits_that_is_no_key_is_no_other_writer(place: Place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            change(ledger.database, "ALTER TABLE commits ADD CONSTRAINT odd CHECK (seq < 3) NOT VALID")
            await ledger.execute(AddResourceClass("CUSTOM_A"))
            await fails(ledger, DatabaseRefused)

    asyncio.run(use())


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_a_server_that_takes_no_writes_is_read_only(place: Place):
    async def use() -> None:
        async with opened(place) as [ledger]:
            read_only = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"
            change(ledger.database, read_only)
            await fails(ledger, DatabaseReadOnly)

    asyncio.run(use())


def test_damaged_pages_are_said_to_be(tmp_path):
    path = tmp_path / "roost.db"

    async def use() -> None:
        async with opened(path) as [ledger]:
            await run(ledger, *(command for n in range(50) for command in host(f"p{n}", VCPU=10)))
            change(ledger.database, "PRAGMA user_version = 1")
        async with opened(path) as [ledger]:
            with path.open("r+b") as file:
                file.seek(4096)
                file.write(bytes([0xAA]) * (path.stat().st_size - 4096))
            with pytest.raises(DatabaseDamaged):
                await ledger.execute(CreateProvider("q", "q"))

    asyncio.run(use())


def test_every_kind_is_unavailable_and_has_a_sentence_of_its_own():
    kinds = (DatabaseUnavailable, DatabaseFull, DatabaseReadOnly, DatabaseDamaged, DatabaseRefused)
    assert all(issubclass(kind, DatabaseUnavailable) for kind in kinds)
    assert len({kind.summary for kind in kinds}) == len(kinds)
