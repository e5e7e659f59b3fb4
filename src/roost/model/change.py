"""Changes: what one commit of the ledger says.

Every change carries the fact as it was and as it is now, so that it can be applied, undone, replayed in
either direction and read by itself. ``None`` means that the thing does not exist on that side.
"""

import msgspec

from roost.model.allocation import Allocations, Consumer
from roost.model.inventory import Inventory


class ProviderFacts(msgspec.Struct, frozen=True):
    """What a resource provider is, apart from what it has."""

    name: str
    parent: str | None
    generation: int


class ProviderChanged(msgspec.Struct, frozen=True, tag="provider"):
    """A provider came, went, was renamed or re-parented. ``row`` is its number in tables and columns."""

    provider: str
    row: int
    before: ProviderFacts | None
    after: ProviderFacts | None


class GenerationChanged(msgspec.Struct, frozen=True, tag="generation"):
    """A provider's generation rose, because something of it was written."""

    provider: str
    before: int
    after: int


class InventoryChanged(msgspec.Struct, frozen=True, tag="inventory"):
    """A provider's inventories, all of them on either side."""

    provider: str
    before: dict[str, Inventory]
    after: dict[str, Inventory]


class TraitsChanged(msgspec.Struct, frozen=True, tag="traits"):
    """A provider's traits, all of them on either side, sorted."""

    provider: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class AggregatesChanged(msgspec.Struct, frozen=True, tag="aggregates"):
    """A provider's aggregates, all of them on either side, sorted."""

    provider: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class AllocationsChanged(msgspec.Struct, frozen=True, tag="allocations"):
    """A consumer and everything that it holds, on either side."""

    consumer: str
    before: Consumer | None
    after: Consumer | None
    held: Allocations
    holds: Allocations


class ResourceClassChanged(msgspec.Struct, frozen=True, tag="resource_class"):
    """A resource class came or went; the numbers are its id in the tables."""

    name: str
    before: int | None
    after: int | None


class TraitChanged(msgspec.Struct, frozen=True, tag="trait"):
    """A trait came or went; the numbers are its id in the tables."""

    name: str
    before: int | None
    after: int | None


Change = (
    ProviderChanged
    | GenerationChanged
    | InventoryChanged
    | TraitsChanged
    | AggregatesChanged
    | AllocationsChanged
    | ResourceClassChanged
    | TraitChanged
)


def inverse(change: Change) -> Change:
    """The change that takes ``change`` back."""
    if isinstance(change, AllocationsChanged):
        return AllocationsChanged(change.consumer, change.after, change.before, change.holds, change.held)
    return msgspec.structs.replace(change, before=change.after, after=change.before)
