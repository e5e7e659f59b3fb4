"""Where the hosts of a scheduler as a service come from.

hosts       keeps the node table up to date: by the feed from the cells' databases, and by placement
unreported  nodes that nobody reports for, from what placement knows
roots       the root providers of placement: of a ledger in this process, or over HTTP
"""
