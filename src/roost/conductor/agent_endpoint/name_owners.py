"""Ownership of the names of nodes that hosts report.

Requests name hosts and nodes: a node with the name of another host, or of another host's node, would get
instances meant for that one. A node with the name of its own host needs no check.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agent.protocol.errors import EndpointUnavailable
from roost.agent.protocol.types import SessionKey
from roost.model.names import IDENTIFIER_RULE, is_identifier
from roost.model.node import NodeReport
from roost.process.context import Context
from roost.state.api_database.node_names import Owned, claim_names
from roost.state.cell_database.hosts import hosts_called
from roost.state.cell_database.tables import nodes
from roost.storage import Database, StorageError, in_batches


class NameOwners:
    """The owners of the names of nodes in all cells, from the API database; without one no name has an owner
    in another cell."""

    def __init__(self, api: Database | None) -> None:
        self._api = api

    async def claim(
        self, host: str, cell: str, nodes: Mapping[str, str], stored: frozenset[str]
    ) -> dict[str, Owned]:
        """Claim names of nodes (name -> root provider) for a host; returns those that others own.

        See `claim_names`. Raises `EndpointUnavailable`: the API database does not answer.
        """
        if self._api is None:
            return {}
        try:
            return await self._api.write(claim_names(host, cell, nodes, stored))
        except StorageError as error:
            raise EndpointUnavailable("the owners of names cannot be asked now") from error


class JudgedNames(NamedTuple):
    """Nodes whose reports are not to be stored.

    ``refused``: node -> reason. ``unsure``: the owner of the name cannot be looked up now.
    """

    refused: Mapping[str, str]
    unsure: frozenset[str]


NONE_JUDGED = JudgedNames({}, frozenset())


class NodeNamesJudge:
    """Judges the names of the nodes that hosts report.

    It keeps in memory which names a session has stored and owns, so that most reports cost no query.
    """

    def __init__(self, context: Context, names: NameOwners, cell: str, database: str) -> None:
        self._context = context
        self._names = names
        self._cell = cell
        self._database = database
        self._own: dict[str, tuple[SessionKey, frozenset[tuple[str, str]]]] = {}

    async def judge(self, session: SessionKey, reports: Sequence[NodeReport]) -> JudgedNames:
        """Return the nodes whose names their host may not use."""
        host = session.host
        named = {each.node: each.nodename for each in reports if each.nodename not in ("", host)}
        of, own = self._own.get(host, (session, frozenset[tuple[str, str]]()))
        if of != session:
            own = frozenset()
        new = {node: name for node, name in named.items() if (node, name) not in own}
        if not new:
            return NONE_JUDGED
        there = await self._context.read(self._database, partial(_read_names, host=host, named=new))
        refused: dict[str, str] = {}
        for node, name in new.items():
            if (node, name) in there.stored:
                continue
            if not is_identifier(name):
                refused[node] = f"{name!a} is no name of a node: {IDENTIFIER_RULE}"
            elif name in there.owners:
                refused[node] = _of_another(name, Owned(name, there.owners[name]))
        left = new.keys() - refused.keys() - there.foreign
        asked = {new[node]: node for node in sorted(left)}
        unsure: frozenset[str] = frozenset()
        owners: dict[str, Owned] = {}
        try:
            if asked:
                stored = frozenset(name for name, node in asked.items() if (node, name) in there.stored)
                owners = await self._names.claim(host, self._cell, asked, stored)
        except EndpointUnavailable:
            unsure = frozenset(node for name, node in asked.items() if (node, name) not in there.stored)
        else:
            held = {(node, name) for name, node in asked.items() if name not in owners}
            self._own[host] = session, own | (there.stored & held)
        for name, owner in owners.items():
            # A stored node came before names had owners: it stays until an operator removes it.
            if (asked[name], name) not in there.stored:
                refused[asked[name]] = _of_another(name, owner)
        if refused or owners:
            values = {"host": host, "cell": self._cell, "nodes": refused}
            values["owners"] = {name: owner.host for name, owner in owners.items()}
            self._context.log("a host reports nodes under names that are not its own", values, "error")
        return JudgedNames(refused, unsure)


def _of_another(name: str, owner: Owned) -> str:
    whose = "that of another host" if owner.name == owner.host else f"that of a node of host {owner.host}"
    if owner.name != name:
        return f"the name {name} looks like {owner.name}, {whose}"
    return f"the name {name} is {whose}"


class _Names(msgspec.Struct, frozen=True):
    """The names of nodes as a cell has them.

    ``stored``: pairs of node and name of the host. ``owners``: the hosts of names that other hosts have.
    ``foreign``: nodes of other hosts.
    """

    stored: frozenset[tuple[str, str]]
    owners: Mapping[str, str]
    foreign: frozenset[str]


def _read_names(connection: Connection, host: str, named: Mapping[str, str]) -> _Names:
    stored: set[tuple[str, str]] = set()
    owners: dict[str, str] = {}
    foreign: set[str] = set()
    columns = nodes.c.node, nodes.c.host, nodes.c.nodename
    for some in in_batches(named):
        for row in connection.execute(sa.select(*columns).where(nodes.c.node.in_(some))):
            if row.host != host:
                foreign.add(row.node)
            elif named[row.node] == row.nodename:
                stored.add((row.node, row.nodename))
    for some in in_batches({*named.values()}):
        others = sa.select(*columns).where(nodes.c.nodename.in_(some), nodes.c.host != host)
        owners.update((row.nodename, row.host) for row in connection.execute(others))
    owners.update((name, name) for name in hosts_called((*named.values(),))(connection))
    return _Names(frozenset(stored), owners, frozenset(foreign))
