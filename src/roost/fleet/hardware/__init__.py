"""The hardware of compute nodes beyond amounts: NUMA cells, CPUs, pages, PCI devices; and what fits on it.

    NodeReport.numa_topology ──▶ HostTopology ──┐ with_assigned (what claims took since)
                                                ├──▶ fit ──▶ Fit ──▶ Assignment
    flavor and image ──▶ GuestTopology ─────────┘     ▲
    NodeReport.pci_device_pools ──▶ FreePools ────────┘ (devices close to the cells)

Pure: reports, assignments and requests in, assignments out. The scheduler's filters use it, and all other
code that needs the hardware that a guest gets. A *host cell* is a NUMA node of a compute node, a *guest cell*
one of an instance. Each guest cell goes to a host cell of its own. The rules are those of
``nova/virt/hardware.py`` and ``nova/pci/stats.py``.

host_topology   the NUMA cells in a node's report, and with assigned cells counted as used
guest_topology  the NUMA cells that an instance requests
cpus            sets of CPUs as integers
fit             the host cells, CPUs, pages and devices that an instance gets
cell_fit        the part of one host cell that one guest cell gets
pinning         the host CPUs that the dedicated vCPUs of a guest cell are pinned to
lack            the condition of a guest cell that a host cell does not meet
pci_pools       the free PCI devices in a node's report, by pool
pci_aliases     names of devices in flavors
pci_ports       the devices that Neutron ports need
pci_placement   requests for devices that are resource providers, as request groups
pci_choice      the choice of free devices for a list of requests
"""
