"""The hosts of a cell as operators see and change them.

An operator adds a host and may disable it. The reports of its nodes and its session come from its agent.
A host of an earlier version has only these, and counts as added.
"""

from collections import Counter
from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.fence import Fence
from roost.model.instance import ERROR
from roost.model.operator_word import SaidWord
from roost.state.cell_database.disabled import Word, forget_words, read_words_of_nodes
from roost.state.cell_database.host_admission import HeldHost, issue_token, reasons_by_host
from roost.state.cell_database.host_fences import ToldFence, read_fences
from roost.state.cell_database.host_work import SESSION, session_name
from roost.state.cell_database.move_orders import guests_of_moves
from roost.state.cell_database.rows import report_of
from roost.state.cell_database.silent_hosts import SilentHost, read_silent_hosts
from roost.state.cell_database.tables import (
    cell_hosts,
    held_hosts,
    host_fences,
    host_providers,
    host_tokens,
    instances,
    leases,
    nodes,
    orders,
    refused_nodes,
    silent_hosts,
    unknown_guests,
)
from roost.state.leases import Lease, lease_of, read_leases
from roost.storage import in_batches, insert_missing, transaction


class CellHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a cell.

    ``enabled`` and ``reason`` are the operator's. ``added_at``: seconds since the epoch; None for a host that
    was not added by an operator. ``session``: of its agent, None if it never had one. ``held``: why its agent
    carries out no orders, None if it does. ``refused``: why the cell or placement does not take all of its
    reports. ``instances``: their number by state. ``orders``: the number of orders to destroy that it has not
    acknowledged. ``fence``: of its agent, None without one. ``silence``: what was said of its evacuation,
    None while it is heard.
    """

    host: str
    enabled: bool = True
    reason: str | None = None
    added_at: float | None = None
    session: Lease | None = None
    held: HeldHost | None = None
    refused: str | None = None
    nodes: int = 0
    instances: Mapping[str, int] = {}
    orders: int = 0
    fence: Fence | None = None
    silence: SilentHost | None = None


class CellNode(msgspec.Struct, frozen=True):
    """A node of a host: the uuid of its root provider, its name, and whether its agent has it enabled.

    ``word``: of an operator who has disabled it, None without one. ``enabled`` and ``instances``: None while
    the cell cannot be asked.
    """

    node: str
    nodename: str
    enabled: bool | None
    instances: int | None
    word: Word | None = None

    def as_said(self, said: SaidWord) -> "CellNode":
        """Return the node with an operator's word in place of the cell's flag."""
        return msgspec.structs.replace(self, word=None if said.enabled else Word(said.reason))


@transaction
def add_host_rows(connection: Connection, digests: Mapping[str, str], at: float) -> list[str]:
    """Add hosts, each with the digest of its agent's token.

    Returns the hosts that were added before; if there are any, nothing is written.
    """
    added = [
        row.host
        for some in in_batches(digests)
        for row in connection.execute(_HOSTS.where(cell_hosts.c.host.in_(some)))
    ]
    if not added:
        new = [{"host": h, "enabled": True, "reason": None, "added_at": at} for h in digests]
        insert_missing(connection, sa.insert(cell_hosts), new)
        for host, digest in digests.items():
            issue_token(host=host, digest=digest, at=at)(connection)
    return sorted(added)


@transaction
def hosts_after(connection: Connection, most: int, after: str = "") -> list[str]:
    """Return the names of the first ``most`` hosts after one, in order."""
    named = [
        sa.select(cell_hosts.c.host.label("host")),
        sa.select(nodes.c.host.label("host")),
        sa.select(leases.c.host.label("host")).where(leases.c.kind == SESSION),
    ]
    every = sa.union(*named).subquery()
    query = sa.select(every.c.host).where(every.c.host > after)
    return list(connection.execute(query.order_by(every.c.host).limit(most)).scalars())


@transaction
def hosts_called(connection: Connection, names: tuple[str, ...]) -> list[str]:
    """Return the names that are names of hosts: of added ones, and of those with nodes."""
    return sorted(
        {
            name
            for some in in_batches(names)
            for column in (cell_hosts.c.host, nodes.c.host)
            for name in connection.execute(sa.select(column).where(column.in_(some))).scalars()
        }
    )


@transaction
def describe_hosts(connection: Connection, hosts: tuple[str, ...]) -> dict[str, CellHost]:
    """Describe hosts by name; those that the cell does not know are left out."""
    found: dict[str, CellHost] = {}
    for some in in_batches(hosts):
        found.update(_described(connection, some))
    return found


def _described(connection: Connection, some: Collection[str]) -> dict[str, CellHost]:
    added = {row.host: row for row in connection.execute(_HOSTS.where(cell_hosts.c.host.in_(some)))}
    sessions = {
        row.host: lease_of(row)
        for row in connection.execute(
            sa.select(leases).where(leases.c.name.in_([session_name(host) for host in some]))
        )
    }
    held = {
        row.host: HeldHost(**row._asdict())
        for row in connection.execute(sa.select(held_hosts).where(held_hosts.c.host.in_(some)))
    }
    count = sa.func.count()
    of_nodes = dict(_counted(connection, nodes.c.host, nodes.c.host.in_(some)))
    refused = {
        **_refused(connection, nodes.c.host.in_(some)),
        **reasons_by_host(connection, refused_nodes.c.host.in_(some)),
    }
    ordered = dict(_counted(connection, orders.c.host, orders.c.host.in_(some)))
    states: dict[str, dict[str, int]] = {}
    query = sa.select(instances.c.host, instances.c.state, count).where(instances.c.host.in_(some))
    for host, state, number in connection.execute(query.group_by(instances.c.host, instances.c.state)):
        states.setdefault(host, {})[state] = number
    told, silent = read_fences(connection, some), read_silent_hosts()(connection)
    described = {}
    for host in some:
        if host not in added and host not in sessions and host not in of_nodes:
            continue
        row = added.get(host)
        described[host] = CellHost(
            host=host,
            enabled=row is None or row.enabled,
            reason=None if row is None else row.reason,
            added_at=None if row is None else row.added_at,
            session=sessions.get(host),
            held=held.get(host),
            refused=refused.get(host),
            nodes=of_nodes.get(host, 0),
            instances=states.get(host, {}),
            orders=ordered.get(host, 0),
            fence=_fence(told.get(host), sessions.get(host)),
            silence=_silence(silent.get(host), sessions.get(host)),
        )
    return described


def _fence(told: ToldFence | None, session: Lease | None) -> Fence | None:
    if told is None or session is None or not (told.is_of(session) or told.was_cut_off(session)):
        return None
    return told.fence


def _silence(silent: SilentHost | None, session: Lease | None) -> SilentHost | None:
    return silent if silent is not None and silent.counts(session) else None


@transaction
def read_refused_hosts(connection: Connection) -> dict[str, str]:
    """Return the hosts whose reports the cell or placement does not take completely, each with the reason.

    A host whose reshape is refused is one of them.
    """
    return {**_refused(connection, sa.true()), **reasons_by_host(connection, sa.true())}


def _refused(connection: Connection, which: sa.ColumnElement[bool]) -> dict[str, str]:
    """Return by host why a report of its nodes is refused; of several nodes, that of the first by name."""
    refused: dict[str, str] = {}
    # Few nodes have a refusal: the reports of the others are not read.
    query = sa.select(nodes).where(which, nodes.c.facts.contains('"refused":'))
    query = query.order_by(nodes.c.host, nodes.c.nodename)
    for report in (report_of(each, "") for each in connection.execute(query)):
        if report.refused is not None:
            refused.setdefault(report.host, report.refused)
    return refused


@transaction
def nodes_of_host(connection: Connection, host: str) -> list[CellNode]:
    """Return the nodes of a host, in order of names."""
    query = sa.select(instances.c.node, sa.func.count()).where(
        instances.c.host == host, instances.c.state != ERROR
    )
    counts: Counter[str] = Counter(dict(connection.execute(query.group_by(instances.c.node)).all()))
    rows = connection.execute(sa.select(nodes).where(nodes.c.host == host).order_by(nodes.c.nodename))
    words = read_words_of_nodes(host)(connection)
    return [
        CellNode(row.node, row.nodename, row.enabled, counts[row.node], words.get(row.node)) for row in rows
    ]


@transaction
def count_instances_at(connection: Connection, host: str, node: str | None = None) -> int:
    """Count the instances of a host, or of one of its nodes, except those in error.

    Guests of moves count too: those that come, and those that are kept until a move is confirmed.
    """
    there = [instances.c.host == host, instances.c.state != ERROR]
    if node is not None:
        there.append(instances.c.node == node)
    count = sa.select(sa.func.count()).select_from(instances).where(*there)
    of_moves = [each for _, each in guests_of_moves(connection, [host]) if node in (None, each.node)]
    return connection.execute(count).scalar_one() + len(of_moves)


@transaction
def providers_made(connection: Connection, root: str) -> frozenset[str]:
    """Return the providers that agents have made in the tree of a root; the root is one of them."""
    query = sa.select(host_providers.c.provider).where(host_providers.c.root == root)
    return frozenset(connection.execute(query).scalars()) | {root}


@transaction
def note_providers(connection: Connection, root: str, providers: tuple[str, ...]) -> None:
    """Note providers that an agent is about to make in the tree of a root."""
    known = sa.select(host_providers.c.provider).where(host_providers.c.provider.in_(providers))
    there = frozenset(connection.execute(known).scalars())
    new = [{"provider": each, "root": root} for each in providers if each not in there]
    if new:
        insert_missing(connection, sa.insert(host_providers), new)


@transaction
def remove_node_row(connection: Connection, host: str, node: str) -> None:
    """Remove a node of a host, whose providers are gone. A node of another host stays."""
    mine = nodes.c.node == node, nodes.c.host == host
    forget_words(connection, *mine)
    if connection.execute(sa.delete(nodes).where(*mine)).rowcount:
        connection.execute(sa.delete(host_providers).where(host_providers.c.root == node))


@transaction
def remove_host_row(connection: Connection, host: str, session: Lease | None) -> str | None:
    """Remove a host whose nodes' providers are gone. Returns why it stays, None if it is removed.

    Its tokens end, its agent's session too, and its orders to destroy are removed. A later host of the name
    begins anew. ``session``: as it was when the removal began.
    """
    name = session_name(host)
    if read_leases(connection, [name], lock=True).get(name) != session:
        return "its agent has shown signs of life meanwhile"
    if count_instances_at(host)(connection):
        return "instances have come meanwhile"
    roots = sa.select(nodes.c.node).where(nodes.c.host == host)
    connection.execute(sa.delete(host_providers).where(host_providers.c.root.in_(roots)))
    forget_words(connection, nodes.c.host == host)
    for table in _OF_HOST:
        connection.execute(sa.delete(table).where(table.c.host == host))
    connection.execute(sa.delete(leases).where(leases.c.name == name))
    return None


_HOSTS = sa.select(cell_hosts)
_OF_HOST = (
    *(nodes, cell_hosts, host_tokens, held_hosts, refused_nodes, orders, unknown_guests),
    *(host_fences, silent_hosts),
)
"""The tables whose rows of a host end with it."""


def _counted(
    connection: Connection, column: sa.Column[str], condition: sa.ColumnElement[bool]
) -> list[tuple[str, int]]:
    query = sa.select(column, sa.func.count()).where(condition).group_by(column)
    return [(row[0], row[1]) for row in connection.execute(query)]
