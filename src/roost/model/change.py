"""Changes: the content of one commit of the ledger.

Every change has the fact before and the fact after it, so that it can be applied, undone, and replayed in
either direction. ``None`` on one side means that the thing does not exist before, or after, the change.
Commits are stored as JSON of these types: field names and tags are a storage format.
"""

import msgspec

from roost.model.allocation import Allocations, Consumer
from roost.model.inventory import Inventory


class ProviderFacts(msgspec.Struct, frozen=True):
    """A resource provider's own attributes. ``parent`` is a uuid, None for a root."""

    name: str
    parent: str | None
    generation: int


class ProviderChanged(msgspec.Struct, frozen=True, tag="provider"):
    """A provider was created, deleted, renamed or given another parent.

    ``row`` is the provider's primary key in the tables and its index in the fleet's columns.
    """

    provider: str
    row: int
    before: ProviderFacts | None
    after: ProviderFacts | None


class GenerationChanged(msgspec.Struct, frozen=True, tag="generation"):
    """A provider's generation was raised by a write."""

    provider: str
    before: int
    after: int


class InventoryChanged(msgspec.Struct, frozen=True, tag="inventory"):
    """A provider's inventories by resource class: all before, all after."""

    provider: str
    before: dict[str, Inventory]
    after: dict[str, Inventory]


class TraitsChanged(msgspec.Struct, frozen=True, tag="traits"):
    """A provider's traits, sorted: all before, all after."""

    provider: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class AggregatesChanged(msgspec.Struct, frozen=True, tag="aggregates"):
    """A provider's aggregates (uuids), sorted: all before, all after."""

    provider: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class AllocationsChanged(msgspec.Struct, frozen=True, tag="allocations"):
    """A consumer's allocations: all before, all after.

    ``before`` and ``after`` are the consumer, ``held`` its allocations before, ``holds`` those after.
    """

    consumer: str
    before: Consumer | None
    after: Consumer | None
    held: Allocations
    holds: Allocations


class ResourceClassChanged(msgspec.Struct, frozen=True, tag="resource_class"):
    """A resource class was created or deleted. ``before`` and ``after`` are its primary key in the tables."""

    name: str
    before: int | None
    after: int | None


class TraitChanged(msgspec.Struct, frozen=True, tag="trait"):
    """A trait was created or deleted. ``before`` and ``after`` are its primary key in the tables."""

    name: str
    before: int | None
    after: int | None


class WordAnnounced(msgspec.Struct, frozen=True, tag="word"):
    """An operator's word (`roost.model.operator_word`) has changed. The word itself is not in the ledger.

    ``before`` and ``after`` are the marks of the newest announcement, 0 before the first one. A mark is a
    random number: two announcements never have the same one, even if a database was restored from a backup
    in between.
    """

    before: int
    after: int


Change = (
    ProviderChanged
    | GenerationChanged
    | InventoryChanged
    | TraitsChanged
    | AggregatesChanged
    | AllocationsChanged
    | ResourceClassChanged
    | TraitChanged
    | WordAnnounced
)


def inverse(change: Change) -> Change:
    """Return the change that undoes ``change``."""
    if isinstance(change, AllocationsChanged):
        return AllocationsChanged(change.consumer, change.after, change.before, change.holds, change.held)
    return msgspec.structs.replace(change, before=change.after, after=change.before)
