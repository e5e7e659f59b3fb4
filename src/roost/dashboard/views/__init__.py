"""The views of pages: frozen structs, made by queries.

absence        the reason why a page has nothing to show
attention      findings about what needs attention, with the pages that show more
cells          cells and processes, features, the audit, the lag of databases
cloud_cells    the cells and their counts, which all viewers share
decision       one decision: its funnel, weights, attempts, or why it was refused
decisions      the list of decisions
events         the events of the cloud, the newest first
flavors        the flavors in use, with how many of each fit
fleet_map      the map of the fleet
funnel         the steps of a decision, with the hosts that each removed
host           a host
host_hardware  its NUMA cells and devices
host_history   its builds and events
host_holders   the consumers of its providers
host_past      a host as of an earlier time
host_stays     the stays of an instance on hosts, by its history
host_tree      its provider tree
hosts          the list of hosts
instance       one instance, with its history
instances      the list of instances
maintenance    one maintenance, with its hosts
maintenances   the list of maintenances
moments        times that people write
outcome        the outcome of a decision in a word
overview       what needs attention, capacity and use
overview_past  capacity and use as of an earlier time
redecision     a decision made again without each of its conditions
relaxed_form   the form of a request with a change that makes it fit
request_form   the form of a request
what_if        the number of instances that fit, now or on supposed hosts
series         use, claims, decisions and states over time
"""
