"""Inserts of rows that a transaction has found missing, and that another one may insert at the same time."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.storage.driver_errors import is_duplicate_key
from roost.storage.errors import ConflictRolledBack


def insert_missing(
    connection: Connection, insert: sa.Insert, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows that the transaction has found missing.

    Raises:
        ConflictRolledBack: another transaction has inserted one of them meanwhile. The work is run again, and
            finds it.
    """
    try:
        connection.execute(insert, rows)
    except IntegrityError as error:
        if not is_duplicate_key(error):
            raise
        raise ConflictRolledBack(f"another transaction made a row of {insert.table.name}") from error
