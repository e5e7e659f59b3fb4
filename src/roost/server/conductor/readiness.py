"""Readiness checks of conductors: their database, placement, and Keystone if it checks tokens."""

from functools import partial

import sqlalchemy as sa

from roost.placement.options import PlacementOptions
from roost.placement.readiness import database_verdict, keystone_checks, ledger_checks
from roost.server.conductor.assembly import ConductorServices
from roost.storage import Database, Schema, check_writes
from roost.web.health import Health, HealthCheck


def conducting_health(
    name: str, database: Database, schema: Schema, asked: ConductorServices, options: PlacementOptions
) -> Health:
    """Return the checks of a conductor. ``name``: the name of its database, with the tables of ``schema``.

    Cells are no part of the super conductor's checks: when one is down, it serves the others.
    """
    checks = [HealthCheck(name, partial(_use, database, schema), database_verdict)]
    if asked.ledger is not None:
        checks += ledger_checks(asked.ledger, options.health)
    elif asked.http_placement is not None:
        checks.append(HealthCheck("placement", asked.http_placement.root))
    return Health((*checks, *keystone_checks(options)), options.health)


async def _use(database: Database, schema: Schema) -> None:
    await database.read(lambda connection: connection.scalar(sa.select(1)))
    await check_writes(database, schema)
