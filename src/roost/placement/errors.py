"""The errors of the Placement service, each with its HTTP status and Placement's error code.

PlacementError
├── BadRequest                 400  malformed, or names something unknown
│   ├── UnknownProvider             a reshape names a provider that does not exist
│   ├── DuplicateKey                a query parameter is repeated that must not be
│   ├── BadValue                    a query parameter contradicts itself or another
│   └── MissingValue                no request group asks for anything
├── Forbidden                  403  policy does not allow it
├── NotFound                   404  the addressed resource does not exist
└── Conflict                   409  the present state does not allow the operation
    ├── ConcurrentUpdate            a generation is not the current one
    ├── InventoryInUse              inventory with allocations would be removed
    ├── DuplicateName               name or uuid of a provider is taken
    ├── ProviderInUse               the provider has allocations
    ├── HasChildren                 the provider has children
    ├── CannotAllocate              an allocation does not fit
    ├── GroupRefused                the condition of a server group is not met
    └── NameInUse                   a class or trait is in use
"""

from roost.web.errors import HTTPError


class PlacementError(HTTPError):
    """The request is refused. The text names the fault and the value that has it."""


class BadRequest(PlacementError):
    """The request is malformed, or names something unknown."""

    status = 400


class UnknownProvider(BadRequest):
    """A reshape names a provider that does not exist."""

    code = "placement.resource_provider.not_found"


class DuplicateKey(BadRequest):
    """A query parameter is repeated that must not be."""

    code = "placement.query.duplicate_key"


class BadValue(BadRequest):
    """A query parameter contradicts itself or another."""

    code = "placement.query.bad_value"


class MissingValue(BadRequest):
    """No request group asks for any resources."""

    code = "placement.query.missing_value"


class Forbidden(PlacementError):
    """The policy does not allow the operation."""

    status = 403


class NotFound(PlacementError):
    """The addressed resource does not exist."""

    status = 404


class Conflict(PlacementError):
    """The present state does not allow the operation."""

    status = 409


class ConcurrentUpdate(Conflict):
    """A generation is not the current one: read again and retry."""

    code = "placement.concurrent_update"


class InventoryInUse(Conflict):
    """Inventory cannot be removed while something is allocated from it."""

    code = "placement.inventory.inuse"


class DuplicateName(Conflict):
    """Another provider has the name or uuid."""

    code = "placement.duplicate_name"


class ProviderInUse(Conflict):
    """The provider has allocations."""

    code = "placement.resource_provider.inuse"


class HasChildren(Conflict):
    """The provider has children."""

    code = "placement.resource_provider.cannot_delete_parent"


class CannotAllocate(Conflict):
    """An allocation does not fit: there is no such inventory, or its capacity or units forbid it."""


class GroupRefused(Conflict):
    """The condition of a server group is not met: the host has too many members, or no member.

    ``group`` and ``host`` are uuids, ``host`` that of the root provider. ``members``: for an anti-affinity
    group the other members on the host, for an affinity group all other members. An error that came over HTTP
    has only the text.
    """

    code = "placement.server_group.refused"

    def __init__(self, text: str, group: str = "", host: str = "", members: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.group = group
        self.host = host
        self.members = members


class AssignmentRefused(Conflict):
    """Another consumer has exclusive use of a CPU or a device of the assignment."""

    code = "placement.assignment.refused"


class AssignmentChanged(Conflict):
    """The assignments on a node have changed since the written one was fitted beside them."""

    code = "placement.assignment.changed"


class NameInUse(Conflict):
    """A resource class has inventory, or a trait is on a provider."""


def error_for(status: int, code: str | None, text: str) -> PlacementError:
    """Return the error for the status and code of an HTTP response.

    A class with this code has precedence over a class with only the status. For a status that no class has,
    the error is a plain `PlacementError` with that status.
    """
    kinds = _below(PlacementError)
    if code not in (None, PlacementError.code):
        kinds = [kind for kind in kinds if kind.code == code] or kinds
    kind = next((kind for kind in kinds if kind.status == status), PlacementError)
    error = kind(text)
    error.status = status
    return error


def _below(kind: type[PlacementError]) -> list[type[PlacementError]]:
    """Return all subclasses of a class, direct ones first."""
    found = kind.__subclasses__()
    for each in found:
        found.extend(each.__subclasses__())
    return found
