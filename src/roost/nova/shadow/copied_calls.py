"""Copies of Nova's calls to its scheduler, from a queue of our own at the exchange of all schedulers.

RabbitMQ puts a message into each queue that is bound with its routing key, so the queue of the schedulers has
each call as before. Ours is exclusive: it is gone with its connection, and nothing stays at the broker. It is
bounded, and drops the oldest copies when nobody reads them.

oslo.messaging has no such queue, so kombu is used, which is its driver for RabbitMQ.
"""

import asyncio
import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import kombu
import kombu.exceptions

from roost.nova.broker import BrokerAddress, RabbitOptions
from roost.nova.calls import SelectCall
from roost.process.logs.outages import OutageLines

TOPIC: Final = "scheduler"
"""The routing key of calls to any scheduler."""

METHOD: Final = "select_destinations"

MOST_QUEUED: Final = 1000
"""Copies that the broker keeps for us."""

EXPIRES_MS: Final = 60_000
"""Milliseconds after which the broker drops a copy that was not read, or the queue that nobody reads."""

POLL_SECONDS: Final = 1.0
"""Most seconds until the thread sees that it is to end."""

RETRY_SECONDS: Final = 2.0
"""Seconds between two attempts to connect."""

CONNECT_SECONDS: Final = 5.0


class CopiedCalls:
    """Reads copies of calls in a thread, and hands them to the event loop.

    ``take`` is called in the event loop that starts it, and returns at once. ``exchange``: of Nova's services
    (``control_exchange``). ``name``: of this process, for the name of the queue. ``retry_seconds``: between
    two attempts to connect.

    ``connected``: the queue is read now. ``tries``: attempts to connect so far.
    """

    def __init__(
        self,
        brokers: Sequence[BrokerAddress],
        virtual_host: str,
        options: RabbitOptions,
        take: Callable[[SelectCall], None],
        *,
        exchange: str,
        name: str,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._brokers = brokers
        self._virtual_host = virtual_host
        self._options = options
        self._take = take
        self._exchange = exchange
        self._retry_seconds = retry_seconds
        self.queue = f"roost-shadow.{name}.{uuid.uuid4()}"
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outages = OutageLines(
            __name__, "copies of Nova's calls cannot be read", "copies of Nova's calls are read again"
        )
        self._failed = False
        self.connected = False
        self.tries = 0

    @property
    def failure(self) -> str | None:
        """Why no copies come; None if the queue is read."""
        if self.connected:
            return None
        if not self._failed:
            return "the message broker is being connected"
        return "the message broker is not connected; the log has the error"

    def start(self) -> None:
        """Begin to read. The connection is made in the thread, and again when it is lost."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="copied calls", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop reading. The queue is gone with the connection."""
        self._ending.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 2 * CONNECT_SECONDS)

    def _run(self) -> None:
        while not self._ending.is_set():
            broker = self._brokers[self.tries % len(self._brokers)]
            self.tries += 1
            try:
                self._read(broker)
            except _ERRORS as error:
                self._failed = True
                self._outages.failed(broker=f"{broker.host}:{broker.port}", error=str(error))
            finally:
                self.connected = False
            self._ending.wait(self._retry_seconds)

    def _read(self, broker: BrokerAddress) -> None:
        """Read copies from a broker until the end. Raises the errors of kombu."""
        with kombu.Connection(
            hostname=broker.host,
            port=broker.port,
            userid=broker.user,
            password=broker.password,
            virtual_host=self._virtual_host,
            ssl=self._options.tls,
            login_method=self._options.rabbit_login_method,
            connect_timeout=CONNECT_SECONDS,
            heartbeat=60,
            transport="pyamqp",
        ) as connection:
            # Passive: the exchange is Nova's, and has whatever properties Nova gave it.
            exchange = kombu.Exchange(self._exchange, type="topic", passive=True)
            queue = kombu.Queue(
                self.queue,
                exchange,
                routing_key=TOPIC,
                exclusive=True,
                durable=False,
                auto_delete=True,
                queue_arguments={
                    "x-expires": EXPIRES_MS,
                    "x-message-ttl": EXPIRES_MS,
                    "x-max-length": MOST_QUEUED,
                },
            )
            # A channel of the connection itself: the default one would try again by itself for seconds.
            with kombu.Consumer(
                connection.channel(), queues=[queue], callbacks=[self._received], accept=["json"], no_ack=True
            ):
                self.connected = True
                self._outages.succeeded()
                drain(connection, self._ending)

    def _received(self, body: Any, message: Any) -> None:
        call = copied_call(body)
        if call is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, call)


_ERRORS: Final = (
    OSError,
    kombu.exceptions.KombuError,
    *kombu.Connection("amqp://").connection_errors,
    *kombu.Connection("amqp://").channel_errors,
)


def drain(connection: Any, ending: threading.Event, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Hand on the messages of a connection until the end. Raises the errors of kombu.

    Heartbeats are sent and checked all the time: a broker that gets none closes the connection, however many
    messages it sends.
    """
    checked = monotonic()
    while not ending.is_set():
        with contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=POLL_SECONDS)
        if monotonic() - checked >= POLL_SECONDS:
            checked = monotonic()
            connection.heartbeat_check()


def copied_call(body: object) -> SelectCall | None:
    """Return the call in a message of oslo.messaging; None for any other message.

    Of the context only the ids are read: it has the user's token and catalogue.
    """
    if isinstance(body, Mapping) and isinstance(text := body.get("oslo.message"), str):
        try:
            body = json.loads(text)
        except ValueError:
            return None
    if not isinstance(body, Mapping) or body.get("method") != METHOD:
        return None
    arguments = body.get("args")
    if not isinstance(arguments, Mapping) or not isinstance(spec := arguments.get("spec_obj"), dict):
        return None
    instances = arguments.get("instance_uuids")
    if not isinstance(instances, list) or not instances:
        return None
    return SelectCall(
        spec=spec,
        instances=tuple(map(str, instances)),
        objects=bool(arguments.get("return_objects")),
        alternates=bool(arguments.get("return_alternates")),
        request_id=_text(body.get("_context_request_id")),
        global_request_id=_text(body.get("_context_global_request_id")),
        project=_text(body.get("_context_project_id")),
        user=_text(body.get("_context_user_id")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
