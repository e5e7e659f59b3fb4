"""What an agent needs of a placement service."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from roost.model.inventory import Inventory


class ProviderLike(Protocol):
    """A resource provider as placement tells of it."""

    @property
    def uuid(self) -> str: ...

    @property
    def parent(self) -> str | None: ...


class ReportPlacement(Protocol):
    """The part of a placement service that agents report to. Every operation may raise its refusal."""

    async def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> ProviderLike:
        """The provider, created if need be."""

    async def delete_provider(self, uuid: str) -> None:
        """Delete a provider that has neither children nor allocations."""

    async def tree(self, uuid: str) -> Sequence[ProviderLike]:
        """All providers of a tree."""

    async def inventories(self, provider: str) -> dict[str, Inventory]:
        """A provider's inventories by class."""

    async def traits(self, provider: str) -> frozenset[str]:
        """A provider's traits."""

    async def aggregates(self, provider: str) -> frozenset[str]:
        """A provider's aggregates."""

    async def set_inventories(self, provider: str, inventories: Mapping[str, Inventory]) -> int:
        """Replace a provider's inventories."""

    async def set_traits(self, provider: str, traits: Iterable[str]) -> int:
        """Replace a provider's traits, making custom ones that are new."""

    async def set_aggregates(self, provider: str, aggregates: Iterable[str]) -> int:
        """Replace a provider's aggregates."""

    async def ensure_resource_class(self, name: str) -> None:
        """Make a custom resource class unless it is there."""
