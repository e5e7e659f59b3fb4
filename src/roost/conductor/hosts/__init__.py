"""The cells and their hosts, as operators add, disable, move and remove them in a running cloud.

cells         the cells themselves, added and removed
lookup        hosts found and listed, with operators' words on them
registry      changes of hosts, with the rules that need several databases and placement
host_removal  removes hosts and nodes with their providers, and ends instances that are known to be gone
names         the check of the names of added hosts, and nodes found by name while their cell is away
watch         the processes and hosts that are up, as this process sees it, and features that they lack
types         cells, hosts and services as bodies of HTTP requests and responses
handlers      the handlers of the operations
operations    the operations, and their policy rules
"""
