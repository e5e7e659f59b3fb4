"""The API database: requests that were accepted, and the state of the cloud as a whole.

tables                      the tables, their schema, and the options of the database
build_requests              the life of a build request, from acceptance until its instances are in cells
request_reads               reads of requests that are not finished, and of mappings
mappings, cell_mappings     the cell of each instance, and the database of each cell
consumers                   consumers of instances that were unshelved
crossings                   moves from one cell to another that are under way
host_mappings, node_names   the cell of each host, and the owner of the name of each node
aggregates/, server_groups  host aggregates with zones, server groups
operator_words, drains      words of operators on what is disabled, and how far it is emptied
maintenances                maintenances of many hosts: begun, paused, resumed and cancelled by operators
maintenance_waves           what the owner of a maintenance writes
maintenance_rows            the rows of maintenances and their hosts, and reads of them
node_journal                the events of the schedulers' node tables
events, event_types         the log of events of the cloud
past                        instances that have ended, and claims that may be made after their end
audit                       rounds, findings and repairs of the audit
kept_answers                answers to requests with a key of the client's
open_cells                  the open databases of all cells, and reads of several cells at once
"""
