"""The uuid of a cell, and the cell of the node table that a request names by uuid or by name.

A node table has either the names of cells, which are Roost's own, or the uuids of a cloud whose cells are
mapped by uuid, such as Nova's.
"""

import uuid
from collections.abc import Sequence
from typing import Final

from roost.model.spec import RequestedDestination
from roost.placement.wire.uuids import is_uuid_like

_NAMED: Final = uuid.UUID("6e5b3f0e-54d7-4c0b-9c5c-0a4d6a1f3b52")
"""The namespace of the uuids that are derived from the names of cells."""

UNKNOWN: Final = -1
"""The number of a cell that no node is in."""


def uuid_of_cell(cell: str) -> str:
    """Return the uuid of a cell of the node table: the cell if it is one, else derived from its name."""
    return cell.lower() if is_uuid_like(cell) else str(uuid.uuid5(_NAMED, cell))


def requested_cell(destination: RequestedDestination, cells: Sequence[str]) -> int | None:
    """Return the number of the requested cell in ``cells``, `UNKNOWN` if it is not there; None if none is
    requested.

    The uuid is looked for first, then the name: a caller that has both may use Roost's own cells, whose names
    it knows.
    """
    if destination.cell is None and destination.cell_uuid is None:
        return None
    if destination.cell_uuid is not None:
        for number, cell in enumerate(cells):
            if uuid_of_cell(cell) == destination.cell_uuid.lower():
                return number
    return cells.index(destination.cell) if destination.cell in cells else UNKNOWN
