"""The node table: what every compute node reports, as columns, and what claims have taken since.

table          takes in reports, aggregates and claims; `NodeTable`
columns        the numbers
metric_columns, numa_columns, pci_columns, cell_numbers  the numbers of metrics and devices
directory      nodes by root provider, name, aggregate; lookups, rows: how they are found, and free rows
labels         values that many nodes share; aggregates: host aggregates and their metadata; zones
outstanding    what claims took that reports do not contain yet
unreported     the assignments that reports do not count
numa_reports   NUMA topologies as reported; numa_topologies: as they are used now
near_cells, pci_near_cells  devices close to NUMA cells
tree_providers single providers in the trees of hosts
heartbeats     which services were seen lately
operator_words which words of operators the table has taken in
feed           keeps the table up to date from the cells' databases
journal        writes the events of a table, and makes past tables from them
hosts          the table of a scheduler that is a service
roots, unreported_roots  hosts that placement alone knows
"""

from roost.scheduler.nodes.table import NodeTable

__all__ = ["NodeTable"]
