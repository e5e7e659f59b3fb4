"""The export from a database of Roost into one of OpenStack Placement, in one transaction.

An import uses many transactions; an export cannot. OpenStack Placement cannot distinguish half an export from
a complete one: started on it, it would place instances on hosts that are full.
"""

import asyncio

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from roost.fleet import Fleet
from roost.fleet.errors import FleetError
from roost.ledger import SCHEMA
from roost.ledger.errors import Damaged
from roost.ledger.load import load
from roost.ledger.tables import consumers
from roost.placement.exchange.anomalies import report_broken_units, report_overuse
from roost.placement.exchange.errors import ExchangeError
from roost.placement.exchange.ledger_consumers import holdings
from roost.placement.exchange.placement_target import check_target, finish_target, prepare_target
from roost.placement.exchange.placement_writer import PlacementWriter
from roost.placement.exchange.probe import probe
from roost.placement.exchange.report import ExchangeReport, Progress
from roost.storage import COMMAND_ANSWER_SECONDS, Database, as_url


def export_placement(source: Database, target: str, progress: Progress) -> ExchangeReport:
    """Write all names, providers and consumers of a database of Roost into one of OpenStack Placement.

    Args:
        source: the database of Roost, opened read-only.
        target: the URL of the other one, which is empty or has only standard names.
        progress: called after each batch.

    Raises:
        ExchangeError: the target is not empty or refuses a row, or the source is damaged.
        StorageError: a database cannot be opened, read or written.

    After an error the target has none of it.
    """
    SCHEMA.check(source)
    name = str(as_url(target))
    probe(target, lambda connection: check_target(connection, name))
    into = Database(target, answer_seconds=COMMAND_ANSWER_SECONDS)

    def export(connection: Connection) -> ExchangeReport:
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
    except (FleetError, LookupError, Damaged) as error:
        raise ExchangeError(
            f"database {source} is damaged ({error}): 'roost db verify' tells all that is wrong with it"
        ) from error


def _write(
    connection: Connection, fleet: Fleet, into: Connection, name: str, progress: Progress
) -> ExchangeReport:
    report = ExchangeReport()
    total = len(fleet) + connection.execute(sa.select(sa.func.count()).select_from(consumers)).scalar_one()
    done = 0
    check_target(into, name)
    prepare_target(into)
    writer = PlacementWriter(into, fleet, report)
    writer.write_names()
    for number in writer.write_providers():
        done += number
        progress(done, total)
    for held in holdings(connection):
        writer.write_consumers(held)
        for each in held:
            report_broken_units(fleet, each, report)
        done += len(held)
        progress(done, total)
    report_overuse(fleet, report)
    finish_target(into)
    return report
