"""The server of topic ``scheduler``: its start, its connection to the broker, and its graceful end."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from roost.model.errors import OperatorError
from roost.nova.calls import DecideCall, Hints
from roost.nova.options import CLOSE_SECONDS
from roost.nova.rpc.calls_in_work import CallsInWork
from roost.nova.rpc.endpoint import SchedulerEndpoint
from roost.nova.rpc.notifications import CallNotifications
from roost.nova.rpc.oslo import oslo_messaging, rpc_server
from roost.nova.rpc.transport import NovaTransport
from roost.process.lane import CallTimedOut, Lane
from roost.process.metrics import nova_bridge as metrics

_log = structlog.get_logger()

START_SECONDS = 60.0
"""Seconds after which a first connection to the broker that is not there yet is logged, again and again."""

NO_START_SECONDS = 1.0
"""Seconds for the connections of a server that has not started."""

PULSE = "roost_pulse"
"""The method of the cast that a server sends to itself through the broker."""

PULSE_SECONDS = 5.0
"""Seconds between two such casts. After three of them without any message the broker counts as away."""


class BrokerUnavailable(OperatorError):
    """The message broker of ``transport_url`` cannot be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"transport_url: the message broker cannot be used: {reason}")


class SchedulerRpcServer:
    """Takes the calls and casts of topic ``scheduler`` of the queue of all schedulers and of its own.

    oslo.messaging reconnects by itself and does not say when. So the server sends itself a cast every few
    seconds, which tells whether messages arrive.

    Args:
        transport: it is closed with the server.
        host: the name of this scheduler, of which its own queue has its name.
        decide: decides a call, in the event loop that starts the server.
        hints: takes the casts.
        pulse_seconds: see `PULSE_SECONDS`.
        start_seconds: see `START_SECONDS`.
    """

    def __init__(
        self,
        transport: NovaTransport,
        host: str,
        decide: DecideCall,
        hints: Hints,
        *,
        pulse_seconds: float = PULSE_SECONDS,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._transport = transport
        self._host = host
        self._decide = decide
        self._hints = hints
        self._pulse_seconds = pulse_seconds
        self._start_seconds = start_seconds
        self._notifications = CallNotifications(transport.conf, host)
        self._lane = Lane("rpc server")
        self._pulse_lane = Lane("rpc pulse")
        self._calls: CallsInWork | None = None
        self._server: Any = None
        self._pulse: asyncio.Task[None] | None = None
        self._listening = False
        self._heard = _Heard()

    @property
    def in_work(self) -> int:
        """The number of calls that are being decided."""
        return 0 if self._calls is None else len(self._calls)

    @property
    def listening(self) -> bool:
        """True from the start to the beginning of the end, also while the broker is away."""
        return self._listening

    @property
    def connected(self) -> bool:
        """True while messages of the broker arrive."""
        return self._listening and self.silent_seconds < 3 * self._pulse_seconds

    @property
    def silent_seconds(self) -> float:
        """Seconds since a message of the broker arrived, or since the start."""
        return time.monotonic() - self._heard.at

    async def start(self) -> None:
        """Connect to the broker, and take calls from now on. It waits for a broker that does not answer.

        Raises:
            BrokerUnavailable: The broker refused the connection. It can be tried again.
        """
        loop = asyncio.get_running_loop()
        self._calls = CallsInWork(self._decide, loop)
        # Metrics are counted in the thread of the event loop.
        count_cast = partial(loop.call_soon_threadsafe, metrics.NOVA_CASTS.inc)
        endpoint = SchedulerEndpoint(self._calls, self._hints, self._notifications, count_cast)
        self._server = oslo_messaging.get_rpc_server(
            self._transport.rpc,
            self._transport.target(self._host),
            [endpoint],
            server_cls=_Server,
        )
        self._server.heard = self._heard
        starting = asyncio.create_task(self._lane.run(self._server.start))
        try:
            while not (await asyncio.wait({starting}, timeout=self._start_seconds))[0]:
                _log.error("the message broker does not answer; the start waits for it")
            starting.result()
        except asyncio.CancelledError:
            starting.cancel()
            raise
        except Exception as error:  # those of oslo.messaging, kombu and amqp have no common class
            raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error
        self._heard.now()
        self._listening = True
        self._pulse = asyncio.create_task(self._send_pulses())

    async def stop(self, seconds: float | None) -> None:
        """Take no more calls, finish those that were taken, and close the connections.

        Args:
            seconds: time limit. Calls whose decision has not begun then are refused, and the others get no
                answer unless they are decided within `CLOSE_SECONDS`. None: no limit.
        """
        server, self._server = self._server, None
        if server is None or self._calls is None:
            return
        if not self._listening:
            # No call was taken. A thread may wait for the broker, and ends with the process.
            with contextlib.suppress(CallTimedOut):
                await self._lane.run(self._transport.close, NO_START_SECONDS)
            await self._lane.close(0)
            return
        if self._pulse is not None:
            self._pulse.cancel()
        finishing = asyncio.create_task(self._lane.run(lambda: self._finish(server)))
        await asyncio.wait({finishing}, timeout=seconds)
        if not finishing.done():
            if self.in_work:
                _log.warning("calls are not decided in time", calls=self.in_work)
            self._calls.give_up()
            server.replying = False
            await asyncio.wait({finishing}, timeout=CLOSE_SECONDS)
        if finishing.done():
            finishing.result()
        else:
            # A thread waits for a decision, or for a broker that is away. No refusal may follow from the end
            # of the decision: its claim may have been made.
            _log.warning("the last calls get no answer", calls=self.in_work)
            finishing.cancel()
            server.answering = False
            self._calls.abandon()
        await self._lane.close(CLOSE_SECONDS if finishing.done() else 0)
        await self._pulse_lane.close(0)

    def _finish(self, server: Any) -> None:
        server.stop()
        self._listening = False
        # Until this connection ends the broker sends it further calls, which would wait here for the end of
        # those in work. Now they go to other schedulers. Replies have connections of their own.
        server.listener.cleanup()
        server.wait()
        self._notifications.close()
        self._transport.close()

    async def _send_pulses(self) -> None:
        client = oslo_messaging.get_rpc_client(
            self._transport.rpc, self._transport.target(self._host), retry=0
        ).prepare()
        connected = True
        sending: asyncio.Task[None] | None = None
        while True:
            # A cast can wait for a broker that is away. So there is one at a time.
            if sending is None or sending.done():
                sending = asyncio.create_task(self._send_pulse(client))
            await asyncio.sleep(self._pulse_seconds)
            if self.connected != connected:
                connected = self.connected
                if connected:
                    _log.info("messages of the broker arrive again")
                else:
                    _log.error("no message of the broker arrives", seconds=round(self.silent_seconds, 1))

    async def _send_pulse(self, client: Any) -> None:
        try:
            await self._pulse_lane.run(lambda: client.cast({}, PULSE))
        except Exception as error:  # oslo.messaging lets errors of kombu and amqp through
            _log.debug("the broker takes no message", error=type(error).__name__)


class _Heard:
    """The time of the last message, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self.at = time.monotonic()

    def now(self) -> None:
        self.at = time.monotonic()


class _Server(rpc_server.RPCServer):  # type: ignore[misc]
    """An RPC server that knows how long a caller waits: until it has got no heartbeat for its time.

    A call whose caller has given up when its turn comes is dropped. Heartbeats begin when a thread takes it.

    A reply that the broker does not take is sent again while the caller may wait for it. oslo.messaging tries
    for a few seconds, less than a broker needs to start. A decision whose reply is lost is a claim that
    nobody knows of.
    """

    heard: _Heard

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.replying = True
        self.answering = True

    def _on_incoming(self, incoming: Any) -> None:
        self.heard.now()
        if incoming[0].message.get("method") != PULSE:
            incoming[0].roost_arrival = time.monotonic()
            super()._on_incoming(incoming)

    def _process_incoming(self, incoming: Any) -> None:
        message = incoming[0]
        limit = getattr(message, "client_timeout", None)
        waited = time.monotonic() - message.roost_arrival
        if limit and waited > limit:
            _log.warning("a call waited longer than its caller did, and is dropped", seconds=round(waited, 1))
            return
        message.reply = partial(self._reply, message.reply, limit or 0.0)
        super()._process_incoming(incoming)

    def _reply(self, reply: Callable[..., None], limit: float, *args: Any, **options: Any) -> None:
        until = time.monotonic() + limit
        while self.answering:
            try:
                reply(*args, **options)
            except Exception as error:
                if not self.replying or time.monotonic() > until:
                    raise
                _log.warning("a reply is sent again", error=type(error).__name__)
                time.sleep(1)
            else:
                return
