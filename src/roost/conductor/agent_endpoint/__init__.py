"""The endpoint of a cell for the agents of its hosts.

service            runs the endpoint in a process
http               the endpoint over HTTP, one operation for each question
tokens             authenticates hosts by their tokens
endpoint           answers the questions of agents
sessions           the sessions of agents: at most one agent speaks for a host
polls              the transaction that stores polls
works              other transactions in the cell's database
new_work           work of hosts that their agents do not know yet
too_old            builds that an agent of an earlier version cannot carry out
refusals           reports that are refused, for their agents and for operators
new_nodes          the check of nodes that a host reports for the first time
endpoint_context   the context of an endpoint: a process with a relay to placement and the owners of names
name_owners        the check of the names of nodes that hosts report
relay              reads and writes providers in placement for agents, which have no access of their own
trees              answers to questions about the trees of hosts' nodes
tree_reshape       reshapes of these trees
sharing_providers  sharing providers that agents may write
offer_limits       the greatest inventories that agents may report
"""
