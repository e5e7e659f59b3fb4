"""The HTTP API of the whole system, served from its own process and event loop."""

import asyncio
import signal
from collections.abc import Callable

from roost.auth import NoAuth
from roost.conductor import http as conductor_http
from roost.logs import LogOptions
from roost.metrics import catalogue as metrics
from roost.placement.http.app import create_app
from roost.placement.http.document import document_at
from roost.placement.http.edge import with_edge
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.v1.app import V1
from roost.scheduling.http.app import create_app as create_scheduling_app
from roost.scheduling.http.operations import OPERATIONS as SCHEDULING
from roost.scheduling.http.operations import PATHS as SCHEDULING_PATHS
from roost.scheduling.http.service import Service as SchedulingService
from roost.serving.granian import EmbeddedServer
from roost.serving.listeners import Listeners
from roost.serving.notify import Notifier
from roost.serving.tls import Tls
from roost.system.readiness import system_health
from roost.system.system import System
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
    logs: LogOptions | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP. Raises what kills a part of the system or the server.

    ``listeners``: of one slot. ``on_ready`` is called once requests are served. ``drain_seconds``: seconds
    that requests under way may take then.
    """
    health = system_health(system, system.options.health)
    options = PlacementOptions(
        auth_strategy="noauth2",
        logs=logs or LogOptions(),
        health=system.options.health,
        limits=system.options.limits,
    )
    queries = QueryBudget(system.ledger, options.limits)
    v1 = V1(
        system.ledger, options, queries, document_at, (*conductor_http.OPERATIONS, *SCHEDULING, *DOCUMENTED)
    )
    cut_clients_that_do_not_read(listeners.sockets[0], options.limits)
    application = _application(system, v1, options, queries, health)
    server = EmbeddedServer(application, listeners.sockets[0], tls, server_settings(options.limits))
    notifier = Notifier()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(name, stop.set)
    # Elsewhere it makes programs open their logs anew. The default would end the process.
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
        v1.close()
        health.close()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait((serving,), timeout=drain_seconds)
        tasks = (serving, stopping, breaking, checking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _application(
    system: System, v1: V1, options: PlacementOptions, queries: QueryBudget, health: Health
) -> Application:
    """Conductor and scheduler have their paths under ``/v1``, V1 the rest; all else is Placement's."""
    placement = create_app(system.ledger, options, queries)
    conductor = conductor_http.create_app(
        system.super_conductor,
        system.requests,
        system.aggregates,
        system.groups,
        system.placement,
        NoAuth(),
    )
    scheduling = create_scheduling_app(
        SchedulingService(system.scheduler, system.records, system.options.scheduler, system.ledger), NoAuth()
    )
    services = dispatch(
        {
            "/v1": v1,
            **dict.fromkeys(conductor_http.PATHS, conductor),
            **dict.fromkeys(SCHEDULING_PATHS, scheduling),
        },
        placement,
    )
    metrics.BUILD_REQUESTS.follow(lambda: system.super_conductor.in_progress)
    metrics.WAITING_RECORDS.follow(lambda: system.records.waiting)
    return with_edge(services, system.ledger, options, health)
