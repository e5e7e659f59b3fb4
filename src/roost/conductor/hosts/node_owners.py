"""The lookup of nodes while their cell cannot be asked: in the API database and placement."""

import asyncio
from collections.abc import Collection
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.names import provider_uuid
from roost.placement.interface import Provider
from roost.state.api_database.host_mappings import cells_of_hosts
from roost.state.api_database.tables import node_names
from roost.state.cell_database.nodes import NodeName
from roost.storage import Database, in_batches, transaction


class NodePlacement(Protocol):
    """The part of `roost.placement.interface.Placement` that is needed."""

    async def provider(self, uuid: str) -> Provider | None: ...


class NodeOwners:
    """Finds nodes by the uuid of their root provider or by their own name, without their cells.

    A node named as its host is the root provider of this name, and the host was added. Other nodes are in the
    table of names and their owners. Raises `StorageError`, and what placement raises.
    """

    def __init__(self, api: Database, placement: NodePlacement) -> None:
        self._api = api
        self._placement = placement

    async def called(self, names: Collection[str]) -> list[NodeName]:
        """Return the nodes that have one of these uuids or names. A node that is not found may exist."""
        found = await self._api.read(_read_owned_nodes(tuple(names)))
        left = set(names).difference(*((each.node, each.nodename) for each in found))
        tried = {uuid for name in left for uuid in (name, provider_uuid(name))}
        providers = await asyncio.gather(*(self._placement.provider(uuid) for uuid in sorted(tried)))
        roots = [each for each in providers if each is not None and each.uuid == each.root]
        added = await self._api.read(cells_of_hosts(tuple(each.name for each in roots)))
        return found + [NodeName(each.uuid, each.name, each.name) for each in roots if each.name in added]

    async def of_host(self, host: str, node: str) -> NodeName | None:
        """Return a node of a host by its uuid, None if it is not known to be one."""
        found = await self.called((node,))
        return next((each for each in found if (each.node, each.host) == (node, host)), None)


@transaction
def _read_owned_nodes(connection: Connection, names: tuple[str, ...]) -> list[NodeName]:
    """Read the nodes, not named as their hosts, that have one of ``names`` as uuid or name."""
    columns = node_names.c.node, node_names.c.host, node_names.c.name
    return [
        NodeName(*row)
        for some in in_batches(names)
        for row in connection.execute(
            sa.select(*columns).where(node_names.c.name.in_(some) | node_names.c.node.in_(some))
        )
    ]
