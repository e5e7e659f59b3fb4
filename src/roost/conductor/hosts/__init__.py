"""The cells and their hosts, as operators add, disable, move and remove them in a running cloud.

cells         the cells themselves, added and removed
registry      changes of hosts, with the rules that need several databases and placement
new_names     the check of the names of hosts that are added
host_removal  removes hosts and nodes from their cells, and ends instances that an operator knows to be gone
providers     removes a node's providers from placement, and none that others made
node_owners   finds nodes while their cell cannot be asked
watch         the processes and hosts that are up, as this process sees it
features      refuses features while processes of earlier versions run
types         cells, hosts and services as bodies of HTTP requests and responses
handlers      the handlers of the operations
operations    the operations, and their policy rules
"""
