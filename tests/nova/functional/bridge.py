"""The product's parts of `roost nova-scheduler` on the cloud of a test.

All is the product's but for three parts: a message comes from the manager in this process and not from a
broker, placement is in this process too, and the feed does not run beside the calls. It reads before each
call what it would have read by itself some seconds later, because tests do not wait for it, and after each
cast.
"""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import configuration
import databases
import in_process
from loop_thread import LoopThread
from msgspec.structs import replace
from nova.context import RequestContext

from nova import rpc
from roost.nova import arrivals, cell_feed, settlement
from roost.nova.calls import NovaRefusal, SelectCall
from roost.nova.database.cells import NovaCells
from roost.nova.database.groups import read_members
from roost.nova.decisions import AnswerOptions, NovaDecisions
from roost.nova.feed import NovaFeed
from roost.nova.instance_source import CellInstances
from roost.nova.networks import NovaNetworks
from roost.nova.rpc.calls_in_work import CallsInWork
from roost.nova.rpc.endpoint import SchedulerEndpoint
from roost.nova.rpc.notifications import CallNotifications
from roost.process.option_source import Source
from roost.scheduler import Scheduler
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.scheduler.nodes.table import NodeTable
from roost.server.nova_options import NovaSchedulerOptions, read_nova_options
from roost.server.parts.databases import RecordsPart
from roost.server.parts.scheduler import SchedulerPart
from roost.server.process import Process
from roost.storage import Database
from roost.web.auth.credentials import FixedCredentials

PATIENCE_SECONDS = 60.0
"""Seconds that a read of a database may take, so that a busy machine does not make a decision without it."""

_LOOP = LoopThread()


def note_clouds() -> None:
    """Remember the databases and the placement of each test that begins from here on."""
    databases.note_cells()
    in_process.note_placement()
    # Every look reads all, as after a while: tests do not wait.
    arrivals.COUNTED_SECONDS = 0.0
    cell_feed.LOOK_SECONDS = 0.0
    settlement.SETTLE_SECONDS = 0.0


class Bridge:
    """The scheduler of a test's cloud, with the options that the test has set."""

    def __init__(self) -> None:
        self._opened: _OpenBridge | None = None
        self._stack = AsyncExitStack()
        self._text = ""

    def open(self) -> None:
        databases.map_cells()
        self._text = configuration.written_options(databases.main_database())
        folder = Path(tempfile.mkdtemp(prefix="roost-"))
        own = f"[nova_bridge]\nconnection = sqlite:///{folder}/roost.db\npublic_reasons = false\n"
        (folder / "nova.conf").write_text(self._text + own)
        options = read_nova_options(Source((str(folder / "nova.conf"),)))
        self._opened = _LOOP.wait_for(_OpenBridge.opened(options, self._stack))

    def close(self) -> None:
        if self._opened is not None:
            self._opened = None
            _LOOP.wait_for(self._stack.aclose())

    def read_cells(self) -> None:
        """Read the mappings of cells, as a bridge does that is started again."""
        if self._opened is not None:
            self.close()
            self.open()

    @property
    def refusal(self) -> str:
        """The scheduler's own reason of the last refusal."""
        return "" if self._opened is None else self._opened.refusal

    @contextmanager
    def offers(self) -> Iterator[list[None]]:
        """A list with an entry for each candidate that placement offers meanwhile."""
        in_process.OFFERS.clear()
        yield in_process.OFFERS

    def call(self, method: str, context: Mapping[str, Any], message: dict[str, Any]) -> Any:
        """Return what the endpoint answers to a message, or raise what it raises."""
        decides = method == "select_destinations"
        if decides:
            self._open_again()
        assert self._opened is not None
        answer = getattr(self._opened.endpoint, method)(context, **message)
        if not decides:
            _LOOP.wait_for(self._opened.refresh())
        return answer

    def _open_again(self) -> None:
        """Open the bridge again if the test has set other options, as an operator starts it again."""
        databases.map_cells()
        if configuration.written_options(databases.main_database()) != self._text:
            self.close()
            self.open()


class NotedNotifications(CallNotifications):
    """Hands the notifications to the fixtures that collect those of Nova's services."""

    def __init__(self, host: str) -> None:
        self._unversioned = _Notifier(rpc.get_notifier("scheduler", host))
        self._versioned = _Notifier(rpc.get_versioned_notifier(f"nova-scheduler:{host}"))

    def close(self) -> None: ...


class _Notifier:
    """Sends by a notifier of Nova, whose fixtures take no context but Nova's."""

    def __init__(self, notifier: Any) -> None:
        self._notifier = notifier

    def info(self, context: Any, event: str, payload: Any) -> None:
        self._notifier.info(RequestContext.from_dict(context.redacted_copy()), event, payload)


class _OpenBridge:
    def __init__(self, options: NovaSchedulerOptions, process: Process[NovaSchedulerOptions]) -> None:
        # Every look reads the marks of all nodes and instances, and the mappings of cells.
        bridge = replace(options.bridge, nodes_seconds=0.0, cells_seconds=0.0)
        api = Database(options.nova_api, deferred=True, create=False)
        process.stack.push_async_callback(api.close)
        self._cells = NovaCells(api, options.nova_main)
        process.stack.push_async_callback(self._cells.close)
        self._table = NodeTable()
        self._refreshing = asyncio.Lock()
        self.feed = NovaFeed(
            self._cells,
            self._table,
            bridge,
            down_seconds=options.scheduler.service_down_time,
            image_properties=True,
            patience_seconds=PATIENCE_SECONDS,
        )
        process.stack.push_async_callback(self.feed.close)
        process.words = self.feed.words
        process.members = lambda group: api.read(read_members(group))
        process.hosts = ServiceHosts(self._table, self.feed, None)
        credentials = FixedCredentials("http://placement", "admin")
        process.http_placement = in_process.WatchedPlacement(
            credentials, client=in_process.placement_client()
        )
        process.placement = process.http_placement
        process.stack.push_async_callback(process.http_placement.close)

    @classmethod
    async def opened(cls, options: NovaSchedulerOptions, stack: AsyncExitStack) -> "_OpenBridge":
        process = Process(options, (), stack)
        await RecordsPart().open(process)
        bridge = cls(options, process)
        await SchedulerPart().open(process)
        assert isinstance(process.scheduler, Scheduler)
        answers = AnswerOptions(
            options.nova.max_attempts,
            options.bridge.public_reasons,
            options.scheduler.default_availability_zone,
        )
        wanted = options.scheduler.request_filters.query_placement_for_routed_network_aggregates
        networks = NovaNetworks(in_process.Neutron() if wanted else None)
        decide = NovaDecisions(
            process.scheduler,
            process.placement,
            process.records,
            CellInstances(bridge._cells),
            answers,
            bridge,
            checked=False,
            filled=networks.filled,
        )

        async def noted(call: SelectCall) -> Any:
            try:
                return await decide(call)
            except NovaRefusal as refusal:
                bridge.refusal = str(getattr(refusal.__cause__, "reason", ""))
                raise

        calls = CallsInWork(noted, _LOOP.loop)
        bridge.endpoint = SchedulerEndpoint(calls, bridge.feed, NotedNotifications(options.host))
        await bridge.refresh()
        return bridge

    endpoint: SchedulerEndpoint
    refusal = ""
    """The scheduler's own reason of the last refusal."""

    @property
    def changes(self) -> int:
        return self.feed.changes

    async def look(self) -> None:
        await self.refresh()

    async def renew(self) -> None:
        await self.refresh()

    async def refresh(self) -> None:
        """Read all hosts anew: rows that change twice within a second have the same stamp."""
        async with self._refreshing:
            await self.feed.refresh()
            for cell in self.feed._feeds.values():
                for node, host in cell._hosts.items():
                    cell.read_soon(host, node)
            await self.feed.refresh()
