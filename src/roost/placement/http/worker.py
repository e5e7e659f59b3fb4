"""A worker process: the ASGI application that opens a database and its ledger in the server's event loop."""

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from math import ceil
from pathlib import Path

import msgspec

from roost import tracing
from roost.ledger import Ledger, keep_what_is_loaded
from roost.ledger.retention import keep_trimming
from roost.metrics.catalogue import WORKER_STARTS
from roost.metrics.enabling import counted
from roost.model.errors import OperatorError
from roost.placement.http.app import create_app
from roost.placement.http.document import document_at
from roost.placement.http.edge import with_edge
from roost.placement.options import PlacementOptions, shown_options
from roost.placement.queries import QueryBudget
from roost.placement.readiness import placement_health
from roost.placement.v1.app import V1
from roost.report import Describe, Report
from roost.serving.supervision import Cause
from roost.storage import Database
from roost.web.dispatch import Application, Message, Receive, Send, dispatch
from roost.web.health import Health
from roost.web.health_metrics import keep_checking
from roost.web.health_operations import DOCUMENTED

STOP_SECONDS = 1.0
"""Seconds that the database has for each answer after SIGTERM or SIGINT."""


class Worker:
    """An ASGI application that opens its replica at lifespan startup and closes it at shutdown.

    ``database``: its SQLAlchemy URL. ``report`` is called once: with None when the worker can serve, or with
    the reason why it cannot; then the worker ends. ``metrics``: the folder that the worker publishes its
    metrics to; None: it counts nothing. ``cause``: why it is started. ``drain_seconds``: seconds that
    requests have after SIGTERM; then the parent kills the worker, and a second later it ends by itself.
    """

    def __init__(
        self,
        database: str,
        options: PlacementOptions,
        report: Callable[[str | None], None] = lambda _: None,
        metrics: Path | None = None,
        cause: Cause = "start",
        drain_seconds: float = 10.0,
    ) -> None:
        self._url = database
        self._options = options
        self._report = report
        self._metrics = metrics
        self._cause = cause
        self._drain_seconds = drain_seconds
        self._app: Application | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(counted(self._metrics))
                WORKER_STARTS.labels(self._cause).inc()
                tracing.start(self._options.tracing)
                stack.callback(tracing.stop)
                database = Database(self._url, answer_seconds=self._options.answer_seconds)
                stack.push_async_callback(database.close)
                ledger = await Ledger.open(database)
                stack.push_async_callback(ledger.close)
                health = placement_health(ledger, self._options)
                stack.callback(health.close)
            except Exception as error:
                self._report(str(error) if isinstance(error, OperatorError) else f"cannot start: {error!r}")
                await send({"type": "lifespan.startup.failed", "message": ""})
                return
            queries = QueryBudget(ledger, self._options.limits)
            v1 = V1(ledger, self._options, queries, document_at, DOCUMENTED)
            stack.callback(v1.close)
            # The default action of SIGALRM is the end. It needs neither the parent nor the event loop.
            last = partial(signal.alarm, ceil(self._drain_seconds) + 1)
            _at_termination(last, v1.close, partial(database.stop_within, STOP_SECONDS))
            services = dispatch({"/v1": v1}, create_app(ledger, self._options, queries))
            self._app = with_edge(services, ledger, self._options, health)
            self._report_on_signal(ledger, health)
            checking = asyncio.create_task(keep_checking(health))
            stack.callback(checking.cancel)
            keep_what_is_loaded()
            trimming = asyncio.create_task(keep_trimming(ledger, self._options.retention, time.time))
            stack.callback(trimming.cancel)
            await send({"type": "lifespan.startup.complete"})
            self._report(None)
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def _report_on_signal(self, ledger: Ledger, health: Health) -> None:
        def describe() -> dict[str, object]:
            return {"database": str(ledger.database), **msgspec.structs.asdict(ledger.status())}

        sections: dict[str, Describe] = {"ledger": describe, "readiness": health.describe}
        Report(asyncio.get_running_loop(), partial(shown_options, self._options), sections).on_signal()


def _at_termination(*callbacks: Callable[[], object]) -> None:
    """Call back in this event loop on SIGTERM or SIGINT.

    The server waits for open connections before it ends the lifespan, so streams, and requests that wait for
    a database that hangs, must end earlier. The server's own handlers still run: the event loop learns of
    signals through a file descriptor, whichever handler is set here.
    """
    loop = asyncio.get_running_loop()

    def call_back(*_: object) -> None:
        for callback in callbacks:
            loop.call_soon_threadsafe(callback)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, call_back)
