"""Types of JSON bodies: one for each form that a body has had over the microversions.

A type checks everything that needs no fleet. It converts itself to the value that a command takes, so that a
handler does not depend on the form.
"""

from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.wire.uuids import LONGEST_UUID, UUID_LIKE

T = TypeVar("T")

LARGEST_FLOAT = 3.40282e38
"""The largest allocation ratio. A larger number does not fit into a single-precision float: 400."""

# Patterns end in \Z: $ would let a newline pass at the end.
# PostgreSQL stores no NUL in a text.
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


class BodyForm(Struct, forbid_unknown_fields=True):
    """A body, or an object in a body. Unknown members are refused."""


# Providers


class NewProvider(BodyForm):
    """POST /resource_providers."""

    name: NewName
    uuid: Uuid | UnsetType = UNSET

    @property
    def parent(self) -> str | None:
        """The uuid of the parent."""
        return None


class NewProviderInTree(NewProvider):
    """The same body from 1.14."""

    parent_provider_uuid: Uuid | None = None

    @property
    def parent(self) -> str | None:
        """The uuid of the parent."""
        return self.parent_provider_uuid


class ProviderUpdate(BodyForm):
    """PUT /resource_providers/{uuid}."""

    name: Name

    @property
    def parent(self) -> str | UnsetType | None:
        """The uuid of the parent; UNSET keeps the present one."""
        return UNSET


class ProviderUpdateInTree(ProviderUpdate):
    """The same body from 1.14."""

    parent_provider_uuid: Uuid | UnsetType | None = UNSET

    @property
    def parent(self) -> str | UnsetType | None:
        """The uuid of the parent; UNSET keeps the present one."""
        return self.parent_provider_uuid


# Inventories, traits, aggregates, names


class InventoryRecord(BodyForm):
    """One inventory without its class. The generation is accepted and not checked."""

    total: Positive
    reserved: Natural = 0
    min_unit: Positive = 1
    max_unit: Positive = MAX_INT
    step_size: Positive = 1
    allocation_ratio: Ratio = 1.0
    resource_provider_generation: int | UnsetType = UNSET

    @property
    def inventory(self) -> Inventory:
        """The inventory as a value of the model."""
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


class AllInventories(BodyForm):
    """PUT .../inventories, and each provider of a reshape."""

    resource_provider_generation: int
    inventories: dict[str, InventoryRecord]

    @property
    def by_class(self) -> dict[str, Inventory]:
        """The inventories as values of the model, by class."""
        return {name: record.inventory for name, record in self.inventories.items()}


class Traits(BodyForm):
    """PUT .../traits."""

    traits: list[TraitName]
    resource_provider_generation: int


class Aggregates(BodyForm):
    """PUT .../aggregates from 1.19. Before, the body is the list itself."""

    aggregates: UniqueUuids
    resource_provider_generation: int


class NewClass(BodyForm):
    """POST /resource_classes, and PUT /resource_classes/{name} up to 1.6, which renames."""

    name: CustomName


# Allocations


class AllocationProvider(BodyForm):
    """The provider of an allocation up to 1.11."""

    uuid: Uuid


class ListedAllocation(BodyForm):
    """An allocation up to 1.11."""

    resource_provider: AllocationProvider
    resources: Amounts


class KeyedAllocation(BodyForm):
    """An allocation from 1.12, by its provider. The generation is accepted and not checked."""

    resources: Amounts
    generation: int | UnsetType = UNSET


class ListedAllocations(BodyForm):
    """PUT /allocations/{consumer} up to 1.7: without project and user."""

    allocations: Annotated[list[ListedAllocation], Meta(min_length=1)]

    def write(self, consumer: str, project_id: str, user_id: str) -> ConsumerWrite:
        """Return the write of a consumer, for this project and user unless the body names others."""
        held = {each.resource_provider.uuid: each.resources for each in self.allocations}
        return ConsumerWrite(consumer=consumer, allocations=held, project_id=project_id, user_id=user_id)


class OwnedListedAllocations(ListedAllocations):
    """The same body from 1.8."""

    project_id: Owner
    user_id: Owner

    def write(self, consumer: str, project_id: str, user_id: str) -> ConsumerWrite:
        """The write of a consumer."""
        return super().write(consumer, self.project_id, self.user_id)


class ConsumerAllocations(BodyForm):
    """The allocations of one consumer in POST /allocations. Without any the consumer is deleted."""

    allocations: dict[UuidKey, KeyedAllocation]
    project_id: Owner
    user_id: Owner

    def write(self, consumer: str, project_id: str = "", user_id: str = "") -> ConsumerWrite:
        """The write of a consumer."""
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
    """The allocations of one consumer in every body from 1.28."""

    consumer_generation: int | None


class MappedAllocations(AllocationsAtGeneration):
    """The same from 1.34. The mappings are checked and not stored."""

    mappings: Mappings | UnsetType = UNSET


class TypedAllocations(MappedAllocations, kw_only=True):
    """The same from 1.38."""

    consumer_type: ConsumerType


Several = Annotated[dict[UuidKey, T], Meta(min_length=1)]
"""POST /allocations: the allocations of each consumer by its uuid."""


class ReshapeAtGeneration(BodyForm):
    """POST /reshaper."""

    inventories: Annotated[dict[UuidKey, AllInventories], Meta(min_length=1)]
    allocations: dict[UuidKey, AllocationsAtGeneration]


class MappedReshape(ReshapeAtGeneration):
    """The same from 1.34."""

    allocations: dict[UuidKey, MappedAllocations]  # type: ignore[assignment]


class TypedReshape(MappedReshape):
    """The same from 1.38."""

    allocations: dict[UuidKey, TypedAllocations]  # type: ignore[assignment]
