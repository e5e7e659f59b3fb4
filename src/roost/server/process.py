"""A process and its parts: what they share, and the background tasks that run beside its requests.

`roost.server.programs` has the parts of each command, and the order in which they open.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import structlog

from roost.ledger import SCHEMA
from roost.placement.options import PlacementOptions
from roost.process.report import Describe
from roost.storage import ANSWER_SECONDS, COMMAND_ANSWER_SECONDS, Database, DatabaseUrl, Schema
from roost.web.dispatch import Application, dispatch
from roost.web.health import HealthCheck
from roost.web.operation import Operation

if TYPE_CHECKING:
    # A process imports only the parts that it has.
    from roost.conductor.aggregates.host_aggregates import HostAggregates
    from roost.conductor.aggregates.mirror import AggregateMirror
    from roost.conductor.context import SchedulerLike
    from roost.conductor.super_conductor import SuperConductor
    from roost.ledger import Ledger
    from roost.nova.database.cells import NovaCells
    from roost.nova.feed import NovaFeed
    from roost.nova.rpc.server import SchedulerRpcServer
    from roost.nova.shadow.copied_calls import CopiedCalls
    from roost.placement.client import HttpPlacement
    from roost.placement.interface import Placement
    from roost.placement.queries import QueryBudget
    from roost.records import RecordQueue
    from roost.scheduler.gateways import Gateway
    from roost.scheduler.gateways.foreign_groups import Members
    from roost.scheduler.nodes.hosts import ServiceHosts
    from roost.scheduler.nodes.operator_words import OperatorWords
    from roost.state.api_database.request_reads import Requests
    from roost.state.api_database.server_groups import ServerGroups
    from roost.state.cell_database import Cell

_log = structlog.get_logger()

Options = TypeVar("Options", bound=PlacementOptions)
Own_co = TypeVar("Own_co", bound=PlacementOptions, covariant=True)


_DECIDING = frozenset(("scheduler_api", "super_conductor", "cell_conductors", "nova_calls", "nova_shadow"))
"""Parts that have the scheduler of a process decide."""


class Api(NamedTuple):
    """An API of a process.

    ``paths``: the prefixes of its paths. ``operations``: those that the OpenAPI document of a process has, if
    that documents several APIs. ``long_polls``: paths of requests that wait for something; they do not count
    as requests under way.
    """

    application: Application
    paths: Sequence[str] = ()
    operations: Sequence[Operation] = ()
    long_polls: Sequence[str] = ()


class Process(Generic[Own_co]):
    """A process, and its parts as far as they are open.

    A part that it does not have is None; one that is not open yet is not set.

    - ``options``: those of all its parts. ``parts``: the names of all its parts. ``clock``: seconds since
      1970. ``stack``: closes the parts, the last one first.
    - ``databases``: those that the parts have opened. ``hurries``: they have little time for each answer
      once the process has to end; otherwise a part sees to that. ``apis``: the last one gets every path that
      no other claims.
    - ``ledger``: None: placement is another service, ``http_placement``. ``queries``: the budget of all
      queries on the ledger.
    - ``cells``: by name; they may change. ``conducted``: those whose conductors this process runs.
    - ``hosts`` and ``words``: the scheduler's, unless that is another service. ``words_before_runs``: words
      that come during a run count for the next one. ``seeds``: the seeds of its runs; None: random ones.
      ``members``: those of server groups, for a placement service without groups; None: those of the API
      database.
    - ``address``: the URL at which people on this machine reach the process; None if it is not known.
      ``certificate``: the file of its certificate; None without TLS.
    - ``sections``: of the report of the process. ``stops``: called in the event loop when the process has to
      end, to end waits of requests.
    """

    records: "RecordQueue"
    api: "Database | None" = None
    ledger: "Ledger | None" = None
    queries: "QueryBudget | None" = None
    http_placement: "HttpPlacement | None" = None
    placement: "Placement"
    cells: "Mapping[str, Cell]"
    conducted: "Sequence[Cell]" = ()
    aggregates: "HostAggregates"
    mirror: "AggregateMirror"
    hosts: "ServiceHosts | None" = None
    words: "OperatorWords | None" = None
    words_before_runs = False
    seeds: Callable[[], int] | None = None
    members: "Members | None" = None
    scheduler: "SchedulerLike"
    requests: "Requests"
    groups: "ServerGroups"
    super_conductor: "SuperConductor"
    nova_cells: "NovaCells"
    nova_feed: "NovaFeed"
    nova_rpc: "SchedulerRpcServer"
    nova_copies: "CopiedCalls"

    def __init__(
        self,
        options: Own_co,
        parts: Collection[str],
        stack: AsyncExitStack,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.options = options
        self.parts = parts
        self.stack = stack
        self.clock = clock
        self.databases: list[Database] = []
        self.hurries = True
        self.apis: list[Api] = []
        self.sections: dict[str, Describe] = {}
        self.stops: list[Callable[[], object]] = []
        self.address: str | None = None
        self.certificate: Path | None = None

    def open_database(self, url: DatabaseUrl | str) -> Database:
        """Open a database. Raises `StorageError`."""
        database = Database(url, answer_seconds=self.options.answer_seconds)
        self.stack.push_async_callback(database.close)
        self.databases.append(database)
        return database

    @property
    def only_reads(self) -> bool:
        """True if no part makes decisions that are recorded, so that records and journals are others'."""
        return not _DECIDING.intersection(self.parts)

    def owns(self, database: Database) -> bool:
        """Return whether no other process uses a database, so that leases of an earlier process are free."""
        return False

    def around(self, gateway: "Gateway") -> "Gateway":
        """Return the gateway that the scheduler uses, given the one that decides."""
        return gateway

    def application(self) -> Application:
        """Return the application of all APIs."""
        under = {path: api.application for api in self.apis[:-1] for path in api.paths}
        return dispatch(under, self.apis[-1].application) if under else self.apis[-1].application

    def run_beside(self, work: Coroutine[Any, Any, None], name: str | None = None) -> "asyncio.Task[None]":
        """Run work as a task, which is cancelled when the process closes."""
        task = asyncio.create_task(work, name=name)

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.stack.push_async_callback(end)
        return task

    def run_for_ever(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run work that must not end before the process closes. ``name``: names the task in the log."""

        def ended(task: "asyncio.Task[None]") -> None:
            if not task.cancelled():
                _log.error("a part of the process has died", part=name, exc_info=task.exception())
                self.died(task.exception())

        self.run_beside(work).add_done_callback(ended)

    def died(self, error: BaseException | None) -> None:
        """End this worker process, of which a part has died; its parent starts another one.

        ``error``: None if the part has returned.
        """
        os.kill(os.getpid(), signal.SIGTERM)


class ProcessPart(Generic[Options]):
    """A part of processes: what its options need, how it opens and closes, and when it is ready."""

    def check(self, options: Options) -> None:
        """Check that the options work, before any process starts. Raises `OperatorError`."""

    def prepare(self, options: Options) -> None:
        """Create tables in empty SQLite files, and check those of other databases. Raises `StorageError`."""

    async def open(self, process: Process[Options]) -> None:
        """Open the part; the stack of the process closes it. Raises `OperatorError`."""
        raise NotImplementedError

    def readiness(self, process: Process[Options]) -> Sequence[HealthCheck]:
        """Return the checks that must pass for requests to be served that need this part."""
        return ()


def prepare_database(url: DatabaseUrl | str, upgrade: bool = False, schema: Schema = SCHEMA) -> None:
    """Create the tables of an empty SQLite file; check, or upgrade, those of any other database.

    ``schema``: the schema of its tables, by default the ledger's. Raises `StorageError`.
    """
    database = Database(url, answer_seconds=COMMAND_ANSWER_SECONDS if upgrade else ANSWER_SECONDS)
    try:
        if upgrade:
            schema.upgrade(database)
        else:
            schema.prepare(database)
    finally:
        asyncio.run(database.close())
