"""Checks of the database: reachable, at the right revision, with settings that lose no commit."""

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cli.doctor.check import Deployment, DoctorCheck, DoctorVerdict, NotKnown
from roost.cli.doctor.configuration import judge_clock
from roost.ledger import SCHEMA
from roost.model.errors import OperatorError
from roost.storage import EXACT, Database, SchemaTooOld

CONNECTIONS_OF_A_WORKER = 3
"""Connections that each worker keeps open: for reading, writing and head checks."""

CONNECTIONS_BESIDE = 10
"""Connections that should be left for commands, backups and operators."""

Settings = Mapping[str, str]


def check_reachable(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the database can be opened."""
    if deployment.database_url is None and deployment.options.database is None:
        if deployment.schedules:
            raise NotKnown("the scheduler reaches placement over HTTP")
        change = "give --database, or set connection in [placement_database]"
        yield DoctorVerdict("fail", "no database is configured", change)
        return
    if (file := deployment.sqlite_file) is not None and not file.exists():
        if os.access(file.parent, os.W_OK):
            yield DoctorVerdict("ok", f"there is no file {file} yet; the start makes it")
        else:
            says = f"there is no file {file}, and this user cannot make one there"
            yield DoctorVerdict(
                "fail", says, f"make the folder {file.parent}, and let the service write to it"
            )
        return
    started = time.perf_counter()
    try:
        database = deployment.open_database()
    except OperatorError as error:
        change = "start the database, or correct [placement_database] connection (--database)"
        yield DoctorVerdict("fail", str(error), change)
        return
    database.read_now(lambda connection: connection.execute(sa.text("SELECT 1")))
    yield DoctorVerdict("ok", f"{database} answers within {(time.perf_counter() - started) * 1000:.0f} ms")


def check_revision(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that this program works with the tables."""
    database = deployment.database
    try:
        SCHEMA.check(database)
    except SchemaTooOld as error:
        if database.is_sqlite and SCHEMA.revision(database) is None:
            yield DoctorVerdict("ok", "the file has no tables yet; the start makes them")
        elif deployment.options.upgrade_database:
            yield DoctorVerdict("ok", f"{error} (sync_on_startup does it at the start)")
        else:
            yield DoctorVerdict("fail", str(error), f"run {database.given.upgrade()}")
        return
    yield DoctorVerdict("ok", f"the tables are at revision {SCHEMA.revision(database)}")


def check_settings(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the server's settings keep commits durable and allow the connections of all workers."""
    database = deployment.database
    found = list(database.read_now(lambda connection: list(_judge(connection, deployment.workers))))
    yield from found or [DoctorVerdict("ok", "the settings of the database are fit for Roost")]


def _judge(connection: Connection, workers: int) -> Iterator[DoctorVerdict]:
    match connection.dialect.name:
        case "postgresql":
            rows = connection.execute(sa.text("SELECT name, setting FROM pg_settings")).all()
            standby = connection.execute(sa.text("SELECT pg_is_in_recovery()")).scalar_one()
            settings = {name: str(value) for name, value in rows} | {"standby": "on" if standby else "off"}
            yield from judge_postgresql(settings, workers)
        case "mysql" | "mariadb":
            variables = connection.execute(sa.text("SHOW GLOBAL VARIABLES")).all()
            status = connection.execute(sa.text("SHOW GLOBAL STATUS LIKE 'wsrep%'")).all()
            yield from judge_mariadb({name.lower(): value for name, value in (*variables, *status)}, workers)
            yield from _judge_collations(connection)
        case _:
            mode = connection.execute(sa.text("PRAGMA journal_mode")).scalar_one()
            if mode != "wal":
                yield DoctorVerdict(
                    "warn", f"the file has journal mode {mode}", "start the service once: it sets wal"
                )
            if workers > 1:
                says = f"{workers} workers write to one file, which has one writer at a time"
                yield DoctorVerdict(
                    "warn", says, "use PostgreSQL or MariaDB for more than one writing process"
                )


def judge_postgresql(settings: Settings, workers: int) -> Iterator[DoctorVerdict]:
    """Judge the settings of PostgreSQL. The setting ``standby``: whether the server only follows another."""
    for name, lost in (
        ("fsync", "a crash of the machine damages the database"),
        ("full_page_writes", "a crash of the machine may damage the database"),
        ("synchronous_commit", "a crash of the server loses commits that clients were told are done"),
    ):
        if settings.get(name) == "off":
            yield DoctorVerdict("fail", f"{name} is off: {lost}", f"set {name} = on")
    if settings["standby"] == "on":
        yield DoctorVerdict(
            "fail", "the server is a standby, which takes no writes", "connect to the primary"
        )
    if settings.get("server_encoding") != "UTF8":
        says = (
            f"the encoding of the database is {settings.get('server_encoding')}: not every name can be stored"
        )
        yield DoctorVerdict("fail", says, "create the database with ENCODING 'UTF8'")
    yield from _judge_connections(settings, workers)


def judge_mariadb(settings: Settings, workers: int) -> Iterator[DoctorVerdict]:
    """Judge the settings and the Galera status of MariaDB, whose names are all in lower case."""
    galera = settings.get("wsrep_on") == "ON"
    flushed = settings.get("innodb_flush_log_at_trx_commit")
    if flushed != "1":
        # With Galera the other nodes have the commits that one node loses.
        level, lost = ("warn", "this node") if galera else ("fail", "the machine")
        says = f"innodb_flush_log_at_trx_commit is {flushed}: a crash of {lost} loses its last commits"
        yield DoctorVerdict(level, says, "set innodb_flush_log_at_trx_commit = 1")  # type: ignore[arg-type]
    if settings.get("read_only") in ("ON", "1"):
        yield DoctorVerdict(
            "fail", "the server is read-only", "connect to the primary, or set read_only = OFF"
        )
    if galera:
        yield from _judge_galera(settings)
    yield from _judge_connections(settings, workers)


def _judge_galera(settings: Settings) -> Iterator[DoctorVerdict]:
    for name, wanted, change in (
        ("wsrep_cluster_status", "Primary", "restore the quorum of the cluster"),
        ("wsrep_ready", "ON", "connect to a node that is ready"),
        ("wsrep_local_state_comment", "Synced", "wait until the node has caught up"),
    ):
        if settings.get(name) != wanted:
            level = "fail" if name != "wsrep_local_state_comment" else "warn"
            yield DoctorVerdict(level, f"{name} is {settings.get(name)}, not {wanted}", change)  # type: ignore[arg-type]
    if settings.get("innodb_autoinc_lock_mode") != "2":
        says = f"innodb_autoinc_lock_mode is {settings.get('innodb_autoinc_lock_mode')}: inserts may deadlock"
        yield DoctorVerdict("warn", says, "set innodb_autoinc_lock_mode = 2")
    size = settings.get("wsrep_cluster_size", "")
    if size.isdigit() and int(size) < 3:
        says = f"the cluster has {size} nodes: it stops when one is lost"
        yield DoctorVerdict("warn", says, "run three nodes, or two and an arbitrator")


def _judge_connections(settings: Settings, workers: int) -> Iterator[DoctorVerdict]:
    most = int(settings.get("max_connections", "0"))
    needed = workers * CONNECTIONS_OF_A_WORKER
    if most < needed + CONNECTIONS_BESIDE:
        says = f"max_connections is {most}, and {workers} workers keep {needed}"
        yield DoctorVerdict("warn", says, f"set max_connections to {needed + CONNECTIONS_BESIDE} or more")


def _judge_collations(connection: Connection) -> Iterator[DoctorVerdict]:
    wanted: Any = EXACT["mysql_collate"]
    names = [f"'{name}'" for name in SCHEMA.metadata.tables]
    rows = connection.execute(
        sa.text(
            "SELECT table_name, table_collation FROM information_schema.tables "
            f"WHERE table_schema = DATABASE() AND table_name IN ({', '.join(names)})"
        )
    )
    for table, collation in rows:
        if collation != wanted:
            says = f"table {table} has collation {collation}: names that differ in case are one"
            yield DoctorVerdict(
                "fail", says, f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4 COLLATE {wanted}"
            )


def check_clock(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the clock of the server agrees with this machine's."""
    if (verdict := clock_of(deployment.database, "the database")) is not None:
        yield verdict


def clock_of(database: Database, what: str) -> DoctorVerdict | None:
    """Return the verdict on the clock of a database server; None for a file. Raises `StorageError`."""
    if database.is_sqlite:
        return None
    now = "extract(epoch FROM clock_timestamp())" if _is_postgresql(database) else "UNIX_TIMESTAMP(NOW(6))"
    theirs = database.read_now(lambda connection: connection.execute(sa.text(f"SELECT {now}")).scalar_one())
    return judge_clock(what, float(theirs) - time.time())


def _is_postgresql(database: Database) -> bool:
    return database.url.get_backend_name() == "postgresql"


def check_trimming(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that old commits are removed."""
    retention = deployment.options.retention
    if not retention.interval:
        change = "set [ledger] trim_interval, or run 'roost db trim' by a timer"
        yield DoctorVerdict("warn", "trim_interval is 0: the service removes no old commits", change)
        return
    says = f"{retention.commits:,} commits of {retention.days:g} days are kept"
    yield DoctorVerdict("ok", says)


CHECKS = (
    DoctorCheck("database", check_reachable),
    DoctorCheck("revision", check_revision),
    DoctorCheck("database settings", check_settings),
    DoctorCheck("clock", check_clock),
    DoctorCheck("trimming", check_trimming),
)
