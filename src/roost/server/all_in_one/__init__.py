"""The whole system in one process: placement, scheduler, conductors, cells and simulated hosts.

system          the system, with its options and the durations of its decisions and claims
layout          the layout of a system: cells and their simulated hosts
layout_parts    the parts that follow the layout
data_directory  the directory of a system: its lock, and the configuration, whose defaults are files in it
server          serves the HTTP APIs of all services on one address
"""
