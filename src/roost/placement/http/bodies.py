"""JSON bodies: one type for each form that a body had over the versions.

A form checks everything that can be checked without the fleet, and turns into the value that a command
takes, so that the operations need not know which form came.
"""

from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.http.uuids import LONGEST_UUID, UUID_LIKE

T = TypeVar("T")

LARGEST_FLOAT = 3.40282e38
"""Largest allocation ratio: what a single-precision float holds."""

# Patterns end in \Z: $ would let a newline pass at the end.
# No NUL in what is stored: PostgreSQL takes none in a text.
_NO_NUL = r"^[^\x00]*\Z"
Name = Annotated[str, Meta(max_length=200, pattern=_NO_NUL)]
NewName = Annotated[str, Meta(min_length=1, max_length=200, pattern=_NO_NUL)]
Owner = Annotated[str, Meta(min_length=1, max_length=255, pattern=_NO_NUL)]
Uuid = Annotated[str, Meta(max_length=LONGEST_UUID, pattern=UUID_LIKE, extra_json_schema={"format": "uuid"})]
UuidKey = Annotated[str, Meta(pattern=r"^[0-9a-fA-F-]{36}\Z", max_length=36)]
ClassName = Annotated[str, Meta(pattern=r"^[A-Z0-9_]+\Z")]
CustomName = Annotated[str, Meta(pattern=r"^CUSTOM_[A-Z0-9_]+\Z", max_length=255)]
TraitName = Annotated[str, Meta(min_length=1, max_length=255)]
ConsumerType = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[A-Z0-9_]+\Z")]
Suffix = Annotated[str, Meta(pattern=r"^([a-zA-Z0-9_-]{1,64})?\Z")]
Positive = Annotated[int, Meta(ge=1, le=MAX_INT)]
Natural = Annotated[int, Meta(ge=0, le=MAX_INT)]
Amount = Annotated[int, Meta(ge=1)]
Ratio = Annotated[float, Meta(le=LARGEST_FLOAT)]
Amounts = Annotated[dict[ClassName, Amount], Meta(min_length=1)]
UniqueUuids = Annotated[list[Uuid], Meta(extra_json_schema={"uniqueItems": True})]
Mappings = Annotated[dict[Suffix, Annotated[list[Uuid], Meta(min_length=1)]], Meta(min_length=1)]


class Form(Struct, forbid_unknown_fields=True):
    """A body, or an object in one. What it does not name, it may not have."""


# Providers


class NewProvider(Form):
    """POST /resource_providers."""

    name: NewName
    uuid: Uuid | UnsetType = UNSET

    @property
    def parent(self) -> str | None:
        """Uuid of the parent."""
        return None


class NewProviderInTree(NewProvider):
    """The same from 1.14."""

    parent_provider_uuid: Uuid | None = None

    @property
    def parent(self) -> str | None:
        """Uuid of the parent."""
        return self.parent_provider_uuid


class ProviderUpdate(Form):
    """PUT /resource_providers/{uuid}."""

    name: Name

    @property
    def parent(self) -> str | UnsetType | None:
        """Uuid of the parent, UNSET to keep it."""
        return UNSET


class ProviderUpdateInTree(ProviderUpdate):
    """The same from 1.14."""

    parent_provider_uuid: Uuid | UnsetType | None = UNSET

    @property
    def parent(self) -> str | UnsetType | None:
        """Uuid of the parent, UNSET to keep it."""
        return self.parent_provider_uuid


# What a provider has


class InventoryRecord(Form):
    """One inventory; where the class is said elsewhere, and with a generation that nobody checks."""

    total: Positive
    reserved: Natural = 0
    min_unit: Positive = 1
    max_unit: Positive = MAX_INT
    step_size: Positive = 1
    allocation_ratio: Ratio = 1.0
    resource_provider_generation: int | UnsetType = UNSET

    @property
    def inventory(self) -> Inventory:
        """The model's value."""
        return Inventory(
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.allocation_ratio,
        )


class NewInventory(InventoryRecord, kw_only=True):
    """POST .../inventories."""

    resource_class: ClassName


class OneInventory(InventoryRecord, kw_only=True):
    """PUT .../inventories/{class}."""

    resource_provider_generation: int


class AllInventories(Form):
    """PUT .../inventories, and each provider of a reshape."""

    resource_provider_generation: int
    inventories: dict[str, InventoryRecord]

    @property
    def by_class(self) -> dict[str, Inventory]:
        """The model's values."""
        return {name: record.inventory for name, record in self.inventories.items()}


class Traits(Form):
    """PUT .../traits."""

    traits: list[TraitName]
    resource_provider_generation: int


class Aggregates(Form):
    """PUT .../aggregates from 1.19; before, the body is the bare list."""

    aggregates: UniqueUuids
    resource_provider_generation: int


class NewClass(Form):
    """POST /resource_classes, and the renaming PUT up to 1.6."""

    name: CustomName


# Allocations


class ProviderName(Form):
    uuid: Uuid


class ListedAllocation(Form):
    """An allocation up to 1.11."""

    resource_provider: ProviderName
    resources: Amounts


class KeyedAllocation(Form):
    """An allocation from 1.12, under its provider. The generation is not checked."""

    resources: Amounts
    generation: int | UnsetType = UNSET


class ListedAllocations(Form):
    """PUT /allocations/{consumer}: no owner."""

    allocations: Annotated[list[ListedAllocation], Meta(min_length=1)]

    def write(self, consumer: str, project_id: str, user_id: str) -> ConsumerWrite:
        """The write of ``consumer``, for these owners unless the form names others."""
        held = {each.resource_provider.uuid: each.resources for each in self.allocations}
        return ConsumerWrite(consumer=consumer, allocations=held, project_id=project_id, user_id=user_id)


class OwnedListedAllocations(ListedAllocations):
    """The same from 1.8."""

    project_id: Owner
    user_id: Owner

    def write(self, consumer: str, project_id: str, user_id: str) -> ConsumerWrite:
        """The write of ``consumer``."""
        return super().write(consumer, self.project_id, self.user_id)


class ConsumerAllocations(Form):
    """What one consumer shall hold, in POST /allocations; empty to clear it."""

    allocations: dict[UuidKey, KeyedAllocation]
    project_id: Owner
    user_id: Owner

    def write(self, consumer: str, project_id: str = "", user_id: str = "") -> ConsumerWrite:
        """The write of ``consumer``."""
        return ConsumerWrite(
            consumer=consumer,
            allocations={provider: each.resources for provider, each in self.allocations.items()},
            project_id=self.project_id,
            user_id=self.user_id,
            generation=getattr(self, "consumer_generation", UNSET),
            consumer_type=getattr(self, "consumer_type", None),
        )


class NonemptyAllocations(ConsumerAllocations):
    """PUT /allocations/{consumer} from 1.12 to 1.27."""

    allocations: Annotated[dict[UuidKey, KeyedAllocation], Meta(min_length=1)]


class AllocationsAtGeneration(ConsumerAllocations):
    """What one consumer shall hold, from 1.28 wherever it is said."""

    consumer_generation: int | None


class MappedAllocations(AllocationsAtGeneration):
    """The same from 1.34. The mappings are not kept."""

    mappings: Mappings | UnsetType = UNSET


class TypedAllocations(MappedAllocations, kw_only=True):
    """The same from 1.38."""

    consumer_type: ConsumerType


Several = Annotated[dict[UuidKey, T], Meta(min_length=1)]
"""POST /allocations: a form for each consumer."""


class ReshapeAtGeneration(Form):
    """POST /reshaper."""

    inventories: Annotated[dict[UuidKey, AllInventories], Meta(min_length=1)]
    allocations: dict[UuidKey, AllocationsAtGeneration]


class MappedReshape(ReshapeAtGeneration):
    """The same from 1.34."""

    allocations: dict[UuidKey, MappedAllocations]  # type: ignore[assignment]


class TypedReshape(MappedReshape):
    """The same from 1.38."""

    allocations: dict[UuidKey, TypedAllocations]  # type: ignore[assignment]
