"""The driver of hosts with libvirt.

elements             parsing of libvirt's XML
host_capabilities    CPUs, NUMA cells, pages and guest architectures of a host
domain_capabilities  capabilities of guests of one domain type
node_devices         PCI devices and mediated devices of a host
traits               traits of a host, from both capabilities
inventory            inventory of a host's root provider and its mediated devices
pci                  PCI devices for guests, as Nova's device pools
providers            the provider tree of a host
held_by_guests       moves claims when an earlier agent reported other providers

driver               the driver
options              options of the group ``libvirt``
guest_options        the driver's options as a value, and the settings of guests from them
connection           blocking calls in threads, over a connection that is reopened
view                 snapshot of a host at one moment
machinery            operations on domains and mediated devices
guests               domains of a host, own and foreign
domain               XML of an instance's domain
guest_placement      placement of vCPUs and memory on the host, in that XML
guest_devices        interfaces and accelerators, in that XML
images               disk of a guest, made by qemu-img
shared_disks         disks of instances in a folder that hosts share
"""
