"""The HTTP APIs of a whole system on one address, in the process and event loop of the system."""

import asyncio
import signal
from collections.abc import Callable

from roost.server.all_in_one.system import APIS, System
from roost.server.programs import open_parts, served
from roost.server.workers.granian import EmbeddedServer
from roost.server.workers.listeners import Listeners
from roost.server.workers.notify import Notifier
from roost.server.workers.tls import Tls
from roost.server.workers.worker import STOP_SECONDS, ServedApplication
from roost.web.connections import cut_clients_that_do_not_read, server_settings
from roost.web.health import keep_checking


async def serve(
    system: System,
    listeners: Listeners,
    on_ready: Callable[[], None],
    tls: Tls | None = None,
    drain_seconds: float = 1.0,
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP. Raises the error that ends a part of the system or the server.

    ``listeners``: sockets of one slot. ``on_ready`` is called once requests are served. ``drain_seconds``:
    seconds that requests under way may take after the signal.
    """
    await open_parts(system, APIS)
    service = served(system, "up")
    limits = system.options.limits
    cut_clients_that_do_not_read(listeners.sockets[0], limits)
    server = EmbeddedServer(service.application, listeners.sockets[0], tls, server_settings(limits))
    await _serve(system, server, service, on_ready, drain_seconds)


async def _serve(
    system: System,
    server: EmbeddedServer,
    service: ServedApplication,
    on_ready: Callable[[], None],
    drain_seconds: float,
) -> None:
    notifier = Notifier()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(name, stop.set)
    # Log rotation sends SIGUSR1 to have programs reopen their logs. By default it would end the process.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    serving = asyncio.create_task(server.serve())
    stopping = asyncio.create_task(stop.wait())
    breaking = asyncio.create_task(system.broken())
    checking = asyncio.create_task(keep_checking(service.health))
    try:
        # The socket listens already, so the first connections wait until the server takes them.
        on_ready()
        notifier.ready()
        await asyncio.wait((serving, stopping, breaking), return_when=asyncio.FIRST_COMPLETED)
        if breaking.done():
            raise breaking.result()
        if serving.done():
            serving.result()
            raise RuntimeError("the HTTP server ended by itself")
    finally:
        notifier.stopping()
        for database in (*service.databases, *(cell.database for cell in system.cells.values())):
            database.stop_within(STOP_SECONDS)
        for end in (*service.stop, service.health.close):
            end()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait((serving,), timeout=drain_seconds)
        tasks = (serving, stopping, breaking, checking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
