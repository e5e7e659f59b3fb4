"""A cell: its nodes, its instances, and the database that holds them.

    cell            access to a cell's database; wakes listeners when instances enter a state
    tables          instances, ended attempts, fences, orders to destroy, compute nodes and so on
    wake_addresses  addresses at which the processes of the cell are told of work
    rows            conversions between rows of these tables and values
    reported        reports of agents, cleaned before they are stored

The transactions of the database (`roost.storage.transactions`). The life of an instance, in its order:

    arrivals        arrival, the takeover of a request whose instances may have arrived, fences
    building        confirmations and results of builds, failures, attempts that have ended
    node_claims     builds that hold nothing in placement, counted on their node
    conductor_work  instances that a conductor owns: the next attempt, or the end in error
    consumers       consumers of instances, by which placement knows them
    power           guests that users have stopped and started again, and what hosts report of it
    rebuilds        guests that are made anew on their hosts
    shelves         instances that are shelved, and unshelved on another host
    guests          guests that hosts report, compared with their instances
    found_guests    guests that run elsewhere in their cell than it says
    reshapes        rows of instances that follow a reshape of their provider tree
    moves           moves: read, and begun, confirmed and reverted by the words of operators
    move_work       the work of conductors on moves
    residents       the instances of some hosts that may move
    move_changes    statements of which transactions of moves are made; moves of instances that end
    move_limits     limits of moves at once, and the moves that may begin
    move_reports    reports of hosts on moves
    move_ends       attempts of moves that others than hosts end: time limits, aborts, hosts given up
    move_orders     the work of hosts by moves
    move_halves     halves of moves to other cells of which the cell has no row of the instance
    leaving_halves  the half in the source's cell, as a super conductor takes it on
    arriving_halves the half in the target's cell
    departures      instances that are to leave a drained subject by moves
    move_rows       conversions between rows of moves and values
    deletions       deletion, destruction on the host, instances given up, removal

Reads of it:

    history         the states that each instance entered
    state_changes   the same as a log of the cell, which readers follow by position
    instance_search searches by facts that only the cell has, and instances left on disabled subjects

Hosts and nodes:

    hosts           hosts as operators see and change them
    host_admission  tokens of hosts, hosts that wait for an operator, nodes that the cell refuses
    host_fences     fences that agents have told
    fenced_guests   guests that fences have stopped, started again
    silent_hosts    hosts that are silent, and the proof that they are dead
    dead_hosts      builds and moves that go on without a host that is dead
    host_work       the work of hosts, orders to destroy, and work that is overdue
    disabled        hosts and nodes that an operator has disabled, or the whole cell
    nodes           reports of nodes, signs of life of hosts, nodes by name

Level-triggered: the states of instances in the database say which work is due, and conductors and agents look
there, at start and after every change. A message that is lost costs time, never work.

    assigned ──▶ starting ──▶ active ──▶ deleting ──▶ destroyed ──▶ (gone)
     │  │ ▲         │          │ ▲
     │  ▼ │ next    │          ▼ │
     │ failed ◀─────┘         lost
     │  │ no alternate
     ▼  ▼
    abandoned ──▶ error

        from                            to                           transaction
        (new)                           → assigned, error            arrivals.AddInstances
        assigned                        → starting, failed           building.ConfirmAttempt
        assigned, starting              → active, failed, abandoned  building.ReportResults
        assigned, starting              → failed                     building.fail_attempts
        assigned, starting              → failed                     dead_hosts.end_waiting_for
        failed                          → assigned                   conductor_work.reassign_instance
        failed                          → abandoned                  conductor_work.abandon_instance
        abandoned                       → error                      conductor_work.put_in_error
        active, lost                    → lost, active               guests.GuestsReported
        lost                            → active                     found_guests.follow_guest
        active, powering-on             → powering-off               power.switch_power
        stopped, lost, powering-off     → powering-on                power.switch_power
        powering-off                    → stopped, active            power.report_power
        powering-on                     → active, lost               power.report_power
        powering-off, powering-on       → active, lost               power.refuse_power
        stopped                         → powering-off               guests.GuestsReported
        active, lost                    → rebuilding                 rebuilds.rebuild_instance
        stopped                         → rebuilding-stopped         rebuilds.rebuild_instance
        rebuilding                      → active, lost               building.ReportResults
        rebuilding-stopped              → stopped, lost              building.ReportResults
        active, stopped                 → shelving                   shelves.shelve_instance
        shelving                        → offloaded                  deletions.note_destroyed
        shelving                        → offloaded                  deletions.give_up_on_host
        shelving                        → offloaded                  moves.begin_move
        offloaded                       → shelved                    shelves.put_on_shelf
        shelved                         → unshelving                 shelves.unshelve_instance
        unshelving                      → assigned                   shelves.assign_unshelved
        unshelving                      → abandoned                  conductor_work.abandon_instance
        abandoned, of a shelved one     → shelved                    shelves.put_on_shelf
        any                             → deleting, destroyed        deletions.DeleteInstances
        deleting                        → destroyed                  deletions.note_destroyed
        deleting                        → destroyed, deleting        deletions.end_deletions
        those whose guest was built     → abandoned                  deletions.give_up_on_host
        destroyed                       → gone                       deletions.forget_destroyed

An instance that moves stays ``active`` or ``stopped``; `roost.model.move_states` has the states of its move.

A deletion leads to ``deleting`` from every state but ``deleting`` and ``destroyed``, and straight to
``destroyed`` for an instance without a host, unless a host has to remove what is kept of a shelved one.
``give_up_on_host`` also fails the attempts that are under way on a host and ends its deletions, by
``fail_attempts`` and ``end_deletions``.
"""

from roost.state.cell_database.cell import Cell
from roost.state.cell_database.tables import SCHEMA

__all__ = ["SCHEMA", "Cell"]
