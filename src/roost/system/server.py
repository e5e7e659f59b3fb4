"""The HTTP API of the whole system, served from its own process and event loop."""

import asyncio
import signal
from collections.abc import Callable

from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from roost.auth import NoAuth
from roost.conductor import http as conductor_http
from roost.logs import LogOptions
from roost.placement.http.app import create_app
from roost.placement.http.document import document_at
from roost.placement.http.edge import with_edge
from roost.placement.options import PlacementOptions
from roost.placement.v1.app import V1
from roost.serving.listeners import BACKLOG
from roost.system.readiness import system_health
from roost.system.system import System
from roost.web.connections import cut_clients_of_the_server, server_settings
from roost.web.dispatch import Application, dispatch
from roost.web.health import Health
from roost.web.health_operations import DOCUMENTED

STOP_SECONDS = 1.0
"""So long requests under way may take once the server is to stop."""


async def serve(
    system: System, host: str, port: int, on_ready: Callable[[], None], logs: LogOptions | None = None
) -> None:
    """Serve until SIGTERM or SIGINT. Raises whatever kills a part of the system, the server among them.

    ``on_ready`` is called once the port is listened on.
    """
    health = system_health(system, system.options.health)
    options = PlacementOptions(
        auth_strategy="noauth2", logs=logs or LogOptions(), health=system.options.health
    )
    v1 = V1(system.ledger, options, document_at, (*conductor_http.OPERATIONS, *DOCUMENTED))
    server = Server(
        _application(system, v1, options, health),
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        websockets=False,
        backlog=BACKLOG,
        **server_settings(options.limits),
        log_enabled=False,
        log_level=LogLevels.warning,
    )
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    serving = asyncio.create_task(server.serve())
    stopping = asyncio.create_task(stop.wait())
    breaking = asyncio.create_task(system.broken())
    announcing = asyncio.create_task(_announce(host, port, on_ready))
    cutting = asyncio.create_task(cut_clients_of_the_server(options.limits))
    try:
        await asyncio.wait((serving, stopping, breaking), return_when=asyncio.FIRST_COMPLETED)
        if breaking.done():
            raise breaking.result()
        if serving.done():
            serving.result()
            raise RuntimeError("the HTTP server ended by itself")
    finally:
        v1.close()
        health.close()
        server.stop()  # type: ignore[no-untyped-call]
        # It waits for every open connection, also for those whose client says nothing more.
        await asyncio.wait((serving,), timeout=STOP_SECONDS)
        tasks = (serving, stopping, breaking, announcing, cutting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _announce(host: str, port: int, on_ready: Callable[[], None]) -> None:
    """Call ``on_ready`` as soon as somebody listens: the server itself does not say when."""
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            await writer.wait_closed()
            on_ready()
            return


def _application(system: System, v1: V1, options: PlacementOptions, health: Health) -> Application:
    """``/v1/instances`` is the conductor's, the rest of ``/v1`` is V1's; all else is the Placement API's."""
    placement = create_app(system.ledger, options)
    conductor = conductor_http.create_app(system.super_conductor, system.requests, NoAuth())
    services = dispatch({"/v1": v1, "/v1/instances": conductor}, placement)
    return with_edge(services, system.ledger, options, health)
