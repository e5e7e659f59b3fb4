"""What the hardware objects that nodes report have for a request: NUMA cells, CPUs, pages, PCI devices.

Pure: reports, assignments and requests in, assignments out. The scheduler's filters use it, and anything else
that has to know which devices a guest gets.

pci_pools    the free PCI devices of a node, by pool, as its report has them
pci_choice   which devices of the pools a list of requests gets
"""
