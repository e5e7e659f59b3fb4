"""Imports and exports for tests, and the state of their targets."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roost.fleet import Fleet
from roost.ledger import SCHEMA, Held
from roost.ledger.findings import Finding
from roost.ledger.holdings import held_by_all
from roost.ledger.load import load
from roost.ledger.verify import verify
from roost.placement.exchange import ExchangeReport, export_placement, import_placement
from roost.placement.options import PlacementOptions
from roost.storage import Database
from support.upgrading import upgrade_empty


def at(path: Path) -> str:
    """Return the URL of a SQLite file."""
    return f"sqlite:///{path}"


def prepared(url: str) -> str:
    """Create Roost's tables in a database; return its URL."""
    database = Database(url)
    upgrade_empty(SCHEMA, database)
    asyncio.run(database.close())
    return url


def widen(url: str) -> None:
    """Let new tables of a MariaDB database store all of Unicode."""
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        connection.exec_driver_sql("ALTER DATABASE CHARACTER SET utf8mb4")


def imported(source: str, target: str, **incomplete: str) -> ExchangeReport:
    """Import; return the report."""
    opened = Database(source, read_only=True)
    try:
        return import_placement(opened, target, PlacementOptions(**incomplete), lambda done, total: None)
    finally:
        asyncio.run(opened.close())


def exported(source: str, target: str) -> ExchangeReport:
    """Export; return the report."""
    opened = Database(source, read_only=True)
    try:
        return export_placement(opened, target, lambda done, total: None)
    finally:
        asyncio.run(opened.close())


def fleet_in(url: str) -> Fleet:
    """Return the fleet of a database of Roost."""
    return _read(url, load)


def holdings_in(url: str) -> dict[str, Held]:
    """Return the consumers of a database of Roost."""
    return _read(url, held_by_all)


def verified(url: str) -> list[Finding]:
    """Return what `roost db verify` finds in a database of Roost."""
    return _read(url, verify)


def digest(path: Path) -> str:
    """Return a digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(url: str, work: Any) -> Any:
    database = Database(url, read_only=True)
    try:
        return database.read_now(work)
    finally:
        asyncio.run(database.close())
