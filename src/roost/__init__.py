"""Roost decides where workloads run and keeps the books.

It is the scheduling half of a cloud: an OpenStack-compatible Placement service (who has what), a scheduler
(who gets it), the conductors and compute agents that carry a decision out in cells, and the records that say
why. It speaks OpenStack's wire formats, so existing clients work unchanged, and runs from one process on
SQLite up to many machines on PostgreSQL or MariaDB Galera.
"""

__version__ = "0.1.0"
