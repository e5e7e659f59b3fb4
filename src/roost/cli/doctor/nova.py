"""Checks of `roost nova-scheduler`: nova.conf, the bridge's database, broker, placement, Nova's databases."""

import asyncio
import datetime
import importlib.util
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cli.doctor import machine, service
from roost.cli.doctor.check import ANSWER_SECONDS, Deployment, DoctorCheck, DoctorVerdict, NotKnown
from roost.cli.doctor.configuration import check_options, check_tokens
from roost.cli.doctor.database import check_reachable, check_revision, clock_of
from roost.cli.doctor.scheduler import at_revision, check_records, judge_placement
from roost.cli.nova_configuration import nova_conf
from roost.model.errors import OperatorError
from roost.nova.broker import broker_addresses
from roost.nova.database.cells import NovaCell, NovaCells
from roost.nova.database.tables import API, CELL, services
from roost.nova.options import BridgeOptions, NovaOptions
from roost.nova.releases import (
    missing_columns,
    outside_warnings,
    read_service_versions,
    releases_of,
    tables_differ,
)
from roost.process.options import OptionStruct, option
from roost.server.nova_options import NovaSchedulerOptions, read_nova_options
from roost.server.programs import check_options as check_program
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database, DatabaseUrl, StorageError, as_url

SCHEDULER = "nova-scheduler"
"""The binary of schedulers in the table of services."""

MOST_NAMED = 8
"""Most options or groups that a line names."""

DISCOVER = "run 'nova-manage cell_v2 discover_hosts' by cron on a controller"


def check_conf(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Tell the options of nova.conf that are taken, those that are not, and those of other services."""
    found = nova_conf(deployment.source)
    taken = "; ".join(f"[{group}] {', '.join(names)}" for group, names in sorted(found.taken.items()))
    yield DoctorVerdict("ok", f"taken: {taken}")
    for line in found.ignored:
        yield DoctorVerdict("ok", line)
    for line in found.unknown:
        yield DoctorVerdict("warn", line, "correct or remove the option")
    if found.others:
        groups = sorted(found.others, key=lambda group: -found.others[group])
        named = ", ".join(f"[{each}]" for each in groups[:MOST_NAMED])
        more = f" and {len(groups) - MOST_NAMED} more" if len(groups) > MOST_NAMED else ""
        number = sum(found.others.values())
        yield DoctorVerdict("ok", f"left to Nova's other services: {number} options of {named}{more}")


def check_bridge(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check the bridge's own database, and that all options of the program are valid."""
    if deployment.source.read(BridgeOptions).connection is None:
        says = "[nova_bridge] connection is missing: the bridge has no database of its own"
        yield DoctorVerdict("fail", says, "set it to a new database, and run 'roost db upgrade' on it")
        return
    options = read_nova_options(deployment.source, deployment.database_url)
    check_program("nova-scheduler", options)
    filters = ", ".join(options.scheduler.filters)
    yield DoctorVerdict("ok", f"the scheduler's options are valid; filters: {filters}")
    if options.is_shadow:
        yield DoctorVerdict("ok", "mode = shadow: it answers no call, claims nothing, and compares")
    assert options.api_database is not None
    with_database = Database(options.api_database, read_only=True, answer_seconds=ANSWER_SECONDS)
    try:
        verdict = at_revision(with_database, SCHEMA, "the bridge's database")
    finally:
        asyncio.run(with_database.close())
    yield verdict or DoctorVerdict("ok", f"the bridge's own database is {with_database}")


def check_broker(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that oslo.messaging is installed, and that a broker listens at each address."""
    if importlib.util.find_spec("oslo_messaging") is None:
        yield DoctorVerdict("fail", "oslo.messaging is not installed", "pip install 'roost[nova]'")
    for host, port, *_ in broker_addresses(deployment.source.read(NovaOptions).transport_url or ""):
        try:
            socket.create_connection((host, port), timeout=ANSWER_SECONDS).close()
        except OSError as error:
            says = f"no broker listens at {host} port {port}: {error.strerror or error}"
            yield DoctorVerdict("fail", says, "start it, or correct [DEFAULT] transport_url")
        else:
            yield DoctorVerdict("ok", f"a broker listens at {host} port {port}")


def check_placement(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check placement: the ledger in a database, or a service over HTTP."""
    options = _options(deployment)
    if options.database is None:
        yield from judge_placement(options)
        return
    yield from check_reachable(deployment)
    yield from check_revision(deployment)


def check_databases(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check Nova's databases: they answer, have the tables that are read, and services of known releases."""
    yield from asyncio.run(_judge_databases(_options(deployment)))


async def _judge_databases(options: NovaSchedulerOptions) -> list[DoctorVerdict]:
    api = Database(options.nova_api, read_only=True, answer_seconds=ANSWER_SECONDS)
    cells = NovaCells(api, _url(options.nova_main), ANSWER_SECONDS)
    try:
        found = _judge_tables(api, API, "Nova's API database")
        if found[-1].level == "fail":
            return found
        await cells.refresh()
        for reason in cells.unusable.values():
            found.append(DoctorVerdict("fail", reason, "correct [database] connection, or the cell mapping"))
        if not cells.cells:
            found.append(DoctorVerdict("fail", "no cell with hosts is mapped", "run 'nova-manage cell_v2'"))
        main = None if options.nova_main is None else as_url(options.nova_main).parsed
        written = options.bridge.service_row and not options.is_shadow
        for cell in filter(None, (cells.cell0, *cells.cells.values())):
            found += _judge_cell(cell, written and cell.database.url == main)
        return found
    finally:
        await cells.close()
        await api.close()


def _judge_cell(cell: NovaCell, written: bool) -> list[DoctorVerdict]:
    found = _judge_tables(cell.database, CELL, f"the database of {cell.name}", written)
    if found[-1].level == "fail":
        return found
    if (clock := clock_of(cell.database, f"the database of {cell.name}")) is not None:
        found.append(clock)
    versions = cell.database.read_now(read_service_versions())
    change = "upgrade the services of Nova, or Roost"
    found += [DoctorVerdict("warn", each, change) for each in outside_warnings(versions, cell.name)]
    if known := sorted({releases_of(each) for each in versions if each}):
        text = f"services of {cell.name} are of Nova {', '.join(known)}"
        found.append(DoctorVerdict("ok", text))
    return found


def _judge_tables(
    database: Database, read: sa.MetaData, place: str, written: bool = False
) -> list[DoctorVerdict]:
    """Judge whether a database has what is read of it, and tell the privileges that its account needs."""
    try:
        missing = database.read_now(lambda connection: missing_columns(connection, read))
    except StorageError as error:
        return [DoctorVerdict("fail", f"{place}: {error}", "start it, or correct its URL")]
    if missing:
        change = "see the message"
        return [DoctorVerdict("fail", tables_differ(missing, place, str(database)), change)]
    tables = ", ".join(sorted(read.tables))
    writes = "; INSERT and UPDATE on services" if written else ""
    if written and database.url.get_backend_name() == "postgresql":
        writes += "; USAGE on the sequence services_id_seq"
    needs = f"its account needs SELECT on {tables}{writes}"
    return [DoctorVerdict("ok", f"{place} ({database}) can be read; {needs}")]


def check_recording(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that runs can be recorded, by default in the bridge's own database."""
    yield from check_records(replace(deployment, source=_options(deployment).source))


def check_services(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check the schedulers in the table of services: a name that is taken, the leader of host discovery."""
    options = _options(deployment)
    if options.nova_main is None:
        says = "[database] connection is missing: the schedulers of this cloud are not known"
        yield DoctorVerdict("warn", says, "give the nova.conf of the scheduler")
        return
    database = Database(options.nova_main, read_only=True, answer_seconds=ANSWER_SECONDS)
    try:
        alive = database.read_now(partial(_alive, seconds=options.nova.service_down_time))
    finally:
        asyncio.run(database.close())
    names = ", ".join(alive) or "none"
    yield DoctorVerdict("ok", f"schedulers that are up by the table of services: {names}")
    row = options.bridge.service_row and not options.is_shadow
    if options.host in alive and not options.is_shadow:
        says = f"a scheduler named {options.host} is up: its row and its queue would be the bridge's"
        change = "stop it first, or set another [DEFAULT] host; if it is the bridge itself, all is well"
        yield DoctorVerdict("warn", says, change)
    yield _judge_discovery(options, alive, row)


def _judge_discovery(options: NovaSchedulerOptions, alive: list[str], row: bool) -> DoctorVerdict:
    """Return the verdict on the scheduler that maps new hosts to cells.

    Source: ``_discover_hosts_in_cells`` in Nova's ``scheduler/manager.py``: of the schedulers that are up,
    the one whose name sorts first does it.
    """
    seconds = options.source.read(_DiscoveryOptions).interval
    if seconds <= 0:
        return DoctorVerdict("ok", "[scheduler] discover_hosts_in_cells_interval is not set: none maps hosts")
    interval = f"discover_hosts_in_cells_interval is {seconds}, and the bridge maps no hosts"
    others = [each for each in alive if each != options.host]
    if not others:
        return DoctorVerdict("warn", f"{interval}: nobody does, without a nova-scheduler", DISCOVER)
    if row and options.host < others[0]:
        says = f"{interval}: it would be the leader, because its name sorts before {others[0]}"
        return DoctorVerdict("warn", says, f"{DISCOVER}, or set [nova_bridge] service_row = false")
    says = f"{interval}: {others[0]} is the leader as long as it is up"
    return DoctorVerdict("warn", says, f"before it is stopped, {DISCOVER}")


class _DiscoveryOptions(OptionStruct, frozen=True, group="scheduler"):
    interval: int = option(
        -1, name="discover_hosts_in_cells_interval", help="Seconds between two searches for new hosts."
    )


def _alive(connection: Connection, seconds: float) -> list[str]:
    """Return the names of schedulers whose last sign of life is at most ``seconds`` old."""
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    oldest = now - datetime.timedelta(seconds=seconds)
    return sorted(
        host for host, seen in connection.execute(_SCHEDULERS) if seen is not None and seen >= oldest
    )


_SCHEDULERS = sa.select(services.c.host, services.c.last_seen_up).where(
    services.c.deleted == 0, services.c.binary == SCHEDULER
)


def _options(deployment: Deployment) -> NovaSchedulerOptions:
    """Return the options of the bridge. Raises: `NotKnown` if they cannot be read."""
    try:
        return read_nova_options(deployment.source, deployment.database_url)
    except OperatorError:
        raise NotKnown("the options of the bridge cannot be read") from None


def _url(url: DatabaseUrl | str | None) -> DatabaseUrl | None:
    return None if url is None else as_url(url)


CHECKS = (
    DoctorCheck("configuration", check_options),
    DoctorCheck("nova.conf", check_conf),
    DoctorCheck("tokens", check_tokens),
    DoctorCheck("bridge", check_bridge),
    DoctorCheck("message broker", check_broker),
    DoctorCheck("placement", check_placement),
    DoctorCheck("Nova's databases", check_databases),
    DoctorCheck("schedulers", check_services),
    DoctorCheck("records", check_recording),
    *machine.CHECKS,
    *service.CHECKS,
)
