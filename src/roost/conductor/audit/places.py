"""The comparison of hosts and aggregates in placement with those of the cells.

The audit repairs none of these differences: agents make their providers again, and the mirror writes the
members of host aggregates. A difference that both looks of a round see is one that they have not repaired.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.context import PlacementContext
from roost.model.names import provider_uuid
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.errors import NotFound
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.aggregates.known import differences
from roost.state.api_database.audit import AuditFinding
from roost.state.api_database.cell_mappings import mapped_cells
from roost.state.api_database.tables import API, host_aggregate_members, host_aggregates
from roost.state.cell_database.tables import cell_hosts, nodes
from roost.storage import StorageError, transaction

MISSING_PROVIDER = "missing-provider"
"""A host reports a node whose root provider is not in placement."""
LEFT_PROVIDER = "left-provider"
"""No cell has the node or host of a root provider that an agent has made."""
WRONG_AGGREGATE = "wrong-aggregate"
"""The aggregates of a node's root provider in placement are not the host aggregates of the node."""

MOST_PLACES = 1000
"""Differences that a look returns at most, the first ones by kind and subject."""

_VERSION, _OF_A_NAME = slice(14, 15), "5"
"""The position of the version in a uuid, and the version of uuids made of a name, as agents make them."""

_EXPECTED = {
    MISSING_PROVIDER: "placement has the root provider of each node",
    LEFT_PROVIDER: "a host reports for it, or it is deleted",
    WRONG_AGGREGATE: "it is in the aggregates of the host aggregates that the node is a member of",
}
_HEALED_BY = {
    MISSING_PROVIDER: "the host's agent, which makes it again",
    LEFT_PROVIDER: None,
    WRONG_AGGREGATE: "the mirror of host aggregates, which writes it each minute",
}


class Misplaced(msgspec.Struct, frozen=True, order=True):
    """A difference. ``subject`` is the uuid of a root provider."""

    kind: str
    subject: str
    detail: str

    def finding(self) -> AuditFinding:
        """Return the finding of a round of which both looks saw the difference."""
        return AuditFinding(
            kind=self.kind,
            subject=self.subject,
            detail=self.detail,
            expected=_EXPECTED[self.kind],
            proof={},
            action=None,
            waits_for=_HEALED_BY[self.kind],
        )


class NodePlace(NamedTuple):
    """The host of a node, and its cell."""

    host: str
    cell: str


@transaction
def read_places(connection: Connection) -> tuple[dict[str, str], frozenset[str]]:
    """Return the hosts of a cell's nodes by the node, and all its hosts, those without nodes too."""
    of_nodes = dict(connection.execute(sa.select(nodes.c.node, nodes.c.host)).all())
    hosts = connection.execute(sa.select(cell_hosts.c.host)).scalars()
    return of_nodes, frozenset((*of_nodes.values(), *hosts))


@transaction
def read_members(connection: Connection) -> dict[str, set[str]]:
    """Return the members of each host aggregate."""
    members: dict[str, set[str]] = {
        uuid: set() for uuid in connection.execute(sa.select(host_aggregates.c.uuid)).scalars()
    }
    table = host_aggregate_members
    for aggregate, node in connection.execute(sa.select(table.c.aggregate_uuid, table.c.node)):
        if aggregate in members:
            members[aggregate].add(node)
    return members


class Places(NamedTuple):
    """The result of one look: differences, and the cells that could not be read, each with the reason."""

    misplaced: frozenset[Misplaced]
    unread: dict[str, str]


async def look_at_places(context: PlacementContext, roots: Mapping[str, str]) -> Places:
    """Compare nodes, hosts and aggregates with placement. ``roots``: the root of each provider.

    Raises: `StorageError` of the API database, and what placement raises.
    """
    places: dict[str, NodePlace] = {}
    hosts: set[str] = set()
    unread: dict[str, str] = {}
    for cell in sorted(await context.read(API, mapped_cells)):
        try:
            of_nodes, of_cell = await context.read(f"cell/{cell}", read_places())
        except StorageError as error:
            unread[cell] = one_line(error)
        else:
            places.update((node, NodePlace(host, cell)) for node, host in of_nodes.items())
            hosts |= of_cell
    found = [*_missing(places, roots)]
    if not unread:
        # The node may be in a cell that could not be read.
        found += await _left(context, places, hosts, roots)
    found += await _wrong_aggregates(context, places, roots)
    return Places(frozenset(sorted(found)[:MOST_PLACES]), unread)


def _missing(places: Mapping[str, NodePlace], roots: Mapping[str, str]) -> Iterator[Misplaced]:
    for node, place in places.items():
        if node not in roots:
            detail = f"host {place.host} in cell {place.cell} reports it; placement has no such provider"
            yield Misplaced(MISSING_PROVIDER, node, detail)


async def _left(
    context: PlacementContext, places: Mapping[str, NodePlace], hosts: set[str], roots: Mapping[str, str]
) -> list[Misplaced]:
    """Return the root providers that agents have made for hosts that are in no cell, by their names."""
    found = []
    for root in sorted(uuid for uuid, above in roots.items() if uuid == above and uuid not in places):
        if root[_VERSION] != _OF_A_NAME:
            continue
        tree = await context.placement.tree(root)
        name = next((each.name for each in tree if each.uuid == root), None)
        if name is None or name in hosts or provider_uuid(name) != root:
            continue
        try:
            traits = await context.placement.traits(root)
        except NotFound:
            continue
        if SHARING_TRAIT not in traits:
            more = f" and {len(tree) - 1} below it" if len(tree) > 1 else ""
            detail = f"placement has provider {name}{more}; no cell has a host or node of this name"
            found.append(Misplaced(LEFT_PROVIDER, root, detail))
    return found


async def _wrong_aggregates(
    context: PlacementContext, places: Mapping[str, NodePlace], roots: Mapping[str, str]
) -> list[Misplaced]:
    """Return the providers that the mirror of host aggregates has to write."""
    wanted = await context.read(API, read_members())
    present = {}
    for aggregate in sorted(wanted):
        present[aggregate] = await context.placement.providers_in_aggregate(aggregate)
    found = []
    for provider, difference in differences(wanted, present, places.keys()).items():
        if provider not in roots:
            continue
        parts = [f"placement lacks it in {', '.join(sorted(difference.join))}"] if difference.join else []
        if difference.leave:
            parts.append(f"placement has it in {', '.join(sorted(difference.leave))}")
        found.append(Misplaced(WRONG_AGGREGATE, provider, "; ".join(parts)))
    return found
