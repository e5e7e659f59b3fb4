"""The nodes whose reports a cell refuses: another host has their name, or their amounts exceed the limits.

They have no row among the nodes. Those of a host are removed when its agent opens a session: the agent then
reports all of its nodes.
"""

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.text import clean_text
from roost.state.cell_database.tables import refused_nodes
from roost.storage import in_batches, insert_missing, one_of, transaction


class RefusedNode(msgspec.Struct, frozen=True):
    """A node whose report is not taken. ``node``: the uuid of its root provider; ``reason``: a sentence."""

    host: str
    node: str
    reason: str


@transaction
def keep_refused(connection: Connection, host: str, refused: Mapping[str, str], at: float) -> None:
    """Store the refused nodes of a host (uuid -> reason), in place of the earlier ones."""
    connection.execute(sa.delete(refused_nodes).where(refused_nodes.c.host == host))
    rows = [
        {"host": host, "node": node, "reason": clean_text(reason), "at": at}
        for node, reason in sorted(refused.items())
    ]
    if rows:
        insert_missing(connection, sa.insert(refused_nodes), rows)


@transaction
def refused_nodes_of(connection: Connection, host: str) -> dict[str, str]:
    """Return the refused nodes of a host (uuid -> reason)."""
    query = sa.select(refused_nodes).where(refused_nodes.c.host == host)
    return {row.node: row.reason for row in connection.execute(query)}


def forget_refused(connection: Connection, hosts: Collection[str]) -> None:
    """Remove the refused nodes of hosts."""
    for some in in_batches(hosts):
        connection.execute(_FORGET, {"hosts": some})


def reasons_by_host(connection: Connection, which: sa.ColumnElement[bool]) -> dict[str, str]:
    """Return by host the reason of its first refused node, with the number of further ones."""
    query = sa.select(refused_nodes).where(which).order_by(refused_nodes.c.host, refused_nodes.c.node)
    reasons: dict[str, list[str]] = {}
    for row in connection.execute(query):
        reasons.setdefault(row.host, []).append(row.reason)
    return {
        host: told[0] if len(told) == 1 else f"{told[0]}; and {len(told) - 1} more node(s)"
        for host, told in reasons.items()
    }


_FORGET = sa.delete(refused_nodes).where(one_of(refused_nodes.c.host, "hosts"))
