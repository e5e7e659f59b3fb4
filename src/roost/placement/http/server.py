"""Serving the API with Granian: the checks before any process starts, and the processes."""

import asyncio
import ipaddress
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection

from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from roost.ledger import SCHEMA
from roost.logs import configure_logs, logging_config, silence
from roost.model.errors import OperatorError
from roost.placement.access import open_authenticator, open_policy
from roost.placement.http.worker import Worker
from roost.placement.options import PlacementOptions
from roost.storage import ANSWER_SECONDS, COMMAND_ANSWER_SECONDS, Database

_SERVER_LOGGER = "_granian"


def check_options(options: PlacementOptions) -> None:
    """Check that tokens and policies work with these options. Raises `OperatorError`."""
    open_authenticator(options)
    open_policy(options)


def check_address(host: str, port: int) -> None:
    """Check that the address is free and of this machine. Raises `OperatorError`.

    Workers listen with SO_REUSEPORT, so they would share the port with another Roost without an error.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind, protocol)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        raise OperatorError(f"cannot listen on {host} port {port}: {error.strerror}") from error


def prepare_database(url: str, upgrade: bool = False) -> None:
    """Set up an empty SQLite file, check any other database or upgrade it. Raises `StorageError`."""
    database = Database(url, answer_seconds=COMMAND_ANSWER_SECONDS if upgrade else ANSWER_SECONDS)
    try:
        if upgrade:
            SCHEMA.upgrade(database)
        else:
            SCHEMA.prepare(database)
    finally:
        asyncio.run(database.close())


def check_exposure(host: str, allowed: bool) -> None:
    """Check that a service that believes every token cannot be reached from another machine.

    ``allowed``: the operator allows it nevertheless. Raises `OperatorError`.
    """
    if not allowed and not _is_loopback(host):
        raise OperatorError(
            f"refusing to serve without authentication on {host}, which is not a loopback address: "
            "check tokens with auth_strategy = keystone, or allow it with --insecure-no-authentication"
        )


def _is_loopback(host: str) -> bool:
    """Whether all addresses of a host are of this machine only. 0.0.0.0 and :: are not."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise OperatorError(f"cannot listen on {host}: {error.strerror}") from error
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def serve(
    host: str,
    port: int,
    workers: int,
    database: str,
    options: PlacementOptions,
    on_ready: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT, one process for each worker.

    ``on_ready`` is called, in another thread, once all workers can serve. Raises `OperatorError` if one
    cannot.
    """
    configure_logs(options.logs)
    server = Granian(
        "placement",
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        websockets=False,
        workers_kill_timeout=10,
        log_level=LogLevels.warning,
        log_dictconfig=logging_config(options.logs),
    )
    reports, reporting = multiprocessing.Pipe(duplex=False)
    failures: list[str] = []

    def follow_start() -> None:
        for _ in range(workers):
            failure = reports.recv()
            if failure is not None:
                failures.append(failure)
                # Otherwise the server logs further lines about the end of the worker.
                silence(_SERVER_LOGGER)
                return
        on_ready()

    threading.Thread(target=follow_start, daemon=True).start()
    load = partial(_load_worker, database, options, os.getpid(), reporting)
    try:
        server.serve(target_loader=load, wrap_loader=False)
    except SystemExit:
        if not failures:
            raise
    if failures:
        raise OperatorError(failures[0])


def _load_worker(database: str, options: PlacementOptions, parent: int, reporting: Connection) -> Worker:
    """Make the application of a worker. The server calls this in the worker's process."""
    configure_logs(options.logs)

    def report(failure: str | None) -> None:
        reporting.send(failure)
        if failure is not None:
            silence(_SERVER_LOGGER)

    return Worker(database, options, parent, report)
