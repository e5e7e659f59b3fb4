"""The interface of a placement service for conductors, agents and the scheduler.

`PlacementService` implements it in this process, on a ledger; `HttpPlacement` over HTTP, on any service with
the Placement API. Both raise the same `PlacementError` types.
"""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from roost.ledger import Held
from roost.model.allocation import Allocations
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories


class Provider(msgspec.Struct, frozen=True):
    """A resource provider. ``root`` is the uuid of the root of its tree."""

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str


class _Amounts(msgspec.Struct):
    resources: dict[str, int]


_decode_amounts = msgspec.json.Decoder(_Amounts).decode
_decode_mappings = msgspec.json.Decoder(dict[str, list[str]]).decode

MOST_TRAIT_SETS: Final = 4096
"""Sets of traits that are kept; one more drops the one that was not read for longest."""


@functools.lru_cache(maxsize=MOST_TRAIT_SETS)
def _traits_in(content: bytes) -> frozenset[str]:
    return msgspec.json.decode(content, type=frozenset[str])


class AllocationRequest(msgspec.Struct, frozen=True, gc=False):
    """An allocation candidate, as a response has it.

    Of a thousand a scheduler looks at a few: each is decoded when its amounts are read.
    """

    amounts: dict[str, msgspec.Raw] = msgspec.field(name="allocations")
    served: msgspec.Raw = msgspec.field(name="mappings")

    @classmethod
    def of(cls, allocations: Allocations, mappings: Mapping[str, Sequence[str]]) -> "AllocationRequest":
        """Return the candidate with these allocations and mappings."""
        amounts = {uuid: _encoded({"resources": each}) for uuid, each in allocations.items()}
        return cls(amounts, _encoded(mappings))

    @property
    def providers(self) -> Collection[str]:
        """The uuids of the providers that it takes something from."""
        return self.amounts

    @property
    def allocations(self) -> dict[str, dict[str, int]]:
        """The amounts that it takes from each provider."""
        return {uuid: _decode_amounts(each).resources for uuid, each in self.amounts.items()}

    @property
    def mappings(self) -> dict[str, list[str]]:
        """The providers of each request group by suffix."""
        return _decode_mappings(self.served)


class InventoryUsage(msgspec.Struct, frozen=True, gc=False):
    """The capacity of an inventory, and how much of it is in use."""

    capacity: int
    used: int


class ProviderSummary(msgspec.Struct, frozen=True, gc=False):
    """A provider of a tree that an allocation candidate is in, as a response has it.

    A response has hundreds of thousands of traits, most of which are the same for all hosts: each set of them
    is decoded once, when it is read.
    """

    resources: dict[str, InventoryUsage]
    named: msgspec.Raw = msgspec.field(name="traits")
    parent_provider_uuid: str | None
    root_provider_uuid: str

    @classmethod
    def of(
        cls, resources: dict[str, InventoryUsage], traits: Iterable[str], parent: str | None, root: str
    ) -> "ProviderSummary":
        """Return the summary of a provider with these traits."""
        return cls(resources, _encoded(sorted(traits)), parent, root)

    @property
    def traits(self) -> frozenset[str]:
        """The traits of the provider."""
        return _traits_in(bytes(self.named))


def _encoded(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


class Placement(Protocol):
    """The operations. A ``generation`` of None is not checked."""

    async def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> Provider:
        """Return the provider ``uuid``; create it if it does not exist.

        Raises `DuplicateName` if another provider has the name, `BadRequest` for an unknown parent.
        """

    async def update_provider(self, uuid: str, name: str, parent: str | None) -> None:
        """Give a provider a name and a parent; None makes it a root.

        Raises `NotFound`, `DuplicateName`, `BadRequest` for an unknown parent or one that is below it.
        """

    async def delete_provider(self, uuid: str) -> None:
        """Delete a provider. Raises `NotFound`, `HasChildren`, `ProviderInUse`."""

    async def provider(self, uuid: str) -> Provider | None:
        """Return a provider, None if it does not exist."""

    async def tree(self, uuid: str) -> list[Provider]:
        """Return all providers of the tree with ``uuid``, in no order; none if ``uuid`` is unknown."""

    async def provider_roots(self) -> dict[str, str]:
        """Return all providers, each with the root of its tree."""

    async def inventories(self, provider: str) -> dict[str, Inventory]:
        """Return a provider's inventories by class. Raises `NotFound`."""

    async def traits(self, provider: str) -> frozenset[str]:
        """Return a provider's traits. Raises `NotFound`."""

    async def aggregates(self, provider: str) -> frozenset[str]:
        """Return a provider's aggregates. Raises `NotFound`."""

    async def providers_in_aggregate(self, aggregate: str) -> frozenset[str]:
        """Return the uuids of the providers in an aggregate."""

    async def sharing_providers(self, aggregates: Collection[str]) -> list[Provider]:
        """Return the sharing providers in any of some aggregates, in order of their uuids."""

    async def set_inventories(
        self, provider: str, inventories: Mapping[str, Inventory], generation: int | None = None
    ) -> int:
        """Replace all inventories of a provider. Returns its new generation.

        Raises `NotFound`, `ConcurrentUpdate`, `InventoryInUse`, `BadRequest` for an unknown class.
        """

    async def set_traits(self, provider: str, traits: Iterable[str], generation: int | None = None) -> int:
        """Replace all traits of a provider, and create unknown custom ones. Returns its generation.

        Raises `NotFound`, `ConcurrentUpdate`, `BadRequest` for a name that is neither standard nor custom.
        """

    async def set_aggregates(
        self, provider: str, aggregates: Iterable[str], generation: int | None = None
    ) -> int:
        """Replace all aggregates of a provider. Returns its generation.

        Raises `NotFound`, `ConcurrentUpdate`.
        """

    async def ensure_resource_class(self, name: str) -> None:
        """Create a custom resource class if it does not exist. Raises `BadRequest` for any other name."""

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        """Write the allocations of consumers, all or nothing.

        Raises `CannotAllocate`, `ConcurrentUpdate`, `BadRequest` for an unknown provider or class.
        """

    async def reshape(self, inventories: Sequence[NewInventories], writes: Sequence[ConsumerWrite]) -> None:
        """Replace inventories of providers and write allocations of consumers, all or nothing.

        Raises `UnknownProvider`, `ConcurrentUpdate`, `InventoryInUse`, `CannotAllocate`, `BadRequest`.
        """

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        """Delete all allocations of these consumers. Consumers without any are skipped."""

    async def allocations_of(self, consumer: str) -> Held | None:
        """Return a consumer and its allocations, None if it has none."""

    async def holdings(self, consumers: Collection[str]) -> dict[str, Held]:
        """Return the consumers that have allocations, each with its assignment."""

    async def consumers_on(self, provider: str) -> frozenset[str]:
        """Return the consumers with allocations from a provider. Raises `NotFound`."""

    async def announce_word(self, mark: int) -> None:
        """Commit an announcement that operators have changed something outside of the ledger.

        See `AnnounceWord`. A service without such commits, as OpenStack's Placement, does nothing: its
        schedulers poll for operators' words themselves.
        """

    async def group_members(self, group: str) -> dict[str, list[str]] | None:
        """Return the members of a server group: consumer -> uuids of its hosts, which are root providers.

        None if the service knows no server groups.
        """
