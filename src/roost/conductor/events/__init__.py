"""Events of the cloud, as one ordered log in the API database.

types       an event, and the query and pages over HTTP
store       the log: appended by the transaction that makes the change, read from a position, pruned
observed    hosts and processes that come and go, as events that several observers write once
marker      the position of a reader as an opaque text
handlers    the operation over HTTP
operations  its path and its policy rule
"""
