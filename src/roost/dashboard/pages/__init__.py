"""Views as HTML, one file for each page.

absence        the reason in place of a page's content
cells          cells and processes
decision       one decision
decisions      the list of decisions
events         the events of the cloud
flavors        the flavors, how many of each fit, what binds
fleet_map      the map, its denominators, groups of hosts
host           a host
host_hardware  its NUMA cells and devices
host_history   its builds and events
host_tree      its provider tree
hosts          the list of hosts
instance       one instance, with its history
instances      the list of instances
maintenance    one maintenance, with its hosts
maintenances   the list of maintenances
overview       what needs attention, capacity and use
redecision     a decision made again without each of its conditions
what_if        the form of a request, and how many of it fit
series         charts over time, with the same numbers as a table
"""
