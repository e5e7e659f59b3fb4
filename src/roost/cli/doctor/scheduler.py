"""Checks of a scheduler's configuration: placement, hosts with their cells and journal, records."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import sqlalchemy as sa
from oslo_config import cfg

from roost.cli.doctor.check import ANSWER_SECONDS, Deployment, DoctorCheck, DoctorVerdict
from roost.cli.doctor.database import clock_of
from roost.model.errors import OperatorError
from roost.model.text import fault_of
from roost.placement.client import HttpPlacement
from roost.placement.client.transport import OLDEST, is_older
from roost.placement.errors import PlacementError
from roost.process.option_source import refused_value
from roost.records.backend import RecordOptions
from roost.records.tables import SCHEMA as RECORDS_SCHEMA
from roost.server.options import SchedulingOptions, read_scheduling_options
from roost.server.programs import check_options
from roost.state.api_database.cell_mappings import CELL0, CellMapping, url_of
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.tables import SCHEMA as CONDUCTOR_SCHEMA
from roost.state.api_database.tables import node_journal
from roost.state.cell_database import SCHEMA as CELL_SCHEMA
from roost.state.cell_database.hosts import read_refused_hosts
from roost.storage import Database, SchemaTooOld
from roost.storage.schema import Schema
from roost.web.auth import IdentityUnavailable

NOBODY = "00000000-0000-0000-0000-000000000000"
"""The uuid of no provider: a request for it shows whether the token is accepted."""


def check_scheduler(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that filters, weighers and other options of the scheduler are valid, with a source of hosts."""
    options = _options(deployment)
    check_options("scheduler", options)
    number = len(options.scheduler.filters)
    yield DoctorVerdict("ok", f"the scheduler's options are valid: {number} filters are enabled")


def check_placement(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that placement over HTTP answers, accepts the token, and has the needed microversions."""
    options = _options(deployment)
    if options.database is not None:
        yield DoctorVerdict("skip", "not checked: the scheduler decides on the ledger itself")
        return
    yield from judge_placement(options)


def judge_placement(options: SchedulingOptions) -> Iterator[DoctorVerdict]:
    """Judge the placement service that a scheduler with these options reaches over HTTP."""
    try:
        newest, is_roost = asyncio.run(_ask_placement(options))
    except (httpx.HTTPError, PlacementError, IdentityUnavailable, OSError) as error:
        says = f"placement: {type(error).__name__}: {fault_of(error)}"
        yield DoctorVerdict("fail", says, "correct [placement], or start the placement service")
        return
    except (KeyError, TypeError, ValueError) as error:
        says = f"what answers is no Placement API: {type(error).__name__}: {error}"
        yield DoctorVerdict("fail", says, "correct [placement]")
        return
    if is_older(newest, OLDEST):
        says = f"placement has microversions up to {newest}, and the scheduler needs {OLDEST} at least"
        yield DoctorVerdict("fail", says, "upgrade the placement service")
        return
    yield DoctorVerdict("ok", f"placement answers, accepts the token, and has microversion {newest}")
    if not is_roost:
        says = (
            "it is not Roost's: it keeps no assignments, so that two schedulers may assign one CPU twice, "
            "and names no versions, so that decisions cannot be made again"
        )
        yield DoctorVerdict("ok", says)


async def _ask_placement(options: SchedulingOptions) -> tuple[str, bool]:
    async with HttpPlacement.configured(options.source) as placement, asyncio.timeout(4 * ANSWER_SECONDS):
        document: object = await placement.root()
        assert isinstance(document, dict)
        newest: str = document["versions"][0]["max_version"]
        if is_older(newest, OLDEST):
            return newest, False
        await placement.provider(NOBODY)
        return newest, await placement.knows_groups()


def check_hosts(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the databases of conductors and cells can be read, and that the node journal is written."""
    options = _options(deployment)
    if options.api_database is None:
        yield DoctorVerdict(
            "ok",
            "hosts are those of placement: there is no node journal, so decisions cannot be made again",
        )
        return
    api = Database(options.api_database, read_only=True, answer_seconds=ANSWER_SECONDS)
    try:
        if (verdict := at_revision(api, CONDUCTOR_SCHEMA, "the API database")) is not None:
            yield verdict
            return
        cells = asyncio.run(Requests(api).cells())
        newest = api.read_now(lambda connection: connection.scalar(sa.select(sa.func.max(node_journal.c.at))))
    finally:
        asyncio.run(api.close())
    hosts = {name: mapping for name, mapping in cells.items() if name != CELL0}
    if not hosts:
        yield DoctorVerdict("warn", "the API database names no cell with hosts", "start the conductors once")
    for mapping in hosts.values():
        yield from check_cell(deployment, mapping)
    if newest is None:
        says = "no process has written a node journal yet: decisions cannot be made again"
        yield DoctorVerdict("warn", says, "start the scheduler, and let it write to the API database")
    else:
        hours = max(0.0, time.time() - newest) / 3600
        yield DoctorVerdict("ok", f"the last node journal was written {hours:.1f} hours ago")


def check_cell(deployment: Deployment, mapping: CellMapping) -> Iterator[DoctorVerdict]:
    """Check the database of a cell, and that all reports of its hosts are in placement.

    The database must be configured, answer, and have the tables of this program and the right time.
    """
    name = mapping.name
    place = "in the API database" if mapping.section is None else f"in [{mapping.section}] connection"
    change = f"start the database of {name}, or correct its URL {place}"
    try:
        url = url_of(mapping, deployment.source)
        database = Database(url, read_only=True, answer_seconds=ANSWER_SECONDS)
    except OperatorError as error:
        yield DoctorVerdict("fail", f"{name}: {error}", change)
        return
    clock = None
    refused: dict[str, str] = {}
    try:
        verdict = at_revision(database, CELL_SCHEMA, name)
        if verdict is None:
            refused = database.read_now(read_refused_hosts())
        clock = clock_of(database, f"the database of {name}")
    except OperatorError as error:
        verdict = DoctorVerdict("fail", f"{name}: {error}", change)
    finally:
        asyncio.run(database.close())
    yield verdict or DoctorVerdict("ok", f"the hosts of {name} can be read")
    if refused:
        host, reason = next(iter(refused.items()))
        others = f" ({len(refused)} hosts in all)" if len(refused) > 1 else ""
        says = f"{name}: not all that hosts report is taken: of {host}: {reason}{others}"
        yield DoctorVerdict("warn", says, f"run 'roost host show {host}', and correct it on the host")
    if clock is not None:
        yield clock


def check_records(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that runs can be recorded."""
    records = deployment.source.read(RecordOptions)
    if records.backend == "jsonl":
        path = Path(records.path).absolute()
        if os.access(path if path.exists() else path.parent, os.W_OK):
            yield DoctorVerdict("ok", f"runs are recorded in {path}")
        else:
            says = f"{path} cannot be written by this user"
            yield DoctorVerdict("fail", says, "correct [records] path, or the permissions")
        return
    try:
        database = Database(records.connection, read_only=True, answer_seconds=ANSWER_SECONDS)
    except OperatorError as error:
        yield DoctorVerdict("fail", str(error), "correct [records] connection, or start the database")
        return
    try:
        verdict = at_revision(database, RECORDS_SCHEMA, "the database of records")
    finally:
        asyncio.run(database.close())
    yield verdict or DoctorVerdict("ok", f"runs are recorded in {database}")


def at_revision(database: Database, schema: Schema, what: str) -> DoctorVerdict | None:
    """Return the verdict on a database whose tables this program cannot use; None if it can."""
    try:
        schema.check(database)
    except SchemaTooOld as error:
        if database.is_sqlite and schema.revision(database) is None:
            return DoctorVerdict("ok", f"{what} has no tables yet; the start makes them")
        return DoctorVerdict("fail", f"{what}: {error}", f"run {database.given.upgrade()}")
    return None


def _options(deployment: Deployment) -> SchedulingOptions:
    try:
        return read_scheduling_options(
            deployment.source, deployment.database_url, hosts_needed=deployment.cell is None
        )
    except cfg.Error as error:
        raise refused_value(error) from error


CHECKS = (
    DoctorCheck("scheduler", check_scheduler),
    DoctorCheck("placement over HTTP", check_placement),
    DoctorCheck("hosts", check_hosts),
    DoctorCheck("records", check_records),
)
