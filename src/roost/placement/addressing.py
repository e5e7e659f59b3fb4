"""The provider that a request or a command addresses."""

from roost.fleet import Fleet, UnknownProvider
from roost.placement.errors import NotFound


def provider_row(fleet: Fleet, uuid: str) -> int:
    """The row of the addressed provider.

    Raises:
        NotFound: no provider has this uuid.
    """
    try:
        return fleet.row(uuid)
    except UnknownProvider:
        raise NotFound(f"No resource provider with uuid {uuid} found") from None
