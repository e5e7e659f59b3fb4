"""A worker process of a service: an ASGI application that opens the service when the server starts."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path

from roost.model.errors import OperatorError
from roost.process import tracing
from roost.process.garbage_collection import keep_what_is_loaded
from roost.process.instrumentation import counted
from roost.process.logs import LogOptions, configure_logs, logging_config, silence
from roost.process.metrics.catalogue import WORKER_STARTS
from roost.process.report import Describe, ProcessReport
from roost.process.tracing import TracingOptions
from roost.server.workers.beats import Beats, WatchedApplication
from roost.server.workers.database_wait import DatabaseWait, open_when_there, tell_away
from roost.server.workers.granian import WorkerServer
from roost.server.workers.loop_signals import call_on_signals
from roost.server.workers.retirement import Retiring
from roost.server.workers.supervision import SupervisionRules
from roost.server.workers.supervision_events import Cause
from roost.server.workers.tls import Tls
from roost.server.workers.worker_process import Report as ReportStart
from roost.storage import Database
from roost.web.connections import cut_clients_that_do_not_read, server_settings
from roost.web.dispatch import Application, Message, Receive, Send
from roost.web.health import Health, keep_checking
from roost.web.limits import Limits

STOP_SECONDS = 1.0
"""Seconds that a database has for each answer after SIGTERM or SIGINT."""

_SERVER_LOGGER = "_granian"


@dataclass(frozen=True)
class ServedApplication:
    """The application of a worker, and what the process must know of it.

    - ``application``: with its edge. ``health``: its checks.
    - ``sections``: of the report of the process.
    - ``databases``: they have `STOP_SECONDS` for each answer after SIGTERM and SIGINT.
    - ``stop``: called in the event loop on SIGTERM and SIGINT, to end other waits of requests.
    """

    application: Application
    health: Health
    sections: Mapping[str, Describe] = field(default_factory=dict)
    databases: Sequence[Database] = ()
    stop: Sequence[Callable[[], object]] = ()


class Worker:
    """An ASGI application that opens its service at lifespan startup and closes it at shutdown.

    ``open_``: opens the service; the stack closes it. Raises `OperatorError` if it cannot be served.
    ``tracing_options``: tracing of the process. ``options``: returns the options for the report of the
    process. ``report``: called once, with None when the worker can serve, or with the reason why it cannot;
    then the worker ends. ``metrics``: the folder that the worker publishes its metrics to; None: it counts
    nothing. ``cause``: the reason of its start. ``drain_seconds``: seconds that requests have after SIGTERM;
    then the parent kills the worker, or a second later it ends by itself. ``waiting``: its wait for
    databases that are away; None: it ends instead.
    """

    def __init__(
        self,
        open_: Callable[[AsyncExitStack], Awaitable[ServedApplication]],
        tracing_options: TracingOptions,
        options: Describe,
        report: Callable[[str | None], None] = lambda _: None,
        metrics: Path | None = None,
        cause: Cause = "start",
        drain_seconds: float = 10.0,
        waiting: DatabaseWait | None = None,
    ) -> None:
        self._open = open_
        self._waiting = waiting
        self._waits = False
        self._tracing = tracing_options
        self._shown_options = options
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
        shutdown = asyncio.ensure_future(receive())
        async with AsyncExitStack() as stack:
            stack.callback(shutdown.cancel)
            try:
                await stack.enter_async_context(counted(self._metrics))
                WORKER_STARTS.labels(self._cause).inc()
                tracing.start(self._tracing)
                stack.callback(tracing.stop)
                served = await self._opened(stack, send, shutdown)
            except Exception as error:
                self._report(str(error) if isinstance(error, OperatorError) else f"cannot start: {error!r}")
                if not self._waits:
                    await send({"type": "lifespan.startup.failed", "message": ""})
                    return
                os.kill(os.getpid(), signal.SIGTERM)
                served = None
            if served is None:
                await shutdown
                await send({"type": "lifespan.shutdown.complete"})
                return
            stack.callback(served.health.close)
            self._app = served.application
            # By default SIGALRM ends the process, without the help of the parent or of the event loop.
            stop = [partial(database.stop_within, STOP_SECONDS) for database in served.databases]
            _at_termination(partial(signal.alarm, ceil(self._drain_seconds) + 1), *served.stop, *stop)
            sections = {**served.sections, "readiness": served.health.describe}
            ProcessReport(asyncio.get_running_loop(), self._shown_options, sections).on_signal()
            checking = asyncio.create_task(keep_checking(served.health))
            stack.callback(checking.cancel)
            keep_what_is_loaded()
            if not self._waits:
                await send({"type": "lifespan.startup.complete"})
            self._report(None)
            await shutdown
        await send({"type": "lifespan.shutdown.complete"})

    async def _opened(
        self, stack: AsyncExitStack, send: Send, shutdown: "asyncio.Future[Message]"
    ) -> ServedApplication | None:
        """Open the service once its databases answer; None if the server is told to end before."""
        waiting = self._waiting
        if waiting is None:
            return await self._open(stack)

        async def away(error: OperatorError) -> None:
            # Requests are answered from now on, with 503: health says why.
            self._app, self._waits = waiting.application(), True
            if self._cause != "start":
                # At the start of the program the parent has logged the warning already.
                tell_away(error)
            await send({"type": "lifespan.startup.complete"})

        async def open_(tried: AsyncExitStack) -> ServedApplication:
            if self._waits:
                await asyncio.to_thread(waiting.prepare)
            return await self._open(tried)

        opening = asyncio.create_task(open_when_there(stack, open_, away))
        await asyncio.wait((opening, shutdown), return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            return opening.result()
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        return None


def run_worker(
    make: Callable[[ReportStart], Worker],
    listener: socket.socket,
    report: ReportStart,
    *,
    logs: LogOptions,
    limits: Limits,
    tls: Tls | None,
    rules: SupervisionRules,
    beats: Beats,
) -> None:
    """Serve in this process until SIGTERM or SIGINT.

    ``make`` returns the worker, which reports on its start. ``beats`` are raised while the event loop turns.
    """
    configure_logs(logs)

    def report_quietly(failure: str | None) -> None:
        if failure is not None:
            # The server would log further lines about the end of the worker.
            silence(_SERVER_LOGGER)
        report(failure)

    worker = make(report_quietly)
    cut_clients_that_do_not_read(listener, limits)
    settings = {**server_settings(limits), "log_dictconfig": logging_config(logs)}
    application = WatchedApplication(Retiring(worker, rules.linger_seconds), beats.beat)
    WorkerServer(application, listener, tls, settings).run()


def _at_termination(*callbacks: Callable[[], object]) -> None:
    """Call functions in this event loop on SIGTERM or SIGINT.

    The server waits for open connections before it ends the lifespan, so streams, and requests that wait for
    a database that hangs, must end earlier. The server's own handlers still run: the event loop learns of
    signals through a file descriptor, independent of the handler that is set here.
    """
    call_on_signals((signal.SIGTERM, signal.SIGINT), *callbacks)
