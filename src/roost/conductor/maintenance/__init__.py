"""Maintenance: many hosts are emptied in few groups (waves), each into all the others, and worked on.

The plan is the scheduler's (`roost.scheduler.maintenance`). Here it is carried out, wave by wave; the moves
are those of drains (`roost.conductor.words.departures`).

guests      the instances of the cells, as a plan needs them
waves       the work of super conductors: waves begin, hosts are emptied, worked on and given back
hook        the operator's program for a host that is empty: its options, calls and results
hook_calls  runs the command, or sends a request to the URL
views       maintenances and their hosts, as they are shown
types       bodies, queries and responses
operations  the operations, their handlers and policy rules
"""
