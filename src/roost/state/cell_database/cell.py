"""The access to a cell's database: reads and writes, and events for listeners."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import (
    UNSETTLED,
    BuildResult,
    Fault,
    Instance,
)
from roost.model.node import NodeReport
from roost.model.record import Attempt, RecordSink
from roost.process.wakes import Wakes
from roost.state.cell_database.arrivals import AddInstances, Arrival, find_instances
from roost.state.cell_database.building import ReportResults, ended_attempts_of
from roost.state.cell_database.conductor_work import FOR_CONDUCTORS, work_topic
from roost.state.cell_database.deletions import GONE as GONE
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.cell_database.disabled import forget_words
from roost.state.cell_database.host_work import FOR_HOSTS, orders_topic
from roost.state.cell_database.move_changes import MOVE
from roost.state.cell_database.nodes import read_reports
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import SCHEMA, instances, nodes
from roost.state.cell_database.wake_addresses import WorkAnnouncer, read_wake_addresses
from roost.storage import Database, StorageError, in_batches, one_of_constants, states_entered

T = TypeVar("T")

WANTING_CONDUCTORS = frozenset((*FOR_CONDUCTORS, MOVE))
"""The states, and `MOVE`, that may want work of a conductor."""

WANTING_HOSTS = frozenset((*FOR_HOSTS, MOVE))
"""The states, and `MOVE`, that may want work of a host."""


class InstanceOutcome(NamedTuple):
    """The state of an instance, its attempt, and the reason."""

    instance: str
    state: str
    attempt: int
    reason: str | None


class InstancePlace(NamedTuple):
    """The state of an instance, and the root provider of its node, if it has one."""

    state: str
    node: str | None


class Cell:
    """One cell by name, on its database. For use from one event loop.

    ``wakes``: its topic `work_topic` is woken when an instance wants work of a conductor, `orders_topic` when
    a host has something to do. ``announcer``: wakes them in the other processes of the cell.

    ``records``: where the ends of attempts are recorded; None: nowhere.

    Raises `StorageError` if the database cannot be used: at once, or at each operation if its opening is
    deferred.
    """

    def __init__(
        self,
        name: str,
        database: Database,
        clock: Callable[[], float] = time.time,
        records: RecordSink | None = None,
    ) -> None:
        database.when_open(SCHEMA.prepare)
        self._records = records
        self.name = name
        self.database = database
        self._clock = clock
        self.wakes = Wakes()
        self.announcer = WorkAnnouncer(lambda: self.read(read_wake_addresses()))
        self._listeners: dict[asyncio.Event, frozenset[str]] = {}

    def listen(self, *states: str) -> asyncio.Event:
        """Return an event that is set now and whenever this process may have put an instance into a state.

        ``states``: the states; `GONE`: an instance was removed. The listener clears the event.
        """
        event = asyncio.Event()
        event.set()
        self._listeners[event] = frozenset(states)
        return event

    def unlisten(self, event: asyncio.Event) -> None:
        """Give back an event of `listen`."""
        del self._listeners[event]

    async def places(self, uuids: Collection[str]) -> dict[str, InstancePlace]:
        """Return state and node of instances; those that are not in the cell are left out."""
        columns = (instances.c.uuid, instances.c.state, instances.c.node)

        def read(connection: Connection) -> dict[str, InstancePlace]:
            return {
                row.uuid: InstancePlace(row.state, row.node)
                for some in in_batches(uuids)
                for row in connection.execute(sa.select(*columns).where(instances.c.uuid.in_(some)))
            }

        return await self.read(read)

    async def outcomes(self, uuids: Collection[str]) -> list[InstanceOutcome]:
        """Return state, attempt and reason of instances; those that are not in the cell are left out."""
        columns = (instances.c.uuid, instances.c.state, instances.c.attempt, instances.c.reason)

        def read(connection: Connection) -> list[InstanceOutcome]:
            return [
                InstanceOutcome(*row)
                for some in in_batches(uuids)
                for row in connection.execute(sa.select(*columns).where(instances.c.uuid.in_(some)))
            ]

        return await self.read(read)

    # Instances

    async def add(self, new: Sequence[Instance], why: Sequence[Fault] = ()) -> dict[str, Arrival]:
        """Put instances into the cell; returns the result of each."""
        return await self.write(AddInstances(tuple(new), self._clock(), tuple(why)))

    async def find(self, uuids: Collection[str]) -> dict[str, Instance]:
        """Return instances by uuid; those that are not in the cell are left out."""
        return await self.read(find_instances(tuple(uuids)))

    async def in_state(self, *states: str, host: str | None = None) -> list[Instance]:
        """Return all instances in one of the states, of one host if it is named."""
        query = INSTANCES.where(instances.c.state.in_(states))
        if host is not None:
            query = query.where(instances.c.host == host)
        return await self.read(lambda connection: [instance_of(row) for row in connection.execute(query)])

    async def every(self, request_id: str | None = None) -> list[Instance]:
        """Return all instances, or those of one request."""
        query = INSTANCES if request_id is None else INSTANCES.where(instances.c.request_id == request_id)
        return await self.read(lambda connection: [instance_of(row) for row in connection.execute(query)])

    async def unsettled(self) -> int:
        """Return the number of instances that want work of a conductor or host."""
        count = sa.select(sa.func.count()).where(one_of_constants(instances.c.state, UNSETTLED))
        return await self.read(lambda connection: connection.execute(count).scalar_one())

    async def faults_of(self, uuid: str) -> list[Fault]:
        """Return the reasons of the failed attempts at an instance, in order."""
        ended = await self.read(ended_attempts_of(uuid))
        return [
            Fault(uuid, each.attempt, each.host, each.reason, each.ended)
            for each in ended
            if each.result == record.FAILED
        ]

    async def report(self, results: Sequence[BuildResult]) -> None:
        """Store the results of builds. A result of an attempt that is over has no effect."""
        self._record(await self.write(ReportResults(tuple(results), self._clock(), self.name)))

    async def delete(self, uuids: Sequence[str]) -> None:
        """Mark instances for deletion. An instance without a host counts as destroyed already."""
        deleted = await self.write(DeleteInstances(tuple(uuids), self._clock(), self.name))
        self._record(deleted.ended)

    # Nodes

    async def nodes(self) -> list[NodeReport]:
        """Return the last reports of all nodes, in order of names."""
        return await self.read(read_reports(self.name))

    async def remove_nodes(self, uuids: Collection[str]) -> None:
        """Remove nodes, by the uuid of the root provider. Unknown ones are left out."""

        def write(connection: Connection) -> None:
            for some in in_batches(uuids):
                forget_words(connection, nodes.c.node.in_(some))
                connection.execute(sa.delete(nodes).where(nodes.c.node.in_(some)))

        await self.write(write)

    async def node_uuids(self) -> frozenset[str]:
        """Return the root providers of all nodes."""
        query = sa.select(nodes.c.node)
        return await self.read(lambda connection: frozenset(connection.execute(query).scalars()))

    async def count_nodes(self) -> int:
        """Return the number of nodes."""
        query = sa.select(sa.func.count()).select_from(nodes)
        return await self.read(lambda connection: connection.execute(query).scalar_one())

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a work that reads. Raises `StorageError`."""
        with self._named():
            return await self.database.read(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run a work that writes, and wake the listeners for the states it enters. Raises `StorageError`."""
        with self._named():
            done = await self.database.write(work)
        if entered := states_entered(work):
            if not WANTING_CONDUCTORS.isdisjoint(entered):
                self._wake(work_topic(self.name))
            if not WANTING_HOSTS.isdisjoint(entered):
                self._wake(orders_topic(self.name))
            for event, states in self._listeners.items():
                if not states.isdisjoint(entered):
                    event.set()
        return done

    def _wake(self, topic: str) -> None:
        self.wakes.wake(topic)
        self.announcer.announce(topic)

    def keep_ends(self, ended: Sequence[Attempt]) -> None:
        """Record ends of attempts."""
        self._record(ended)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Add the cell's name to errors: a client that reads from several cells learns which one fails."""
        try:
            yield
        except StorageError as error:
            error.summary = f"Cell {self.name}: {type(error).summary}"
            raise

    def _record(self, ended: Sequence[Attempt]) -> None:
        if ended and self._records is not None:
            self._records.put([], ended)


async def changed(event: asyncio.Event, seconds: float) -> None:
    """Wait until a listener's event is set, at most ``seconds``; then clear it."""
    # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the event.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()
