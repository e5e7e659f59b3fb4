"""The orders of hosts: work that they do not know yet, and polls that wait for it.

A build may need a feature which the agent of its host lacks, because it is of an earlier version. A request
that needs a feature is accepted once all processes know it (`roost.conductor.hosts.watch`). If an agent
without it comes back afterwards, the attempt ends, and the next alternate is tried.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agent.protocol.questions import Poll
from roost.agent.protocol.types import (
    Build,
    CancelMigration,
    Destroy,
    MigrateGuest,
    Order,
    PortsReleased,
    ReceiveGuest,
    StartGuest,
    StopGuest,
)
from roost.conductor.agent_endpoint.destructions import Destruction, read_destructions
from roost.model.instance import (
    ASSIGNED,
    AT_HOST,
    DELETING,
    SHELVING,
    BuildResult,
    DestroyOrder,
    Instance,
    OrderKind,
)
from roost.model.move import MoveWork, has_attachments, version_for_move
from roost.model.service_version import IN_PLACE_RESIZES, LIVE, MOVES, POWER, SHELVES
from roost.model.text import error_text
from roost.process.context import Context
from roost.state.cell_database.building import ReportResults
from roost.state.cell_database.host_work import FOR_HOSTS, HostWork, orders_topic
from roost.state.cell_database.move_orders import KEYS, MoveKey, move_key, read_move_work
from roost.state.cell_database.move_reports import TOO_OLD, refuse_parts
from roost.state.cell_database.power import refuse_power
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import build_attempts, instances, moves, orders
from roost.storage import StorageError, in_batches, one_of, one_of_constants, short_read

LOOK_PAUSE = 2.0
"""The pause after a look for work, as a multiple of the time that it took."""

Known = frozenset[tuple[OrderKind, str, int]]
"""Orders that a host knows: kind, instance, attempt."""


def known_orders(poll: Poll) -> Known:
    """Return the orders that a host knows by its poll."""
    kinds: tuple[tuple[OrderKind, tuple[tuple[str, int], ...]], ...] = (
        ("build", poll.building),
        ("destroy", poll.destroying),
        ("stop", poll.stopping),
        ("start", poll.starting),
        ("receive", poll.receiving),
        ("migrate", poll.migrating),
        ("cancel", poll.cancelling),
    )
    return frozenset((kind, *key) for kind, keys in kinds for key in keys)


class HostOrders:
    """The orders that hosts do not know, and the polls that wait for some.

    Its state in memory may be lost: polls that wait. ``looks``: seconds between two looks for work that other
    processes have written, while they announce it and while they do not. ``build``: seconds within which a
    build must be confirmed.
    """

    def __init__(self, context: Context, cell: str, looks: tuple[float, float], build: float) -> None:
        self._context = context
        self._cell = cell
        self._database = f"cell/{cell}"
        self._looks = looks
        self._build = build
        self._waiting: dict[str, Known] = {}
        self._found: dict[str, HostWork] = {}

    async def wait(self, poll: Poll, known: Known, until: float) -> tuple[Order, ...]:
        """Wait for work of a host that it does not know."""
        host = poll.session.host
        wakes = self._context.listen(f"{orders_topic(self._cell)}/{host}")
        self._found.pop(host, None)
        try:
            while (left := until - self._context.monotonic()) > 0:
                self._waiting[host] = known
                await wakes.wait(left)
                work = self._found.pop(host, None)
                if work is None:
                    continue
                if orders := await self.unknown(work, known, poll.service_version):
                    return orders
            return ()
        finally:
            # Of several polls of a host the last one is registered.
            if self._waiting.get(host) is known:
                del self._waiting[host]

    async def unknown(self, work: HostWork, known: Known, version: int) -> tuple[Order, ...]:
        """Return the orders to an agent of a version that it does not know."""
        work = await work_for(self._context, self._database, self._cell, work, version)
        started = tuple(each.uuid for each in work.instances if AT_HOST[each.state] == "start")
        over = await self._context.read(self._database, last_attempts(started)) if started else {}
        orders: list[Order] = [
            self._order_of(MoveWork(AT_HOST[each.state], each, over.get(each.uuid, 0)), version)
            for each in work.instances
        ]
        new = [each for each in work.orders if ("destroy", each.instance, each.attempt) not in known]
        if new:
            found = await self._context.read(self._database, read_destructions(tuple(new)))
            orders += [
                _destroy_by_order(each, found[each], version)
                for each in new
                if found[each].beside is None or version >= IN_PLACE_RESIZES.since
            ]
        orders += [self._order_of(each, version) for each in work.moves]
        return tuple(order for order in orders if (order.kind, *order.key) not in known)

    def _order_of(self, part: MoveWork, version: int) -> Order:
        instance = part.instance
        match part.kind:
            case "build":
                return Build(instance, self._build, part.beside)
            case "stop":
                return StopGuest(instance.uuid, instance.attempt)
            case "start":
                return StartGuest(instance, part.over)
            case "destroy":
                return _destroy_order(instance, version, part.beside)
            case "receive":
                return ReceiveGuest(instance, self._build, part.begun)
            case "migrate":
                assert part.target is not None
                return MigrateGuest(instance.uuid, instance.attempt, part.target)
            case "cancel":
                return CancelMigration(instance.uuid, instance.attempt)

    async def look_for_work(self) -> None:
        """Find work for the hosts whose polls wait, whenever the cell's topic is woken or time has passed.

        A process that finds work at a look by time was not told of it, and looks more often from then on,
        until it finds some that was announced.
        """
        wakes = self._context.listen(orders_topic(self._cell))
        announced, alone = self._looks
        interval = announced
        failing = False
        while True:
            woken = await wakes.wait(interval)
            if not self._waiting:
                continue
            began = self._context.monotonic()
            try:
                found = await new_work(self._context, self._database, dict(self._waiting))
                failing = False
            except StorageError as error:
                if not failing:
                    values = {"cell": self._cell, "error": error_text(error)}
                    self._context.log("work of hosts cannot be read", values, "warning")
                failing = True
                await self._context.sleep(alone)
                continue
            if found:
                interval = announced if woken else alone
            for host, work in found.items():
                if self._waiting.pop(host, None) is not None:
                    self._found[host] = work
                    self._context.wake(f"{orders_topic(self._cell)}/{host}")
            # While much is written, one look finds the work of many writes.
            took = self._context.monotonic() - began
            await self._context.sleep(min(LOOK_PAUSE * took, alone))


def _destroy_by_order(order: DestroyOrder, found: Destruction, version: int) -> Destroy:
    """Return an order to destroy of an agent of a version."""
    unknown = found.released == "unbound" and version < SHELVES.since
    released: PortsReleased = "none" if unknown else found.released
    return Destroy(order.instance, order.attempt, found.deletes, released, found.beside)


def _destroy_order(instance: Instance, version: int, keeps: int | None) -> Destroy:
    """Return the order to destroy the guest of an instance that is deleted or shelved, or has moved.

    ``version``: of the agent. ``keeps``: the attempt on the same host that stays.

    Ports of a shelved one are bound to no host: the host that is told frees them, whether or not it had them.
    """
    ports: PortsReleased = "none"
    if instance.state == SHELVING and version >= SHELVES.since:
        ports = "unbound"
    elif instance.state == DELETING and instance.shelf is not None and _is_attached(instance):
        ports = "every"
    return Destroy(instance.uuid, instance.attempt, instance.state == DELETING, ports, keeps)


def _is_attached(instance: Instance) -> bool:
    return instance.spec is not None and has_attachments(instance.spec)


async def new_work(context: Context, database: str, known: Mapping[str, Known]) -> dict[str, HostWork]:
    """Return by host the work that it does not know yet.

    Reads the keys of all work, but the rows of new work alone: agents that are busy for long do not make each
    look longer. Raises `StorageError`.
    """
    keys = await context.read(database, read_work_keys(known))
    found: dict[str, HostWork] = {}
    if keys.instances:
        for host, instance in await context.read(database, read_instances_with_work(keys.instances)):
            # It may have changed since.
            kind = AT_HOST[instance.state]
            if host in known and (kind, instance.uuid, instance.attempt) not in known[host]:
                found.setdefault(host, HostWork([], [])).instances.append(instance)
    for order in keys.orders:
        found.setdefault(order.host, HostWork([], [])).orders.append(order)
    if keys.moves:
        for host, parts in (await context.read(database, move_work(keys.moves))).items():
            found.setdefault(host, HostWork([], [])).moves.extend(parts)
    return found


class NewKeys(msgspec.Struct, frozen=True):
    """Work that hosts do not know: instances, orders to destroy, and parts of moves."""

    instances: tuple[str, ...]
    orders: tuple[DestroyOrder, ...]
    moves: tuple[MoveKey, ...] = ()


@short_read
def read_work_keys(connection: Connection, known: Mapping[str, Known]) -> NewKeys:
    """Read the keys of work that hosts do not know, without the instances' rows. One statement."""
    found, given, parts = list[str](), list[DestroyOrder](), list[MoveKey]()
    for uuid, attempt, host, state, side, move in connection.execute(_KEYS).all():
        if host not in known:
            continue
        if side:
            part = move_key(side, uuid, attempt, host, state, move)
            if part.key not in known[host]:
                parts.append(part)
            continue
        kind: OrderKind = "destroy" if state == _ORDER else AT_HOST[state]
        if (kind, uuid, attempt) in known[host]:
            continue
        if state == _ORDER:
            given.append(DestroyOrder(uuid, attempt, host))
        else:
            found.append(uuid)
    return NewKeys(tuple(found), tuple(given), tuple(parts))


@short_read
def move_work(connection: Connection, keys: tuple[MoveKey, ...]) -> dict[str, list[MoveWork]]:
    """Read the parts of hosts in moves, by host."""
    return read_move_work(connection, keys)


@short_read
def read_instances_with_work(connection: Connection, uuids: tuple[str, ...]) -> list[tuple[str, Instance]]:
    """Read instances with work for their hosts, each with its host."""
    return [
        (row.host, instance_of(row))
        for some in in_batches(uuids)
        for row in connection.execute(_NAMED, {"uuids": some}).all()
    ]


@short_read
def last_attempts(connection: Connection, uuids: tuple[str, ...]) -> dict[str, int]:
    """Return the last attempt of each of some instances, which none but their own hosts may still make.

    Those that have had no other than their own are left out.
    """
    found: dict[str, int] = {}
    for some in in_batches(uuids):
        for query in (_ENDED_ATTEMPTS, _MOVED_ATTEMPTS):
            for uuid, attempt in connection.execute(query, {"uuids": some}):
                found[uuid] = max(found.get(uuid, 0), attempt or 0)
    return found


_ENDED_ATTEMPTS = (
    sa.select(build_attempts.c.instance_uuid, sa.func.max(build_attempts.c.attempt))
    .where(one_of(build_attempts.c.instance_uuid, "uuids"))
    .group_by(build_attempts.c.instance_uuid)
)
_MOVED_ATTEMPTS = (
    sa.select(moves.c.instance_uuid, sa.func.max(moves.c.target_attempt))
    .where(one_of(moves.c.instance_uuid, "uuids"))
    .group_by(moves.c.instance_uuid)
)
_ORDER = "order"
"""In place of a state: an order to destroy a guest of which the cell has no instance any more."""

_OF_HOSTS = one_of_constants(instances.c.state, FOR_HOSTS)
_NONE: sa.ColumnElement[str] = sa.literal_column("''")
_KEYS: sa.CompoundSelect[Any] = sa.union_all(
    sa.select(instances.c.uuid, instances.c.attempt, instances.c.host, instances.c.state, _NONE, _NONE).where(
        _OF_HOSTS
    ),
    sa.select(
        orders.c.instance_uuid,
        orders.c.attempt,
        orders.c.host,
        sa.literal_column(f"'{_ORDER}'"),
        _NONE,
        _NONE,
    ),
    *KEYS,
)
_NAMED = INSTANCES.where(one_of(instances.c.uuid, "uuids"), _OF_HOSTS)


async def work_for(context: Context, database: str, cell: str, work: HostWork, version: int) -> HostWork:
    """Return the work of a host that its agent of a service version can do; end the attempts of the rest.

    Raises `StorageError`.
    """
    beyond = [part for part in work.moves if _needed_by(part) > version]
    if beyond:
        needed = max(map(_needed_by, beyond))
        too_old = f"its agent has service version {version}, and this needs {needed}"
        refused = await context.write(database, refuse_parts(tuple(beyond), too_old, context.clock()))
        context.record((), refused)
        late_builds = {each.instance for each in refused}
        kept = [
            part
            for part in work.moves
            if part not in beyond or (part.kind == "build" and part.instance.uuid not in late_builds)
        ]
        work = msgspec.structs.replace(work, moves=kept)
    switched = [each for each in work.instances if AT_HOST[each.state] in ("stop", "start")]
    if switched and version < MOVES.since:
        too_old = f"the agent of its host has service version {version}, and this needs {MOVES.since}"
        await context.write(database, refuse_power(tuple(switched), too_old, context.clock()))
        kept_instances = [each for each in work.instances if each not in switched]
        work = msgspec.structs.replace(work, instances=kept_instances)
    # They wait for a newer agent: an older one would destroy the guest that stays as well.
    kept_parts = [
        each
        for each in work.moves
        if each.kind != "destroy" or each.beside is None or version >= IN_PLACE_RESIZES.since
    ]
    work = msgspec.structs.replace(work, moves=kept_parts)
    # So do these: an older one would delete ports that were made for them.
    kept_instances = [each for each in work.instances if _needed_to_destroy(each) <= version]
    work = msgspec.structs.replace(work, instances=kept_instances)
    late = {each.uuid: needed for each in work.instances if (needed := _needed(each)) > version}
    if not late:
        return work
    host = next(each.host for each in work.instances if each.uuid in late) or ""
    results = tuple(
        BuildResult(
            each.uuid,
            host,
            each.attempt,
            f"the agent of host {host} has service version {version}, and this needs {late[each.uuid]}",
            TOO_OLD,
        )
        for each in work.instances
        if each.uuid in late
    )
    at = context.clock()
    ended = await context.write(database, ReportResults(results, at, cell))
    if ended:
        context.record((), ended)
    values = {"cell": cell, "host": host, "service_version": version, "instances": len(late)}
    context.log("an agent is too old for what it is to build", values, "warning")
    return HostWork([each for each in work.instances if each.uuid not in late], work.orders, work.moves)


def _needed_by(part: MoveWork) -> int:
    """Return the version that a part of a move needs."""
    if part.beside is not None and part.kind in ("build", "start"):
        return IN_PLACE_RESIZES.since
    if part.kind == "destroy":
        return 0
    if part.kind in ("receive", "migrate", "cancel"):
        return LIVE.since
    needed = MOVES.since if part.instance.starts else POWER.since
    return needed if part.instance.spec is None else max(needed, version_for_move(part.instance.spec))


def _needed_to_destroy(instance: Instance) -> int:
    """Return the version that the order to destroy the guest of a shelved instance needs."""
    is_shelved = instance.shelf is not None and AT_HOST[instance.state] == "destroy"
    return SHELVES.since if is_shelved and _is_attached(instance) else 0


def _needed(instance: Instance) -> int:
    """Return the version that an instance needs, as long as the agent has not begun to start it."""
    if instance.state != ASSIGNED or instance.spec is None:
        return 0
    return instance.spec.needs_version
