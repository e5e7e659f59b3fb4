"""Prepares a database in a process of its own."""

import asyncio

from roost.ledger import SCHEMA as LEDGER
from roost.records.tables import SCHEMA as RECORDS
from roost.server.neighbours.store import SCHEMA as NEIGHBOURS
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database.tables import SCHEMA as CELL
from roost.storage import Database

SCHEMAS = [LEDGER, CONDUCTOR, CELL, RECORDS, NEIGHBOURS]


def prepare(url: str) -> str:
    """Prepare every schema in a database; return "prepared" or the error."""
    try:
        database = Database(url)
        for schema in SCHEMAS:
            schema.prepare(database)
            schema.check(database)
        asyncio.run(database.close())
    except Exception as error:
        return repr(error)
    return "prepared"
