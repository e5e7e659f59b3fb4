"""Roost decides where workloads run and records what they use.

It is the scheduling half of a cloud: an OpenStack-compatible Placement service, a scheduler, conductors and
compute agents that carry out decisions in cells, and records of the reasons. It uses OpenStack's wire
formats, so that existing clients work unchanged. It runs from one process on SQLite up to many machines on
PostgreSQL or MariaDB Galera.

Each folder is a room with one purpose; `logs` configures the log lines of all processes.
"""

__version__ = "0.1.0"
