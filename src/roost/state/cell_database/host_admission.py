"""The admission of hosts to a cell: the tokens of their agents, agents that wait, and refused nodes.

A host has one token in use, and at most one that was issued later and not used yet. The first use of the
newer one ends the older one, so neither a lost answer nor a restart locks an agent out. The cell keeps
digests of tokens.

A held host's agent carries out no orders until an operator has accepted the state of the cell.

A node's report is refused if another host has its name, or its amounts exceed the limits. Such nodes have no
row among the nodes. Those of a host are removed when its agent opens a session: the agent then reports all of
its nodes.
"""

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.text import clean_text
from roost.state.cell_database.tables import held_hosts, host_tokens, refused_nodes
from roost.storage import in_batches, insert_missing, one_of, transaction


class HostToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token of a host, by its digest (`roost.model.token`). ``issued_at``: seconds since the
    epoch."""

    digest: str
    host: str
    issued_at: float
    is_used: bool = False


@transaction
def issue_token(connection: Connection, *, host: str, digest: str, at: float, alone: bool = False) -> None:
    """Make a token of a host valid besides the one in use. A token that was never used ends.

    ``alone``: the token in use ends too.
    """
    ended = sa.delete(host_tokens).where(host_tokens.c.host == host)
    connection.execute(ended if alone else ended.where(host_tokens.c.is_used == sa.false()))
    row = HostToken(digest=digest, host=host, issued_at=at)
    connection.execute(sa.insert(host_tokens), msgspec.structs.asdict(row))


@transaction
def use_token(connection: Connection, digest: str) -> bool:
    """Note that a token is used: at its first use the others of its host end. Returns False if not valid."""
    mine = host_tokens.c.digest == digest
    unused = (mine, host_tokens.c.is_used == sa.false())
    is_first = connection.execute(sa.update(host_tokens).where(*unused).values(is_used=True)).rowcount
    host = connection.execute(sa.select(host_tokens.c.host).where(mine)).scalar_one_or_none()
    if is_first:
        connection.execute(sa.delete(host_tokens).where(host_tokens.c.host == host, ~mine))
    # Another process may have noted the first use; a token that was issued since is valid.
    return host is not None


@transaction
def revoke_tokens(connection: Connection, host: str) -> int:
    """End all tokens of a host. Returns their number."""
    return connection.execute(sa.delete(host_tokens).where(host_tokens.c.host == host)).rowcount


@transaction
def read_host_tokens(connection: Connection) -> dict[str, HostToken]:
    """Return all valid tokens of the cell's hosts, by digest."""
    return {
        digest: HostToken(digest=digest, host=host, issued_at=issued_at, is_used=is_used)
        for digest, host, issued_at, is_used in connection.execute(_ALL)
    }


_ALL = sa.select(host_tokens.c.digest, host_tokens.c.host, host_tokens.c.issued_at, host_tokens.c.is_used)


class HeldHost(msgspec.Struct, frozen=True):
    """A host whose agent carries out no orders.

    ``at``: since when, in seconds since the epoch. ``accepted``: an operator has accepted the cell's state;
    the agent learns of it with the answer to its next poll.
    """

    host: str
    reason: str
    at: float
    accepted: bool = False


@transaction
def hold_host(connection: Connection, host: str, reason: str, at: float) -> bool:
    """Note that the agent of a host carries out no orders. Returns whether an operator has accepted that."""
    mine = held_hosts.c.host == host
    reason = clean_text(reason)
    there = connection.execute(sa.select(held_hosts).where(mine).with_for_update()).one_or_none()
    if there is None:
        row = HeldHost(host, reason, at)
        insert_missing(connection, sa.insert(held_hosts), msgspec.structs.asdict(row))
        return False
    if there.reason != reason:
        # An operator has accepted another reason, not this one.
        values = {"reason": reason, "at": at, "accepted": False}
        connection.execute(sa.update(held_hosts).where(mine).values(values))
        return False
    return bool(there.accepted)


@transaction
def release_hosts(connection: Connection, hosts: list[str]) -> None:
    """Note that the agents of hosts carry out orders again."""
    for some in in_batches(hosts):
        connection.execute(_RELEASE, {"hosts": some})


_RELEASE = sa.delete(held_hosts).where(one_of(held_hosts.c.host, "hosts"))


@transaction
def accept_held_host(connection: Connection, host: str) -> bool:
    """Accept the state of the cell for a host, as an operator. Returns False if its agent does not wait."""
    mine = held_hosts.c.host == host
    return bool(connection.execute(sa.update(held_hosts).where(mine).values(accepted=True)).rowcount)


@transaction
def read_held_hosts(connection: Connection) -> dict[str, HeldHost]:
    """Return all hosts whose agents carry out no orders, by name."""
    rows = connection.execute(sa.select(held_hosts).order_by(held_hosts.c.host))
    return {row.host: HeldHost(**row._asdict()) for row in rows}


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
