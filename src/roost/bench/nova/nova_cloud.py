"""A Nova without computes: its databases on MariaDB, and a Roost placement with the same hosts.

`nova-manage` makes the schema. Both schedulers read these databases and claim in this placement.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from roost.bench.bulk_load import bulk_load
from roost.bench.cloud import cloud_folder
from roost.bench.errors import BenchError
from roost.bench.fleets import FleetPlan
from roost.bench.mariadb import MariaDB
from roost.bench.measurement import announce
from roost.bench.nova.computes import CELL, cell_rows, host_mappings, host_rows
from roost.bench.services import Roost
from roost.nova.database import tables
from roost.nova.database.cells import CELL0
from roost.records import tables as tables_of_records
from roost.state.api_database import tables as tables_of_the_bridge
from roost.storage import Database

SETTINGS: Final = {"innodb-buffer-pool-size": "1G", "innodb-log-file-size": "512M", "max-connections": "500"}
"""Settings of MariaDB, with which no read of these databases waits for the disk."""

FILLING: Final = ("--innodb-flush-method=nosync", "--skip-innodb-doublewrite")
"""Further settings of MariaDB while it is filled, with which the hundreds of tables take seconds."""

ACCOUNT: Final = "bridge"
"""The account of Roost in MariaDB."""

ROWS_AT_ONCE: Final = 500

REMOVAL: Final = {
    "allocations": {},
    "project_id": "project",
    "user_id": "user",
    "consumer_generation": 1,
    "consumer_type": "INSTANCE",
}
"""The removal of what an instance has claimed once."""


@dataclass(frozen=True)
class NovaEnvironment:
    """An environment with Nova. ``python`` is its interpreter."""

    python: Path

    def manage(self, nova_conf: Path, *command: str) -> None:
        """Run a command of nova-manage.

        Raises:
            BenchError: It failed.
        """
        # The script nova-manage names its interpreter, which is wrong where an environment has been moved.
        program = "import sys, nova.cmd.manage; sys.exit(nova.cmd.manage.main())"
        done = subprocess.run(
            [str(self.python), "-c", program, "--config-file", str(nova_conf), *command],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()
            raise BenchError(f"nova-manage {' '.join(command)}: {said[-2000:]}")


@dataclass(frozen=True)
class MeasuredCloud:
    """The databases, the placement, and the files of configuration.

    ``databases`` has their names on the server by their role. ``nova_conf`` is the configuration of Nova,
    which Roost reads too. ``hosts`` is the number of compute nodes.
    """

    folder: Path
    server: MariaDB
    databases: Mapping[str, str]
    placement: Roost
    nova_conf: Path
    hosts: int

    def roost_conf(self, name: str, *sections: str) -> Path:
        """Write the configuration of a bridge, and return its file.

        It has a database of its own, and an account that may read those of Nova alone.
        """
        database = self.server.create_database()
        _create_tables(self.server.url(database))
        for read in (self.databases["api"], self.databases["cell0"], self.databases[CELL]):
            self.server.ask(f"GRANT SELECT ON {read}.* TO '{ACCOUNT}'@'%%'")
        self.server.ask(f"GRANT ALL ON {database}.* TO '{ACCOUNT}'@'%%'")
        file = self.folder / f"{name}.conf"
        own = (
            f"[nova_bridge]\nconnection = {self._own(database)}\nservice_row = false\n"
            f"[api_database]\nconnection = {self._own(self.databases['api'])}\n"
            f"[database]\nconnection = {self._own(self.databases[CELL])}\n"
        )
        file.write_text(own + "\n".join(sections))
        return file

    def _own(self, database: str) -> str:
        return self.server.url(database).replace("root@", f"{ACCOUNT}@")

    def free(self, instances: list[str]) -> None:
        """Remove the claims of instances.

        Raises:
            BenchError: Placement refuses it.
        """
        for at in range(0, len(instances), ROWS_AT_ONCE):
            held = dict.fromkeys(instances[at : at + ROWS_AT_ONCE], REMOVAL)
            response = self.placement.request("POST", "/allocations", held)
            if response.status_code != 204:
                raise BenchError(f"claims cannot be freed: {response.text[:500]}")


@contextmanager
def nova_cloud(
    folder: Path,
    environment: NovaEnvironment,
    plan: FleetPlan,
    columns: Mapping[str, Any],
    durable: bool = True,
) -> Iterator[MeasuredCloud]:
    """Start the servers, and fill the databases with the hosts of a plan.

    ``columns``: those of a compute node that its virt driver reports. ``durable``: all syncs are on.

    Raises:
        BenchError: MariaDB or Nova is not installed, or cannot do its part.
    """
    with ExitStack() as stack:
        own = cloud_folder(folder, "nova")
        stack.callback(shutil.rmtree, own, ignore_errors=True)
        data = own / "mariadb"
        data.mkdir()
        data.chmod(0o777)  # MariaDB has an account of its own
        server = MariaDB(data, durable=durable, settings=SETTINGS)
        stack.callback(server.stop)
        server.start(*FILLING)
        server.ask(f"CREATE USER '{ACCOUNT}'@'%%'")
        databases = {name: server.create_database() for name in ("api", "cell0", CELL, "placement")}
        urls = {name: server.url(each) for name, each in databases.items()}
        announce(f"nova: the placement of {plan}")
        _load_placement(urls["placement"], plan)
        announce(f"nova: the databases of {plan}")
        nova_conf = own / "nova.conf"
        nova_conf.write_text(_nova_conf(own, urls))
        _make_schema(environment, nova_conf, urls["api"], databases)
        _fill(urls["api"], host_mappings(plan, _cell_id(urls["api"])))
        _fill(urls[CELL], host_rows(plan, columns))
        server.stop()
        server.start()
        placement = stack.enter_context(Roost(own / "placement.log", urls["placement"]))
        nova_conf.write_text(_nova_conf(own, urls) + _placement_conf(placement))
        yield MeasuredCloud(own, server, databases, placement, nova_conf, plan.hosts)


def _load_placement(url: str, plan: FleetPlan) -> None:
    database = Database(url)
    try:
        bulk_load(database, plan)
    finally:
        asyncio.run(database.close())


def _create_tables(url: str) -> None:
    database = Database(url)
    try:
        for schema in (tables_of_the_bridge.SCHEMA, tables_of_records.SCHEMA):
            schema.upgrade(database)
    finally:
        asyncio.run(database.close())


def _nova_conf(folder: Path, urls: Mapping[str, str]) -> str:
    # Nobody reports while calls are measured, so no service may be down for its silence.
    return (
        f"[DEFAULT]\nhost = bench\nstate_path = {folder}\ntransport_url = fake:/\nservice_down_time = 86400\n"
        f"[api_database]\nconnection = {urls['api']}\n"
        f"[database]\nconnection = {urls[CELL]}\n"
        f"[oslo_concurrency]\nlock_path = {folder}\n"
    )


def _placement_conf(placement: Roost) -> str:
    return (
        f"[placement]\nauth_type = admin_token\nendpoint = http://127.0.0.1:{placement.port}\ntoken = admin\n"
    )


def _make_schema(
    environment: NovaEnvironment, nova_conf: Path, api: str, databases: Mapping[str, str]
) -> None:
    """Have Nova make its tables, with the cell mappings between the two steps, as its guide says."""
    environment.manage(nova_conf, "api_db", "sync")
    _fill(api, cell_rows(CELL0, databases))
    environment.manage(nova_conf, "db", "sync")


def _fill(url: str, rows: Mapping[sa.Table, list[dict[str, Any]]]) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        for table, some in rows.items():
            for at in range(0, len(some), ROWS_AT_ONCE):
                connection.execute(sa.insert(table), some[at : at + ROWS_AT_ONCE])


def _cell_id(url: str) -> int:
    mappings = tables.cell_mappings
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        found: int = connection.execute(sa.select(mappings.c.id).where(mappings.c.name == CELL)).scalar_one()
        return found
