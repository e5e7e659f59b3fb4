"""Checks that the providers, classes and traits that a request or a command names exist."""

from collections.abc import Iterable

from roost.fleet import Fleet, ProviderNotFound
from roost.model.request import CandidateQuery
from roost.placement.errors import BadRequest, NotFound


def provider_row(fleet: Fleet, uuid: str) -> int:
    """Return the row of the addressed provider.

    Raises:
        NotFound: no provider has this uuid.
    """
    try:
        return fleet.row(uuid)
    except ProviderNotFound:
        raise NotFound(f"No resource provider with uuid {uuid} found") from None


def check_classes(fleet: Fleet, names: Iterable[str]) -> None:
    """Check that all these resource classes exist. Raises `BadRequest`."""
    for name in names:
        if name not in fleet.resource_classes:
            raise BadRequest(f"Invalid resource class in resources parameter: No such resource class {name}.")


def check_traits(fleet: Fleet, groups: Iterable[frozenset[str]], where: str = "") -> None:
    """Check that all these traits exist; ``where`` begins the text of the error. Raises `BadRequest`."""
    unknown = [name for group in groups for name in group if name not in fleet.traits]
    if unknown:
        unknown = sorted(set(unknown))
        raise BadRequest(f"{where}No such trait(s): {', '.join(unknown)}.")


def check_query(fleet: Fleet, query: CandidateQuery) -> None:
    """Check that all classes and traits of a query exist. Raises `BadRequest`."""
    for group in query.groups:
        check_classes(fleet, group.resources)
    if query.root_required or query.root_forbidden:
        check_traits(fleet, (query.root_required, query.root_forbidden))
    for group in query.groups:
        if group.required or group.forbidden:
            check_traits(fleet, (*group.required, group.forbidden))
