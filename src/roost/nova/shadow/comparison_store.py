"""The comparisons in the bridge's own database: written in shadow mode, read by the report."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.shadow.comparison import Comparison
from roost.nova.shadow.tables import comparisons
from roost.storage import Database, transaction

KEPT_DAYS: Final = 30.0
"""Days after which a comparison is removed."""

TRIM_SECONDS: Final = 3600.0
"""Seconds between two removals of old comparisons."""


class ComparisonStore:
    """Writes the comparisons, and removes old ones."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._trimmed = -TRIM_SECONDS

    async def put(self, found: Sequence[Comparison]) -> None:
        """Store comparisons. Raises `StorageError`."""
        if not found:
            return
        now = self._clock()
        oldest = None
        if now - self._trimmed >= TRIM_SECONDS:
            self._trimmed, oldest = now, now - KEPT_DAYS * 86_400
        await self._database.write(write_comparisons(tuple(found), oldest))


@transaction
def write_comparisons(connection: Connection, found: Sequence[Comparison], oldest: float | None) -> None:
    """Store comparisons, and remove those before ``oldest`` (seconds since the epoch)."""
    connection.execute(sa.insert(comparisons), [msgspec.structs.asdict(each) for each in found])
    if oldest is not None:
        connection.execute(sa.delete(comparisons).where(comparisons.c.at < oldest))


@transaction
def read_comparisons(connection: Connection, since: float) -> list[Comparison]:
    """Return the comparisons since a time (seconds since the epoch), oldest first."""
    rows = connection.execute(
        sa.select(comparisons).where(comparisons.c.at >= since).order_by(comparisons.c.at)
    )
    return [Comparison(**row._asdict()) for row in rows]
