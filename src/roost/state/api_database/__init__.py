"""The API database: what the super conductor accepted and knows of all cells.

tables                          the tables and their schema
api_database                    opens the database by its options
requests, build_requests        requests for instances, from their acceptance until they are in cells
mappings, cell_mappings         which cell an instance is in, and which database a cell has
host_mappings, node_names       which cell a host is in, and who owns the name of a node
aggregates/, server_groups      host aggregates with zones, server groups
operator_words, drains          what operators have disabled, and how far it is emptied
node_journal, node_events_codec the events of the scheduler's node tables
events, event_types             what happened in the cloud
past, late_claims               instances that have ended, and claims that may come after their end
audit                           rounds, findings and repairs of the audit
kept_answers                    answers to requests with a key of the client's
liveness, open_cells, asking_cells  which conductors live, the cells' databases, and questions to all of them
host_errors                     errors of hosts and nodes
"""
