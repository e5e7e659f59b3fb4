"""The state of conductors, cells and agents in SQL databases: tables, and transactions of one class each.

api_database     requests, cells, aggregates, server groups, mappings, operators' words, node journals, events
cell_database    the instances, hosts and nodes of one cell
newest_rows      the newest rows of a log by time, read backwards
leases           the leases of processes, under which they own work
"""
