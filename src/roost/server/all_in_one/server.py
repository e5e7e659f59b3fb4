"""Serves the HTTP APIs of the whole system, in the process and event loop of the system."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

from roost.conductor import http as conductor_http
from roost.placement.access import open_authenticator
from roost.placement.v1.app import V1
from roost.scheduler.api.kept_answers import SchedulerAnswers
from roost.scheduler.api.operations import OPERATIONS as SCHEDULING
from roost.scheduler.api.operations import PATHS as SCHEDULING_PATHS
from roost.server.all_in_one.system import System
from roost.server.conductor.parts import conductor_application
from roost.server.conductor.readiness import conducting_health
from roost.server.placement.edge import with_edge
from roost.server.placement.worker import open_api
from roost.server.scheduler.served import scheduling_application
from roost.server.workers.granian import EmbeddedServer
from roost.server.workers.listeners import Listeners
from roost.server.workers.notify import Notifier
from roost.server.workers.tls import Tls
from roost.server.workers.worker import STOP_SECONDS
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.web.connections import cut_clients_that_do_not_read, server_settings
from roost.web.dispatch import Application, dispatch
from roost.web.health import Health
from roost.web.health_metrics import keep_checking
from roost.web.health_operations import DOCUMENTED


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
    options = system.options
    health = conducting_health("api database", system.api, CONDUCTOR, system.asked, options)
    async with AsyncExitStack() as stack:
        application, v1 = _application(stack, system, health)
        cut_clients_that_do_not_read(listeners.sockets[0], options.limits)
        server = EmbeddedServer(application, listeners.sockets[0], tls, server_settings(options.limits))
        await _serve(system, server, v1, health, on_ready, drain_seconds)


async def _serve(
    system: System,
    server: EmbeddedServer,
    v1: V1,
    health: Health,
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
    checking = asyncio.create_task(keep_checking(health))
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
        for database in system.databases:
            database.stop_within(STOP_SECONDS)
        v1.close()
        health.close()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait((serving,), timeout=drain_seconds)
        tasks = (serving, stopping, breaking, checking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _application(stack: AsyncExitStack, system: System, health: Health) -> tuple[Application, V1]:
    """Return the application that routes requests to the services by their paths.

    Below ``/v1`` the conductor and the scheduler have their own paths, and `V1` has the others. All other
    paths are Placement's.
    """
    options = system.options
    authenticator = open_authenticator(options)
    documented = (*conductor_http.OPERATIONS, *SCHEDULING, *DOCUMENTED)
    placement, v1 = open_api(stack, system.ledger, options, documented)
    conductor = conductor_application(system.conducting, options, authenticator, documented=False)
    answers = SchedulerAnswers(system.ledger.database)
    stack.push_async_callback(answers.close)
    scheduling = scheduling_application(
        system.deciding,
        system.records,
        options,
        system.ledger,
        authenticator,
        answers,
        documented=False,
    )
    services = dispatch(
        {
            "/v1": v1,
            **dict.fromkeys(conductor_http.PATHS, conductor),
            **dict.fromkeys(SCHEDULING_PATHS, scheduling),
        },
        placement,
    )
    return with_edge(services, system.ledger, options, health), v1
