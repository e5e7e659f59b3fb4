"""Turns flavor, image and the rest of a request spec into request groups.

demand           all that one instance needs: queries, NUMA topology and PCI devices, each derived once
groups           the request groups and queries of a request spec, by its extra specs and from the parts below
flavor_image     values that flavor and image give for one setting, and conflicts between them
cpus             dedicated, mixed and shared processors, threads, emulator threads
features         traits and resources that extra specs and image properties stand for
pci              PCI devices of aliases and ports
accelerators     the request groups of device profiles
moves            moves that devices do not allow
guest_topology   the NUMA topology that flavor and image ask for
numa_groups      the NUMA nodes of a guest as request groups, and PCI devices close to them
wanted_hardware  phrases for the hardware that a request wants
"""
