"""The node table: the reports of all compute nodes as columns, and the claims since these reports.

table            `NodeTable`: all of it, and its changes as events of a journal
reported_nodes   takes in reports, heartbeats, aggregates and claims; rows of removed nodes for reuse
columns          columns of the nodes' numbers, claims since the reports included
numa_columns     columns of NUMA cells, and the guest topologies that fit
pci_columns      columns of PCI pools
directory        finds nodes by root provider, name, aggregate, or row of a fleet
lookups          the indexes that the directory uses
labels           values that many nodes share
aggregates       host aggregates and their metadata
cells            the uuids of cells, and the cell that a request names
zones            availability zones, as aggregates make them
host_layout      all nodes in the order of maps, in groups of zone, label and cell
host_states      hosts that are up, disabled, or down
node_amounts     what placement has of each node: capacity and use of one resource class
outstanding      claims and assignments that no report contains yet
numa_reports     NUMA topologies as reported, and the numbers of their cells
numa_topologies  NUMA topologies with the use by claims since the report
near_cells       NUMA cells close to PCI devices and networks, and PCI devices close to NUMA cells
tree_providers   single providers in the trees of hosts
heartbeats       the last heartbeat of each compute service
operator_words   the operators' words that the table has taken in
feed             keeps the table up to date from the cells' databases
journal          writes the events of a table, and makes past tables from them
hosts            the node table of a scheduler that is a service of its own
roots            root providers of placement, and nodes without an agent made from them
"""

from roost.scheduler.nodes.table import NodeTable

__all__ = ["NodeTable"]
