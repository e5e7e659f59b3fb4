"""Serving the API with Granian: the checks before any process starts, and the processes."""

import asyncio
import os
import socket
from contextlib import closing
from functools import partial

from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from roost.ledger import SCHEMA
from roost.logs import configure_logs, logging_config
from roost.model.errors import OperatorError
from roost.placement.http.auth import open_authenticator
from roost.placement.http.policy import Policy
from roost.placement.http.worker import Worker
from roost.placement.options import PlacementOptions
from roost.storage import ANSWER_SECONDS, PATIENT_SECONDS, Database


def check_options(options: PlacementOptions) -> None:
    """Raise `OperatorError` if tokens cannot be checked or policies not be read with these options."""
    open_authenticator(options)
    Policy(options.enforce_new_defaults, options.source)


def check_address(host: str, port: int) -> None:
    """Raise `OperatorError` if nobody can listen there.

    Workers listen with SO_REUSEPORT, so they would share the port with another Roost and not notice.
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
    database = Database(url, answer_seconds=PATIENT_SECONDS if upgrade else ANSWER_SECONDS)
    try:
        if upgrade:
            SCHEMA.upgrade(database)
        else:
            SCHEMA.prepare(database)
    finally:
        asyncio.run(database.close())


def serve(host: str, port: int, workers: int, database: str, options: PlacementOptions) -> None:
    """Serve until SIGTERM or SIGINT, one process for each worker."""
    level = "DEBUG" if options.debug else "WARNING"
    server = Granian(
        "placement",
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        websockets=False,
        workers_kill_timeout=10,
        log_level=LogLevels.warning,
        log_dictconfig=logging_config(level),
    )
    load = partial(_load_worker, level, database, options, os.getpid())
    server.serve(target_loader=load, wrap_loader=False)


def _load_worker(level: str, database: str, options: PlacementOptions, parent: int) -> Worker:
    """Make the application of a worker. The server calls this in the worker's process."""
    configure_logs(level)
    return Worker(database, options, parent)
