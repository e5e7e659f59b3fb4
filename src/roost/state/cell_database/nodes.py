"""The nodes of a cell: reports, signs of life of their hosts, names, and the instances on them."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ON_ITS_HOST
from roost.model.node import KEEPS_DISKS, KEEPS_SHELVED, LIVE_MOVES, RESIZES_IN_PLACE, YES, NodeReport
from roost.state.cell_database.disabled import move_words
from roost.state.cell_database.host_work import SESSION, hosts_with_orders
from roost.state.cell_database.reported import clean_reports
from roost.state.cell_database.rows import Row, node_row, report_of
from roost.state.cell_database.tables import instances, leases, nodes, orders
from roost.state.leases import VACANT, Stamp
from roost.storage import in_batches, insert_missing, one_of, short_read, transaction


@short_read
def find_disk_store(connection: Connection, node: str) -> str | None:
    """Return the store of the disks of a node's guests; None: they stay on it.

    A node that has never reported counts as one with `YES`.
    """
    row = connection.execute(_STORED, {"nodes": [node]}).one_or_none()
    return YES if row is None else report_of(row, "").stats.get(KEEPS_DISKS)


@short_read
def find_shelf_store(connection: Connection, node: str) -> str | None:
    """Return the store that keeps the disks of a node's guests when they are shelved; None: none does."""
    row = connection.execute(_STORED, {"nodes": [node]}).one_or_none()
    stats = {} if row is None else report_of(row, "").stats
    return stats.get(KEEPS_DISKS) if stats.get(KEEPS_SHELVED) == YES else None


@short_read
def find_hosts_without_store(connection: Connection, store: str) -> frozenset[str]:
    """Return the hosts with a node whose guests' disks are not in a store."""
    query = sa.select(nodes.c.host).distinct().where(~_has_store(store))
    return frozenset(connection.execute(query).scalars())


@short_read
def find_hosts_with_store(connection: Connection, store: str) -> frozenset[str]:
    """Return the hosts with a node whose guests' disks are in a store."""
    query = sa.select(nodes.c.host).distinct().where(_has_store(store))
    return frozenset(connection.execute(query).scalars())


def _has_store(store: str) -> sa.ColumnElement[bool]:
    return nodes.c.facts.contains(f'"{KEEPS_DISKS}":{_JSON.encode(store).decode()}', autoescape=True)


@short_read
def nodes_without_disk_store(connection: Connection, uuids: Collection[str]) -> frozenset[str]:
    """Return those of some nodes on which the disks of their guests stay: see `find_disk_store`."""
    return frozenset(
        row.node
        for some in in_batches(uuids)
        for row in connection.execute(_STORED, {"nodes": some})
        if KEEPS_DISKS not in report_of(row, "").stats
    )


@short_read
def moves_live(connection: Connection, node: str) -> bool:
    """Return whether guests of a node can move while they run."""
    row = connection.execute(_STORED, {"nodes": [node]}).one_or_none()
    return row is not None and report_of(row, "").stats.get(LIVE_MOVES) == YES


@short_read
def resizes_in_place(connection: Connection, node: str) -> bool:
    """Return whether the driver of a node keeps two sizes of a guest."""
    row = connection.execute(_STORED, {"nodes": [node]}).one_or_none()
    return row is not None and report_of(row, "").stats.get(RESIZES_IN_PLACE) == YES


@short_read
def find_hosts_without_live_moves(connection: Connection) -> frozenset[str]:
    """Return the hosts with a node whose guests cannot move while they run."""
    return frozenset(connection.execute(_HOSTS_WITHOUT_LIVE).scalars())


@short_read
def read_disk_stores(connection: Connection) -> dict[str, tuple[str, str | None]]:
    """Return the host and the store of the disks of each node by its uuid, as `find_disk_store` has it."""
    rows = connection.execute(sa.select(nodes))
    return {row.node: (row.host, report_of(row, "").stats.get(KEEPS_DISKS)) for row in rows}


_JSON = msgspec.json.Encoder()
_HOSTS_WITHOUT_LIVE = (
    sa.select(nodes.c.host)
    .distinct()
    .where(~nodes.c.facts.contains(f'"{LIVE_MOVES}":"{YES}"', autoescape=True))
)


@transaction
def keep_reports(connection: Connection, reports: tuple[NodeReport, ...], first: int = 1) -> None:
    """Store reports of nodes.

    A node with the names of another one (host and nodename) replaces it. A report that differs from the one
    before raises the revision of its node. ``first``: the revision of a new node; a node that was removed and
    is reported again must not get a revision that it had before.
    """
    rows = {str(row["node"]): row for row in map(node_row, clean_reports(reports))}
    names = {(str(row["host"]), str(row["nodename"])): node for node, row in rows.items()}
    known: dict[str, Row] = {}
    namesakes: dict[str, str] = {}
    for some in in_batches(sorted({host for host, _ in names})):
        for row in connection.execute(_ON_HOSTS, {"hosts": some}):
            known[row.node] = row
            if (named := names.get((row.host, row.nodename), row.node)) != row.node:
                namesakes[row.node] = named
    for some in in_batches([node for node in rows if node not in known]):
        for row in connection.execute(_STORED, {"nodes": some}):
            known[row.node] = row
    # A node is written anew if it gets the names of a node that gets other names in the same batch.
    renamed = [n for n in rows if n in known and (known[n].host, known[n].nodename) != _names(rows[n])]
    gone = {*namesakes, *renamed}
    if replaced := {old: new for old, new in namesakes.items() if old not in rows}:
        move_words(connection, replaced)
    for some in in_batches(gone):
        connection.execute(sa.delete(nodes).where(nodes.c.node.in_(some)))
    kept = {names[name] for name in names}
    new = [
        {**row, "revision": known[node].revision + 1 if node in known else first}
        for node, row in rows.items()
        if node in kept and (node not in known or node in gone)
    ]
    old = [
        {**rows[n], "key": n} for n in rows if n in known and n not in gone and _differs(known[n], rows[n])
    ]
    if new:
        insert_missing(connection, sa.insert(nodes), new)
    if old:
        connection.execute(_UPDATE, old)


class Signs(msgspec.Struct, frozen=True):
    """The signs of life of a cell's hosts, and the revisions of its nodes, at one moment.

    ``revisions``: of the reports, by node. ``sessions``: the stamp of the session of each host that has one;
    each sign of life of the host changes it. ``owing``: hosts with orders to destroy that they have not
    acknowledged; they are not up.
    """

    revisions: Mapping[str, int]
    sessions: Mapping[str, Stamp]
    owing: frozenset[str]


@transaction
def read_signs(connection: Connection) -> Signs:
    """Read revisions of nodes and signs of life of hosts, without the reports."""
    return Signs(
        dict(connection.execute(_REVISIONS).all()),
        {row[0]: row[1:] for row in connection.execute(_SESSIONS)},
        hosts_with_orders()(connection),
    )


@short_read
def read_mark(connection: Connection) -> tuple[object, ...]:
    """Read a value that changes when a report changes, or a node, a session or an order comes or goes.

    Signs of life do not change it. It costs a tenth of `read_signs` in a cell with a thousand hosts.
    """
    return tuple(sorted(map(tuple, connection.execute(_MARK))))


@transaction
def read_reports(connection: Connection, cell: str, roots: tuple[str, ...] | None = None) -> list[NodeReport]:
    """Return the reports of some nodes, or of all, in order of names. ``cell``: its name, for the reports.

    A report is enabled if its agent says so; the words of operators are read by
    `roost.state.cell_database.disabled.read_flags`.
    """
    if roots is None:
        return [report_of(row, cell) for row in connection.execute(_IN_ORDER)]
    return [
        report_of(row, cell)
        for some in in_batches(roots)
        for row in connection.execute(_IN_ORDER.where(nodes.c.node.in_(some)))
    ]


_ON_HOSTS = sa.select(nodes).where(one_of(nodes.c.host, "hosts"))
_STORED = sa.select(nodes).where(one_of(nodes.c.node, "nodes"))
_IN_ORDER = sa.select(nodes).order_by(nodes.c.host, nodes.c.nodename)
_MARK = sa.union_all(
    sa.select(sa.literal("nodes").label("of"), sa.func.count(), sa.func.sum(nodes.c.revision)),
    sa.select(sa.literal("sessions"), sa.func.count(), sa.func.sum(leases.c.epoch)).where(
        leases.c.kind == SESSION, leases.c.holder != VACANT
    ),
    sa.select(sa.literal("orders"), sa.func.count(), sa.literal(0)).select_from(orders),
)
_UPDATE = (
    sa.update(nodes)
    .where(nodes.c.node == sa.bindparam("key"))
    # The statement raises the revision: two reports at the same time get different ones.
    .values(
        **{column.name: sa.bindparam(column.name) for column in nodes.columns if column.name != "revision"},
        revision=nodes.c.revision + 1,
    )
)
_REVISIONS = sa.select(nodes.c.node, nodes.c.revision)
_SESSIONS = sa.select(leases.c.host, leases.c.holder, leases.c.epoch, leases.c.counter).where(
    leases.c.kind == SESSION, leases.c.holder != VACANT
)


def _names(row: Mapping[str, object]) -> tuple[object, object]:
    return row["host"], row["nodename"]


def _differs(stored: Row, row: Mapping[str, object]) -> bool:
    return any(getattr(stored, name) != value for name, value in row.items())


class NodeName(NamedTuple):
    """The uuid of a node's root provider, the name of its compute service and its own."""

    node: str
    host: str
    nodename: str


@transaction
def find_nodes_called(connection: Connection, names: tuple[str, ...]) -> list[NodeName]:
    """Return the nodes of the cell whose own name is one of ``names``."""
    query = sa.select(nodes.c.node, nodes.c.host, nodes.c.nodename)
    return [
        NodeName(*row)
        for some in in_batches(names)
        for row in connection.execute(query.where(nodes.c.nodename.in_(some)))
    ]


def names_of(uuids: Collection[str]) -> Callable[[Connection], list[NodeName]]:
    """Return a read of the names of nodes; those that are not in the cell are left out."""
    return _named(uuids, nodes.c.node)


def nodes_called(names: Collection[str]) -> Callable[[Connection], list[NodeName]]:
    """Return a read of the nodes whose uuid, own name or host is one of ``names``.

    Its answer may have a node several times.
    """
    return _named(names, nodes.c.node, nodes.c.nodename, nodes.c.host)


def count_instances(uuids: Collection[str]) -> Callable[[Connection], dict[str, int]]:
    """Return a read of the number of instances on nodes. Nodes that the cell does not know are left out.

    A node that the cell has only instances of is known.
    """
    counted = sa.func.count().label("instances")

    def read(connection: Connection) -> dict[str, int]:
        found: dict[str, int] = {}
        for some in in_batches(uuids):
            there = sa.select(nodes.c.node).where(nodes.c.node.in_(some))
            found |= dict.fromkeys(connection.execute(there).scalars(), 0)
            counts = (
                sa.select(instances.c.node, counted)
                .where(instances.c.node.in_(some), instances.c.state.in_(ON_ITS_HOST))
                .group_by(instances.c.node)
            )
            found |= {row.node: row.instances for row in connection.execute(counts)}
        return found

    return read


def _named(names: Collection[str], *columns: sa.Column[str]) -> Callable[[Connection], list[NodeName]]:
    query = sa.select(nodes.c.node, nodes.c.host, nodes.c.nodename)

    def read(connection: Connection) -> list[NodeName]:
        return [
            NodeName(*row)
            for some in in_batches(names)
            for column in columns
            for row in connection.execute(query.where(column.in_(some)))
        ]

    return read
