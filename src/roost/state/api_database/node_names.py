"""The owners of the names of nodes: no two hosts have the same name.

A host owns its own name, in all cells. Another name of a node is owned by the host that reported it first,
until an operator removes the host or the node. So a node that moves to another service host must be removed
from its former one.
"""

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.names import look_alike, look_of
from roost.state.api_database.tables import host_mappings, node_names
from roost.storage import in_batches, insert_missing, one_of, transaction


class Owned(NamedTuple):
    """A name of a host or of a node, and the host that owns it."""

    name: str
    host: str


@transaction
def claim_names(
    connection: Connection,
    host: str,
    cell: str,
    nodes: Mapping[str, str],
    stored: frozenset[str] = frozenset(),
) -> dict[str, Owned]:
    """Make a host the owner of names of its nodes (name -> root provider).

    Returns for each name that another host owns, or that looks like such a name, the other name and its
    owner: these names are not claimed. ``stored``: names that the cell has for the host; they may look like
    other names.
    """
    owners = owners_of_names(tuple(nodes))(connection)
    others = {name: Owned(name, other) for name, other in owners.items() if other != host}
    given = tuple(name for name in nodes if name not in owners and name not in stored)
    others |= {n: o for n, o in find_look_alikes(given)(connection).items() if o.host != host}
    mine = [name for name in nodes if name not in others]
    new = [
        {
            "name": name,
            "node": nodes[name],
            "host": host,
            "cell": cell,
            "look": look_of(name),
        }
        for name in mine
        if name not in owners
    ]
    if new:
        insert_missing(connection, sa.insert(node_names), new)
    for name in mine:
        if name in owners:
            values = {"node": nodes[name], "cell": cell}
            connection.execute(sa.update(node_names).where(node_names.c.name == name).values(**values))
    return others


@transaction
def owners_of_names(connection: Connection, names: tuple[str, ...]) -> dict[str, str]:
    """Return the host that owns each of some names: the added host of this name, or the host with a node of
    this name. Names without an owner are left out."""
    given = {"names": list(names)}
    found = {row.name: row.host for row in connection.execute(_NODES, given)}
    found.update((row.host, row.host) for row in connection.execute(_HOSTS, given))
    return found


@transaction
def find_look_alikes(connection: Connection, names: tuple[str, ...]) -> dict[str, Owned]:
    """Return for each of some names the first other name that it looks like, with its owner; names without
    one are left out."""
    looks = {look_of(name) for name in names}
    there: dict[str, set[Owned]] = {}
    for some in in_batches(looks):
        for query in (_NODES_LIKE, _HOSTS_LIKE):
            for row in connection.execute(query, {"looks": some}):
                there.setdefault(look_of(row.name), set()).add(Owned(row.name, row.host))
    found = {}
    for name in names:
        alike = (each for each in there.get(look_of(name), ()) if look_alike(name, each.name))
        if (first := min(alike, default=None)) is not None:
            found[name] = first
    return found


@transaction
def release_names(connection: Connection, host: str, cell: str, node: str | None = None) -> None:
    """Free the names of the nodes of a host in a cell, or that of one node."""
    mine = [node_names.c.host == host, node_names.c.cell == cell]
    if node is not None:
        mine.append(node_names.c.node == node)
    connection.execute(sa.delete(node_names).where(*mine))


_NODES = sa.select(node_names).where(one_of(node_names.c.name, "names"))
_HOSTS = sa.select(host_mappings.c.host).where(one_of(host_mappings.c.host, "names"))
_NODES_LIKE = sa.select(node_names.c.name, node_names.c.host).where(one_of(node_names.c.look, "looks"))
_HOSTS_LIKE = sa.select(host_mappings.c.host.label("name"), host_mappings.c.host).where(
    one_of(host_mappings.c.look, "looks")
)
