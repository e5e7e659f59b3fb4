"""Events of the cloud: the log of the API database and those of the cells' databases, read as one.

reader      pages of all logs, and positions in them as text; a cell that is away holds up none
newest      the newest events of all logs, read backwards by time, for people
merge       the merge of several logs by time
observed    hosts, processes and cells that come and go, as events that several observers write once
cell_logs   numbers and prunes the logs of the cells (`roost.state.cell_database.state_changes`)
operations  the operation over HTTP, and its policy rule

The log of the API database is `roost.state.api_database.events`, the types are in its ``event_types``.
"""
