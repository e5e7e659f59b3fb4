"""The tables of a cell's database."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.state.leases import leases_table
from roost.storage import EXACT, Schema, identity_table

metadata = sa.MetaData()

UUID = sa.String(36)
NAME = sa.String(255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")

instances = sa.Table(
    "instances",
    metadata,
    sa.Column("uuid", UUID, primary_key=True),
    sa.Column("request_id", NAME, nullable=False),
    sa.Column("run", UUID, nullable=False),
    sa.Column("project_id", NAME, nullable=False),
    sa.Column("user_id", NAME, nullable=False),
    sa.Column("flavor", NAME, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("host", NAME),
    sa.Column("node", UUID),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("alternates", BIG_TEXT, nullable=False),
    sa.Column("reason", BIG_TEXT),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("spec", BIG_TEXT),
    sa.Column("selection", BIG_TEXT),
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("owner", UUID),
    sa.Column("owner_epoch", sa.BigInteger, nullable=False, server_default="0"),
    # When the present attempt began.
    sa.Column("began", sa.Double, nullable=False, server_default="0"),
    # A line for each state that it entered: see `roost.state.cell_database.history`.
    sa.Column("history", BIG_TEXT),
    # The move that is under way: as long as it is set, no other begins.
    sa.Column("move", UUID),
    # The consumer that has its claim; None: the instance's own uuid, as long as it was not unshelved.
    sa.Column("consumer", UUID),
    # From when it is to be shelved until its guest runs again: see `roost.model.instance.Shelf`.
    sa.Column("shelf", BIG_TEXT),
    sa.Index("instances_by_state", "state", "host"),
    sa.Index("instances_by_request", "request_id"),
    sa.Index("instances_by_project", "project_id", "uuid"),
    sa.Index("instances_by_consumer", "consumer"),
    **EXACT,
)

past_instances = sa.Table(
    # The histories of instances that were removed, for a time.
    "past_instances",
    metadata,
    sa.Column("uuid", UUID, primary_key=True),
    sa.Column("request_id", NAME, nullable=False),
    sa.Column("run", UUID, nullable=False),
    sa.Column("project_id", NAME, nullable=False),
    sa.Column("user_id", NAME, nullable=False),
    sa.Column("flavor", NAME, nullable=False),
    sa.Column("history", BIG_TEXT),
    sa.Column("ended_at", sa.Double, nullable=False),
    sa.Index("past_instances_by_end", "ended_at"),
    **EXACT,
)

state_changes = sa.Table(
    # The states that instances entered, for readers that follow a cell: see
    # `roost.state.cell_database.state_changes`.
    "state_changes",
    metadata,
    # Drawn by the database. It only orders rows that have no position yet.
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    sa.Column("position", sa.BigInteger),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("instance_uuid", UUID, nullable=False),
    sa.Column("host", NAME),
    sa.Column("node", UUID),
    sa.Column("line", BIG_TEXT, nullable=False),
    sa.Index("state_changes_by_position", "position"),
    sa.Index("state_changes_by_time", "at"),
    **EXACT,
)

state_changes_position = sa.Table(
    # One row: the position of the last change that has one. Locked while changes are given positions.
    "state_changes_position",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    **EXACT,
)

build_attempts = sa.Table(
    # The attempts that have ended without a guest. The present attempt of an instance is in its own row.
    "build_attempts",
    metadata,
    sa.Column("instance_uuid", UUID, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("host", NAME),
    sa.Column("node", UUID),
    sa.Column("began", sa.Double, nullable=False),
    sa.Column("ended", sa.Double, nullable=False),
    sa.Column("result", sa.String(20), nullable=False),
    sa.Column("code", NAME),
    sa.Column("reason", BIG_TEXT, nullable=False),
    **EXACT,
)

fences = sa.Table(
    # The epoch that the owner of a request must exceed to put an instance into this cell: see
    # `roost.state.cell_database.arrivals`. An instance that is here has a fence of its own epoch or a higher
    # one.
    "fences",
    metadata,
    sa.Column("instance_uuid", UUID, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Index("fences_by_time", "at"),
    **EXACT,
)

orders = sa.Table(
    # Orders to destroy that a host has not acknowledged, of attempts that have ended without it.
    "orders",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    sa.Column("instance_uuid", UUID, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    **EXACT,
)

moves = sa.Table(
    # Moves of instances, also those that have ended: see `roost.state.cell_database.moves`.
    "moves",
    metadata,
    sa.Column("uuid", UUID, primary_key=True),
    sa.Column("instance_uuid", UUID, nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("source_host", NAME, nullable=False),
    sa.Column("source_attempt", sa.Integer, nullable=False),
    sa.Column("source", BIG_TEXT, nullable=False),
    sa.Column("source_spec", BIG_TEXT, nullable=False),
    sa.Column("target_host", NAME),
    sa.Column("target_attempt", sa.Integer),
    sa.Column("target", BIG_TEXT),
    sa.Column("alternates", BIG_TEXT, nullable=False),
    sa.Column("spec", BIG_TEXT, nullable=False),
    sa.Column("requester", BIG_TEXT, nullable=False),
    sa.Column("run", UUID, nullable=False),
    sa.Column("to_host", NAME),
    # No filter evaluates that host. Empty in rows that earlier versions wrote.
    sa.Column("forced", sa.Boolean),
    # The instance's own host may be the target. Empty in rows that earlier versions wrote.
    sa.Column("in_place", sa.Boolean),
    sa.Column("confirms", sa.Boolean, nullable=False),
    sa.Column("at_source", sa.String(20), nullable=False),
    sa.Column("proof", BIG_TEXT),
    sa.Column("ends_as", sa.String(20)),
    sa.Column("reason", BIG_TEXT),
    sa.Column("owner", UUID),
    sa.Column("owner_epoch", sa.BigInteger, nullable=False),
    sa.Column("began", sa.Double, nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("history", BIG_TEXT, nullable=False),
    # Whether the target may be in another cell; None where an earlier version wrote the row.
    sa.Column("across", sa.Boolean),
    # Of a move to another cell: the half that this is, and the cell of the other one.
    sa.Column("side", sa.String(20)),
    sa.Column("other_cell", NAME),
    # The instance, where this cell has no row of it: see `roost.model.move.Carried`.
    sa.Column("carried", BIG_TEXT),
    # The consumer that has the claim of the instance; None: the instance's own uuid.
    sa.Column("consumer", UUID),
    sa.Index("moves_by_state", "state", "source_host", "target_host"),
    sa.Index("moves_by_instance", "instance_uuid"),
    sa.Index("moves_by_time", "began", "uuid"),
    **EXACT,
)

move_turns = sa.Table(
    # One row. Each transaction that counts moves for their limits raises it first, so that they happen one
    # after another: see `roost.state.cell_database.move_limits`.
    "move_turns",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("turns", sa.BigInteger, nullable=False),
    **EXACT,
)

nodes = sa.Table(
    "nodes",
    metadata,
    sa.Column("node", UUID, primary_key=True),
    sa.Column("host", NAME, nullable=False),
    sa.Column("nodename", NAME, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("facts", BIG_TEXT, nullable=False),
    # Raised with each report that differs from the one before.
    sa.Column("revision", sa.BigInteger, nullable=False, server_default="1"),
    sa.UniqueConstraint("host", "nodename", name="nodes_by_name"),
    **EXACT,
)

host_tokens = sa.Table(
    # The tokens that agents prove their hosts with: see `roost.state.cell_database.host_admission`.
    "host_tokens",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("host", NAME, nullable=False),
    sa.Column("issued_at", sa.Double, nullable=False),
    sa.Column("is_used", sa.Boolean, nullable=False),
    sa.Index("host_tokens_by_host", "host"),
    **EXACT,
)

held_hosts = sa.Table(
    # Hosts whose agents wait for an operator: see `roost.state.cell_database.host_admission`.
    "held_hosts",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    sa.Column("reason", BIG_TEXT, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("accepted", sa.Boolean, nullable=False),
    **EXACT,
)

host_fences = sa.Table(
    # What the agent of each host has told of its fence: see `roost.state.cell_database.host_fences`.
    "host_fences",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    # Of the session that the agent has opened.
    sa.Column("epoch", sa.BigInteger, nullable=False),
    # Empty: it has no fence.
    sa.Column("seconds", sa.Double),
    sa.Column("stop_seconds", sa.Double),
    sa.Column("guarded", sa.Boolean),
    **EXACT,
)

silent_hosts = sa.Table(
    # Hosts that are to be evacuated by themselves, with the proof that they are dead, or why there is none:
    # see `roost.state.cell_database.silent_hosts`.
    "silent_hosts",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    # The session of its agent, which nobody holds.
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("counter", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    # How often a command that powers it off was begun.
    sa.Column("tries", sa.Integer, nullable=False),
    # Of the proof.
    sa.Column("kind", sa.String(20)),
    # The evidence of the proof, or why there is none.
    sa.Column("words", BIG_TEXT, nullable=False),
    # The conductor that wrote the row.
    sa.Column("conductor", NAME, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    **EXACT,
)

refused_nodes = sa.Table(
    # Nodes whose reports are not taken: see `roost.state.cell_database.host_admission`.
    "refused_nodes",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    sa.Column("node", UUID, primary_key=True),
    sa.Column("reason", BIG_TEXT, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    **EXACT,
)

cell_hosts = sa.Table(
    # The hosts that an operator added to the cell: see `roost.state.cell_database.hosts`.
    "cell_hosts",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    sa.Column("enabled", sa.Boolean, nullable=False),
    # Why the operator disabled it.
    sa.Column("reason", BIG_TEXT),
    sa.Column("added_at", sa.Double, nullable=False),
    **EXACT,
)

disabled = sa.Table(
    # Disabled nodes by uuid, or the whole cell, with the reason. The flags of hosts are in the list of hosts.
    "disabled",
    metadata,
    sa.Column("kind", sa.String(8), primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("reason", BIG_TEXT),
    sa.Column("at", sa.Double, nullable=False),
    **EXACT,
)

host_providers = sa.Table(
    # The providers in placement that the agents of hosts have made.
    "host_providers",
    metadata,
    sa.Column("provider", UUID, primary_key=True),
    sa.Column("root", UUID, nullable=False),
    sa.Index("host_providers_by_root", "root"),
    **EXACT,
)

reshapes = sa.Table(
    # Trees of providers whose reshape may be in placement, but not yet in the rows of their instances:
    # see `roost.state.cell_database.reshapes`.
    "reshapes",
    metadata,
    sa.Column("root", UUID, primary_key=True),
    # The generation of the root at which the reshape is written.
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    **EXACT,
)

unknown_guests = sa.Table(
    # Guests that hosts report and the cell does not know.
    "unknown_guests",
    metadata,
    sa.Column("host", NAME, primary_key=True),
    sa.Column("instance_uuid", UUID, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("since", sa.Double, nullable=False),
    sa.Index("unknown_guests_by_instance", "instance_uuid"),
    **EXACT,
)

wake_addresses = sa.Table(
    # The addresses at which the processes of the cell are told of work: see
    # `roost.state.cell_database.wake_addresses`.
    "wake_addresses",
    metadata,
    sa.Column("lease", NAME, primary_key=True),
    sa.Column("host", NAME, nullable=False),
    sa.Column("port", sa.Integer, nullable=False),
    sa.Column("wake_key", UUID, nullable=False),
    **EXACT,
)

leases = leases_table(metadata)

database_identity = identity_table(metadata)

SCHEMA = Schema("cell", Path(__file__).parent / "migrations", metadata)
