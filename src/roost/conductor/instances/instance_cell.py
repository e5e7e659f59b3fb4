"""The cell of an instance, for words that its database takes."""

from roost.process.context import Context
from roost.state.api_database.mappings import find_mappings
from roost.state.api_database.tables import API


async def cell_of(context: Context, instance: str) -> str | None:
    """Return the cell of an instance; None: it is unknown, in no cell yet, or deleted.

    Raises `StorageError` of the API database.
    """
    mapping = (await context.read(API, find_mappings((instance,)))).get(instance)
    return None if mapping is None or mapping.deleted else mapping.cell
