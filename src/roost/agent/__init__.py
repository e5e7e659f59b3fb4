"""The agent on a compute host: says what the host has, builds and destroys what its cell orders.

host           one host as machines: its session, polls and reports
workload       the orders of a host that are being carried out, and their results
health         the report of a node for the scheduler
reporting      brings placement in line with what the driver tells
merging        merges what was applied, what the driver wants and what is there
applied        what an agent has made of its providers
provider_tree  a node's providers, for its driver to change
driving        what machines ask the driver
keeping        what an agent keeps in its state directory
hosting        runs the agents of one process
program        the program of agents: hosts, tokens, state directories
options        its options
drivers/       how a kind of host builds: simulated, or loaded by name
errors         what can go wrong
"""
