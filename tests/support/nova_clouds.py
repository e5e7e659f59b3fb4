"""Nova's databases for tests of the bridge: made of the tables that the bridge reads, and filled by hand."""

import asyncio
import datetime
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roost.nova.database import tables
from roost.nova.database.cells import CELL0, NovaCells
from roost.nova.feed import NovaFeed
from roost.nova.options import BridgeOptions
from roost.scheduler.nodes.table import NodeTable
from roost.storage import Database, DatabaseUnavailable, DatabaseUrl

EPOCH = datetime.datetime(2026, 1, 1)


def moment(seconds: float) -> datetime.datetime:
    return EPOCH + datetime.timedelta(seconds=seconds)


def cell_uuid(name: str) -> str:
    return CELL0 if name == "cell0" else str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def node_uuid(host: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, host))


class NovaCloud:
    """The databases of a Nova. Times are seconds after `EPOCH`."""

    def __init__(self, folder: Path, *cells: str, urls: dict[str, str] | None = None) -> None:
        names = ["api", *cells]
        self.urls = urls or {name: f"sqlite:///{folder / name}.db" for name in names}
        self.engines = {name: sa.create_engine(self.urls[name]) for name in names}
        for name, engine in self.engines.items():
            (tables.API if name == "api" else tables.CELL).create_all(engine)
        for name in cells:
            self.map_cell(name)

    def write(self, name: str, *statements: Any) -> None:
        with self.engines[name].begin() as connection:
            for statement in statements:
                connection.execute(statement)

    def map_cell(self, name: str, **values: Any) -> None:
        row = {"uuid": cell_uuid(name), "name": name, "database_connection": self.urls.get(name), **values}
        self.write("api", sa.insert(tables.cell_mappings).values(**row))

    def disable_cell(self, name: str) -> None:
        table = tables.cell_mappings
        self.write("api", sa.update(table).where(table.c.name == name).values(disabled=True))

    def service(self, cell: str, host: str, **values: Any) -> None:
        """Add a compute service of a host, or change it."""
        table = tables.services
        at = values.pop("at", 0.0)
        values = {"last_seen_up": moment(at), **values}
        with self.engines[cell].begin() as connection:
            changed = connection.execute(sa.update(table).where(table.c.host == host).values(**values))
            if not changed.rowcount:
                new = {"uuid": str(uuid.uuid4()), "binary": "nova-compute", "topic": "compute", "version": 70}
                connection.execute(sa.insert(table).values(**{**new, "host": host, **values}))

    def report(self, cell: str, host: str) -> None:
        """Let the service of a host report once."""
        counted = tables.services.c.report_count + 1
        statement = sa.update(tables.services).where(tables.services.c.host == host)
        self.write(cell, statement.values(report_count=counted))

    def node(self, cell: str, host: str, nodename: str | None = None, at: float = 0.0, **values: Any) -> str:
        """Add a compute node of a host, or change it. Returns its uuid."""
        table = tables.compute_nodes
        name = nodename or host
        node = node_uuid(name)
        json_values = {key: json.dumps(value) for key, value in values.items() if _is_json(value)}
        values = {**values, **json_values, "updated_at": moment(at)}
        with self.engines[cell].begin() as connection:
            changed = connection.execute(sa.update(table).where(table.c.uuid == node).values(**values))
            if not changed.rowcount:
                new = dict.fromkeys(("vcpus", "memory_mb", "local_gb"), 1000)
                new |= dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used"), 0)
                new |= {"free_disk_gb": 1000, "free_ram_mb": 1000, "hypervisor_version": 1}
                names = {"uuid": node, "host": host, "hypervisor_hostname": name}
                texts = {"hypervisor_type": "QEMU", "cpu_info": "{}", "stats": "{}"}
                connection.execute(sa.insert(table).values(**{**new, **names, **texts, **values}))
        return node

    def remove_node(self, cell: str, host: str) -> None:
        """Delete a compute node as Nova does: the row stays, and its time does too."""
        table = tables.compute_nodes
        self.write(cell, sa.update(table).where(table.c.host == host).values(deleted=table.c.id))

    def host(self, cell: str, host: str, **values: Any) -> str:
        """Add a host with a service, a node and a mapping. Returns the node's uuid."""
        self.service(cell, host)
        self.map_host(cell, host)
        return self.node(cell, host, **values)

    def map_host(self, cell: str, host: str) -> None:
        mapped = sa.select(tables.cell_mappings.c.id).where(tables.cell_mappings.c.uuid == cell_uuid(cell))
        self.write("api", sa.insert(tables.host_mappings).values(host=host, cell_id=mapped.scalar_subquery()))

    def image(self, instance: str, cell: str, **properties: str) -> None:
        """Set the properties of the image of an instance."""
        table = tables.instance_system_metadata
        keys = {f"image_{name}": value for name, value in properties.items()} | {"image_min_ram": "1"}
        rows = [{"instance_uuid": instance, "key": key, "value": keys[key]} for key in keys]
        rows.append({"instance_uuid": instance, "key": "instance_type_name", "value": "m1"})
        mine = sa.delete(table).where(table.c.instance_uuid == instance)
        self.write(cell, mine, *(sa.insert(table).values(**row) for row in rows))

    def instance(self, cell: str, name: str, host: str | None, **values: Any) -> str:
        """Add an instance, or change it. Returns its uuid."""
        table = tables.instances
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
        values = {"host": host, "node": host, **values}
        with self.engines[cell].begin() as connection:
            changed = connection.execute(sa.update(table).where(table.c.uuid == name).values(**values))
            if not changed.rowcount:
                new = {"uuid": name, "project_id": "p", "user_id": "u", "vm_state": "active"}
                connection.execute(sa.insert(table).values(**{**new, **values}))
        return name

    def migration(self, cell: str, instance: str, **values: Any) -> None:
        """Add a migration of an instance, or change it."""
        table = tables.migrations
        with self.engines[cell].begin() as connection:
            mine = sa.update(table).where(table.c.instance_uuid == instance).values(**values)
            if not connection.execute(mine).rowcount:
                new = {"uuid": str(uuid.uuid4()), "instance_uuid": instance, **values}
                connection.execute(sa.insert(table).values(**new))

    def aggregate(self, name: str, hosts: list[str], at: float = 0.0, **metadata: str) -> str:
        """Add an aggregate, or change its hosts and metadata. Returns its uuid."""
        stamp = moment(at)
        a, h, m = tables.aggregates, tables.aggregate_hosts, tables.aggregate_metadata
        with self.engines["api"].begin() as connection:
            id_ = connection.execute(sa.select(a.c.id).where(a.c.name == name)).scalar()
            if id_ is None:
                new = sa.insert(a).values(name=name, uuid=node_uuid(f"aggregate {name}"), created_at=stamp)
                id_ = connection.execute(new).inserted_primary_key[0]
            had = set(connection.execute(sa.select(h.c.host).where(h.c.aggregate_id == id_)).scalars())
            for host in sorted(had - set(hosts)):
                connection.execute(sa.delete(h).where(h.c.aggregate_id == id_, h.c.host == host))
            for host in sorted(set(hosts) - had):
                connection.execute(sa.insert(h).values(aggregate_id=id_, host=host))
            for key, value in metadata.items():
                mine = sa.update(m).where(m.c.aggregate_id == id_, m.c.key == key)
                if not connection.execute(mine.values(value=value, updated_at=stamp)).rowcount:
                    connection.execute(sa.insert(m).values(aggregate_id=id_, key=key, value=value))
        return node_uuid(f"aggregate {name}")

    def remove_aggregate(self, name: str) -> None:
        mine = sa.select(tables.aggregates.c.id).where(tables.aggregates.c.name == name).scalar_subquery()
        for table in (tables.aggregate_hosts, tables.aggregate_metadata):
            self.write("api", sa.delete(table).where(table.c.aggregate_id == mine))
        self.write("api", sa.delete(tables.aggregates).where(tables.aggregates.c.name == name))

    def request(self, instance: str) -> None:
        """Add the build request of an instance."""
        self.write("api", sa.insert(tables.build_requests).values(instance_uuid=instance, project_id="p"))

    def close(self) -> None:
        for engine in self.engines.values():
            engine.dispose()


def _is_json(value: object) -> bool:
    return isinstance(value, dict | list)


class FedTable:
    """A node table, the feed that keeps it up to date from a `NovaCloud`, and the feed's clock."""

    def __init__(
        self,
        cloud: NovaCloud,
        *,
        api: str | None = None,
        template: DatabaseUrl | None = None,
        patience_seconds: float = 60.0,
        journal: Database | None = None,
    ) -> None:
        self.now = 0.0
        self.api = Database(api or cloud.urls["api"], read_only=True, deferred=True)
        self.cells = NovaCells(self.api, template)
        self.table = NodeTable()
        self.feed = NovaFeed(
            self.cells,
            self.table,
            BridgeOptions(),
            image_properties=True,
            patience_seconds=patience_seconds,
            journal=journal,
            monotonic=lambda: self.now,
        )

    def refresh(self, after: float = 0.0) -> None:
        """Advance the clock, and bring the table up to date."""
        self.now += after
        asyncio.run(self.feed.refresh())

    def renew(self, after: float = 0.0) -> None:
        """Advance the clock, and read all that has changed, as before a refusal."""
        self.now += after
        asyncio.run(self.feed.renew())

    def look(self) -> None:
        """Read what operators say, as before a decision."""
        asyncio.run(self.feed.words.look())

    def lose_api(self, after: int) -> Callable[[], None]:
        """Let all reads of the API database fail but the first ones. Returns a function that brings it
        back."""
        api: Any = self.api
        read, left = api.read, iter(range(after))

        async def lost(work: Any, *, by_key: bool = False) -> object:
            if next(left, None) is None:
                raise DatabaseUnavailable("gone")
            return await read(work)

        api.read = lost

        def restore() -> None:
            api.read = read

        return restore

    def hang(self, cell: str) -> Callable[[], None]:
        """Let all reads of a cell wait. Returns a function that lets them go."""
        database: Any = self.cells.cells[cell_uuid(cell)].database
        read, answers = database.read, asyncio.Event()

        async def waiting(work: Any, *, by_key: bool = False) -> object:
            await answers.wait()
            return await read(work)

        database.read = waiting
        return answers.set

    def lose(self, cell: str) -> Callable[[], None]:
        """Let all reads of a cell fail. Returns a function that brings it back."""

        async def lost(work: object, *, by_key: bool = False) -> object:
            raise DatabaseUnavailable("gone")

        database: Any = self.cells.cells[cell_uuid(cell)].database
        read, database.read = database.read, lost

        def restore() -> None:
            database.read = read

        return restore

    @property
    def up(self) -> set[str]:
        """The hosts that are up."""
        alive = self.table.seen_since(0.0)
        return {host for host in self.table.hosts if alive[self.table.index(host) or 0]}

    @property
    def enabled(self) -> set[str]:
        """The hosts that may get instances, whether they are up or not."""
        return {host for host in self.table.hosts if self.table.enabled[self.table.index(host) or 0]}

    async def end(self) -> None:
        await self.feed.close()
        await self.cells.close()
        await self.api.close()

    def close(self) -> None:
        asyncio.run(self.end())
