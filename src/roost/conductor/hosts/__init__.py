"""The cells and their hosts, as operators add, disable, move and remove them while all runs.

errors      why a change is refused
mappings    the cell of each host that was added, in the API database
cells       the cells themselves, added and removed
registry    changes of hosts, with the rules that need several databases and placement
removing    removes hosts and nodes from their cells, and ends what an operator knows to be gone
providers   removes a host's providers from placement, and nothing foreign
watch       which processes and hosts are up, as this process sees it
types       cells, hosts and services as bodies of HTTP requests and responses
handlers    the operations
operations  their table and policy rules
"""
