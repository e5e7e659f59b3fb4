"""The program `roost neighbours`."""

from contextlib import AsyncExitStack
from functools import partial

import sqlalchemy as sa

from roost.placement.access import open_authenticator
from roost.placement.readiness import keystone_checks
from roost.process import tracing
from roost.process.option_source import Source
from roost.server.neighbours.app import create_app, default_rules
from roost.server.neighbours.handlers import NeighbourService
from roost.server.neighbours.options import NeighbourOptions, read_neighbour_options, shown_options
from roost.server.neighbours.tables import SCHEMA
from roost.server.placement.edge import with_edge
from roost.server.placement.server import prepare_database
from roost.server.scheduler.program import ProgramKind
from roost.server.workers.worker import ServedApplication
from roost.storage import Database
from roost.web.auth.rules import PolicyRules
from roost.web.health import Health, HealthCheck, NoAnswer


def neighbours_kind(database: str | None) -> ProgramKind[NeighbourOptions]:
    """Return the program of the service. ``database``: the URL of the command line."""

    def read(source: Source) -> NeighbourOptions:
        return read_neighbour_options(source, database)

    return ProgramKind(read, _check, _prepare, shown_options, _open)


def _check(options: NeighbourOptions) -> None:
    open_authenticator(options)
    _rules(options)
    tracing.check(options.tracing)


def _prepare(options: NeighbourOptions) -> None:
    prepare_database(options.database, options.upgrade_database, SCHEMA)


async def _open(options: NeighbourOptions, stack: AsyncExitStack) -> ServedApplication:
    database = Database(options.database, answer_seconds=options.answer_seconds)
    stack.push_async_callback(database.close)
    application = create_app(
        NeighbourService(database), open_authenticator(options), _rules(options), options
    )
    checks = (HealthCheck("database", partial(_look, database), _judge), *keystone_checks(options))
    health = Health(checks, options.health)
    edge = with_edge(application, None, options, health)
    return ServedApplication(edge, health, sections={}, databases=(database,))


def _rules(options: NeighbourOptions) -> PolicyRules:
    return PolicyRules(default_rules(), options.source, options.enforce_new_defaults)


async def _look(database: Database) -> None:
    await database.read(lambda connection: connection.execute(sa.text("SELECT 1")))


def _judge(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    return str(failure) if isinstance(failure, NoAnswer) else "it cannot be read; the log has the error"
