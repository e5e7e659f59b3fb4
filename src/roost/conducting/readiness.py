"""What conductors need to serve requests: their database, placement, and Keystone if it checks tokens."""

from functools import partial

import sqlalchemy as sa

from roost.conducting.opening import Asked
from roost.placement.options import PlacementOptions
from roost.placement.readiness import keystone_checks, ledger_checks
from roost.storage import Database
from roost.web.health import Check, Health


def conducting_health(name: str, database: Database, asked: Asked, options: PlacementOptions) -> Health:
    """The checks of a conductor. ``name``: that of its database.

    A cell that is down is none of the super conductor's checks: it serves all others.
    """
    checks = [Check(name, partial(_read, database))]
    if asked.ledger is not None:
        checks += ledger_checks(asked.ledger, options.health)
    elif asked.http_placement is not None:
        checks.append(Check("placement", asked.http_placement.root))
    return Health((*checks, *keystone_checks(options)), options.health)


async def _read(database: Database) -> None:
    await database.read(lambda connection: connection.scalar(sa.select(1)))
