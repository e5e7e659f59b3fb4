"""A cell: its nodes, its instances, and the database that holds them.

    cell            access to a cell's database; wakes listeners when instances enter a state
    tables          instances, ended attempts, fences, orders to destroy, compute nodes and so on
    rows            conversions between rows of these tables and values
    reported        reports of agents, cleaned before they are stored

The transactions of the database (`roost.storage.transactions`). Instances:

    arrivals        the arrival of instances, and the takeover of a request whose instances may have arrived
    fences          the epoch that an owner of a request needs to put an instance in
    building        confirmations and results of builds, failures, and the next attempt
    node_claims     builds that hold nothing in placement, counted on their node
    attempts        the attempts at an instance that have ended
    claimed_again   the new generation of a claim that was written again
    reshapes        rows of instances that follow a reshape of their provider tree
    in_error        the end of instances of which no further attempt is made
    deletions       deletion, destruction on the host, and removal
    given_up        the end of instances on a host that is gone for good
    history         the states that each instance entered
    state_changes   the same as a log of the cell, which readers follow by position
    ownership       the conductor that works on an instance
    overdue_work    attempts that no host confirms, deletions that no host answers
    instance_search searches by facts that only the cell has
    left_instances  instances that are left on a disabled host, node or cell

Hosts and nodes:

    hosts           hosts as operators see and change them
    host_tokens     the tokens of hosts
    held_hosts      hosts whose agents wait for an operator
    disabled        hosts and nodes that an operator has disabled, or the whole cell
    node_reports    reports of nodes, and signs of life of hosts
    node_lookup     nodes by name, and the number of instances on them
    refused_nodes   nodes whose reports the cell does not take
    orders          the work of hosts, and orders to destroy
    guests          guests that hosts report, compared with their instances
    unknown_guests  guests that the cell does not know

Level-triggered: the states of instances in the database say which work is due, and conductors and agents look
there, at start and after every change. A message that is lost costs time, never work.

    assigned ──▶ starting ──▶ active ──▶ deleting ──▶ destroyed ──▶ (gone)
     │  │ ▲         │          │ ▲
     │  ▼ │ next    │          ▼ │
     │ failed ◀─────┘         lost
     │  │ no alternate
     ▼  ▼
    abandoned ──▶ error

A deletion leads to ``deleting`` from every state but ``deleting`` and ``destroyed``, and straight to
``destroyed`` for an instance without a host.
"""

from roost.state.cell_database.cell import Cell
from roost.state.cell_database.tables import SCHEMA

__all__ = ["SCHEMA", "Cell"]
