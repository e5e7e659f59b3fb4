"""Roost decides where workloads run and records what they use.

It is the scheduling half of a cloud: an OpenStack-compatible Placement service, a scheduler, conductors and
compute agents that carry out decisions in cells, and records of the reasons. It uses OpenStack's wire
formats, so that existing clients work unchanged. It runs from one process on SQLite up to many machines on
PostgreSQL or MariaDB Galera.

Each folder is a room with one purpose, which imports only the rooms above it in this list:

model      immutable values that all rooms exchange
process    logs, metrics, traces, deadlines and threads of every process
storage    SQL databases: connections, schemas, group commit
fleet      the inventory in memory
web        the HTTP kernel
ledger     ordered, durable commits of the inventory, and replicas
records    the history of scheduling runs and attempts
state      the API database, the databases of cells, leases
placement  the Placement API
agent      the agent of a host
scheduler  from a request spec to claimed hosts
conductor  build requests, and the work of cells
nova       the bridge to an existing Nova cloud: its calls, databases and notifications
server     the programs
dashboard  pages for people
cli        the commands
bench      benchmarks, and replays of workloads
"""

__version__ = "0.1.0"
