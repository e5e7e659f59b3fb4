"""The flags of disabled hosts, nodes and cells in a cell's database: a mirror of operators' words.

The operator's word is stored in the API database (`roost.conductor.words`), and the flags here are its
mirror: by them the cell's endpoint tells agents. A flag without a word in the API database counts as the
word; an earlier version has set it. A host's flag is in the list of hosts
(`roost.state.cell_database.hosts`); the others are in a table of their own.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.operator_word import SaidWord, Subject
from roost.model.text import clean_text
from roost.state.cell_database.tables import cell_hosts, disabled, nodes
from roost.storage import in_batches, insert_missing, transaction

_CELL: Final = "cell"
_NODE: Final = "node"
_ALL: Final = ""
"""The name of the whole cell."""


@transaction
def add_host_row(connection: Connection, host: str, at: float) -> None:
    """Add a host, enabled. One that was added already stays as it is. ``at``: seconds since the epoch."""
    if connection.execute(sa.select(cell_hosts).where(cell_hosts.c.host == host)).one_or_none() is None:
        row = {"host": host, "enabled": True, "reason": None, "added_at": at}
        insert_missing(connection, sa.insert(cell_hosts), row)


@transaction
def enable_host(connection: Connection, host: str, enabled: bool, reason: str | None, at: float) -> None:
    """Enable a host for new instances, or disable it for a ``reason``."""
    add_host_row(host, at)(connection)
    reason = None if enabled or reason is None else clean_text(reason)
    values = {"enabled": enabled, "reason": reason}
    mine = cell_hosts.c.host == host
    connection.execute(sa.update(cell_hosts).where(mine).values(values))
    connection.execute(sa.update(nodes).where(nodes.c.host == host).values(_RAISED))


@transaction
def enable_cell(connection: Connection, enabled: bool, reason: str | None, at: float) -> None:
    """Enable a cell for new instances, or disable it for a ``reason``. ``at``: seconds since the epoch.

    Its hosts and nodes keep their own flags: a host that was disabled before stays disabled.
    """
    _say(connection, _CELL, _ALL, None if enabled else (reason, at))
    connection.execute(sa.update(nodes).values(_RAISED))


@transaction
def enable_node(
    connection: Connection, host: str, node: str, enabled: bool, reason: str | None, at: float
) -> bool:
    """Enable or disable a node of a host for new instances. Returns whether the host has the node."""
    mine = nodes.c.host == host, nodes.c.node == node
    if not connection.execute(sa.update(nodes).where(*mine).values(_RAISED)).rowcount:
        return False
    _say(connection, _NODE, node, None if enabled else (reason, at))
    return True


@transaction
def read_flags(connection: Connection, cell: str) -> frozenset[Subject]:
    """Return the subjects in the cell that are flagged as disabled. ``cell``: its name, for the subjects."""
    found = [Subject(cell, row.host) for row in connection.execute(_HOSTS_DISABLED)]
    found += [Subject(cell, row.host, row.node) for row in connection.execute(_NODES_DISABLED)]
    if read_word_of_cell()(connection) is not None:
        found.append(Subject(cell))
    return frozenset(found)


@transaction
def mirror_words(connection: Connection, words: tuple[SaidWord, ...]) -> None:
    """Set the flags of subjects in the cell to operators' words.

    A host or node that the cell does not have gets no flag.
    """
    there = read_flags("")(connection)
    for word in words:
        _, host, node = word.subject
        if word.enabled != (Subject("", host, node) in there):
            continue
        if node:
            enable_node(host, node, word.enabled, word.reason, word.at)(connection)
        elif not host:
            enable_cell(word.enabled, word.reason, word.at)(connection)
        elif _knows(connection, host):
            enable_host(host, word.enabled, word.reason, word.at)(connection)


@transaction
def read_offered(connection: Connection, host: str | None = None) -> list[str]:
    """Return the enabled nodes: enabled by their agents, and no flag on the node, its host or the cell.

    With ``host``: only nodes of this host.
    """
    query = sa.select(nodes.c.node).where(nodes.c.enabled == sa.true(), sa.not_(HOST_IS_DISABLED))
    if host is not None:
        query = query.where(nodes.c.host == host)
    return list(connection.execute(query.order_by(nodes.c.node)).scalars())


class Word(msgspec.Struct, frozen=True):
    """The word that a cell or node is disabled, with its reason."""

    reason: str | None


@transaction
def read_word_of_cell(connection: Connection) -> Word | None:
    """Return the word by which the cell is disabled, None if it is not."""
    row = connection.execute(_WORDS.where(disabled.c.kind == _CELL)).one_or_none()
    return None if row is None else Word(row.reason)


@transaction
def read_words_of_nodes(connection: Connection, host: str) -> dict[str, Word]:
    """Return the words on the disabled nodes of a host, by node."""
    mine = disabled.c.kind == _NODE, disabled.c.name.in_(_nodes_of(host))
    return {row.name: Word(row.reason) for row in connection.execute(_WORDS.where(*mine))}


def forget_words(connection: Connection, *condition: sa.ColumnElement[bool]) -> None:
    """Remove the words on nodes that are about to be removed."""
    gone = sa.select(nodes.c.node).where(*condition)
    connection.execute(sa.delete(disabled).where(disabled.c.kind == _NODE, disabled.c.name.in_(gone)))


def move_words(connection: Connection, to: Mapping[str, str]) -> None:
    """Move the words on nodes to the nodes that replace them. ``to``: the new node of each old one."""
    said = [
        row
        for some in in_batches(to)
        for row in connection.execute(_WORDS.where(disabled.c.kind == _NODE, disabled.c.name.in_(some)))
    ]
    for row in said:
        _say(connection, _NODE, row.name, None)
        _say(connection, _NODE, to[row.name], (row.reason, row.at))


def _say(connection: Connection, kind: str, name: str, word: tuple[str | None, float] | None) -> None:
    mine = disabled.c.kind == kind, disabled.c.name == name
    connection.execute(sa.delete(disabled).where(*mine))
    if word is not None:
        reason = None if word[0] is None else clean_text(word[0])
        row = {"kind": kind, "name": name, "reason": reason, "at": word[1]}
        insert_missing(connection, sa.insert(disabled), row)


def _knows(connection: Connection, host: str) -> bool:
    """Return whether a host was added or has nodes. A removed host must not come back by its flag."""
    rows = [sa.select(table.c.host).where(table.c.host == host).limit(1) for table in (cell_hosts, nodes)]
    return any(connection.execute(query).one_or_none() is not None for query in rows)


def _nodes_of(host: str) -> sa.Select[tuple[str]]:
    return sa.select(nodes.c.node).where(nodes.c.host == host)


# Schedulers read the nodes whose revision has changed.
_RAISED = {"revision": nodes.c.revision + 1}
_WORDS = sa.select(disabled)
_HOSTS_DISABLED = sa.select(cell_hosts.c.host).where(cell_hosts.c.enabled == sa.false())
_NODES_DISABLED = (
    sa.select(nodes.c.host, nodes.c.node)
    .join(disabled, disabled.c.name == nodes.c.node)
    .where(disabled.c.kind == _NODE)
)
HOST_IS_DISABLED: Final = sa.or_(
    sa.exists().where(cell_hosts.c.host == nodes.c.host, cell_hosts.c.enabled == sa.false()),
    sa.exists().where(disabled.c.kind == _CELL),
)
"""The condition that the host of a node is disabled, or the whole cell."""
