"""The server of topic ``scheduler``: its start, and its graceful end."""

import asyncio
import time
from typing import Any

import structlog

from roost.nova.calls import Decide, Hints
from roost.nova.rpc.calls_in_work import CallsInWork
from roost.nova.rpc.endpoint import SchedulerEndpoint
from roost.nova.rpc.oslo import oslo_messaging, rpc_server
from roost.nova.rpc.transport import NovaTransport
from roost.process.lane import Lane

_log = structlog.get_logger()

START_SECONDS = 60.0
"""Seconds that the first connection to the broker may take."""

CLOSE_SECONDS = 5.0
"""Seconds that replies and connections have after the last call is decided or given up."""


class SchedulerRpcServer:
    """Takes the calls and casts of topic ``scheduler`` of the queue of all schedulers and of its own.

    Args:
        transport: it is closed with the server.
        host: the name of this scheduler, of which its own queue has its name.
        decide: decides a call, in the event loop that starts the server.
        hints: takes the casts.
    """

    def __init__(self, transport: NovaTransport, host: str, decide: Decide, hints: Hints) -> None:
        self._transport = transport
        self._host = host
        self._decide = decide
        self._hints = hints
        self._lane = Lane("rpc server")
        self._calls: CallsInWork | None = None
        self._server: Any = None

    @property
    def in_work(self) -> int:
        """The number of calls that are being decided."""
        return 0 if self._calls is None else len(self._calls)

    async def start(self) -> None:
        """Connect to the broker, and take calls from now on.

        Raises:
            CallTimedOut: The broker could not be reached in time.
        """
        self._calls = CallsInWork(self._decide, asyncio.get_running_loop())
        self._server = oslo_messaging.get_rpc_server(
            self._transport.rpc,
            self._transport.target(self._host),
            [SchedulerEndpoint(self._calls, self._hints)],
            server_cls=_Server,
        )
        await self._lane.run(self._server.start, START_SECONDS)

    async def stop(self, seconds: float | None) -> None:
        """Take no more calls, finish those that were taken, and close the connections.

        Args:
            seconds: time limit. Calls that are not decided then are refused. None: no limit.
        """
        if self._server is None or self._calls is None:
            return
        finishing = asyncio.create_task(self._lane.run(self._finish))
        await asyncio.wait({finishing}, timeout=seconds)
        if not finishing.done():
            _log.warning("calls were not decided in time, and are refused", calls=self.in_work)
            self._calls.give_up()
            await asyncio.wait({finishing}, timeout=CLOSE_SECONDS)
        if finishing.done():
            finishing.result()
        else:
            # A thread waits for a broker that is away. It ends with the process.
            _log.warning("the broker does not take the last replies", calls=self.in_work)
            finishing.cancel()
        await self._lane.close(CLOSE_SECONDS if finishing.done() else 0)

    def _finish(self) -> None:
        self._server.stop()
        self._server.wait()
        self._transport.close()


class _Server(rpc_server.RPCServer):  # type: ignore[misc]
    """Drops calls of which the caller no longer awaits a reply when their turn comes.

    A caller that gets no heartbeat within its time gives up. Heartbeats begin when a thread takes the call.
    """

    def _on_incoming(self, incoming: Any) -> None:
        incoming[0].roost_arrival = time.monotonic()
        super()._on_incoming(incoming)

    def _process_incoming(self, incoming: Any) -> None:
        message = incoming[0]
        limit = getattr(message, "client_timeout", None)
        waited = time.monotonic() - message.roost_arrival
        if limit and waited > limit:
            _log.warning("a call waited longer than its caller did, and is dropped", seconds=round(waited, 1))
            return
        super()._process_incoming(incoming)
