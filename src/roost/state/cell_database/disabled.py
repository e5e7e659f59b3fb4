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
from roost.storage import in_batches, insert_missing

_CELL: Final = "cell"
_NODE: Final = "node"
_ALL: Final = ""
"""The name of the whole cell."""


class AddHost(msgspec.Struct, frozen=True):
    """Add a host, enabled. One that was added already stays as it is. ``at``: seconds since the epoch."""

    host: str
    at: float

    def __call__(self, connection: Connection) -> None:
        if (
            connection.execute(sa.select(cell_hosts).where(cell_hosts.c.host == self.host)).one_or_none()
            is None
        ):
            row = {"host": self.host, "enabled": True, "reason": None, "added_at": self.at}
            insert_missing(connection, sa.insert(cell_hosts), row)


class EnableHost(msgspec.Struct, frozen=True):
    """Enable a host for new instances, or disable it for a ``reason``."""

    host: str
    enabled: bool
    reason: str | None
    at: float

    def __call__(self, connection: Connection) -> None:
        AddHost(self.host, self.at)(connection)
        reason = None if self.enabled or self.reason is None else clean_text(self.reason)
        values = {"enabled": self.enabled, "reason": reason}
        mine = cell_hosts.c.host == self.host
        connection.execute(sa.update(cell_hosts).where(mine).values(values))
        connection.execute(sa.update(nodes).where(nodes.c.host == self.host).values(_RAISED))


class EnableCell(msgspec.Struct, frozen=True):
    """Enable a cell for new instances, or disable it for a ``reason``. ``at``: seconds since the epoch.

    Its hosts and nodes keep their own flags: a host that was disabled before stays disabled.
    """

    enabled: bool
    reason: str | None
    at: float

    def __call__(self, connection: Connection) -> None:
        _say(connection, _CELL, _ALL, None if self.enabled else (self.reason, self.at))
        connection.execute(sa.update(nodes).values(_RAISED))


class EnableNode(msgspec.Struct, frozen=True):
    """Enable or disable a node of a host for new instances. Answers whether the host has the node."""

    host: str
    node: str
    enabled: bool
    reason: str | None
    at: float

    def __call__(self, connection: Connection) -> bool:
        mine = nodes.c.host == self.host, nodes.c.node == self.node
        if not connection.execute(sa.update(nodes).where(*mine).values(_RAISED)).rowcount:
            return False
        _say(connection, _NODE, self.node, None if self.enabled else (self.reason, self.at))
        return True


class ReadFlags(msgspec.Struct, frozen=True):
    """Answers the subjects in the cell that are flagged as disabled. ``cell``: its name, for the subjects."""

    cell: str

    def __call__(self, connection: Connection) -> frozenset[Subject]:
        found = [Subject(self.cell, row.host) for row in connection.execute(_HOSTS_DISABLED)]
        found += [Subject(self.cell, row.host, row.node) for row in connection.execute(_NODES_DISABLED)]
        if ReadWordOfCell()(connection) is not None:
            found.append(Subject(self.cell))
        return frozenset(found)


class MirrorWords(msgspec.Struct, frozen=True):
    """Set the flags of subjects in the cell to operators' words.

    A host or node that the cell does not have gets no flag.
    """

    words: tuple[SaidWord, ...]

    def __call__(self, connection: Connection) -> None:
        there = ReadFlags("")(connection)
        for word in self.words:
            _, host, node = word.subject
            if word.enabled != (Subject("", host, node) in there):
                continue
            if node:
                EnableNode(host, node, word.enabled, word.reason, word.at)(connection)
            elif not host:
                EnableCell(word.enabled, word.reason, word.at)(connection)
            elif _knows(connection, host):
                EnableHost(host, word.enabled, word.reason, word.at)(connection)


class ReadOffered(msgspec.Struct, frozen=True):
    """Answers the enabled nodes: enabled by their agents, and no flag on the node, its host or the cell.

    With ``host``: only nodes of this host.
    """

    host: str | None = None

    def __call__(self, connection: Connection) -> list[str]:
        query = sa.select(nodes.c.node).where(nodes.c.enabled == sa.true(), sa.not_(HOST_IS_DISABLED))
        if self.host is not None:
            query = query.where(nodes.c.host == self.host)
        return list(connection.execute(query.order_by(nodes.c.node)).scalars())


class Word(msgspec.Struct, frozen=True):
    """The word that a cell or node is disabled, with its reason."""

    reason: str | None


class ReadWordOfCell(msgspec.Struct, frozen=True):
    """Answers the word by which the cell is disabled, None if it is not."""

    def __call__(self, connection: Connection) -> Word | None:
        row = connection.execute(_WORDS.where(disabled.c.kind == _CELL)).one_or_none()
        return None if row is None else Word(row.reason)


class ReadWordsOfNodes(msgspec.Struct, frozen=True):
    """Answers the words on the disabled nodes of a host, by node."""

    host: str

    def __call__(self, connection: Connection) -> dict[str, Word]:
        mine = disabled.c.kind == _NODE, disabled.c.name.in_(_nodes_of(self.host))
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
