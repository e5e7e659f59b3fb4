"""Events of the cloud: a log in the API database, and those of the cells' databases, read as one.

types       an event, and the query and pages over HTTP
store       the log: appended by the transaction that makes the change, read from a position, pruned
cell_logs   the logs of the cells (`roost.state.cell_database.state_changes`): numbered and pruned
reader      pages of all logs; a cell that is away stops none
merge       the logs of several databases by time
observed    hosts and processes that come and go, as events that several observers write once
cell_outages  cells whose databases are away, as events that several conductors write once
marker      the positions of a reader in all logs, as an opaque text
handlers    the operation over HTTP
operations  its path and its policy rule
"""
