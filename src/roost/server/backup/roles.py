"""The schemas of each kind of database."""

from roost.ledger import SCHEMA as LEDGER
from roost.nova.shadow.tables import SCHEMA as SHADOW
from roost.records.tables import SCHEMA as RECORDS
from roost.server.neighbours.store import SCHEMA as NEIGHBOURS
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database.tables import SCHEMA as CELL
from roost.storage import Database, Schema

BRIDGE = "nova_bridge"
"""The role of the own database of the bridge to Nova."""

ROLES = {
    "api": (LEDGER, CONDUCTOR),
    "cell": (CELL,),
    "records": (RECORDS,),
    "neighbours": (NEIGHBOURS,),
    BRIDGE: (CONDUCTOR, RECORDS, SHADOW),
}
"""The schemas of each kind of database, by its role."""

SCHEMAS = {schema.name: schema for schemas in ROLES.values() for schema in schemas}
"""All schemas by name."""


def schemas_in(database: Database, role: str = "api") -> list[Schema]:
    """Return the schemas of all roles whose tables a database has; if it has none, those of ``role``.

    The bridge's own database is known by its role, or by the tables that no other has. It may be the database
    of placement too.
    """
    there = {schema.name for schema in SCHEMAS.values() if schema.revision(database) is not None}
    names = [name for name, schemas in ROLES.items() if name != BRIDGE and there & {s.name for s in schemas}]
    present = [schema for name in names for schema in ROLES[name]]
    if role == BRIDGE or SHADOW.name in there:
        present = [each for each in present if each is not LEDGER or LEDGER.name in there]
        present += [each for each in ROLES[BRIDGE] if each not in present]
    return present or list(ROLES[role])
