"""The command line: `main` finds a command; each command, or group of commands, has a module.

Exit status: 0 done, 1 found something wrong, 2 could not run.

The program:

main, command_group                           the group of all commands, and the help of groups
failures, standard_streams                    errors and exit status, standard streams
completion, man, config, metrics              shell completion, manual pages, lists of options and metrics
command_description                           the texts of a command, for manual pages and documents

Commands that serve:

programs                                      placement, scheduler, conductors, ports and accelerators
nova_scheduler                                the scheduler of an existing Nova cloud
shadow_report                                 agreement and differences of shadow mode
agent, up                                     agents, the whole system in one process

Commands that call services:

host, node, cell, drain, aggregate            hosts, their nodes, cells, drains of them, host aggregates
instance, instance_moves, move, server_group  instances, their moves, server groups
instance_power                                 instances stopped, started, rebuilt, shelved
maintenance, maintenance_runs                 plans that empty many hosts in few groups; they are carried out
ask                                           requests to the scheduler for hosts
service, events, audit                        processes, events, the audit of conductors
status/, top/, fleet_map/                     problems of a cloud, a running service, the map of hosts

Commands on files and databases:

db, backup, exchange, verification            databases, backups, import and export, verification
records, archived_records, replay_decision    recorded decisions, their archives, and replays
doctor/                                       checks of a configuration
token, redfish                                service tokens, bare metal nodes of an agent

Shared parts:

connection, profiles                          address and token of a service
service_client                                the HTTP client of services
workers, listen_options                       options of commands that serve
options, numbers                              options and parameter types
configuration, nova_configuration             options of configuration files, those of nova.conf
databases, record_sources                     the databases and records that commands read
output, tables, progress                      printed results, tables as text, progress
instance_history, move_steps                  histories of instances as text, steps of moves
instance_names, host_selection                instances by their names, the hosts that a command is about
reasons_text, bars                            reasons of refusals as text, shares as bars
"""
