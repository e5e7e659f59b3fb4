"""Host aggregates and availability zones in the API database.

store        the transactions
zones        the zones of hosts, as aggregates make them
differences  what differs between two states of the aggregates
errors       refusals
known        the aggregates that a process has read
"""
