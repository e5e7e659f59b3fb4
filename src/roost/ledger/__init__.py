"""The ledger: every change to placement's state, in one durable order.

    tables       the commits, and the relational state that they add up to
    state        what a command sees and changes: the fleet at head, and the consumers it named
    ledger       the writer (group commit by compare-and-append), the tail, reads at head
    draft        commands that wait together, run, and the commit that would make them true
    turns        who is outrun again and again asks to go first
    projection   from a commit's changes to rows inserted, updated and deleted
    bulk         many rows in one statement
    tail         what is newer than a replica
    feed         the change feed: commits in their order, read forwards and backwards
    load         from tables to a fleet
    collector    the garbage collector leaves alone what is loaded
    trim         forgetting old commits
    holdings     consumers and what they hold, read from the tables
    verify       whether commits, tables and a fleet tell the same story, by way of
                 books, breaches, history and findings

Words: the *head* is the newest commit; a *command* is a request to change something, validated against
the exact state that its commit goes on top of; a *commit* is the changes of all commands that went
together.
"""

from roost.ledger.collector import keep_what_is_loaded
from roost.ledger.errors import LedgerBusy, LedgerError
from roost.ledger.ledger import Ledger
from roost.ledger.state import Command, Held, State
from roost.ledger.tables import SCHEMA

__all__ = [
    "SCHEMA",
    "Command",
    "Held",
    "Ledger",
    "LedgerBusy",
    "LedgerError",
    "State",
    "keep_what_is_loaded",
]
