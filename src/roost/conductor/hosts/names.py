"""Names of hosts and nodes: the check of new ones, and the lookup of nodes while their cell is away."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.names import look_alike, look_of, provider_uuid
from roost.placement.interface import Provider
from roost.state.api_database.host_mappings import cells_of_hosts
from roost.state.api_database.node_names import find_look_alikes, owners_of_names
from roost.state.api_database.open_cells import ask_cell
from roost.state.api_database.tables import node_names
from roost.state.cell_database import Cell
from roost.state.cell_database.nodes import NodeName, find_nodes_called
from roost.storage import Database, in_batches, transaction
from roost.web.errors import Conflict


async def check_names(api: Database, cells: Sequence[Cell], hosts: Sequence[str]) -> None:
    """Check that hosts may be added under these names.

    Raises:
        Conflict: a node of another host has the name of one, a new name looks like that of another host or
            node, or two of the names look alike.
        StorageError: the API database does not answer.
    """
    owners = dict(await api.read(owners_of_names(tuple(hosts))))
    for cell in cells:
        named = await ask_cell(cell, find_nodes_called(tuple(hosts)))
        owners.update((each.nodename, each.host) for each in named or ())
    for name, owner in sorted(owners.items()):
        if name != owner and name in hosts:
            raise Conflict(
                f"host {name!r} cannot be added: a node of host {owner!r} has this name; "
                "remove that node first"
            )
    # A mapped host has its name: it was added by an earlier run of this request, or is added again.
    mapped = await api.read(cells_of_hosts(tuple(hosts)))
    new = tuple(host for host in hosts if host not in mapped)
    alike = await api.read(find_look_alikes(new))
    for host in new:
        owned = alike.get(host)
        if owned is not None and owned.host != host:
            whose = "another host" if owned.name == owned.host else f"a node of host {owned.host!r}"
            raise Conflict(
                f"host {host!r} cannot be added: its name looks like {owned.name!r}, that of {whose}"
            )
    _check_alike(new)


def _check_alike(hosts: Sequence[str]) -> None:
    """Raise `Conflict` if two new hosts have names that look alike."""
    by_look: dict[str, list[str]] = {}
    for host in hosts:
        others = by_look.setdefault(look_of(host), [])
        for other in others:
            if look_alike(host, other):
                raise Conflict(f"hosts {other!r} and {host!r} cannot both be added: their names look alike")
        others.append(host)


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
