"""The small service of ports and accelerators: its database and its API."""

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa

from roost.placement.access import open_authenticator
from roost.server.neighbours.app import create_app, default_rules
from roost.server.neighbours.handlers import NeighbourService
from roost.server.neighbours.options import NeighbourOptions
from roost.server.neighbours.store import SCHEMA
from roost.server.process import Api, Process, ProcessPart, prepare_database
from roost.storage import Database
from roost.web.auth.rules import PolicyRules
from roost.web.health import HealthCheck, NoAnswer


class NeighboursPart(ProcessPart[NeighbourOptions]):
    """The database of ports and accelerators, and their API."""

    def check(self, options: NeighbourOptions) -> None:
        _rules(options)

    def prepare(self, options: NeighbourOptions) -> None:
        prepare_database(options.database, options.upgrade_database, SCHEMA)

    async def open(self, process: Process[NeighbourOptions]) -> None:
        options = process.options
        service = NeighbourService(process.open_database(options.database))
        application = create_app(service, open_authenticator(options), _rules(options), options)
        process.apis.append(Api(application))

    def readiness(self, process: Process[NeighbourOptions]) -> Sequence[HealthCheck]:
        [database] = process.databases
        return (HealthCheck("database", partial(_look, database), _judge),)


def _rules(options: NeighbourOptions) -> PolicyRules:
    return PolicyRules(default_rules(), options.source, options.enforce_new_defaults)


async def _look(database: Database) -> None:
    await database.read(lambda connection: connection.execute(sa.text("SELECT 1")))


def _judge(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    return str(failure) if isinstance(failure, NoAnswer) else "it cannot be read; the log has the error"
