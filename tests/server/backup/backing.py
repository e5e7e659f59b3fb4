"""Databases for tests of backups, and `roost db backup` and `restore` as processes and in this one."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roost.placement.commands.names import AddTrait
from roost.server.backup.creation import BackupSource, Made, make_backup
from roost.server.backup.restore import restore_database
from roost.storage import DatabaseIdentity
from support.databases import Place
from support.ledgers import claim, host, opened, run


def silent(*_: object) -> None:
    """Show no progress."""


def fill(place: Place, commits: int = 20) -> None:
    """Make a ledger with some commits."""

    async def work() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=10**6))
            await run(ledger, *(claim(f"consumer-{number}", "p", VCPU=1) for number in range(commits)))
            await run(ledger, AddTrait("CUSTOM_LAST"))

    asyncio.run(work())


def backed_up(url: str, folder: Path) -> Made:
    """Back a database up in this process."""
    return make_backup([BackupSource("database", url)], folder, silent)


def restored(folder: Path, url: str, replace: bool = False, now: float = 0.0) -> DatabaseIdentity | None:
    """Restore a backup in this process, at a time in seconds since the epoch."""
    return restore_database(folder, None, url, replace, silent, lambda: now)


def content(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables but the identity, sorted; empty if there are no tables."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        return {
            name: sorted(map(tuple, connection.exec_driver_sql(f"SELECT * FROM {name}")), key=repr)
            for name in sorted(names)
            if name != "database_identity"
        }


_READY = "import roost.cli.backup; from roost.cli.main import main; print('ready', flush=True); main()"


def start(*arguments: object) -> subprocess.Popen[bytes]:
    """Start a command of `roost db`; return when it has imported everything and begins its work."""
    process = subprocess.Popen(
        [sys.executable, "-c", _READY, "db", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process
