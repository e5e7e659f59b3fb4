"""The endpoint of a cell for the agents of its hosts.

service            runs the endpoint in a process
http               the endpoint over HTTP, one operation for each question
tokens             authenticates hosts by their tokens
endpoint           answers the questions of agents
sessions           the sessions of agents: at most one agent speaks for a host
transactions       the transactions in the cell's database: polls, confirmations of builds, tokens
host_orders        orders that hosts do not know yet, and polls that wait for them
destructions       the extent of orders to destroy: disks, ports, the attempt that stays
refusals           nodes that a host may not report, and refusals for agents and operators
endpoint_context   the context of an endpoint: a process with a relay to placement and the owners of names
name_owners        the check of the names of nodes that hosts report
relay              reads and writes providers in placement for agents, which have no access of their own
trees              answers to questions about the trees of hosts' nodes
tree_reshape       reshapes of these trees
sharing_providers  sharing providers that agents may write
offer_limits       the greatest inventories that agents may report
"""
