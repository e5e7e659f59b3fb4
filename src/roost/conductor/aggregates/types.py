"""Host aggregates as bodies and queries of HTTP requests and responses."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.aggregate import AVAILABILITY_ZONE, Aggregate
from roost.model.names import lookalike
from roost.model.text import is_storable
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.state.cell_database.nodes import NodeName
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Uuid

MOST_MEMBERS_AT_ONCE = 10_000
"""Nodes that one request may add or remove. A longer list is refused."""

MOST_METADATA = 1_000
"""Metadata keys of an aggregate at most. More are refused."""

_Text = Annotated[str, Meta(max_length=MAX_NAME)]
_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_Metadata = Annotated[dict[_Name, _Text], Meta(max_length=MOST_METADATA)]
_Nodes = Annotated[tuple[_Name, ...], Meta(max_length=MOST_MEMBERS_AT_ONCE)]


class WantedAggregate(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes an aggregate. The metadata `availability_zone` makes it an availability zone."""

    name: _Name
    metadata: _Metadata = {}

    def __post_init__(self) -> None:
        _check_texts(self.name, self.metadata)


class ReplacedAggregate(msgspec.Struct, forbid_unknown_fields=True):
    """The body that replaces name and metadata of an aggregate; refused unless it is at ``generation``."""

    name: _Name
    metadata: _Metadata
    generation: Annotated[int, Meta(ge=0, le=MAX_INT)]

    def __post_init__(self) -> None:
        _check_texts(self.name, self.metadata)


class ChangedMembers(msgspec.Struct, forbid_unknown_fields=True):
    """The body that adds and removes members. Nodes are named by the uuid of their root provider, by their
    own name, or by that of a compute service that has one node."""

    add: _Nodes = ()
    remove: _Nodes = ()


class AggregatesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of a list of aggregates."""

    name: Annotated[str | None, Meta(description="Only the aggregate of this name.")] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Aggregates on a page.")] = DEFAULT_PAGE
    marker: Annotated[
        Uuid | None, Meta(description="`next` of the page before: the page begins after this uuid.")
    ] = None


class ListedAggregate(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An aggregate without its members, and their number."""

    uuid: str
    name: str
    availability_zone: str | None
    metadata: dict[str, str]
    generation: int
    member_count: int


class ShownMember(msgspec.Struct, forbid_unknown_fields=True):
    """A member: the uuid of a node's root provider, the names of its compute service and of the node itself.
    The names are null if no cell that answers has the node."""

    node: str
    host: str | None
    nodename: str | None


class ShownAggregate(ListedAggregate, forbid_unknown_fields=True, kw_only=True):
    """An aggregate with its members, in order of their uuids."""

    members: list[ShownMember]


class AggregatePage(msgspec.Struct, forbid_unknown_fields=True):
    """Aggregates in order of their uuids. ``next`` is the marker of the next page, null on the last one."""

    aggregates: list[ListedAggregate]
    next: str | None


def listed(aggregate: Aggregate, member_count: int) -> ListedAggregate:
    """Return an aggregate as an entry of a list."""
    return ListedAggregate(
        uuid=aggregate.uuid,
        name=aggregate.name,
        availability_zone=aggregate.zone,
        metadata=aggregate.metadata,
        generation=aggregate.generation,
        member_count=member_count,
    )


def shown(aggregate: Aggregate, names: dict[str, NodeName]) -> ShownAggregate:
    """Return an aggregate with its members. ``names``: of the members that a cell knows."""
    members = []
    for node in sorted(aggregate.members):
        name = names.get(node)
        members.append(ShownMember(node, name and name.host, name and name.nodename))
    return ShownAggregate(
        **msgspec.structs.asdict(listed(aggregate, len(aggregate.members))), members=members
    )


def _check_texts(name: str, metadata: dict[str, str]) -> None:
    for text in (name, *metadata, *filter(None, metadata.values())):
        if not is_storable(text, MAX_NAME):
            raise ValueError(f"{text!r} cannot be stored")
    if (why := lookalike(name)) is not None:
        raise ValueError(f"the name {name!a} {why}")
    zone = metadata.get(AVAILABILITY_ZONE)
    # Nova's rule: a colon would separate the zone from a host.
    if zone is not None and (zone != zone.strip() or not zone or ":" in zone):
        raise ValueError(f"{AVAILABILITY_ZONE} {zone!r} is empty, or has a colon or spaces around it")
    if zone is not None and (why := lookalike(zone)) is not None:
        raise ValueError(f"{AVAILABILITY_ZONE} {zone!a} {why}")
