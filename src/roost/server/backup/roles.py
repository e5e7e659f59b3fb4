"""The schemas of each kind of database."""

from roost.ledger import SCHEMA as LEDGER
from roost.records.tables import SCHEMA as RECORDS
from roost.server.neighbours.store import SCHEMA as NEIGHBOURS
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database.tables import SCHEMA as CELL
from roost.storage import Database, Schema

ROLES = {"api": (LEDGER, CONDUCTOR), "cell": (CELL,), "records": (RECORDS,), "neighbours": (NEIGHBOURS,)}
"""The schemas of each kind of database, by its role."""

SCHEMAS = {schema.name: schema for schemas in ROLES.values() for schema in schemas}
"""All schemas by name."""


def schemas_in(database: Database, role: str = "api") -> list[Schema]:
    """Return the schemas of all roles whose tables a database has; if it has none, those of ``role``."""
    present = [
        schema
        for schemas in ROLES.values()
        if any(schema.revision(database) is not None for schema in schemas)
        for schema in schemas
    ]
    return present or list(ROLES[role])
