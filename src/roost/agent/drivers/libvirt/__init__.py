"""The driver of hosts with libvirt.

elements             reading libvirt's XML
host_capabilities    what a hypervisor tells of its host: CPUs, cells, pages, architectures
domain_capabilities  what it tells of the guests that it can run
node_devices         the PCI devices of a host and its mediated devices
traits               the traits of a host by both capabilities
inventory            the amounts of a host
numa                 the NUMA cells of a host, as Nova's object
pci                  the PCI devices that guests may have, as Nova's pools
providers            all of it as a provider tree
moving               claims that move when these are others than an agent before told

driver               the driver
options              its options
guest_options        these as a value, and what follows for guests
connection           blocking calls in threads, over a connection that is opened again
view                 a host as it was told at one moment
machinery            what is done to domains and mediated devices
guests               the domains of a host, ours and others'
metadata             what the driver writes into its domains
domain               the XML of an instance's domain
placing              where its vCPUs and memory are on the host
images               its disk
"""
