"""The hardware of compute nodes beyond amounts: NUMA cells, CPUs, pages, PCI devices; and what fits on it.

    NodeReport.numa_topology ──▶ HostTopology ──┐ with_assigned (what claims took since)
                                                ├──▶ fit ──▶ Fit ──▶ Assignment
    flavor and image ──▶ GuestTopology ─────────┘     ▲
    NodeReport.pci_device_pools ──▶ Pools ────────────┘ (devices close to the cells)

Pure: reports, assignments and requests in, assignments out. The scheduler's filters use it, and anything else
that has to know what a guest gets. A *host cell* is a NUMA node of a compute node, a *guest cell* one of an
instance. Each guest cell goes to a host cell of its own. The rules are those of ``nova/virt/hardware.py`` and
``nova/pci/stats.py``.

host_topology   the NUMA cells of a node, as its report has them
guest_topology  the NUMA cells that an instance asks for
fit             which host cells, CPUs, pages and devices an instance gets; cell_fit: one cell of them
misfit          why an instance does not fit, in words
usage           a topology with more of it used
pci_pools       the free PCI devices of a node, by pool, as its report has them
pci_aliases    names under which flavors ask for devices
pci_ports      the devices that Neutron ports need
pci_placement  requests for devices that are resource providers, as request groups
pci_choice      which devices of the pools a list of requests gets
"""
