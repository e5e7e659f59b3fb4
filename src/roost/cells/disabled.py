"""What an operator disables in a cell: hosts, single nodes, or the whole cell. It gets no new instances.

What is there stays. The list of hosts has a host's word (`roost.cells.hosts`); the others' are here.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.tables import cell_hosts, disabled, nodes
from roost.model.text import clean_text
from roost.storage import in_batches, insert_missing

_CELL: Final = "cell"
_NODE: Final = "node"
_ALL: Final = ""
"""The name of the whole cell."""


class EnableCell(msgspec.Struct, frozen=True):
    """Let a cell have new instances, or not, for a ``reason``. ``at``: seconds since the epoch.

    Its hosts and nodes keep their own words: what was disabled before is disabled after.
    """

    enabled: bool
    reason: str | None
    at: float

    def __call__(self, connection: Connection) -> None:
        _say(connection, _CELL, _ALL, None if self.enabled else (self.reason, self.at))
        connection.execute(sa.update(nodes).values(_RAISED))


class EnableNode(msgspec.Struct, frozen=True):
    """Let a node of a host have new instances, or not. Answers whether the host has the node."""

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


class Word(msgspec.Struct, frozen=True):
    """That something is disabled, and why."""

    reason: str | None


class ReadWordOfCell(msgspec.Struct, frozen=True):
    """Whether the cell is disabled; None if it is not."""

    def __call__(self, connection: Connection) -> Word | None:
        row = connection.execute(_WORDS.where(disabled.c.kind == _CELL)).one_or_none()
        return None if row is None else Word(row.reason)


class ReadWordsOfNodes(msgspec.Struct, frozen=True):
    """The nodes of a host that are disabled."""

    host: str

    def __call__(self, connection: Connection) -> dict[str, Word]:
        mine = disabled.c.kind == _NODE, disabled.c.name.in_(_nodes_of(self.host))
        return {row.name: Word(row.reason) for row in connection.execute(_WORDS.where(*mine))}


def forget_words(connection: Connection, *condition: sa.ColumnElement[bool]) -> None:
    """Forget what was said of nodes that are about to be removed."""
    gone = sa.select(nodes.c.node).where(*condition)
    connection.execute(sa.delete(disabled).where(disabled.c.kind == _NODE, disabled.c.name.in_(gone)))


def move_words(connection: Connection, to: Mapping[str, str]) -> None:
    """Say of nodes what was said of those that they replace. ``to``: the new node of each old one."""
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


def _nodes_of(host: str) -> sa.Select[tuple[str]]:
    return sa.select(nodes.c.node).where(nodes.c.host == host)


# Schedulers read the nodes whose revision has changed.
_RAISED = {"revision": nodes.c.revision + 1}
_WORDS = sa.select(disabled)
HOST_IS_DISABLED: Final = sa.or_(
    sa.exists().where(cell_hosts.c.host == nodes.c.host, cell_hosts.c.enabled == sa.false()),
    sa.exists().where(disabled.c.kind == _CELL),
)
"""Whether the host of a node is disabled, or its whole cell."""

NODE_IS_DISABLED: Final = sa.or_(
    HOST_IS_DISABLED,
    sa.exists().where(disabled.c.kind == _NODE, disabled.c.name == nodes.c.node),
)
"""Whether a node is, by itself or with its host or cell."""
