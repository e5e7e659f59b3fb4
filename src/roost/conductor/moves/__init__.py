"""Moves of instances: asked for by operators, carried out by the conductors of cells and by agents.

requests    the words of operators: a move is accepted, confirmed, reverted, aborted
queue       the moves that one conductor owns, and the limits of moves at once
claims      the work of a cell's conductor: claims targets, takes alternates, gives claims back and frees them
crossings   the work of super conductors on moves to other cells, and crossing_steps its steps
departures  instances that are to leave their hosts, asked to move and asked again
operations  the operations of ``/v1/moves``, their handlers and policy rules
types       their bodies and queries
views       moves of all cells, found and listed

The states are in `roost.model.move_states`, the transactions in `roost.state.cell_database.moves` and
``move_reports``, what hosts are told in ``move_orders``.
"""
