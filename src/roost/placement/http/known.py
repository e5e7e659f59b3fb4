"""Checks that the providers, classes and traits that a request names exist."""

from collections.abc import Iterable

from roost.fleet import Fleet, UnknownProvider
from roost.placement.errors import BadRequest, NotFound


def check_classes(fleet: Fleet, names: Iterable[str]) -> None:
    """Raise `BadRequest` unless all these resource classes are there."""
    for name in names:
        if name not in fleet.resource_classes:
            raise BadRequest(f"Invalid resource class in resources parameter: No such resource class {name}.")


def check_traits(fleet: Fleet, groups: Iterable[frozenset[str]], where: str = "") -> None:
    """Raise `BadRequest` unless all these traits are there."""
    unknown = sorted(frozenset[str]().union(*groups).difference(fleet.traits))
    if unknown:
        raise BadRequest(f"{where}No such trait(s): {', '.join(unknown)}.")


def provider_row(fleet: Fleet, uuid: str) -> int:
    """The row of a provider. Raises `NotFound`."""
    try:
        return fleet.row(uuid)
    except UnknownProvider:
        raise NotFound(f"No resource provider with uuid {uuid} found") from None
