"""What a whole system needs to serve requests: what placement needs, and the database of each cell."""

from functools import partial

import sqlalchemy as sa

from roost.cells import Cell
from roost.placement.readiness import ledger_checks
from roost.system.system import System
from roost.web.health import Check, Health, HealthOptions


def system_health(system: System, options: HealthOptions) -> Health:
    """The checks of `roost up`."""
    cells = (Check(f"cell {name}", partial(_read, cell)) for name, cell in system.cells.items())
    return Health((*ledger_checks(system.ledger, options), *cells), options)


async def _read(cell: Cell) -> None:
    await cell.database.read(lambda connection: connection.scalar(sa.select(1)))
