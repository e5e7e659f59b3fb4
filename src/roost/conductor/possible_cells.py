"""The cells that instances may be in, by their mappings."""

from collections.abc import Collection

from roost.process.context import Context
from roost.state.api_database.cell_mappings import mapped_cells
from roost.state.api_database.mappings import ANYWHERE, InstanceMapping
from roost.state.api_database.tables import API


async def possible_cells(
    context: Context, mappings: Collection[InstanceMapping]
) -> dict[str, tuple[str, ...]]:
    """Return by uuid the cells that each instance may be in, or on its way to. Raises `StorageError`.

    An instance that may be anywhere may be in each cell that is mapped now, also in a cell that this process
    has not opened: work that needs all cells waits for that one.
    """
    anywhere: tuple[str, ...] = ()
    if any(mapping.cell is None and mapping.epoch == ANYWHERE for mapping in mappings):
        anywhere = tuple(await context.read(API, mapped_cells))
    found: dict[str, tuple[str, ...]] = {}
    for mapping in mappings:
        if mapping.cell is not None:
            found[mapping.instance_uuid] = (mapping.cell,)
        else:
            found[mapping.instance_uuid] = anywhere if mapping.epoch == ANYWHERE else ()
    return found
