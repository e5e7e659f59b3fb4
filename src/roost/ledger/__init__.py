"""The ledger: every change to placement's state, in one durable order.

Commands and reads:
    ledger           commands in, results out; the fleet at the head
    state            commands, and the state that a command reads and changes
    vocabulary       the command that registers the standard resource classes and traits

Commits:
    commit_protocol  how a batch of commands becomes one commit: a pure state machine
    commit_states    its states and limits
    commit_steps     its events and effects
    writer           performs the effects on a database
    draft            the outcomes of a batch's commands, and the commit that would make them durable
    append           the transaction that makes a draft durable
    projection       from the changes of a commit to rows inserted, updated and deleted
    bulk             statements that write many rows at once
    turn_requests    the table in which writers that lose race after race request a turn
    step_metrics     counts and times the steps of the protocol

Replicas:
    replica          a fleet at a position, with a draft's changes; a tap of the commits that it moves by
    past_fleet       a fleet that is moved to any version whose commits are kept
    follower         keeps the replica at the head
    delta            the head, and the commits that a replica lacks
    load             loads a fleet from the tables
    feed             the change feed: commits in their order, read forwards and backwards
    trim             removes old commits
    status           the position of the replica in the history, and the queue
    retention        limits of age and number of kept commits, and the task that removes older ones
    capacity_metrics  capacity and use of the cloud, as gauges

Tables:
    tables           the commits, and the relational state that they add up to
    holdings         consumers, their allocations and assignments, read from the tables
    errors           errors of the ledger

Verification:
    verify           compares commits, tables and a loaded fleet; hardware that two consumers have
    facts            the state as plain facts: of a fleet, and before and after each change
    audit_snapshot   the facts of the tables, and rows that make no sense
    breaches         allocations that their inventories do not allow
    history          the commits, undone to the oldest one and applied again
    findings         the differences that verification reports, and their kinds

The *head* is the newest commit. A *command* is a request to change something, validated against the exact
state that its commit follows. A *commit* is the changes of all commands of one batch.
"""

from roost.ledger.errors import LedgerBusy, LedgerError
from roost.ledger.ledger import Ledger
from roost.ledger.state import Command, Held, Moment, State
from roost.ledger.tables import SCHEMA

__all__ = [
    "SCHEMA",
    "Command",
    "Held",
    "Ledger",
    "LedgerBusy",
    "LedgerError",
    "Moment",
    "State",
]
