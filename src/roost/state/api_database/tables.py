"""The conductor's tables in the API database."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

from roost.process.option_source import Source
from roost.process.options import OptionStruct, option
from roost.state.leases import leases_table
from roost.storage import EXACT, DatabaseUrl, Schema, configured_url, identity_table


class ApiDatabaseOptions(OptionStruct, frozen=True, group="api_database"):
    """The URL of the conductors' database."""

    connection: str | None = option(
        None,
        secret=True,
        help="This is the SQLAlchemy URL of the conductors' API database: requests, cells, host aggregates, "
        "server groups, node journals. It may be the database of placement.",
    )


def api_database_url(source: Source) -> DatabaseUrl | None:
    """Return the URL of the API database; None if it is not configured. Raises `OperatorError`."""
    return configured_url(source.read(ApiDatabaseOptions).connection, source, ApiDatabaseOptions.group)


API = "api"
"""The name by which conductors read and write the API database."""

metadata = sa.MetaData()

NAME = sa.String(255)

build_requests = sa.Table(
    "build_requests",
    metadata,
    sa.Column("request_id", NAME, primary_key=True),
    sa.Column("request", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
    sa.Column("accepted_at", sa.Double, nullable=False),
    # The holder of the lease under which a conductor carries the request, and the number of the owner.
    sa.Column("owner", sa.String(36)),
    sa.Column("owner_epoch", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("build_requests_by_acceptance", "accepted_at", "request_id"),
    # All that the look for free requests reads: a row has a whole request.
    sa.Index("build_requests_by_owner", "owner", "accepted_at", "request_id", "owner_epoch"),
    **EXACT,
)

cell_mappings = sa.Table(
    "cell_mappings",
    metadata,
    sa.Column("name", NAME, primary_key=True),
    # The group of the configuration with the URL, which has a password; or, of cells without one, the URL.
    sa.Column("section", NAME),
    sa.Column("database_url", sa.Text),
    # Since when its database does not answer, as the last event says. None: it answers.
    sa.Column("away_since", sa.Double),
    **EXACT,
)

host_mappings = sa.Table(
    # The hosts that were added, each in one cell.
    "host_mappings",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    sa.Column("cell", NAME, sa.ForeignKey("cell_mappings.name"), nullable=False),
    # `roost.model.names.look_of` the name. None: an earlier version has written the row.
    sa.Column("look", NAME),
    sa.Index("host_mappings_by_look", "look"),
    **EXACT,
)

node_names = sa.Table(
    # The hosts that own the names of nodes that are not named as their hosts: see
    # `roost.state.api_database.node_names`.
    "node_names",
    metadata,
    sa.Column("name", NAME, primary_key=True),
    sa.Column("node", sa.String(36), nullable=False),
    sa.Column("host", NAME, nullable=False),
    sa.Column("cell", NAME, nullable=False),
    # As in host mappings.
    sa.Column("look", NAME),
    sa.Index("node_names_by_host", "host", "cell"),
    sa.Index("node_names_by_look", "look"),
    **EXACT,
)

instance_mappings = sa.Table(
    # An instance has a mapping from the acceptance of its request until nothing of it is left.
    "instance_mappings",
    metadata,
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    # None until a host is claimed.
    sa.Column("cell", NAME, sa.ForeignKey("cell_mappings.name")),
    # The owner of the request that wrote the mapping last; no earlier one may write it. Below 0: see
    # `roost.state.api_database.mappings.ANYWHERE`.
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    # Empty where an earlier version wrote the mapping: the cell knows them.
    sa.Column("request_id", NAME, nullable=False),
    sa.Column("project_id", NAME, nullable=False),
    sa.Column("user_id", NAME, nullable=False),
    sa.Column("deleted", sa.Boolean, nullable=False),
    # When its request was accepted. None where an earlier version wrote the mapping.
    sa.Column("accepted_at", sa.Double),
    # The instance's name, None without one.
    sa.Column("name", NAME),
    sa.Index("instance_mappings_by_name", "name", "instance_uuid"),
    sa.Index("instance_mappings_by_project", "project_id", "instance_uuid"),
    sa.Index("instance_mappings_by_request", "request_id", "instance_uuid"),
    **EXACT,
)

instance_deletions = sa.Table(
    # The instances whose deletion is accepted and has not ended.
    "instance_deletions",
    metadata,
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("owner", sa.String(36)),
    # The requester: a user, the project of the user's token, and the id of the request. None: there is none.
    sa.Column("by_user", NAME),
    sa.Column("by_project", NAME),
    sa.Column("by_request", NAME),
    sa.Index("instance_deletions_by_owner", "owner", "instance_uuid"),
    **EXACT,
)

crossings = sa.Table(
    # The moves from one cell to another that are under way: see `roost.state.api_database.crossings`. While
    # there is one, its instance may be in both cells.
    "crossings",
    metadata,
    sa.Column("move", sa.String(36), primary_key=True),
    sa.Column("instance_uuid", sa.String(36), nullable=False),
    sa.Column("source", NAME, nullable=False),
    sa.Column("target", NAME, nullable=False),
    # Of the mapping from the begin of the crossing on: it lets the instance into the cell of the target.
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("owner", sa.String(36)),
    sa.Index("crossings_by_instance", "instance_uuid"),
    **EXACT,
)

instance_consumers = sa.Table(
    # The consumers that were drawn to unshelve instances: see `roost.state.api_database.consumers`.
    "instance_consumers",
    metadata,
    sa.Column("consumer", sa.String(36), primary_key=True),
    sa.Column("instance_uuid", sa.String(36), nullable=False),
    sa.Index("instance_consumers_by_instance", "instance_uuid"),
    **EXACT,
)

past_mappings = sa.Table(
    # Facts of mappings and deletions of instances of which nothing is left, kept for a time: see
    # `roost.state.api_database.past`.
    "past_mappings",
    metadata,
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("cell", NAME),
    sa.Column("request_id", NAME, nullable=False),
    sa.Column("project_id", NAME, nullable=False),
    sa.Column("user_id", NAME, nullable=False),
    sa.Column("accepted_at", sa.Double),
    sa.Column("deleted_at", sa.Double, nullable=False),
    sa.Column("by_user", NAME),
    sa.Column("by_project", NAME),
    sa.Column("by_request", NAME),
    sa.Column("ended_at", sa.Double, nullable=False),
    sa.Index("past_mappings_by_end", "ended_at"),
    **EXACT,
)

late_claims = sa.Table(
    # Instances at their end for which an earlier owner of their request may still claim: see
    # `roost.conductor.claim_release`.
    "late_claims",
    metadata,
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("looks", sa.Integer, nullable=False),
    **EXACT,
)

node_journal = sa.Table(
    # The batches of all node journals, see `roost.state.api_database.node_journal`.
    "node_journal",
    metadata,
    sa.Column("journal", sa.String(36), primary_key=True),
    sa.Column("batch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("last", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("base", sa.Boolean, nullable=False),
    sa.Column("body", sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb"), nullable=False),
    sa.Index("node_journal_by_time", "at"),
    **EXACT,
)

host_aggregates = sa.Table(
    "host_aggregates",
    metadata,
    sa.Column("uuid", sa.String(36), primary_key=True),
    sa.Column("name", NAME, nullable=False, unique=True),
    sa.Column("metadata", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    # The version of all aggregates with which this one changed last.
    sa.Column("version", sa.BigInteger, nullable=False),
    **EXACT,
)

host_aggregate_members = sa.Table(
    "host_aggregate_members",
    metadata,
    sa.Column("aggregate_uuid", sa.String(36), primary_key=True),
    sa.Column("node", sa.String(36), primary_key=True),
    sa.Index("host_aggregate_members_by_node", "node"),
    **EXACT,
)

operator_words = sa.Table(
    # The last word of operators on each subject: a cell (without a host), a host (without a node), or a node.
    # See `roost.conductor.words`.
    "operator_words",
    metadata,
    sa.Column("cell", NAME, primary_key=True),
    sa.Column("host", NAME, primary_key=True),
    sa.Column("node", sa.String(36), primary_key=True),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")),
    sa.Column("at", sa.Double, nullable=False),
    # The version of `host_aggregates_version` with which it was said.
    sa.Column("version", sa.BigInteger, nullable=False),
    # How far it is emptied, and the version of the word for which that is true: see
    # `roost.conductor.words.drains`.
    sa.Column("drain", sa.String(8)),
    sa.Column("drain_version", sa.BigInteger),
    # The version of the word if it says that instances are moved away. Another version: an earlier word did.
    sa.Column("moves_version", sa.BigInteger),
    # The same, if it says that they are moved while they run where that is possible.
    sa.Column("live_version", sa.BigInteger),
    # Since when it is disabled without a break, in seconds since the epoch. None: an earlier version said it.
    sa.Column("since", sa.Double),
    sa.Index("operator_words_by_version", "version"),
    **EXACT,
)

deleted_host_aggregates = sa.Table(
    # Deleted aggregates whose uuid a provider in placement may still have.
    "deleted_host_aggregates",
    metadata,
    sa.Column("uuid", sa.String(36), primary_key=True),
    **EXACT,
)

host_aggregates_version = sa.Table(
    # One row. Each change of an aggregate and each word of an operator raises its version first, so that they
    # happen one after another.
    "host_aggregates_version",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    **EXACT,
)

server_groups = sa.Table(
    "server_groups",
    metadata,
    sa.Column("uuid", sa.String(36), primary_key=True),
    sa.Column("name", NAME, nullable=False),
    sa.Column("project_id", NAME, nullable=False),
    sa.Column("user_id", NAME, nullable=False),
    sa.Column("policy", NAME, nullable=False),
    sa.Column("max_server_per_host", sa.BigInteger, nullable=False),
    sa.Index("server_groups_by_project", "project_id", "uuid"),
    **EXACT,
)

server_group_members = sa.Table(
    # The instances that were requested for a group, whether they have a claim yet or not. The group of a
    # request need not be one of `server_groups`.
    "server_group_members",
    metadata,
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("group_uuid", NAME, nullable=False),
    sa.Index("server_group_members_by_group", "group_uuid"),
    **EXACT,
)

_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")

audit_state = sa.Table(
    # One row: the rounds of the audit. See `roost.conductor.audit`.
    "audit_state",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("begun", sa.BigInteger, nullable=False),
    sa.Column("ended", sa.BigInteger, nullable=False),
    sa.Column("ended_at", sa.Double, nullable=False),
    # Whether an operator has asked for a round, and the repairs that it may make.
    sa.Column("asked", sa.Boolean, nullable=False),
    sa.Column("permitted", sa.BigInteger, nullable=False),
    sa.Column("report", _TEXT, nullable=False),
    **EXACT,
)

audit_findings = sa.Table(
    # The findings of the last round that it did not repair.
    "audit_findings",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("finding", _TEXT, nullable=False),
    **EXACT,
)

audit_repairs = sa.Table(
    "audit_repairs",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("by", NAME, nullable=False),
    sa.Column("finding", _TEXT, nullable=False),
    # None from just before the repair to its end.
    sa.Column("result", _TEXT),
    **EXACT,
)

kept_answers = sa.Table(
    # The answers to requests with a key of the client's: see `roost.state.api_database.kept_answers`.
    "kept_answers",
    metadata,
    # The digests of the key with its scope, and of the request.
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("request", sa.String(64), nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    # None for an answer with secrets.
    sa.Column("body", sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")),
    sa.Index("kept_answers_by_time", "at"),
    **EXACT,
)

events = sa.Table(
    # The log of events of the cloud: see `roost.conductor.events`.
    "events",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("cell", NAME),
    sa.Column("host", NAME),
    sa.Column("instance", sa.String(36)),
    # The digest of the facts that all observers of an event see alike. None where the change itself wrote it.
    sa.Column("mark", sa.String(64)),
    sa.Column("body", _TEXT, nullable=False),
    sa.Index("events_by_time", "at"),
    sa.Index("events_by_mark", "mark", unique=True),
    **EXACT,
)

events_position = sa.Table(
    # One row: the id of the last event. Each transaction that appends events raises it first, so that they
    # are committed in order of their ids.
    "events_position",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    **EXACT,
)

maintenances = sa.Table(
    # Maintenances of many hosts: see `roost.state.api_database.maintenances`.
    "maintenances",
    metadata,
    sa.Column("uuid", sa.String(36), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("began", sa.Double, nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("reserve", sa.Boolean, nullable=False),
    sa.Column("most_hosts", sa.BigInteger),
    sa.Column("keeps_going", sa.Boolean, nullable=False),
    sa.Column("wave", sa.BigInteger, nullable=False),
    sa.Column("reason", _TEXT),
    # Each transaction that changes the maintenance or its hosts raises it first.
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("owner", sa.String(36)),
    sa.Column("owner_epoch", sa.BigInteger, nullable=False),
    sa.Column("by_user", NAME, nullable=False),
    sa.Column("by_project", NAME, nullable=False),
    sa.Column("by_request", NAME, nullable=False),
    sa.Index("maintenances_by_begin", "began", "uuid"),
    sa.Index("maintenances_by_state", "state"),
    **EXACT,
)

maintenance_hosts = sa.Table(
    "maintenance_hosts",
    metadata,
    sa.Column("maintenance", sa.String(36), primary_key=True),
    sa.Column("host", NAME, primary_key=True),
    sa.Column("cell", NAME, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("wave", sa.BigInteger, nullable=False),
    # JSON: the planned target of each instance.
    sa.Column("targets", _TEXT, nullable=False),
    # The version of the word by which the maintenance has disabled the host; the word before that, as JSON.
    sa.Column("word_version", sa.BigInteger),
    sa.Column("word_before", _TEXT),
    # Calls of the hook, and of these the failed ones; the end of the last one, as JSON.
    sa.Column("calls", sa.BigInteger, nullable=False),
    sa.Column("failures", sa.BigInteger, nullable=False),
    sa.Column("result", _TEXT),
    sa.Column("reason", _TEXT),
    sa.Index("maintenance_hosts_by_state", "maintenance", "state", "host"),
    sa.Index("maintenance_hosts_by_host", "host", "maintenance"),
    sa.Index("maintenance_hosts_by_word", "word_version"),
    **EXACT,
)

database_identity = identity_table(metadata)

leases_table(metadata)

SCHEMA = Schema("conductor", Path(__file__).parent / "migrations", metadata)
