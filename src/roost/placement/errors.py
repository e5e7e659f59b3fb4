"""Refusals of the Placement service. Each knows its HTTP status and Placement's error code.

PlacementError
├── BadRequest                 400  malformed, or names something unknown
├── NotFound                   404  the thing addressed is not there
└── Conflict                   409  cannot be done in the present state
    ├── ConcurrentUpdate            a generation is not the current one
    ├── InventoryInUse              inventory would go from under allocations
    ├── DuplicateName               name or uuid of a provider is taken
    ├── ProviderInUse               the provider has allocations
    ├── HasChildren                 the provider has children
    ├── CannotAllocate              what is asked for does not fit
    └── NameInUse                   a class or trait is in use
"""

from typing import ClassVar


class PlacementError(Exception):
    """Any refusal; the text says what was wrong, with which value."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "placement.undefined_code"


class BadRequest(PlacementError):
    """Malformed, or names something unknown."""

    status = 400


class NotFound(PlacementError):
    """The thing addressed is not there."""

    status = 404


class Conflict(PlacementError):
    """Cannot be done in the present state."""

    status = 409


class ConcurrentUpdate(Conflict):
    """A generation is not the current one: read again and retry."""

    code = "placement.concurrent_update"


class InventoryInUse(Conflict):
    """Inventory would go from under allocations."""

    code = "placement.inventory.inuse"


class DuplicateName(Conflict):
    """The name or uuid of a provider is taken."""

    code = "placement.duplicate_name"


class ProviderInUse(Conflict):
    """The provider has allocations."""

    code = "placement.resource_provider.inuse"


class HasChildren(Conflict):
    """The provider has children."""

    code = "placement.resource_provider.cannot_delete_parent"


class CannotAllocate(Conflict):
    """What is asked for does not fit: no such inventory, its capacity, or its units."""


class NameInUse(Conflict):
    """A resource class has inventory, or a trait is on a provider."""
