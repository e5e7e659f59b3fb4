"""The built-in weighers, which order hosts: one a file, named ``PLUGIN``.

See `roost.scheduler.plugins.plugins` for the protocol.

anti_stacking, num_instances, io_ops  numbers of instances
build_failure                         failed builds
cpu, disk, ram, pci                   free processors, disk, memory and PCI devices
cross_cell                            the cell of a move
failure_domain                        members of the server group in a failure domain
fragmentation                         fragmentation of devices
hypervisor_version                    versions of hypervisors
image_properties                      instances with images of the same properties
metrics                               metrics that nodes report
preferred_traits                      traits that the flavor or the user prefers
server_group_soft_affinity, server_group_soft_anti_affinity  members of the server group on a host
"""
