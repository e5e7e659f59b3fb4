"""What a placement service does for conductors, agents and the scheduler, wherever it runs.

`PlacementService` does it in this process on a ledger, `HttpPlacement` over the wire on any service that
speaks the Placement API. Both raise the same `PlacementError` types.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from roost.ledger import Held
from roost.model.allocation import Allocations
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories


class Provider(msgspec.Struct, frozen=True):
    """A resource provider as its readers see it. ``root`` is the uuid of the top of its tree."""

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str


class AllocationRequest(msgspec.Struct, frozen=True):
    """One way to satisfy a query: what to allocate, and which providers serve which group."""

    allocations: Allocations
    mappings: dict[str, list[str]]


class Level(msgspec.Struct, frozen=True):
    """How much of a class a provider can give in all, and how much of that is in use."""

    capacity: int
    used: int


class ProviderSummary(msgspec.Struct, frozen=True):
    """A provider of a tree that candidates are in."""

    resources: dict[str, Level]
    traits: frozenset[str]
    parent_provider_uuid: str | None
    root_provider_uuid: str


class Placement(Protocol):
    """The operations, each atomic. ``generation`` None means "whatever it is now"."""

    async def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> Provider:
        """The provider ``uuid``, created if need be; a present one is left as it is.

        Raises `DuplicateName` if another provider has the name, `BadRequest` for an unknown parent.
        """

    async def delete_provider(self, uuid: str) -> None:
        """Delete a provider. Raises `NotFound`, `HasChildren`, `ProviderInUse`."""

    async def provider(self, uuid: str) -> Provider | None:
        """A provider, None if there is none with this uuid."""

    async def tree(self, uuid: str) -> list[Provider]:
        """All providers of the tree that ``uuid`` is in, in no order; empty if it is unknown."""

    async def inventories(self, provider: str) -> dict[str, Inventory]:
        """A provider's inventories by class. Raises `NotFound`."""

    async def traits(self, provider: str) -> frozenset[str]:
        """A provider's traits. Raises `NotFound`."""

    async def aggregates(self, provider: str) -> frozenset[str]:
        """A provider's aggregates. Raises `NotFound`."""

    async def set_inventories(
        self, provider: str, inventories: Mapping[str, Inventory], generation: int | None = None
    ) -> int:
        """Replace all inventories of a provider; returns its new generation.

        Raises `NotFound`, `ConcurrentUpdate`, `InventoryInUse`, `BadRequest` for an unknown class.
        """

    async def set_traits(self, provider: str, traits: Iterable[str], generation: int | None = None) -> int:
        """Replace all traits of a provider, making custom ones that are new; returns its generation.

        Raises `NotFound`, `ConcurrentUpdate`, `BadRequest` for a name that is neither standard nor custom.
        """

    async def set_aggregates(
        self, provider: str, aggregates: Iterable[str], generation: int | None = None
    ) -> int:
        """Replace all aggregates of a provider; returns its generation.

        Raises `NotFound`, `ConcurrentUpdate`.
        """

    async def ensure_resource_class(self, name: str) -> None:
        """Make a custom resource class unless it is there. Raises `BadRequest` for any other name."""

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        """Write what consumers hold, all of them or none.

        Raises `CannotAllocate`, `ConcurrentUpdate`, `BadRequest` for an unknown provider or class.
        """

    async def reshape(self, inventories: Sequence[NewInventories], writes: Sequence[ConsumerWrite]) -> None:
        """Give providers new inventories and move the allocations with them, all or nothing.

        Raises `UnknownProvider`, `ConcurrentUpdate`, `InventoryInUse`, `CannotAllocate`, `BadRequest`.
        """

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        """Free everything that these consumers hold; those that hold nothing are passed over."""

    async def allocations_of(self, consumer: str) -> Held | None:
        """A consumer and what it holds, None if it holds nothing."""
