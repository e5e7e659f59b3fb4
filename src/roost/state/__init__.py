"""What conductors, cells and agents know, in SQL databases: tables, and one transaction a function.

api_database     requests, cells, aggregates, server groups, mappings, operators' words, node journals, events
cell_database    the instances, hosts and nodes of one cell
leases           which process does which work now, and when its work is free for others
database_option  the URL of a database as an option gives it
"""
