"""From Roost's database into OpenStack Placement's: in one transaction, everything or nothing.

Why not in chunks, as the way in: a database that holds half of an export looks to OpenStack Placement like
a whole one, and whoever started it on that would place onto hosts that are full.
"""

import asyncio

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from roost.exchange.consumer_pages import holdings
from roost.exchange.doubts import doubt_units, doubt_use
from roost.exchange.errors import ExchangeError
from roost.exchange.glance import glance
from roost.exchange.report import Progress, Report
from roost.exchange.target import check_target, finish_target, prepare_target
from roost.exchange.writing import Writer
from roost.fleet import Fleet
from roost.fleet.errors import FleetError
from roost.ledger import SCHEMA
from roost.ledger.load import load
from roost.ledger.tables import consumers
from roost.storage import Database


def export_placement(source: Database, target: str, progress: Progress) -> Report:
    """Write everything in ``source``, opened read-only, into the database with the URL ``target``, which is
    empty or holds nothing but standard names.

    Raises `ExchangeError` or `StorageError`; the target has nothing of it then.
    """
    SCHEMA.check(source)
    name = sa.make_url(target).render_as_string()
    glance(target, lambda connection: check_target(connection, name))
    into = Database(target)

    def export(connection: Connection) -> Report:
        fleet = _fleet(connection, source)
        return into.write_now(lambda writing: _write(connection, fleet, writing, name, progress))

    try:
        return source.read_now(export)
    except DBAPIError as error:
        refusal = " ".join(str(error.orig).split())
        raise ExchangeError(f"database {name} refuses a row: {refusal}; nothing was exported") from error
    finally:
        asyncio.run(into.close())


def _fleet(connection: Connection, source: Database) -> Fleet:
    try:
        return load(connection)
    except (FleetError, LookupError) as error:
        raise ExchangeError(
            f"database {source} is damaged ({error}): 'roost db verify --database {source}' says where"
        ) from error


def _write(connection: Connection, fleet: Fleet, into: Connection, name: str, progress: Progress) -> Report:
    report = Report()
    total = len(fleet) + connection.execute(sa.select(sa.func.count()).select_from(consumers)).scalar_one()
    done = 0
    check_target(into, name)
    prepare_target(into)
    writer = Writer(into, fleet, report)
    writer.write_names()
    for number in writer.write_providers():
        done += number
        progress(done, total)
    for held in holdings(connection):
        writer.write_consumers(held)
        for each in held:
            doubt_units(fleet, each, report)
        done += len(held)
        progress(done, total)
    doubt_use(fleet, report)
    finish_target(into)
    return report
