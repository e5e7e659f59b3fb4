"""Host aggregates: sets of compute nodes that have metadata in common, availability zones among them."""

import msgspec

AVAILABILITY_ZONE = "availability_zone"
"""The metadata key whose value is the availability zone of an aggregate's members."""


class HostAggregate(msgspec.Struct, frozen=True):
    """Name and metadata of a host aggregate, which its uuid identifies."""

    uuid: str
    name: str
    metadata: dict[str, str] = {}


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """A host aggregate.

    ``metadata`` has Nova's keys: ``availability_zone``, ``filter_tenant_id``, extra specs, weigher
    multipliers. ``members`` are the uuids of the root providers of compute nodes; in placement these
    providers are in an aggregate with the same ``uuid``. ``generation`` rises with each change, also of the
    members.
    """

    uuid: str
    name: str
    metadata: dict[str, str] = {}
    members: frozenset[str] = frozenset()
    generation: int = 0

    @property
    def zone(self) -> str | None:
        """The availability zone of the members, None if the aggregate is not one."""
        return self.metadata.get(AVAILABILITY_ZONE)

    @property
    def named(self) -> HostAggregate:
        """The aggregate without its members."""
        return HostAggregate(self.uuid, self.name, self.metadata)
