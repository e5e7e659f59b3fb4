"""A program under a supervisor that serves HTTP with options of files, and its kinds."""

import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.process.report import ProcessReport
from roost.server.placement.edge import waiting_for
from roost.server.placement.server import check_exposure
from roost.server.workers.beats import Beats
from roost.server.workers.listeners import Listeners
from roost.server.workers.supervision import Cause, SupervisionRules
from roost.server.workers.supervisor import Hooks, Report, Supervisor
from roost.server.workers.tls import Tls
from roost.server.workers.worker import ServedApplication, Worker, run_worker

Options = TypeVar("Options", bound=PlacementOptions)


@dataclass(frozen=True)
class ProgramKind(Generic[Options]):
    """A kind of program.

    - ``read``: reads the options from a source.
    - ``check``: checks that the options work. Raises `OperatorError`.
    - ``prepare``: creates the tables of empty SQLite files, and checks those of other databases. Raises
      `StorageError`.
    - ``shown``: returns the options for a report, secrets masked.
    - ``open``: opens the application of a worker process; the stack closes it. Raises `OperatorError`.
    """

    read: Callable[[Source], Options]
    check: Callable[[Options], None]
    prepare: Callable[[Options], None]
    shown: Callable[[Options], dict[str, object]]
    open: Callable[[Options, AsyncExitStack], Awaitable[ServedApplication]]


@dataclass(frozen=True)
class Program(Generic[Options]):
    """A program with its configuration; each worker process runs it.

    ``insecure``: the operator allows other machines to be served without authentication. ``rules``: the
    limits of supervision. ``host``: the address where it listens; None for a UNIX socket. ``metrics``: the
    folder that workers publish their metrics to.
    """

    kind: ProgramKind[Options]
    options: Options
    insecure: bool
    rules: SupervisionRules
    host: str | None = None
    tls: Tls | None = None
    metrics: Path | None = None

    def run(self, listener: socket.socket, report: Report, cause: Cause, beats: Beats) -> None:
        """Serve in this worker process until SIGTERM."""

        def make(report: Report) -> Worker:
            return ProgramWorker(self, report, cause)

        options = self.options
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

    def check(self) -> None:
        """Check that the options work, before any process starts. Raises `OperatorError`."""
        self.kind.check(self.options)
        if self.options.auth_strategy == "noauth2":
            check_exposure(self.host, self.insecure)

    def reread(self) -> "Program[Options]":
        """Return the program with the options read again. Raises `OperatorError` if one is wrong."""
        options = self.kind.read(self.options.source or Source())
        changed = replace(self, options=options)
        changed.check()
        if self.tls is not None:
            self.tls.check()
        for name, url in options.databases.items():
            if url != self.options.databases.get(name):
                raise OperatorError(f"{name} changes only when the service is restarted")
        try:
            configure_logs(options.logs)
        except OperatorError:
            configure_logs(self.options.logs)
            raise
        return changed


class ProgramWorker(Worker, Generic[Options]):
    """A worker process of a program. ``report`` and ``cause``: as of `Worker`."""

    def __init__(
        self, program: Program[Options], report: Callable[[str | None], None], cause: Cause = "start"
    ) -> None:
        super().__init__(
            program.options.tracing,
            partial(program.kind.shown, program.options),
            report,
            program.metrics,
            cause,
            program.rules.drain_seconds,
            waiting_for(
                program.options.databases.values(),
                partial(program.kind.prepare, program.options),
                program.options,
            ),
        )
        self._program = program

    async def open(self, stack: AsyncExitStack) -> ServedApplication:
        return await self._program.kind.open(self._program.options, stack)


def serve(listeners: Listeners, program: Program[Options], on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, with one process for each worker.

    ``on_ready`` is called once all workers can serve. Raises `OperatorError` if one cannot.
    """
    configure_logs(program.options.logs)
    state = ProcessReport(options=lambda: program.kind.shown(program.options))
    Supervisor(listeners, program, program.rules, Hooks(on_ready, on_report=state.log)).run()
