"""Whether the classes and traits that a query names are there."""

from collections.abc import Iterable

from roost.fleet import Fleet
from roost.placement.errors import BadRequest


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
