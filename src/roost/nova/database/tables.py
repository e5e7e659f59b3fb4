"""The tables of Nova that are read, with the columns that are read.

Source: ``nova.db.api.models`` and ``nova.db.main.models``, Nova 34.0. A test compares them.
"""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import MEDIUMTEXT
from sqlalchemy.dialects.postgresql import INET

API: Final = sa.MetaData()
"""The tables of Nova's API database."""

CELL: Final = sa.MetaData()
"""The tables of the database of a cell, also of cell0."""

UUID: Final = sa.String(36)
NAME: Final = sa.String(255)
LONG: Final = sa.Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")
ADDRESS: Final = sa.String(39).with_variant(INET(), "postgresql")


def _stamps() -> tuple[sa.Column[Any], ...]:
    return sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime)


def _deleted() -> sa.Column[int]:
    """The id of the row once it is deleted, else 0."""
    return sa.Column("deleted", sa.Integer, default=0, server_default="0")


cell_mappings = sa.Table(
    "cell_mappings",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", UUID, nullable=False, unique=True),
    sa.Column("name", NAME),
    sa.Column("transport_url", sa.Text),
    sa.Column("database_connection", sa.Text),
    sa.Column("disabled", sa.Boolean),
)

host_mappings = sa.Table(
    "host_mappings",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("cell_id", sa.Integer, nullable=False),
    sa.Column("host", NAME, nullable=False, unique=True),
)

instance_groups = sa.Table(
    "instance_groups",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", UUID, nullable=False, unique=True),
)

instance_group_members = sa.Table(
    "instance_group_member",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("instance_uuid", NAME),
    sa.Column("group_id", sa.Integer, nullable=False),
)

instance_mappings = sa.Table(
    "instance_mappings",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("instance_uuid", UUID, nullable=False, unique=True),
    sa.Column("cell_id", sa.Integer),
    sa.Column("project_id", NAME, nullable=False),
)

build_requests = sa.Table(
    "build_requests",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("instance_uuid", UUID, unique=True),
    sa.Column("project_id", NAME, nullable=False),
)

aggregates = sa.Table(
    "aggregates",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", UUID),
    sa.Column("name", NAME),
)

aggregate_hosts = sa.Table(
    "aggregate_hosts",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("host", NAME),
    sa.Column("aggregate_id", sa.Integer, nullable=False),
)

aggregate_metadata = sa.Table(
    "aggregate_metadata",
    API,
    *_stamps(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", NAME, nullable=False),
    sa.Column("value", NAME, nullable=False),
    sa.Column("aggregate_id", sa.Integer, nullable=False),
)

services = sa.Table(
    "services",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", UUID, unique=True),
    sa.Column("host", NAME),
    sa.Column("binary", NAME),
    sa.Column("topic", NAME),
    sa.Column("report_count", sa.Integer, nullable=False, default=0),
    sa.Column("disabled", sa.Boolean, default=False),
    sa.Column("disabled_reason", NAME),
    sa.Column("last_seen_up", sa.DateTime),
    sa.Column("forced_down", sa.Boolean, default=False),
    sa.Column("version", sa.Integer, default=0),
    sa.UniqueConstraint("host", "topic", "deleted"),
    sa.UniqueConstraint("host", "binary", "deleted"),
)

compute_nodes = sa.Table(
    "compute_nodes",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", UUID, unique=True),
    sa.Column("host", NAME),
    sa.Column("hypervisor_hostname", NAME),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("local_gb", sa.Integer, nullable=False),
    sa.Column("vcpus_used", sa.Integer, nullable=False),
    sa.Column("memory_mb_used", sa.Integer, nullable=False),
    sa.Column("local_gb_used", sa.Integer, nullable=False),
    sa.Column("hypervisor_type", LONG, nullable=False),
    sa.Column("hypervisor_version", sa.Integer, nullable=False),
    sa.Column("free_ram_mb", sa.Integer),
    sa.Column("free_disk_gb", sa.Integer),
    sa.Column("disk_available_least", sa.Integer),
    sa.Column("cpu_info", LONG, nullable=False),
    sa.Column("host_ip", ADDRESS),
    sa.Column("supported_instances", sa.Text),
    sa.Column("metrics", sa.Text),
    sa.Column("pci_stats", sa.Text),
    sa.Column("stats", sa.Text),
    sa.Column("numa_topology", sa.Text),
    sa.Column("ram_allocation_ratio", sa.Float),
    sa.Column("cpu_allocation_ratio", sa.Float),
    sa.Column("disk_allocation_ratio", sa.Float),
    sa.UniqueConstraint("host", "hypervisor_hostname", "deleted"),
)

instances = sa.Table(
    "instances",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", UUID, nullable=False, unique=True),
    sa.Column("project_id", NAME),
    sa.Column("user_id", NAME),
    sa.Column("image_ref", NAME),
    sa.Column("vm_state", NAME),
    sa.Column("task_state", NAME),
    sa.Column("host", NAME),
    sa.Column("node", NAME),
    sa.Column("launched_at", sa.DateTime),
    sa.Column("cleaned", sa.Integer, default=0),
    sa.Index("instances_host_deleted_cleaned_idx", "host", "deleted", "cleaned"),
    sa.Index("instances_updated_at_project_id_idx", "updated_at", "project_id"),
)

instance_system_metadata = sa.Table(
    "instance_system_metadata",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", NAME, nullable=False),
    sa.Column("value", NAME),
    sa.Column("instance_uuid", UUID, nullable=False, index=True),
)

migrations = sa.Table(
    "migrations",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", UUID, unique=True),
    sa.Column("instance_uuid", UUID),
    sa.Column("source_compute", NAME),
    sa.Column("source_node", NAME),
    sa.Column("dest_compute", NAME),
    sa.Column("dest_node", NAME),
    sa.Column("dest_compute_id", sa.BigInteger),
    sa.Column("status", NAME),
    sa.Column("migration_type", sa.String(20)),
    sa.Index("migrations_instance_uuid_and_status_idx", "deleted", "instance_uuid", "status"),
)

instance_actions = sa.Table(
    "instance_actions",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("action", NAME),
    sa.Column("instance_uuid", UUID),
    sa.Column("request_id", NAME),
    sa.Column("start_time", sa.DateTime),
    sa.Index("instance_uuid_idx", "instance_uuid"),
)

instance_actions_events = sa.Table(
    "instance_actions_events",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("event", NAME),
    sa.Column("action_id", sa.Integer),
    sa.Column("result", NAME),
    sa.Column("host", NAME),
    sa.Column("details", sa.Text),
)

instance_faults = sa.Table(
    "instance_faults",
    CELL,
    *_stamps(),
    _deleted(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("instance_uuid", UUID),
    sa.Column("code", sa.Integer, nullable=False),
    sa.Column("message", NAME),
    sa.Column("host", NAME),
    sa.Index(
        "instance_faults_instance_uuid_deleted_created_at_idx", "instance_uuid", "deleted", "created_at"
    ),
)
