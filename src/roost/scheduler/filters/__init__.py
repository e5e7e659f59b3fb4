"""The built-in filters, which select the hosts that may be used: one a file, named ``PLUGIN``.

See `roost.scheduler.plugins.plugins` for the protocol.

aggregate_image_properties_isolation, aggregate_instance_extra_specs  image and flavor against aggregates
aggregate_multi_tenancy_isolation, aggregate_type_affinity  aggregates reserved for projects or flavors
aggregate_io_ops, aggregate_num_instances, io_ops, num_instances  limits of a number of each host
all_hosts                               every host
availability_zone, isolated_hosts       hosts by zone, and hosts for isolated images
compute                                 enabled hosts with a recent heartbeat
compute_capabilities, image_properties  capabilities of hosts and hypervisors
different_host, same_host, simple_cidr_affinity  hosts by the hints of users
json                                    a query that users write in a hint
metrics                                 hosts that report all metrics of an option
numa_topology, pci_passthrough          NUMA cells and PCI devices
server_group_affinity, server_group_anti_affinity  server groups
"""
