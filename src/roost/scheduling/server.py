"""Serving the scheduler: the checks before any process starts, and what the processes run."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from roost import tracing
from roost.auth.rules import Rules as PolicyRules
from roost.logs import configure_logs
from roost.model.errors import OperatorError
from roost.placement.access import open_authenticator
from roost.placement.client import HttpPlacement
from roost.placement.http.server import check_exposure
from roost.report import Report as ProcessReport
from roost.scheduling.http.app import default_rules
from roost.scheduling.options import SchedulingOptions, read_scheduling_options, shown_options
from roost.scheduling.worker import Worker
from roost.serving.listeners import Listeners
from roost.serving.supervision import Cause, Rules
from roost.serving.supervisor import Hooks, Report, Supervisor
from roost.serving.tls import Tls
from roost.serving.worker import run_worker

_LOG = structlog.get_logger()


def check_options(options: SchedulingOptions) -> None:
    """Check that tokens, policies and access to placement work with these. Raises `OperatorError`."""
    open_authenticator(options.http)
    PolicyRules(default_rules(), options.source, options.http.enforce_new_defaults)
    tracing.check(options.http.tracing)
    if options.database is None:
        HttpPlacement.configured(options.source)


@dataclass(frozen=True)
class SchedulingService:
    """The scheduler with its configuration, of which each worker process serves one.

    ``database``: that of the command line. ``insecure``: the operator allows to serve other machines without
    authentication. ``rules``: those of its supervision. ``host``: where it listens; None for a UNIX socket.
    ``metrics``: the folder that workers publish their metrics to.
    """

    database: str | None
    options: SchedulingOptions
    insecure: bool
    rules: Rules
    host: str | None = None
    tls: Tls | None = None
    metrics: Path | None = None

    def run(self, listener: socket.socket, report: Report, cause: Cause) -> None:
        """Serve in this process, a worker, until it is told to end."""

        def make(report: Report) -> Worker:
            return Worker(self.options, report, self.metrics, cause, self.rules.drain_seconds)

        http = self.options.http
        run_worker(make, listener, report, logs=http.logs, limits=http.limits, tls=self.tls, rules=self.rules)

    def reread(self) -> "SchedulingService":
        """Return the service with the options as files have them now. Raises `OperatorError` if one is
        wrong."""
        options = read_scheduling_options(self.options.source, self.database)
        check_options(options)
        if options.http.auth_strategy == "noauth2":
            check_exposure(self.host, self.insecure)
        if self.tls is not None:
            self.tls.check()
        if options.database != self.options.database:
            raise OperatorError("[placement_database] connection changes only when the service is restarted")
        try:
            configure_logs(options.http.logs)
        except OperatorError:
            configure_logs(self.options.http.logs)
            raise
        return replace(self, options=options)


def serve(listeners: Listeners, service: SchedulingService, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, with one process for each worker.

    ``on_ready`` is called once all workers can serve. Raises `OperatorError` if one cannot.
    """
    configure_logs(service.options.http.logs)
    state = ProcessReport(options=lambda: shown_options(service.options))
    Supervisor(listeners, service, service.rules, Hooks(on_ready, on_report=state.log)).run()
