"""The program of the Placement API: the checks before any process starts, and the worker processes."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog

from roost.ledger import SCHEMA
from roost.model.errors import OperatorError
from roost.placement.access import open_authenticator, open_policy
from roost.placement.options import PlacementOptions, read_options, shown_options
from roost.process import tracing
from roost.process.logs import configure_logs
from roost.process.report import ProcessReport
from roost.server.placement.edge import waiting_for
from roost.server.placement.worker import PlacementWorker
from roost.server.workers.beats import Beats
from roost.server.workers.listeners import Listeners
from roost.server.workers.supervision import Cause, SupervisionRules
from roost.server.workers.supervisor import Hooks, Report, Supervisor
from roost.server.workers.tls import Tls
from roost.server.workers.worker import run_worker
from roost.storage import ANSWER_SECONDS, COMMAND_ANSWER_SECONDS, Database, DatabaseUrl, Schema

_LOG = structlog.get_logger()


def check_options(options: PlacementOptions) -> None:
    """Check that the options of tokens and policies work. Raises `OperatorError`."""
    open_authenticator(options)
    open_policy(options)
    tracing.check(options.tracing)


def prepare_database(url: DatabaseUrl | str, upgrade: bool = False, schema: Schema = SCHEMA) -> None:
    """Create the tables of an empty SQLite file; check, or upgrade, those of any other database.

    ``schema``: the schema of its tables, by default the ledger's. Raises `StorageError`.
    """
    database = Database(url, answer_seconds=COMMAND_ANSWER_SECONDS if upgrade else ANSWER_SECONDS)
    try:
        if upgrade:
            schema.upgrade(database)
        else:
            schema.prepare(database)
    finally:
        asyncio.run(database.close())


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


@dataclass(frozen=True)
class PlacementProgram:
    """The Placement API with its configuration; each worker process serves a replica.

    ``database``: its SQLAlchemy URL. ``insecure``: the operator allows other machines to be served without
    authentication. ``rules``: the limits of supervision. ``host``: the address where it listens; None for a
    UNIX socket. ``metrics``: the folder that workers publish their metrics to.
    """

    database: DatabaseUrl | str
    options: PlacementOptions
    insecure: bool
    rules: SupervisionRules
    host: str | None = None
    tls: Tls | None = None
    metrics: Path | None = None

    def run(self, listener: socket.socket, report: Report, cause: Cause, beats: Beats) -> None:
        """Serve in this worker process until SIGTERM."""

        options = self.options

        def make(report: Report) -> PlacementWorker:
            seconds = self.rules.drain_seconds
            prepare = partial(prepare_database, self.database, options.upgrade_database)
            waiting = waiting_for((self.database,), prepare, options)
            return PlacementWorker(self.database, options, report, self.metrics, cause, seconds, waiting)

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

    def reread(self) -> "PlacementProgram":
        """Return the program with the options read again from their files.

        The database stays: workers with different databases would contradict each other. Raises
        `OperatorError` if an option is wrong.
        """
        options = read_options(self.options.source)
        check_options(options)
        if options.auth_strategy == "noauth2":
            check_exposure(self.host, self.insecure)
        if self.tls is not None:
            self.tls.check()
        if options.database != self.options.database:
            _LOG.warning(
                "an option changes only when the service is restarted",
                option="[placement_database] connection",
            )
        try:
            configure_logs(options.logs)
        except OperatorError:
            configure_logs(self.options.logs)
            raise
        return replace(self, options=options)


def serve(
    listeners: Listeners,
    service: PlacementProgram,
    on_ready: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT, with one process for each worker.

    ``on_ready`` is called once all workers can serve. Raises `OperatorError` if one cannot.
    """
    configure_logs(service.options.logs)
    state = ProcessReport(options=lambda: shown_options(service.options))
    Supervisor(listeners, service, service.rules, Hooks(on_ready, on_report=state.log)).run()
