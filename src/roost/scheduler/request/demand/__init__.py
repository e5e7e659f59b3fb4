"""What flavor, image and the rest of a request spec ask for, as request groups.

flavor_image   what a flavor and an image say on the same matter, and conflicts between them
extra_specs    ``resources[S]:CLASS``, ``trait[S]:NAME`` and ``group_policy`` of a flavor
cpus           dedicated, mixed and shared processors, threads, emulator threads
cpu_set        sets of processor numbers, as in ``0-7,^3``
features       traits and resources that extra specs and image properties stand for
pci            PCI devices of aliases and ports
accelerators   the request groups of device profiles
moves          moves that devices do not allow
numa_groups    the NUMA nodes of a guest as request groups
groups         all of it together: the request groups
"""
