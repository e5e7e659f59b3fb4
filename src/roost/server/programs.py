"""The programs: the parts of each command, and a program whose worker processes serve its parts."""

import importlib
import ipaddress
import socket
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple

import structlog
from msgspec import structs

from roost.model.errors import OperatorError
from roost.placement.access import open_authenticator
from roost.placement.readiness import keystone_checks
from roost.process import tracing
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.process.report import ProcessReport
from roost.server.edge import with_edge
from roost.server.process import Options, Process, ProcessPart
from roost.server.workers.beats import Beats
from roost.server.workers.database_wait import DatabaseWait, on_servers
from roost.server.workers.listeners import Listeners
from roost.server.workers.supervision import SupervisionRules
from roost.server.workers.supervision_events import Cause
from roost.server.workers.supervisor import Hooks, Supervisor
from roost.server.workers.tls import Tls
from roost.server.workers.worker import ServedApplication, Worker, run_worker
from roost.server.workers.worker_process import Report
from roost.web.dispatch import Application
from roost.web.health import Health

_LOG = structlog.get_logger()

_HERE = "roost.server.parts"

PARTS: Final = {
    "records": f"{_HERE}.databases:RecordsPart",
    "api_database": f"{_HERE}.databases:ApiDatabasePart",
    "bridge_database": f"{_HERE}.nova:BridgeDatabasePart",
    "placement": f"{_HERE}.placement:PlacementPart",
    "cell0_mapping": f"{_HERE}.databases:Cell0MappingPart",
    "layout_mappings": "roost.server.all_in_one.layout_parts:LayoutMappingsPart",
    "cells": f"{_HERE}.databases:CellsPart",
    "cell": f"{_HERE}.databases:CellPart",
    "simulated_hosts": "roost.server.all_in_one.layout_parts:SimulatedHostsPart",
    "aggregates": f"{_HERE}.conductors:AggregatesPart",
    "layout_aggregates": "roost.server.all_in_one.layout_parts:LayoutAggregatesPart",
    "hosts": f"{_HERE}.scheduler:HostsPart",
    "nova_hosts": f"{_HERE}.nova:NovaHostsPart",
    "scheduler": f"{_HERE}.scheduler:SchedulerPart",
    "cell_conductors": f"{_HERE}.conductors:CellConductorsPart",
    "trimming": f"{_HERE}.placement:TrimmingPart",
    "super_conductor": f"{_HERE}.conductors:SuperConductorPart",
    "neighbours": f"{_HERE}.neighbours:NeighboursPart",
    "agents_api": f"{_HERE}.agents:AgentsApiPart",
    "conductor_api": f"{_HERE}.conductors:ConductorApiPart",
    "scheduler_api": f"{_HERE}.scheduler:SchedulerApiPart",
    "nova_service": f"{_HERE}.nova:NovaServicePart",
    "nova_audit": f"{_HERE}.nova_upkeep:NovaAuditPart",
    "nova_attempts": f"{_HERE}.nova_upkeep:NovaAttemptsPart",
    "nova_calls": f"{_HERE}.nova:NovaCallsPart",
    "nova_shadow": f"{_HERE}.nova_shadow:NovaShadowPart",
    "dashboard": "roost.dashboard.part:DashboardPart",
    "placement_api": f"{_HERE}.placement:PlacementApiPart",
}
"""The module and the class of each part, in the order in which the parts of a process open.

Each part is after those that it calls, and closes before them: the databases and placement first; the cells
with their hosts, which write their inventories to placement; the scheduler, which reads both; the conductors,
which call it; the APIs, which call all. The API of placement is the last one, because its document describes
the operations of the others. A process imports only the parts that it has.
"""


class CommandParts(NamedTuple):
    """The parts of the processes of a command, and those that must be ready for requests to be served."""

    parts: frozenset[str]
    ready: tuple[str, ...]


def _has(*parts: str, ready: tuple[str, ...]) -> CommandParts:
    return CommandParts(frozenset(parts), ready)


_DECIDING: Final = ("records", "api_database", "placement", "hosts", "scheduler")

COMMANDS: Final = {
    "serve": _has("placement", "trimming", "placement_api", ready=("placement",)),
    "scheduler": _has(*_DECIDING, "cells", "scheduler_api", ready=("placement", "hosts")),
    "conductor": _has(
        *_DECIDING,
        "cell0_mapping",
        "cells",
        "aggregates",
        "cell_conductors",
        "super_conductor",
        "conductor_api",
        ready=("api_database", "placement"),
    ),
    "cell-conductor": _has(*_DECIDING, "cell", "cell_conductors", "agents_api", ready=("cell", "placement")),
    "nova-scheduler": _has(
        "records",
        "bridge_database",
        "placement",
        "nova_hosts",
        "scheduler",
        "scheduler_api",
        "nova_service",
        "nova_audit",
        "nova_attempts",
        "nova_calls",
        "nova_shadow",
        ready=("placement", "nova_hosts", "nova_calls", "nova_shadow"),
    ),
    "dashboard": _has(*_DECIDING, "cells", "dashboard", ready=("placement", "hosts")),
    "neighbours": _has("neighbours", ready=("neighbours",)),
    "up": _has(
        *_DECIDING,
        "layout_mappings",
        "cells",
        "simulated_hosts",
        "aggregates",
        "layout_aggregates",
        "cell_conductors",
        "trimming",
        "super_conductor",
        "conductor_api",
        "scheduler_api",
        "dashboard",
        "placement_api",
        ready=("api_database", "placement"),
    ),
}
"""The parts of each command. Cells that are down make no conductor unready: it serves the others."""


def part_named(name: str) -> ProcessPart[Any]:
    """Return a part, and import it."""
    module, _, part = PARTS[name].partition(":")
    made: ProcessPart[Any] = getattr(importlib.import_module(module), part)()
    return made


def check_options(command: str, options: Options) -> None:
    """Check that the options of all parts of a command work. Raises `OperatorError`."""
    open_authenticator(options)
    tracing.check(options.tracing)
    for part in _parts(command):
        part.check(options)


def prepare(command: str, options: Options) -> None:
    """Create tables in empty SQLite files, and check those of other databases. Raises `StorageError`."""
    for part in _parts(command):
        part.prepare(options)


async def open_parts(process: Process[Any], names: Collection[str]) -> None:
    """Open parts of a process in the order of `PARTS`. Raises `OperatorError`."""
    for name in PARTS:
        if name in names:
            await part_named(name).open(process)


def served(process: Process[Any], command: str) -> ServedApplication:
    """Return the APIs of a process whose parts are open, with their edge and the readiness of the parts."""
    options = process.options
    checks = [check for name in COMMANDS[command].ready for check in part_named(name).readiness(process)]
    health = Health((*checks, *keystone_checks(options)), options.health)
    polls = [path for api in process.apis for path in api.long_polls]
    return ServedApplication(
        with_edge(process.application(), process.ledger, options, health, polls),
        health,
        process.sections,
        process.databases if process.hurries else (),
        process.stops,
    )


@dataclass(frozen=True)
class Program(Generic[Options]):
    """A command with its configuration; each of its worker processes opens the parts of the command.

    - ``read``: reads the options from a source. Raises `OperatorError`.
    - ``configured``: the options of the source. ``options``: the same with the databases that are in use, of
      the command line and of the start.
    - ``insecure``: the operator allows other machines to be served without authentication.
    - ``rules``: the limits of supervision. ``host``: the address where it listens; None for a UNIX socket.
      ``address``: the URL at which people on this machine reach it.
    - ``metrics``: the folder that workers publish their metrics to.
    """

    command: str
    read: Callable[[Source], Options]
    configured: Options
    options: Options
    insecure: bool
    rules: SupervisionRules
    host: str | None = None
    address: str | None = None
    tls: Tls | None = None
    metrics: Path | None = None

    def check(self) -> None:
        """Check that the options work, before any process starts. Raises `OperatorError`."""
        check_options(self.command, self.options)
        if self.options.auth_strategy == "noauth2":
            check_exposure(self.host, self.insecure)

    def run(self, listener: socket.socket, report: Report, cause: Cause, beats: Beats) -> None:
        """Serve in this worker process until SIGTERM."""
        options = self.options

        def make(report: Report) -> Worker:
            return Worker(
                self.open,
                options.tracing,
                options.shown,
                report,
                self.metrics,
                cause,
                self.rules.drain_seconds,
                self._wait(),
            )

        run_worker(
            make,
            listener,
            report,
            logs=options.logs,
            limits=options.limits,
            tls=self.tls,
            rules=self.rules,
            beats=beats,
        )

    async def open(self, stack: AsyncExitStack) -> ServedApplication:
        """Open the parts of this worker process; the stack closes them. Raises `OperatorError`."""
        process = Process(self.options, COMMANDS[self.command].parts, stack)
        process.address = self.address
        process.certificate = None if self.tls is None else self.tls.certificate
        await open_parts(process, process.parts)
        return served(process, self.command)

    def reread(self) -> "Program[Options]":
        """Return the program with the options read again. Raises `OperatorError` if one is wrong.

        The databases stay: workers with different ones would contradict each other.
        """
        configured = self.read(self.configured.source or Source())
        kept = {name: getattr(self.options, name) for name in _DATABASES if hasattr(configured, name)}
        changed = replace(self, configured=configured, options=structs.replace(configured, **kept))
        changed.check()
        if self.tls is not None:
            self.tls.check()
        for name, url in configured.databases.items():
            if url != self.configured.databases.get(name):
                _LOG.warning("an option changes only when the service is restarted", option=name)
        try:
            configure_logs(configured.logs)
        except OperatorError:
            configure_logs(self.options.logs)
            raise
        return changed

    def _wait(self) -> DatabaseWait | None:
        """Return the wait of a worker process for its databases; None if none of them is on a server."""
        options = self.options
        if not on_servers(options.databases.values()):
            return None

        def edge(application: Application, health: Health) -> Application:
            return with_edge(application, None, options, health)

        return DatabaseWait(partial(prepare, self.command, options), edge, options.health)


_DATABASES: Final = ("database", "api_database", "cell_database")
"""The options with URLs of databases."""


def serve(listeners: Listeners, program: Program[Options], on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, with one process for each worker.

    ``on_ready`` is called once all workers can serve. Raises `OperatorError` if one cannot.
    """
    configure_logs(program.options.logs)
    state = ProcessReport(options=program.options.shown)
    Supervisor(listeners, program, program.rules, Hooks(on_ready, on_report=state.log)).run()


def check_exposure(host: str | None, allowed: bool) -> None:
    """Check that a service without authentication cannot be reached from another machine.

    ``host``: the address where it listens; None for a UNIX socket. ``allowed``: the operator allows it.
    Raises `OperatorError`.
    """
    if not allowed and host is not None and not _is_loopback(host):
        raise OperatorError(
            f"refusing to serve without authentication on {host}, which is not a loopback address: "
            "check tokens with auth_strategy = keystone or tokens, or allow it with "
            "--insecure-no-authentication"
        )


def _is_loopback(host: str) -> bool:
    """Return whether all addresses of a host are loopback addresses. 0.0.0.0 and :: are not."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise OperatorError(f"cannot listen on {host}: {error.strerror}") from error
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def _parts(command: str) -> list[ProcessPart[Any]]:
    """Return the parts of a command in the order in which they open."""
    return [part_named(name) for name in PARTS if name in COMMANDS[command].parts]
