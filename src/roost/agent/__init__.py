"""The agent on a compute host: reports the host's providers, builds and destroys guests as its cell orders.

program              the process of agents: hosts, tokens, state directories
options              options of the group ``agent``
hosted_agents        runs the agents of one process
host                 the agent of one host: its polls, and the tasks beside them
node_reports         reports of nodes for the scheduler: guests, metrics, hardware; those that are due
host_session         the states of an agent as a table, and its sessions from opening to end
workload             orders under way on a host
live_moves           the part of both hosts in a guest that moves while it runs
unstored_results     results of orders that the cell has not stored yet
fence                stops all guests of a host that has not heard of its cell for long
watchdog             the watchdog device of a machine, which resets it if the agent cannot
outbox               results on their way to the cell
node_providers       reports the providers of all nodes of a host
provider_report      brings placement in line with the tree that the driver wants
provider_merge       three-way merge of applied, wanted and present providers
tree_reshape         moves inventories and claims between providers in one write
provider_tree        providers of a node, for its driver to change (Nova's ``ProviderTree``)
tree_provider        one provider of such a tree
provider_config      custom inventories and traits from operators' YAML files
persistent_state     session, tokens and applied providers in the state directory
agent_context        the context of an agent: a process with the endpoint, the driver and the state
driver_calls         the driver as the agent calls it
toml_file            TOML files as typed values
troubles             logs a fault once when it begins and once when it ends
errors               errors of agents and drivers
drivers/             the driver interface, and the simulated, libvirt and Redfish drivers
neighbours/          ports (Neutron) and accelerators (Cyborg) of guests
protocol/            messages between an agent and its cell, and their client
"""
