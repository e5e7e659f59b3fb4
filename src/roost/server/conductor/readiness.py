"""What conductors need to serve requests: their database, placement, and Keystone if it checks tokens."""

from functools import partial

import sqlalchemy as sa

from roost.placement.options import PlacementOptions
from roost.placement.readiness import database_verdict, keystone_checks, ledger_checks
from roost.server.conductor.opening import Asked
from roost.storage import Database, Schema, check_writes
from roost.web.health import Check, Health


def conducting_health(
    name: str, database: Database, schema: Schema, asked: Asked, options: PlacementOptions
) -> Health:
    """The checks of a conductor. ``name``: that of its database, which has the tables of ``schema``.

    A cell that is down is none of the super conductor's checks: it serves all others.
    """
    checks = [Check(name, partial(_use, database, schema), database_verdict)]
    if asked.ledger is not None:
        checks += ledger_checks(asked.ledger, options.health)
    elif asked.http_placement is not None:
        checks.append(Check("placement", asked.http_placement.root))
    return Health((*checks, *keystone_checks(options)), options.health)


async def _use(database: Database, schema: Schema) -> None:
    await database.read(lambda connection: connection.scalar(sa.select(1)))
    await check_writes(database, schema)
