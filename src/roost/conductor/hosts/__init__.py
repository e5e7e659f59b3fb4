"""The hosts of all cells, as operators add, disable, move and remove them while all runs.

errors      why a change is refused
mappings    the cell of each host that was added, in the API database
registry    changes of hosts, with the rules that need several databases and placement
providers   removes a host's providers from placement, and nothing foreign
watch       which processes and hosts are up, as this process sees it
types       hosts and services as bodies of HTTP requests and responses
handlers    the operations
operations  their table and policy rules
"""
