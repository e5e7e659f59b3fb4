"""A cell: its nodes, its instances, and the database that holds them.

    tables     instances, attempts that have ended, fences, orders to destroy, and compute nodes
    rows       between the rows of these tables and values
    reported   what agents report, cleaned before it is stored
    cell       what is asked of a cell's database; tells its listeners that something changed

The works (`roost.machine`) of the database, each the statements of one transaction:

    arriving   instances come in, and the takeover of a request of which some may have come in
    fences     which owner of a request may still put an instance in
    building   confirmations and results of builds, and what follows a failure
    node_claims  builds that hold nothing in placement, counted on their node
    attempts   the attempts at an instance that have ended
    in_error   the end of instances of which no further attempt is made
    ending     deletion, destruction, and what is forgotten
    history    the states that each instance entered
    state_changes  the same as a log of the cell, which readers follow by position
    orders     what hosts have to do
    guests     which guests hosts say they have
    owning     which conductor works on which instance
    host_tokens  the tokens of hosts
    held_hosts   hosts whose agents wait for an operator
    disabled     what an operator disables: nodes, or the whole cell

Level-triggered: the database says what is to be done, by the states of instances, and conductors and agents
look there, at start and after every change. A message that is lost costs time, never work.

    assigned ──▶ starting ──▶ active ──▶ deleting ──▶ destroyed ──▶ (gone)
     │  │ ▲         │          │ ▲
     │  ▼ │ next    │          ▼ │
     │ failed ◀─────┘         lost
     │  │ no alternate
     ▼  ▼
    abandoned ──▶ error

From every state but the last two of the upper row a deletion leads to ``deleting``.
"""

from roost.state.cell_database.cell import Cell
from roost.state.cell_database.tables import SCHEMA

__all__ = ["SCHEMA", "Cell"]
